"""Starts a job's process: one start of the launcher, which becomes the job.

Theory: the starter host is a big process; a start (native/spawn) never copies it.  The launcher takes every step that
must happen in the new process and reports the one that failed over a pipe; the pipe's end without a word means that the
job runs.  The end of the process is an event of its pidfd, and wait4 says what it and the children it waited for have
used.

A job with processes of its own needs a first process in its pid namespace.  Where root's rights are at hand the
launcher is started as that; else it makes the namespace and stands for it as a relay.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

from condor_actors.machine.native.programs import launcher_path
from condor_actors.machine.native.spawn import spawn
from condor_actors.machine.privilege.helper import process_helper
from condor_actors.machine.run.process_tree import MARK
from condor_actors.machine.run.process_watch import ProcessWatch
from condor_actors.machine.run.users import Account

__all__ = ["Ended", "LaunchFailure", "LaunchPlan", "Launched", "Launcher", "PosixLauncher", "input_of"]

DEATH_SIGNAL = 9
STATUS_BYTES = 4
OF_THE_MACHINE = frozenset((
    "capabilities", "cgroup", "container", "death-signal", "descriptors", "filter", "gid", "groups", "hide", "join",
    "loopback", "namespaces", "no-new-privs", "pid-namespace", "rights", "session", "shut-device", "source", "stop",
    "uid"))
"""Stages of the launcher that no program and no image has a part in."""
VEIL = "_CONDOR_JOB_ENV_"
"""Stands before the names of the job's variables until the launcher takes it away: what a dynamic linker does for
``LD_PRELOAD`` must not happen before the job, with the launcher's rights."""


@attrs.frozen(kw_only=True)
class LaunchPlan:
    """What is to be started.

    Attributes:
        program, arguments: an absolute path and its arguments.
        environment: all of it.
        directory: where it begins.
        stdin, stdout, stderr: descriptors of this process.
        account: as whom; None: as this process.
        cgroups: directories to join.
        limits: name to soft and hard limit, as the launcher knows them.
        isolate: namespaces; binds: mounts in them; tmpfs: file systems in memory that are mounted there and go with it.
        join: files of another process's namespaces.
        read_only: folders that it cannot write to; hide: folders that are empty for it, but for what is bound in them.
        shut_devices: device files that it cannot open; devices: those that it has in an image beside the usual ones.
        filter: which system calls the kernel does for it (native/launcher/filter.c).
        layers, image: of a container: a folder with ``upper``, ``work`` and ``root`` in it, over the folder that
            becomes the process's root directory; ``read_only_binds``: mounts in it that cannot be written to.
        checked: paths of the image, of what is bound, of where it begins, to which no link is followed; the descriptor
            of what was seen there is that of what is to be there still, and -1 where nothing was kept open.
        root: the process's root directory; ``program`` and ``directory`` are seen from there.  Empty: ours.
        keep: descriptors that it keeps beside the first three, by the numbers they have here.
        terminal: ``stdin`` is one, and becomes that of the session that the program begins.
        stops_at_exec: the program stands still at its first instruction until it is sent SIGCONT.
        lingers: a descriptor, and seconds: when the program has ended its namespace of processes stays until the other
            end of that pipe is closed, but no longer.
    """

    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdin: int
    stdout: int
    stderr: int
    account: Account | None = None
    cgroups: Sequence[str] = ()
    limits: Mapping[str, str] = attrs.field(factory=dict)
    nice: int = 0
    isolate: Sequence[str] = ()
    binds: Sequence[tuple[str, str]] = ()
    tmpfs: Sequence[str] = ()
    join: Sequence[str] = ()
    read_only: Sequence[str] = ()
    hide: Sequence[str] = ()
    shut_devices: Sequence[str] = ()
    devices: Sequence[str] = ()
    filter: str = ""
    layers: str = ""
    image: str = ""
    read_only_binds: Sequence[tuple[str, str]] = ()
    checked: Mapping[str, int] = attrs.field(factory=dict)
    root: str = ""
    keep: Sequence[int] = ()
    terminal: bool = False
    stops_at_exec: bool = False
    lingers: tuple[int, int] | None = None
    death_signal: int = DEATH_SIGNAL


@attrs.frozen(kw_only=True)
class Ended:
    """How a process ended: an exit code or a signal, and its usage with that of the children it waited for."""

    exit_code: int
    exit_signal: int
    core_dumped: bool
    user_cpu_s: float
    system_cpu_s: float
    peak_memory_kib: int


