"""Runs programs of the site for a daemon: each in a session of its own, without the daemon's rights and environment.

Theory: a program is started by the launcher, which is told to die with the daemon.  What it prints is read as fast as
it is wanted: a program that floods its output waits in its own write.  Its processes are found by its group and its
tree, and those that have left both by a mark in their environment, which also finds what a daemon that was killed has
left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any, Protocol

from condor_actors.cores.site_programs.programs import SiteProgram
from condor_actors.machine.run.launch import (
    Ended,
    Launched,
    Launcher,
    LaunchFailure,
    LaunchPlan,
    PosixLauncher,
    input_of,
)
from condor_actors.machine.run.pipe_reader import PipeReader
from condor_actors.machine.run.process_tree import MARK, descendants, marked, signal_all, start_ticks
from condor_actors.machine.run.users import Account

__all__ = ["PosixSitePrograms", "SitePrograms"]

SAID_BYTES = 2000

Wrote = Callable[[bytes], None]
Over = Callable[[int, str, str], None]
"""Called with status (negative: minus the signal), why it could not begin, and the end of standard error."""


class SitePrograms(Protocol):
    """Starts and ends runs; the simulation has its own."""

    def start(self, program: SiteProgram, run: int, wrote: Wrote, over: Over) -> None:
        """Start one; ``over`` is called once, later."""

    def stop(self, run: int, *, fast: bool) -> None:
        """End all processes of a run: by SIGTERM, or by SIGKILL."""

    def hang_up(self, run: int) -> None:
        """SIGHUP to the first process of a run."""

    def close(self) -> None:
        """Kill what runs; nothing is told any more."""


class PosixSitePrograms:
    """The real one.

    Args:
        reactor: Twisted's.
        mark: names the daemon among those of this machine: what bears it is the daemon's, or was of one before it.
        account: as whom they run; None: as this process.  Raises LookupError where there is no such account.
        launcher: starts processes.
    """

    def __init__(self, reactor: Any, mark: str, account: Callable[[], Account | None],
                 launcher: Callable[[], Launcher] | None = None) -> None:
        self._reactor = reactor
        self._family = f"site:{mark}:"
        self._mark = f"{self._family}{os.getpid()}.{start_ticks(os.getpid())}:"
        self._account = account
        self._launcher = launcher if launcher is not None else lambda: PosixLauncher(reactor)
        self._runs: dict[int, _Run] = {}
        self._is_first, self._begun = True, 0

    def _kill_strangers(self) -> None:
        """What a daemon has left that was killed."""
        signal_all(marked(self._family, but=self._mark), signal.SIGKILL)

    def start(self, program: SiteProgram, run: int, wrote: Wrote, over: Over) -> None:
        """See :class:`SitePrograms`."""
        def ended(status: int, problem: str, said: str) -> None:
            if self._runs.pop(run, None) is not None:
                self._reactor.callInThread(_kill_marked, mark)  # what it has left running in sessions of their own
                over(status, problem, said)

        self._begun += 1
        mark = f"{self._mark}{self._begun}:"  # not the number of the run: an actor that begins anew counts anew
        if self._is_first:
            self._is_first = False
            self._reactor.callInThread(self._kill_strangers)
        begun = self._runs[run] = _Run(self._reactor, mark, wrote, ended)
        try:
            begun.start(program, self._launcher(), self._account())
        except (OSError, LookupError, RuntimeError) as error:
            problem = str(error)
            begun.close()
            self._reactor.callLater(0.0, ended, 0, problem, "")

    def stop(self, run: int, *, fast: bool) -> None:
        """See :class:`SitePrograms`."""
        found = self._runs.get(run)
        if found is None:
            return
        found.signal(signal.SIGKILL if fast else signal.SIGTERM)
        if fast:
            self._reactor.callInThread(_kill_marked, found.mark)

    def hang_up(self, run: int) -> None:
        """See :class:`SitePrograms`."""
        found = self._runs.get(run)
        if found is not None and found.pid:
            signal_all([found.pid], signal.SIGHUP)

    def close(self) -> None:
        """See :class:`SitePrograms`."""
        runs, self._runs = self._runs, {}
        for run in runs.values():
            run.signal(signal.SIGKILL)
            run.close()
        if runs:
            _kill_marked(self._mark)


def _kill_marked(mark: str) -> None:
    signal_all(marked(mark), signal.SIGKILL)


class _Run:
    """One run and its two pipes."""

    def __init__(self, reactor: Any, mark: str, wrote: Wrote, over: Over) -> None:
        self.mark = mark
        self._reactor = reactor
        self._wrote = wrote
        self._over = over
        self._said = b""
        self._launched: Launched | None = None
        self._over_already = False
        self._pipes: list[PipeReader] = []

    @property
    def pid(self) -> int:
        """Of its first process; 0: it has none, or none any more."""
        return self._launched.pid if self._launched is not None and not self._over_already else 0

    def start(self, program: SiteProgram, launcher: Launcher, account: Account | None) -> None:
        """Start its first process.

        Raises:
            OSError: not even the launcher could be started.
        """
        given = [input_of(program.stdin)]
        try:
            for take in (self._wrote, self._complained):
                reading, writing = os.pipe2(os.O_CLOEXEC)
                given.append(writing)
                self._pipes.append(PipeReader(self._reactor, reading, take))
            environment = dict(program.environment) | {MARK: self.mark}
            self._launched = launcher.launch(LaunchPlan(
                program=program.executable, arguments=program.arguments, environment=environment,
                directory=program.directory, stdin=given[0], stdout=given[1], stderr=given[2], account=account,
                limits={"core": "0"}), lambda: None, self._failed, self._ended)
        finally:
            for descriptor in given:
                os.close(descriptor)
        for pipe in self._pipes:
            pipe.read()

    def _complained(self, data: bytes) -> None:
        self._said = (self._said + data)[-SAID_BYTES:]

    def _failed(self, failure: LaunchFailure) -> None:
        self._over_already = True
        self.close()
        self._over(0, failure.reason, "")

    def _ended(self, how: Ended) -> None:
        """Its first process has ended: what it printed counts, and what it has left running ends."""
        self._over_already = True
        for pipe in self._pipes:
            pipe.drain()
        self.close()
        assert self._launched is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._launched.pid, signal.SIGKILL)  # a number of a group that lives is not given again
        said = "".join(each if each.isprintable() else " " for each in self._said.decode(errors="replace")).strip()
        self._over(-how.exit_signal if how.exit_signal >= 0 else how.exit_code, "", said)

    def signal(self, number: int) -> None:
        """Send a signal to all its processes that are found by group and tree."""
        if not self.pid:
            return
        signal_all(descendants([self.pid]), number)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def close(self) -> None:
        """Read no more."""
        for pipe in self._pipes:
            pipe.close()
