"""The starter host as a process: started so that it outlives the startd, found again, and watched.

Theory: the starter host is the parent of all jobs, so it must survive its startd.  It gets a session of its own and
nothing of the startd's but its log; ``$(RUN)/starter-host.address`` says which process it is.  Its end is noticed by a
pidfd, which also works for a process that a former startd has started.  A startd that has dropped root has its helper
start it as root, which it needs until it has a helper of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from condor_actors.addresses import BadAddress, split_address
from condor_actors.machine.privilege.helper import process_helper, send_signal
from condor_actors.machine.run.process_watch import ProcessWatch
from condor_actors.machine.run.scheduling_starvation import ProcessorWait
from condor_actors.machine.supervisor import fork_server

__all__ = ["PORT", "PROGRAM", "StarterHosts", "StarterProcess", "starter_command"]

HASTY_S = 3.0
PROGRAM, PORT = "starter-host", "_CONDOR_STARTER_HOST_PORT"
"""Its name among the programs of a startd's helper, and the variable that it may be given there."""


def starter_command(run: Path) -> list[str]:
    """What a starter host is, for the startd of this folder of sockets."""
    return [sys.executable, "-m", "condor_actors.services", "starter-host", "--startd-socket",
            str(run / "startd.sock")]


class StarterHosts(Protocol):
    """What a startd needs: start a starter host, find a living one, hear of its end."""

    def living(self) -> int:
        """The pid of a starter host that runs already, or is about to; 0: none."""

    def start(self) -> int:
        """Start one; returns its pid."""

    def watch(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have ``ended(pid)`` called when that process is gone; only the latest pid is watched."""

    def stop(self, pid: int, fast: bool) -> None:
        """Ask it to end."""

    def kill(self, pid: int) -> None:
        """End it at once."""

    def lacks_processor(self, pid: int) -> bool:
        """Whether it wanted the processor most of the time since this was last asked (or since it is watched), and did
        not get it."""


class StarterProcess:
    """The real one.

    Args:
        run: the folder of sockets.
        log: where it writes before its own log is open.
        reactor: Twisted's.
        environment: of the new process.
    """

    def __init__(self, run: Path, log: Path, reactor: Any, environment: Mapping[str, str] | None = None) -> None:
        self._run = run
        self._log = log
        self._reactor = reactor
        self._environment = dict(os.environ if environment is None else environment)
        self._watched: ProcessWatch | None = None
        self._children: set[int] = set()
        self._started_s = -HASTY_S
        self._gave_port = False
        self._wait = ProcessorWait()

    def living(self) -> int:
        """The pid in the address file, when that process is a starter host of this folder; else a child of ours that
        has not come so far as to write its own."""
        pid = self._listening()
        return pid or next((pid for pid in tuple(self._children) if not self._has_ended(pid)), 0)

    def _has_ended(self, pid: int) -> bool:
        """Whether a child of ours has; then it is one no more."""
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                return False
        self._children.discard(pid)
        return True

    def _listening(self) -> int:
        try:
            words = (self._run / "starter-host.address").read_text().split()
            pid = int(words[-1])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            return 0
        socket = str(self._run / "startd.sock").encode()
        return pid if b"starter-host" in command and socket in command else 0

    def start(self) -> int:
        """Start ``python -m condor_actors.services starter-host``.

        It is given the port of the one before, so that shadows that look for lost runs learn at once that they are
        gone; should that one fail at once, the port may be another's by now, and the next one takes any.
        """
        port = self._former_port()
        hasty = self._gave_port and time.monotonic() - self._started_s < HASTY_S
        self._gave_port = bool(port) and not hasty
        variables = {PORT: port} if self._gave_port else {}
        self._started_s = time.monotonic()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        helper = process_helper()
        with open(self._log, "ab") as log:
            if helper is not None:
                pid = helper.program(PROGRAM, log.fileno(), variables=variables)
            else:
                pid = fork_server.start(starter_command(self._run), {**self._environment, **variables}, log.fileno())
        self._children.add(pid)
        return pid

    def _former_port(self) -> str:
        try:
            node = (self._run / "starter-host.address").read_text().split()[0]
        except (OSError, IndexError):
            return ""
        try:
            port = split_address(node)[1]
        except BadAddress:
            port = None
        return str(port) if port else ""

    def watch(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have ``ended(pid)`` called when that process is gone."""
        if self._watched is not None:
            if self._watched.pid == pid:
                return
            self._watched.stop()
        self._wait.since_last(pid)

        def gone() -> None:
            if pid in self._children:
                self._has_ended(pid)
            self._watched = None
            ended(pid)

        self._watched = ProcessWatch(pid, self._reactor, gone)

    def stop(self, pid: int, fast: bool) -> None:
        """TERM, or QUIT when it has to be fast."""
        with contextlib.suppress(ProcessLookupError):
            send_signal(pid, signal.SIGQUIT if fast else signal.SIGTERM)

    def kill(self, pid: int) -> None:
        """KILL; the jobs' launchers go with it."""
        with contextlib.suppress(ProcessLookupError):
            send_signal(pid, signal.SIGKILL)

    def lacks_processor(self, pid: int) -> bool:
        """Whether it waited for the processor most of the time since this was last asked."""
        return self._wait.since_last(pid)

    def close(self) -> None:
        """Watch nothing any more; the process goes on."""
        if self._watched is not None:
            self._watched.stop()
            self._watched = None