def input_of(data: bytes) -> int:
    """A descriptor from which a program reads this.

    No pipe: how much one takes before its reader is there depends on how many others its user has (``pipe(7)``), and a
    write that waits for one would stop this process, which is to start the reader.
    """
    if not data:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    descriptor = os.memfd_create("input", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@attrs.frozen
class LaunchFailure:
    """Why the launcher did not become the program.

    Attributes:
        reason: in words.
        is_machines: whether any other program would have failed there as well.
    """

    reason: str
    is_machines: bool = False

    def __str__(self) -> str:
        return self.reason


class Launched(Protocol):
    """A process that was started."""

    pid: int


class Launcher(Protocol):
    """Starts processes; the simulation has its own."""

    def launch(self, plan: LaunchPlan, began: Callable[[], None], failed: Callable[[LaunchFailure], None],
               ended: Callable[[Ended], None]) -> Launched:
        """Start one: exactly one of ``began`` and ``failed(why)`` is called, and after ``began`` once ``ended``.

        Raises:
            OSError: not even the launcher could be started.
        """


class PosixLauncher:
    """The real one.

    Args:
        reactor: Twisted's.
        program: another launcher than the built-in one (JOB_LAUNCHER).
    """

    def __init__(self, reactor: Any, program: str | None = None) -> None:
        self._reactor = reactor
        self._program = program or launcher_path()

    def launch(self, plan: LaunchPlan, began: Callable[[], None], failed: Callable[[LaunchFailure], None],
               ended: Callable[[Ended], None]) -> RunningProcess:
        """See :class:`Launcher`."""
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        relayed = "pid" in plan.isolate or any("/ns/pid" in path for path in plan.join)
        end, telling = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if relayed else (-1, -1)
        try:
            words = self._words(plan, writing, telling)
            variables = {name if name == MARK else VEIL + name: value for name, value in plan.environment.items()}
            helper = process_helper() if plan.account is not None else None
            if helper is None:
                kept = (writing, *((telling,) if relayed else ()), *kept_open(plan))
                pid = spawn(words, variables, (plan.stdin, plan.stdout, plan.stderr), kept, own_pids=is_first(plan))
            else:
                given = [(plan.stdin, 0), (plan.stdout, 1), (plan.stderr, 2), (writing, writing)]
                given += [(telling, telling)] if relayed else []
                pid = helper.start(plan.account.uid if plan.account else 0, words,
                                   [f"{name}={value}" for name, value in variables.items()], plan.cgroups,
                                   [*given, *((number, number) for number in kept_open(plan))], own_pids=is_first(plan),
                                   group=plan.account.primary if plan.account else 0)
        except BaseException:
            close_quietly(reading, end)
            raise
        finally:
            close_quietly(writing, telling)
        return RunningProcess(pid, reading, end, self._reactor, began, failed, ended)

    def _words(self, plan: LaunchPlan, status: int, end: int) -> list[str]:
        words = [self._program, "--status-fd", str(status), "--new-session", "--chdir", plan.directory]
        if end >= 0:
            words += ["--end-fd", str(end)]
        if plan.death_signal:
            words += ["--death-signal", str(plan.death_signal)]
        helped = plan.account is not None and process_helper() is not None
        if plan.account is not None and os.geteuid() == 0:
            account = plan.account
            words += ["--uid", str(account.uid), "--gid", str(account.primary or account.gid)]
            if account.groups:
                words += ["--groups", ",".join(map(str, account.groups))]
        for directory in () if helped else plan.cgroups:  # the helper joins them
            words += ["--cgroup", directory]
        for name, value in plan.limits.items():
            words += ["--rlimit", f"{name}={value}"]
        if plan.nice:
            words += ["--nice", str(plan.nice)]
        for path in plan.join:
            words += ["--join", path]
        if is_first(plan):
            words += ["--first"]
        if plan.isolate:
            words += ["--isolate", ",".join(plan.isolate)]
        for source, target in plan.binds:
            words += ["--bind", source, target]
        for source, target in plan.read_only_binds:
            words += ["--bind-read-only", source, target]
        if plan.terminal:
            words += ["--terminal"]
        if plan.layers:
            words += ["--layers", plan.layers, "--image", plan.image]
        for path, seen in plan.checked.items():
            words += ["--checked", str(seen) if seen >= 0 else "-", path]
        for target in plan.tmpfs:
            words += ["--tmpfs", target]
        for target in plan.read_only:
            words += ["--read-only", target]
        for target in plan.hide:
            words += ["--hide", target]
        for target in plan.shut_devices:
            words += ["--shut-device", target]
        for target in plan.devices:
            words += ["--device", target]
        if plan.filter:
            words += ["--filter", plan.filter]
        if plan.root:
            words += ["--root", plan.root]
        for number in plan.keep:
            words += ["--keep-fd", str(number)]
        if plan.stops_at_exec:
            words += ["--stop-at-exec"]
        if plan.lingers is not None:
            words += ["--linger-fd", str(plan.lingers[0]), "--linger-s", str(plan.lingers[1])]
        return [*words, "--", plan.program, *plan.arguments]


@implementer(IReadDescriptor)
class RunningProcess:
    """A launched process; itself the reader of the launcher's pipe.

    Where a relay stands for the process it says at its end over the pipe ``end`` how the process ended.
    """

    def __init__(self, pid: int, status: int, end: int, reactor: Any, began: Callable[[], None],
                 failed: Callable[[LaunchFailure], None], ended: Callable[[Ended], None]) -> None:
        self.pid = pid
        self._end = end
        self._status = status
        self._reactor = reactor
        self._began: Callable[[], None] | None = began
        self._failed = failed
        self._ended: Callable[[Ended], None] | None = ended
        self._said = b""
        self._watch = ProcessWatch(pid, reactor, self._gone)
        reactor.addReader(self)

    def fileno(self) -> int:
        """The launcher's pipe."""
        return self._status

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """A complaint, or the end of the pipe: the job runs."""
        try:
            data = os.read(self._status, 4096)
        except BlockingIOError:
            return
        if data:
            self._said += data
            return
        self._silent()

    def _silent(self) -> None:
        """The launcher has become the job without a complaint."""
        self._close_pipe()
        if not self._said and self._began is not None:
            began, self._began = self._began, None
            began()

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The end of the pipe as epoll tells it (hung up, nothing to read), or the reactor stops."""
        if reason is not None and reason.check(ConnectionDone):
            self._silent()
        else:
            self._close_pipe()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "launch"

    def _close_pipe(self) -> None:
        if self._status >= 0:
            self._reactor.removeReader(self)
            os.close(self._status)
            self._status = -1

    def _gone(self) -> None:
        while self._status >= 0:
            self.doRead()
        try:
            _, status, used = os.wait4(self.pid, 0)
        except ChildProcessError:
            status, used = 0xFF00, None
        status = self._relayed(status)
        if self._said:
            self._failed(complaint(self._said.decode(errors="replace")))
            return
        by_signal = os.WIFSIGNALED(status)
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(Ended(
                exit_code=-1 if by_signal else os.WEXITSTATUS(status),
                exit_signal=os.WTERMSIG(status) if by_signal else -1, core_dumped=os.WCOREDUMP(status),
                user_cpu_s=used.ru_utime if used else 0.0, system_cpu_s=used.ru_stime if used else 0.0,
                peak_memory_kib=used.ru_maxrss if used else 0))

    def _relayed(self, status: int) -> int:
        """The wait status that the relay has told, else its own."""
        if self._end < 0:
            return status
        end, self._end = self._end, -1
        try:
            told = os.read(end, STATUS_BYTES)
        except BlockingIOError:
            told = b""
        finally:
            os.close(end)
        return int.from_bytes(told, sys.byteorder) if len(told) == STATUS_BYTES else status


def kept_open(plan: LaunchPlan) -> tuple[int, ...]:
    """The descriptors that the launcher gets beside its own."""
    seen = [descriptor for descriptor in plan.checked.values() if descriptor >= 0]
    return (*plan.keep, *seen, *(plan.lingers[:1] if plan.lingers is not None else ()))


def is_first(plan: LaunchPlan) -> bool:
    """Whether the launcher begins as the first process of the job's pid namespace: that takes root's rights."""
    rights = os.geteuid() == 0 or (plan.account is not None and process_helper() is not None)
    return rights and "pid" in plan.isolate and "user" not in plan.isolate


def complaint(line: str) -> LaunchFailure:
    """What the launcher's ``stage errno detail`` says."""
    stage, _, rest = line.strip().partition(" ")
    number, _, detail = rest.partition(" ")
    reason = os.strerror(int(number)) if number.isdecimal() else rest
    what = {
        "exec": "cannot be executed", "chdir": "cannot be its working directory", "cgroup": "cannot be joined",
        "uid": "the user cannot be changed", "gid": "the group cannot be changed", "rlimit": "this limit cannot be set",
        "source": "this machine does not have it", "changed": "it is no more what it was when it was looked at",
    }.get(stage, f"the launcher failed at {stage}")
    return LaunchFailure(f"{detail}: {what}: {reason}", stage in OF_THE_MACHINE)


def close_quietly(*descriptors: int) -> None:
    """Close those that are open."""
    for descriptor in descriptors:
        if descriptor > 2:
            with contextlib.suppress(OSError):
                os.close(descriptor)
