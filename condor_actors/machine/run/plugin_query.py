"""Asks the administrator's transfer plugins what they can do (``-classad``).

Theory: a plugin is started by the daemon, with hardly any environment and a deadline, beside the reactor.  One that
does not answer is left out, and the log says why; jobs that need it wait for another machine.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from condor_actors.cores.transfer_plugins import BadPlugin, Plugin, PluginTable, plugin_facts

__all__ = ["SEALED_PATH", "PluginQuery", "ask_plugins"]

MOST_BYTES = 64 * 1024
SEALED_PATH = "/usr/local/bin:/usr/bin:/bin"
"""PATH of plugins."""


def ask_plugins(paths: Sequence[str], most_s: float) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """The plugins that answered, and for each other one a sentence that says why it is left out (blocks)."""
    found, problems = [], []
    for path in dict.fromkeys(paths):
        try:
            if not path.startswith("/"):
                raise BadPlugin(f"{path} is no absolute path")
            found.append(plugin_facts(path, _ask(path, most_s)))
        except (BadPlugin, OSError) as error:
            problems.append(f"FILETRANSFER_PLUGINS: {error}")
    return tuple(found), tuple(problems)


def _ask(path: str, most_s: float) -> str:
    """What it writes; its processes are killed when the time is over, or when it writes too much."""
    end_s, said = time.monotonic() + most_s, b""
    with subprocess.Popen([path, "-classad"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env={"PATH": SEALED_PATH}, cwd="/", process_group=0) as process:
        try:
            assert process.stdout is not None
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                while True:
                    left_s = end_s - time.monotonic()
                    if left_s <= 0 or not selector.select(left_s):
                        raise BadPlugin(f"{path} -classad took more than {most_s:g} s "
                                        "(FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT)")
                    block = os.read(process.stdout.fileno(), MOST_BYTES)
                    said += block
                    if len(said) > MOST_BYTES:
                        raise BadPlugin(f"{path} -classad wrote more than {MOST_BYTES} bytes")
                    if not block:
                        break
            try:
                status = process.wait(max(0.0, end_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise BadPlugin(f"{path} -classad does not end") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if status != 0:
        raise BadPlugin(f"{path} -classad ended with status {status}")
    return said.decode(errors="replace")


class PluginQuery:
    """What the plugins of this machine can do, asked anew with each configuration.

    Args:
        log: for plugins that are left out.
        in_thread: runs a function where it does not hold the actors up.

    Attributes:
        table: what is known.
    """

    def __init__(self, log: Any, in_thread: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self.table = PluginTable()
        self._log = log
        self._in_thread = in_thread
        self._waiting: list[Callable[[], None]] = []
        self._asked = self._answered = 0

    def ask(self, paths: Sequence[str], most_s: float) -> None:
        """Ask these, and no others from now on."""
        self._asked += 1
        number = self._asked
        if not paths:
            self._told(number, ((), ()))
            return
        self._in_thread(lambda: ask_plugins(paths, most_s)).addCallbacks(
            lambda found: self._told(number, found), lambda why: self._told(number, ((), (str(why.value),))))

    def _told(self, number: int, found: tuple[Sequence[Plugin], Sequence[str]]) -> None:
        if number != self._asked:
            return
        self._answered = number
        plugins, problems = found
        for problem in problems:
            self._log.error("{problem}; it is left out", problem=problem)
        self.table = PluginTable(plugins)
        waiting, self._waiting = self._waiting, []
        for function in waiting:
            function()

    def when_known(self, function: Callable[[], None]) -> None:
        """Call it when every plugin has answered; now, if they have."""
        if self._answered == self._asked:
            function()
        else:
            self._waiting.append(function)
