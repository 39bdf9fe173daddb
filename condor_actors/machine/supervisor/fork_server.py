"""A process that has loaded all modules, and forks itself into a daemon when its parent asks for one.

Theory: most of a daemon's start is the loading of its modules. A process that starts others (master, schedd, startd)
forks its fork server before it has a reactor, threads, a configuration or keys; the server keeps modules only. It forks
with ``CLONE_PARENT``: a new daemon is a child of the one who asked, which watches, signals and reaps it like any other.
It begins when it is told so, after its id has been recorded; when the one who asked is killed before, it ends.

Whatever cannot be done this way (the server was killed, the environment would change the interpreter itself) is done by
executing Python, as without a server. A daemon that drops root ends its server: that still has root's rights.

**Source**: clone(2); glibc's fork, which gives the kernel the same thread id address; Python's ``os.fork``.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from condor_actors.machine.supervisor import process_titles

__all__ = ["Birth", "ForkServer", "begin", "end", "possible", "server", "start"]

PATIENCE_S: Final = 2.0
"""How long a fork may take; it takes 2 ms."""
LEAST_ROOM: Final = 512
MOST_BYTES: Final = 128 << 10
"""An order: as much as a packet may have by default."""
TITLE: Final = "fork-server"
INTERPRETER: Final = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENSSL_", "SSL_")
"""How the names of variables begin that act on a process when it is executed, or while it loads modules."""

CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
SYS_CLONE3: Final = 435
PR_GET_TID_ADDRESS: Final = 40


class _CloneArguments(ctypes.Structure):
    """``struct clone_args``, its first version."""

    _fields_ = [(name, ctypes.c_uint64) for name in (
        "flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls")]


class Birth:
    """A forked process that waits for the word to begin; it ends when that never comes.

    Attributes:
        pid: its id; it is a child of this process.
    """

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._channel = channel

    def go(self) -> None:
        """Let it begin."""
        with self._channel, suppress(OSError):
            self._channel.send(b"go")


class ForkServer:
    """The parent's end; any thread may use it.

    Args:
        pid: of the server.
        channel: to it.
        environment: that it began with.
    """

    def __init__(self, pid: int, channel: socket.socket, environment: Mapping[str, str]) -> None:
        self._pid = pid
        self._channel = channel
        self._interpreter = _of_interpreter(environment)
        self._room = process_titles.room()

    def birth(self, command: Sequence[str], environment: Mapping[str, str], output: int, folder: str | None = None
              ) -> Birth | None:
        """Have a service forked, in a session of its own; None when it has to be executed.

        Args:
            command: as it would be executed: Python, its options, the module, the service and its arguments.
            environment: all of it.
            output: descriptor of its standard output and error; the input is empty.
            folder: where it works; None: where the server was begun.
        """
        if (_of_interpreter(environment) != self._interpreter or self._room < process_titles.size(command)
                or not process_titles.fits(environment)):
            return None
        order = json.dumps([list(command), dict(environment), folder]).encode()
        if len(order) > MOST_BYTES:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE_S)
        with theirs:
            try:
                self._channel.settimeout(PATIENCE_S)
                socket.send_fds(self._channel, [order], [theirs.fileno(), output])
                theirs.close()
                said = ours.recv(32)
            except OSError:
                said = b""
        if not said:
            end()  # it was killed, or stands still
            with suppress(OSError):
                said = ours.recv(32)  # of one that it had forked all the same, which would be nobody's
        pid = int(said or b"0")
        if pid <= 0:
            ours.close()
            return None
        return Birth(pid, ours)

    def end(self) -> None:
        """No more of it."""
        self._channel.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


_server: ForkServer | None = None


def server() -> ForkServer | None:
    """The fork server of this process."""
    return _server


def end() -> None:
    """End this process's fork server, if it has one."""
    global _server  # noqa: PLW0603
    ending, _server = _server, None
    if ending is not None:
        ending.end()


