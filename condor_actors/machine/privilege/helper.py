"""Orders to ``condor_root``, the helper that stays root; ``native/root/root.h`` has the protocol.

Theory: a process has one helper or none, for all of its life.  An order waits for its answer, which a thread reads;
threads may order at the same time.  What touches files or asks for users is ordered on workers: the helper's processes
may take long for it.  A reactor orders only what the helper answers at once (*start*, *program*, *watch*), waits for
that no longer than :data:`PATIENCE_S`, and for a signal not at all.  A program whose start was given up is ended when
it comes up after all.  Where there is no helper a process has its own rights only, and callers do what they can with
those.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import signal
import socket
import stat
import struct
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence

import attrs
from twisted.python.threadable import isInIOThread

from condor_actors.machine.native.programs import root_helper_path

__all__ = ["HelperGone", "RootHelper", "process_helper", "send_signal", "start_helper"]

MAGIC = 0x544F4F52
READY, START, OPEN, SIGNAL, GIVE, TAKE, REMOVE, MEASURE, PROGRAM, WATCH = range(1, 11)
ANY_KIND, NO_LINKS = 1, 2
OWN_PIDS = 1
TEXT_BYTES = 4096
ORDER = struct.Struct("<IIQIIIiII4096s")
ANSWER = struct.Struct("<IIQiIq232s")
SHEET = struct.Struct("<IIII16i")
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
OPENING = os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_DIRECTORY


PATIENCE_S = 2.0
"""So long a reactor waits for an answer, which the helper itself gives at once, unless its process stands still.  After
it has waited without an answer it does not wait at all, until the helper has answered something."""

GONE = "the helper that has root's rights is gone"
SILENT = "the helper that has root's rights does not answer"


class HelperGone(OSError):
    """The helper has ended; so does its daemon."""


@attrs.frozen
class _Answer:
    error: int
    value: int
    reason: str
    descriptor: int


NO_ANSWER = _Answer(0, 0, "", -1)


class RootHelper:
    """The orders.  Each raises OSError with the helper's reason when it is refused or fails.

    Attributes:
        pid: of the helper, a child of this process.
    """

    def __init__(self, channel: socket.socket, pid: int) -> None:
        self.pid = pid
        self._socket = channel
        self._number = 0
        self._lock = threading.Condition()
        self._reader: threading.Thread | None = None
        self._gone = self._is_silent = False
        self._under_way: dict[int, int] = {}
        self._given_up: set[int] = set()
        self._answers: dict[int, _Answer] = {}

    def start(self, uid: int, words: Sequence[str], variables: Sequence[str], groups: Sequence[str],
              descriptors: Sequence[tuple[int, int]], *, own_pids: bool = False, group: int = 0) -> int:
        """Start the launcher as an account; returns its pid: it is this process's child.

        Args:
            words: of the launcher's command line.
            variables: ``NAME=value``, each as the launcher takes it.
            groups: directories of control groups to join.
            descriptors: (here, there): standard input, output, error and the launcher's status, then what is kept.
            own_pids: it is the first process of a pid namespace of its own, and begins with every signal blocked.
            group: the process's, one of the account's; 0: the account's own.
        """
        sheet = os.memfd_create("start", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            targets = [there for _, there in descriptors]
            head = SHEET.pack(MAGIC, len(words), len(variables), len(groups), *targets, *([0] * (16 - len(targets))))
            data = head + b"".join(os.fsencode(each) + b"\0" for each in (*words, *variables, *groups))
            with open(sheet, "wb", closefd=False) as stream:
                stream.write(data)
            fcntl.fcntl(sheet, fcntl.F_ADD_SEALS, SEALS)
            return self._order(START, uid, (sheet, *(here for here, _ in descriptors)),
                               flags=OWN_PIDS if own_pids else 0, extra=group).value
        finally:
            os.close(sheet)

    def open(self, uid: int, path: str, flags: int, *, folder: int | None = None, mode: int = 0,
             links: bool = True) -> int:
        """Open a path as an account: any kind of file, never waiting; below ``folder``, an open one, if it is given;
        without ``links`` none is followed on the way."""
        descriptors = () if folder is None else (folder,)
        answer = self._order(OPEN, uid, descriptors, path, flags=flags & OPENING, mode=mode,
                             extra=ANY_KIND | (0 if links else NO_LINKS))
        return answer.descriptor

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process of an account that may be ordered for; a reactor does not hear whether it was
        refused."""
        process = os.pidfd_open(pid)
        try:
            self._order(SIGNAL, 0, (process,), number=number)
        finally:
            os.close(process)

    def give(self, uid: int, folder: int) -> None:
        """Give an open folder of the pool's, and all in it, to an account."""
        self._order(GIVE, uid, (folder,))

    def take(self, uid: int, folder: int) -> None:
        """Take such a folder back."""
        self._order(TAKE, uid, (folder,))

    def remove(self, uid: int, folder: int, name: str = "") -> None:
        """Remove, as an account, what is in an open folder: all of it, or the entry with this name."""
        self._order(REMOVE, uid, (folder,), name)

    def measure(self, uid: int, folder: int, pids: Collection[int] = ()) -> int:
        """The disk space, in KiB, of the tree below an open folder, and of the files on its disk that the account's
        processes, of ``pids``, have deleted and keep open; of more processes than an order names, the last ones are
        left out."""
        text = " ".join(map(str, pids))
        if len(text) >= TEXT_BYTES:
            text = text[:text.rindex(" ", 0, TEXT_BYTES)]
        return self._order(MEASURE, uid, (folder,), text).value

    def program(self, name: str, output: int, *, uid: int = 0, variables: Mapping[str, str] | None = None) -> int:
        """Start a program of the policy's; returns its pid: it is this process's child.

        Args:
            output: gets its standard output and error.
            uid: of the account that it begins as; 0: the policy says that it begins as root.
            variables: that the policy lets this program be given; letters, digits and ``_.:/@-`` only.
        """
        words = [name, *(f"{key}={value}" for key, value in (variables or {}).items())]
        return self._order(PROGRAM, uid, (output,), " ".join(words)).value

    def watch(self, instance: int, path: str) -> int:
        """Have an inotify or epoll instance of this process tell of the use of a device.

        Args:
            instance: inotify for one read of a terminal, epoll (edge-triggered) for events of an input device.

        Returns:
            The number of the inotify watch.
        """
        return self._order(WATCH, 0, (instance,), path).value

    def _order(self, kind: int, uid: int, descriptors: Sequence[int], text: str = "", *, flags: int = 0, mode: int = 0,
               number: int = 0, extra: int = 0) -> _Answer:
        raw = os.fsencode(text)
        if len(raw) >= TEXT_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), text)
        on_reactor = isInIOThread()
        with self._lock:
            if on_reactor and self._is_silent and kind != SIGNAL:
                raise OSError(errno.ETIMEDOUT, SILENT)
            self._number += 1
            mine = self._number
            self._under_way[mine] = kind
            if kind != READY and self._reader is None:  # not before the end of root: a thread would keep it
                self._reader = threading.Thread(target=self._read, name="helper", daemon=True)
                self._reader.start()
        order = ORDER.pack(MAGIC, kind, mine, uid, flags, mode, number, len(descriptors), extra, raw)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            self._socket.sendmsg([order], control, socket.MSG_DONTWAIT if on_reactor else 0)
        except BlockingIOError:
            with self._lock:
                del self._under_way[mine]
                self._is_silent = True
            if kind == SIGNAL:
                raise PermissionError(errno.EPERM, SILENT) from None
            raise OSError(errno.ETIMEDOUT, SILENT) from None
        except OSError as error:
            raise HelperGone(errno.EPIPE, GONE) from error
        if kind == READY:
            self._take_answer()
        if on_reactor and kind == SIGNAL:
            with self._lock:
                self._given_up.add(mine)
            return NO_ANSWER
        answer = self._wait(mine, PATIENCE_S if on_reactor else None)
        if answer.error:
            raise OSError(answer.error, answer.reason or os.strerror(answer.error), text or None)
        return answer

    def _wait(self, mine: int, patience_s: float | None) -> _Answer:
        """The answer to one's own order."""
        with self._lock:
            self._lock.wait_for(lambda: mine in self._answers or self._gone, patience_s)
            if mine in self._answers:
                return self._answers.pop(mine)
            if self._gone:
                raise HelperGone(errno.EPIPE, GONE)
            self._given_up.add(mine)
            self._is_silent = True
            raise OSError(errno.ETIMEDOUT, SILENT)

    def _read(self) -> None:
        while self._take_answer():
            pass

    def _take_answer(self) -> bool:
        """Give an answer to who waits for it; False: there are no more.  What nobody waits for any more is undone."""
        number, answer = self._receive()
        with self._lock:
            self._is_silent = False
            kind = self._under_way.pop(number, 0)
            unwanted = number in self._given_up
            self._given_up.discard(number)
            if answer is None:
                self._gone = True
            elif not unwanted:
                self._answers[number] = answer
            self._lock.notify_all()
        if answer is not None and unwanted:
            if answer.descriptor >= 0:
                os.close(answer.descriptor)
            if kind in (START, PROGRAM) and not answer.error:
                threading.Thread(target=self._end, args=(answer.value,), name="late", daemon=True).start()
        return answer is not None

    def _end(self, pid: int) -> None:
        """A program that came up when its start had been given up: nobody knows of it."""
        with contextlib.suppress(OSError):
            try:
                os.kill(pid, signal.SIGKILL)
            except PermissionError:
                self.signal(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def _receive(self) -> tuple[int, _Answer | None]:
        try:
            data, control, _, _ = self._socket.recvmsg(ANSWER.size, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return 0, None
        if len(data) != ANSWER.size:
            return 0, None
        _, _, number, error, _, value, reason = ANSWER.unpack(data)
        descriptor = array.array("i", control[0][2])[0] if control else -1
        return number, _Answer(error, value, reason.split(b"\0")[0].decode(errors="replace"), descriptor)


_helpers: list[RootHelper] = []


def process_helper() -> RootHelper | None:
    """The helper of this process; None: it has none."""
    return _helpers[0] if _helpers else None


def start_helper(policy: Sequence[str]) -> None:
    """Start the helper of this process, which is root still.

    Args:
        policy: the words behind the socket's number; ``native/root/policy.c`` reads them.

    Raises:
        OSError: it does not begin.
    """
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    its.set_inheritable(True)
    try:
        program = root_helper_path()
        facts = os.stat(program)
        if facts.st_uid != 0 or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"{program} can be changed by others than root")
        child = subprocess.Popen([program, str(its.fileno()), *policy], close_fds=True, pass_fds=(its.fileno(),),
                                 stdin=subprocess.DEVNULL, cwd="/")
    finally:
        its.close()
    helper = RootHelper(mine, child.pid)
    child.returncode = 0  # it ends when this process does: nobody waits for it
    helper._order(READY, 0, ())
    _helpers.append(helper)


def send_signal(pid: int, number: int) -> None:
    """As ``os.kill``, with the helper's rights where one's own do not suffice.

    Raises:
        ProcessLookupError: there is none.
        PermissionError: not even the helper may.
    """
    try:
        os.kill(pid, number)
    except PermissionError:
        helper = process_helper()
        if helper is None:
            raise
        helper.signal(pid, signal.Signals(number) if number in signal.valid_signals() else number)
