"""Processes that outlive the one that started them, and how to keep an eye on them all the same.

A process is watched through a descriptor of its own (pidfd), which becomes readable when it ends: the same for a child
and for one that an earlier life of ours started. What runs is recorded in a small file, replaced at once each time; a
recorded process counts only if a living process has that id *and* that start time, since ids are used again. A process
started just before a crash, and so not recorded, is found by the mark in its environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorFDSet, IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from condor_actors.machine.supervisor import fork_server
from condor_actors.machine.supervisor.process_marks import (
    MARK,
    KeptProcess,
    command_line,
    environment_of,
    marked_processes,
    real_uid,
    start_ticks,
)
from condor_actors.own_files import open_own, read_own, replace_own

__all__ = ["Ended", "KeptProcesses"]

@attrs.frozen
class Ended:
    """How a process ended: ``code`` or ``signal``, both None when it was not our child."""

    code: int | None = None
    signal: int | None = None


@implementer(IReadDescriptor)
class _Watch:
    """A pidfd in the reactor's hands."""

    def __init__(self, descriptor: int, ended: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._ended = ended

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """The process has ended."""
        self._ended()

    def connectionLost(self, reason: Failure) -> None:  # noqa: N802
        """The reactor lets go."""

    def logPrefix(self) -> str:  # noqa: N802
        """For Twisted's log."""
        return "kept process"


class KeptProcesses:
    """Starts, finds again, signals and watches processes.

    Args:
        reactor: the real one.
        record: the file that says what runs.
        accounts: whose processes they may be besides this one's.
    """

    def __init__(self, reactor: IReactorFDSet, record: Path, accounts: Collection[int] = ()) -> None:
        self._accounts = {os.getuid(), *accounts}
        self._reactor = reactor
        self._record = record
        self._running: dict[str, KeptProcess] = {}
        self._watches: dict[str, tuple[int, _Watch]] = {}

    @property
    def running(self) -> Mapping[str, KeptProcess]:
        """Those that run, by name."""
        return self._running

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str], *, errors: Path,
              ended: Callable[[KeptProcess, Ended], None]) -> KeptProcess:
        """Start a process in a session of its own.

        Args:
            name: what it is called in the record.
            command: an absolute path and its arguments.
            environment: all of it.
            errors: the file that gets what it writes to its standard output and error, emptied first.
            ended: called once, from the reactor, when it is gone.

        Raises:
            OSError: it cannot be started.
        """
        marked = {**environment, MARK: f"{self._record}:{name}"}
        output = open_own(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        try:
            server = fork_server.server()
            birth = server.birth(command, marked, output) if server is not None else None
            pid = birth.pid if birth is not None else _executed(command, marked, output)
        finally:
            os.close(output)
        process = KeptProcess(name, pid, start_ticks(pid) or 0)
        self._watch(process, ended)
        if birth is not None:
            birth.go()
        return process

    def adopt(self, ended: Callable[[KeptProcess, Ended], None], *, is_ours: Callable[[str, list[str]], bool]
              ) -> tuple[KeptProcess, ...]:
        """Take up again what an earlier process of ours left running.

        Args:
            ended: as for `start`.
            is_ours: whether a process with this mark and this command line is the kept one itself, not a
                descendant of it; only asked about processes that are not in the record.
        """
        for process in self._recorded():
            if start_ticks(process.pid) == process.ticks and self._is_believed(process):
                self._watch(process, ended, keep_record=True)
        for pid, name in marked_processes(str(self._record)).items():
            ticks = start_ticks(pid)
            if name not in self._running and ticks is not None and is_ours(name, command_line(pid)) and (
                    real_uid(pid) in self._accounts):
                self._watch(KeptProcess(name, pid, ticks), ended, keep_record=True)
        self._write()
        return tuple(self._running.values())

    def _is_believed(self, process: KeptProcess) -> bool:
        """Whether the record is to be believed: others than root can write it, who must not choose whom root ends."""
        return os.geteuid() != 0 or (
            real_uid(process.pid) in self._accounts
            and os.fsencode(f"{MARK}={self._record}:{process.name}") in environment_of(process.pid))

    def signal(self, name: str, number: int) -> None:
        """Send a signal to exactly that process; one that is gone is no error."""
        watched = self._watches.get(name)
        if watched is None:
            return
        try:
            signal.pidfd_send_signal(watched[0], number)
        except ProcessLookupError:
            return


    def _watch(self, process: KeptProcess, ended: Callable[[KeptProcess, Ended], None], *,
               keep_record: bool = False) -> None:
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return
        watch = _Watch(descriptor, lambda: self._gone(process, ended))
        self._watches[process.name] = (descriptor, watch)
        self._running[process.name] = process
        if not keep_record:
            self._write()
        self._reactor.addReader(watch)

    def _gone(self, process: KeptProcess, ended: Callable[[KeptProcess, Ended], None]) -> None:
        descriptor, watch = self._watches.pop(process.name)
        self._reactor.removeReader(watch)
        how = _exit_status(descriptor)
        os.close(descriptor)
        self._running.pop(process.name, None)
        self._write()
        ended(process, how)

    def _recorded(self) -> list[KeptProcess]:
        try:
            content: Any = json.loads(read_own(self._record) or b"{}")
            return [KeptProcess(name, int(entry["pid"]), int(entry["ticks"])) for name, entry in content.items()]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return []

    def _write(self) -> None:
        """Replace the record. A disk that is full costs nothing but the record: the marks find the processes too."""
        content = {process.name: {"pid": process.pid, "ticks": process.ticks} for process in self._running.values()}
        with contextlib.suppress(OSError):
            replace_own(self._record, (json.dumps(content, indent=1) + "\n").encode())


def _executed(command: Sequence[str], environment: Mapping[str, str], output: int) -> int:
    """Execute a command in a session of its own, with this output and no input; its id.

    Raises:
        OSError: it cannot be started.
    """
    files = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    defaults = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM]
    return os.posix_spawn(command[0], list(command), environment, file_actions=files, setsid=True, setsigmask=[],
                          setsigdef=defaults)


def _exit_status(descriptor: int) -> Ended:
    """Reap the process of a pidfd; one that was never our child leaves nothing to read."""
    try:
        result = os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return Ended()
    if result is None:
        return Ended()
    if result.si_code == os.CLD_EXITED:
        return Ended(code=result.si_status)
    return Ended(signal=result.si_status)