def start(command: Sequence[str], environment: Mapping[str, str], output: int) -> int:
    """Start a service in a session of its own, in the root directory, forked where that is possible.

    Args:
        command: as it would be executed.
        environment: all of it.
        output: descriptor of its standard output and error; the input is empty.

    Returns:
        Its id, by which this process has to wait for it.

    Raises:
        OSError: it cannot be started.
    """
    asked = _server
    birth = asked.birth(command, environment, output, "/") if asked is not None else None
    if birth is not None:
        birth.go()
        return birth.pid
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                             env=environment, cwd="/")
    child.returncode = 0  # it is waited for by its number
    return child.pid


def begin() -> list[str] | None:
    """Fork the server of this process, with the modules that are loaded; only where it is `possible`.

    Returns:
        None in this process. In each process that the server forks: the words after the module's name.
    """
    global _server  # noqa: PLW0603
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    _fill_standard()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if pid:
        theirs.close()
        _server = ForkServer(pid, ours, os.environ)
        return None
    _server = None
    ours.close()
    return _serve(theirs, parent)


def possible() -> bool:
    """Whether this process can be forked, and its children can look like daemons of their own."""
    try:
        alone = len(os.listdir("/proc/self/task")) == 1
        return alone and "twisted.internet.reactor" not in sys.modules and process_titles.room() >= LEAST_ROOM \
            and bool(_thread_id_address())
    except (OSError, ValueError):
        return False


def _of_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(INTERPRETER)}


# ---- in the server


def _serve(channel: socket.socket, parent: int) -> list[str]:
    """Fork for as long as the parent lives; returns in the forked processes only."""
    os.setsid()
    _close_all_but(channel.fileno())
    words = [sys.executable, "-P", "-m", "condor_actors.services", TITLE, str(parent)]
    process_titles.show(words, dict(os.environ))
    while True:
        order, descriptors, _, _ = socket.recv_fds(channel, MOST_BYTES, 2)
        if not order:
            os._exit(0)
        birth = socket.socket(fileno=descriptors[0])
        pid = _fork_for_parent()
        if pid == 0:
            channel.close()
            return _become(birth, descriptors[1], *json.loads(order))
        with birth, suppress(OSError):
            if pid < 0:
                birth.send(b"0")  # not now, perhaps later
        os.close(descriptors[1])


def _fill_standard() -> None:
    """Have descriptors 0 to 2 open: what was closed there is nobody else's later."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def _close_all_but(kept: int) -> None:
    """Keep nothing of the parent's but its standard streams."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):
                os.close(int(name))


def _become(birth: socket.socket, output: int, command: list[str], environment: dict[str, str], folder: str | None
            ) -> list[str]:
    """Be what was ordered, when told to begin."""
    with birth:
        birth.send(str(os.getpid()).encode())
        if birth.recv(8) != b"go":
            os._exit(0)
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    null = os.open(os.devnull, os.O_RDONLY)
    for descriptor, standard in ((null, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, standard)
    os.close(null)
    os.close(output)
    if folder is not None:
        os.chdir(folder)
    process_titles.show(command, environment)
    time.tzset()
    words = command[command.index("condor_actors.services") + 1 :]
    sys.argv[1:] = words
    return words


def _thread_id_address() -> int:
    """Where the C library keeps the id of this thread, as it told the kernel; 0 when the kernel does not say."""
    address = ctypes.c_void_p()
    if ctypes.CDLL(None).prctl(PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) != 0:
        return 0
    return address.value or 0


def _fork_for_parent() -> int:
    """Fork a child of this process's parent: 0 in it, its id here, negative when it cannot be done."""
    flags = CLONE_PARENT | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID
    arguments = _CloneArguments(flags=flags, child_tid=_thread_id_address())
    syscall: Any = ctypes.PyDLL(None).syscall
    syscall.restype = ctypes.c_long
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = syscall(SYS_CLONE3, ctypes.byref(arguments), ctypes.c_size_t(ctypes.sizeof(arguments)))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid
