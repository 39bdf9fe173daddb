"""Shells beside a running job (condor_ssh_to_job): a pty, a process in the job's group and scratch directory."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

from condor_actors.classads import ClassAd
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_spec import environment_of
from condor_actors.daemons.starter.container_launch import in_image, seen_as
from condor_actors.machine.privilege.helper import send_signal
from condor_actors.machine.run.launch import Ended, LaunchFailure, LaunchPlan, close_quietly
from condor_actors.machine.run.process_tree import MARK, children_of, own_number
from condor_actors.messages.envelope import Delivery, Done, Refused
from condor_actors.messages.interactive import OpenShell, ShellData

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["NAMESPACE_FILES", "Shells", "inside"]

BLOCK_BYTES = 16 * 1024
PENDING_BYTES = 1 << 20
MOST_SHELLS = 32
"""Of one run at a time: each has a terminal, of which a machine has some thousands, and descriptors here."""
MOST_LINES = (1 << 16) - 1
"""Of a terminal, and columns."""
STEPS_TO_JOB = 1
"""In a pid namespace: from its first process to the job; with a namespace of users a relay is before them."""
NAMESPACE_FILES = {"mount": "mnt"}
"""Namespaces whose files below /proc have other names."""


class Shells:
    """The shells of a run, by id.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._shells: dict[str, Shell] = {}
        self._waits = 0  # the process of an interactive job, while it stands still

    def receive(self, delivery: Delivery) -> None:
        """Open a shell, or type into one."""
        message, run = delivery.message, self._starter
        if isinstance(message, OpenShell):
            run.context.reply(delivery, self._open(message))
            return
        shell = self._shells.get(message.shell_id)
        if shell is None:
            run.context.tell(run.shadow, ShellData(shell_id=message.shell_id, exit_code=255))
            return
        if message.rows > 0:
            shell.resize(message.rows, message.columns)
        if message.data:
            shell.type(message.data)
        if message.exit_code >= 0:
            shell.hang_up()

    def _open(self, message: OpenShell) -> Done | Refused:
        run, shell_id = self._starter, message.shell_id
        if shell_id in self._shells:
            return Refused(code="busy", text="there is such a shell already")
        if len(self._shells) >= MOST_SHELLS:
            return Refused(code="busy", text=f"a job has {MOST_SHELLS} shells at most")
        if run.core.state not in jr.ALIVE or run.sandbox is None:
            return Refused(code="not-found", text="the job is not running now")
        try:
            self._have_job_wait()
            self._shells[shell_id] = Shell(run, message, lambda: self._gone(shell_id))
        except OSError as error:
            if not self._shells:
                self.let_job_go()
            return Refused(code="internal", text=f"no shell: {error}")
        return Done()

    def _gone(self, shell_id: str) -> None:
        self._shells.pop(shell_id, None)
        if not self._shells:
            self.let_job_go()

    def _have_job_wait(self) -> None:
        """The program of an interactive job is a ``sleep``, which shall not end beside its user: it stands still."""
        run = self._starter
        if not self._waits and ClassAd.from_bytes(run.job_ad).get_bool("InteractiveJob"):
            pid = inside(run, run.edges.isolation(run.spec))
            send_signal(pid, signal.SIGSTOP)
            self._waits = pid

    def let_job_go(self) -> None:
        """Its time has gone by meanwhile, so it may end at once; and it hears of signals again."""
        pid, self._waits = self._waits, 0
        if pid and self._starter.core.state in jr.ALIVE:
            with suppress(OSError):  # it has ended
                send_signal(pid, signal.SIGCONT)

    def close_all(self) -> None:
        """The run is over."""
        for shell in tuple(self._shells.values()):
            shell.hang_up()


@implementer(IReadDescriptor)
class Shell:
    """One shell; itself the reader of its terminal.  What it prints and how it ends are turns of its starter."""

    def __init__(self, run: Starter, message: OpenShell, gone: Callable[[], Any]) -> None:
        self._edges, self._run, self._id, self._gone = run.edges, run, message.shell_id, gone
        self._tell: Callable[[ShellData], None] = run.context.as_turn(self._told)
        self._typed = bytearray()
        self._ended: Ended | None = None
        self._master, terminal = os.openpty()
        os.set_blocking(self._master, False)
        try:
            self.resize(message.rows, message.columns)
            if run.account is not None and os.geteuid() == 0:  # else the terminal is open, and that is all it needs
                os.fchown(terminal, run.account.uid, run.account.gid)
            as_turn = run.context.as_turn
            self._process = run.edges.launcher.launch(
                self._plan(message, terminal), lambda: None, as_turn(self._failed), as_turn(self._program_ended))
        except OSError:
            close_quietly(self._master)
            raise
        finally:
            os.close(terminal)
        run.edges.reactor.addReader(self)

    def _plan(self, message: OpenShell, terminal: int) -> LaunchPlan:
        run, edges = self._run, self._edges
        assert run.sandbox is not None
        account, scratch = run.account or edges.host.own_account, seen_as(run.spec, run.sandbox)
        variables = environment_of(
            run.spec, edges.settings.run, scratch=scratch, slot_name=run.claim.slot_name, cpus=run.claim.cpus,
            assigned=run.claim.assigned, devices=run.claim.devices,
            user=account.name, home=account.home)
        isolate = edges.isolation(run.spec)
        variables |= {MARK: f"{edges.root.path}:{run.run_id}", "TERM": message.terminal,
                      "_CONDOR_JOB_PIDS": str(own_number(inside(run, isolate)))}
        command = message.command or ("/bin/sh", "-i")
        variables = run.chirp.variables(variables, scratch)
        if run.spec.container is not None:
            variables = in_image(run.spec, variables, scratch, run.held.image)
        return LaunchPlan(
            program="/bin/sh", arguments=("-c", 'exec "$@"', "sh", *command), environment=variables,
            directory=scratch if run.spec.transfers else run.spec.iwd, stdin=terminal, stdout=terminal,
            stderr=terminal, terminal=True, account=run.account,
            cgroups=run.claim.cgroup.directories if run.claim.cgroup is not None else (),
            join=[f"/proc/{inside(run, isolate)}/ns/{NAMESPACE_FILES.get(name, name)}" for name in isolate],
            limits=edges.limits(run.spec, run.claim, account), filter=edges.filter_of(isolate))

    # ---- the terminal

    def fileno(self) -> int:
        """The terminal's master side."""
        return self._master

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Something was printed."""
        try:
            data = os.read(self._master, BLOCK_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            data = b""
            if error.errno != errno.EIO:
                self._edges.log.warn("a shell's terminal: {error}", error=error)
        if not data:
            self._close()
            return
        self._tell(ShellData(shell_id=self._id, data=data))

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor stops."""
        self._close()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "shell"

    def type(self, data: bytes) -> None:
        """Characters from the user."""
        if self._master < 0 or len(self._typed) + len(data) > PENDING_BYTES:
            return
        self._typed += data
        try:
            count = os.write(self._master, self._typed)
        except BlockingIOError:
            count = 0
        except OSError:
            self._close()
            return
        del self._typed[:count]
        if self._typed:
            self._edges.reactor.callLater(0.02, self.type, b"")

    def resize(self, rows: int, columns: int) -> None:
        """The user's window has another size."""
        if self._master >= 0:
            size = (min(max(each, 0), MOST_LINES) for each in (rows, columns))
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def hang_up(self) -> None:
        """The user is gone, or the job is."""
        self._close()

    # ---- the process

    def _told(self, message: ShellData) -> None:
        self._run.context.tell(self._run.shadow, message)

    def _failed(self, failure: LaunchFailure) -> None:
        self._told(ShellData(shell_id=self._id, data=f"{failure}\r\n".encode(errors="replace"), exit_code=126))
        self._close()
        self._gone()

    def _program_ended(self, ended: Ended) -> None:
        self._ended = ended
        while self._master >= 0:
            before = self._master
            self.doRead()
            if self._master == before and not _readable(before):
                break
        self._close()
        code = ended.exit_code if ended.exit_code >= 0 else 128 + ended.exit_signal
        self._tell(ShellData(shell_id=self._id, exit_code=code))  # behind what was printed last
        self._gone()

    def _close(self) -> None:
        if self._master >= 0:
            self._edges.reactor.removeReader(self)
            os.close(self._master)
            self._master = -1


def inside(run: Starter, isolate: Sequence[str], pid: int = 0) -> int:
    """A process in all namespaces of the job: what the launcher stands for, a step below it.

    Args:
        pid: the program's first process, where its run does not know that yet.

    Raises:
        OSError: there is none any more.
    """
    pid = pid or run.core.pid
    steps = STEPS_TO_JOB + ("user" in isolate)
    for _ in range(steps if "pid" in isolate else 0):
        below = children_of(pid)
        if not below:
            raise OSError("the job has ended")
        pid = min(below)
    return pid


def _readable(descriptor: int) -> bool:
    import select

    return bool(select.select([descriptor], [], [], 0)[0])
