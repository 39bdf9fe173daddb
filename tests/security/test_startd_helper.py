"""The startd, taken over: its helper is attacked with exactly the policy that a startd gives it.

It may have the starter host started, end one that is root still, and be told that a terminal or an input device is
used.  It reads no device, runs nothing else, and reaches no other process.
"""

from __future__ import annotations

import errno
import os
import pty
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from inotify_simple import INotify, flags

from condor_actors.config import load_config
from condor_actors.machine.privilege.ownership import make_own
from condor_actors.machine.privilege.pool_account import PoolAccount
from condor_actors.machine.supervisor.before_startd_drops import before_startd_drops
from condor_actors.own_files import open_guarded
from tests.harness.root_helper import (
    ALICE,
    GIVE,
    MEASURE,
    OPEN,
    POOL,
    PROGRAM,
    READY,
    REMOVE,
    SIGNAL,
    START,
    TAKE,
    WATCH,
    Answer,
    Helper,
    status_of,
)
from tests.pool_fixture import fresh_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: without it nothing of a pool has root's rights")
ACCOUNT = PoolAccount(POOL, POOL, "pool")


@pytest.fixture
def folder() -> Iterator[Path]:
    with fresh_folder() as path:
        yield path


@pytest.fixture
def policy(folder: Path) -> list[str]:
    (folder / "condor_config").write_text(f"LOCAL_DIR = {folder}\n")
    return before_startd_drops(load_config(environ={"CONDOR_CONFIG": str(folder / "condor_config")}), ACCOUNT)


@pytest.fixture
def helper(policy: list[str]) -> Iterator[Helper]:
    with Helper(*policy, orders="program", accounts=()) as made:
        yield made


@pytest.fixture
def terminal() -> Iterator[tuple[int, int, str]]:
    """Both ends of a terminal of another account, and its path."""
    ours, theirs = pty.openpty()
    os.fchown(theirs, ALICE, ALICE)
    os.fchmod(theirs, 0o600)
    yield ours, theirs, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


def watch(helper: Helper, instance: int, path: str | Path) -> Answer:
    return helper.order(WATCH, 0, os.fsencode(path), (instance,))


# ---- what it is there for


def test_the_use_of_a_terminal_is_told_once(helper: Helper, terminal: tuple[int, int, str]) -> None:
    ours, theirs, path = terminal
    with INotify(nonblocking=True) as heard:
        answer = watch(helper, heard.fileno(), path)
        assert (answer.error, answer.descriptor) == (0, -1)
        for _ in range(2):
            os.write(ours, b"secret\n")
            os.read(theirs, 100)
        events = heard.read(timeout=10_000)
        assert [(event.wd, event.mask, event.name) for event in events] == [
            (answer.value, flags.ACCESS, ""), (answer.value, flags.IGNORED, "")]


def test_the_use_of_an_input_device_is_told_and_its_events_are_not(folder: Path) -> None:
    """Each time anew, though nobody reads them; what the startd holds has nothing to be read."""
    os.mkfifo(folder / "event3", 0o600)
    device = os.open(folder / "event3", os.O_RDWR | os.O_NONBLOCK)
    with Helper("--device", f"{folder}/event", "events", orders="watch", accounts=()) as helper, select.epoll() as mine:
        assert watch(helper, mine.fileno(), folder / "event3").error == 0
        assert mine.poll(0) == []
        for _ in range(3):
            os.write(device, struct.pack("llHHi", 0, 0, 1, 30, 1))
            assert mine.poll(10) == [(0, select.EPOLLIN)]
            assert mine.poll(0) == []
        with pytest.raises(OSError, match="Invalid argument"):
            os.read(mine.fileno(), 100)
        assert watch(helper, mine.fileno(), folder / "event3").error == 0  # again: the former one is let go of
        held = os.listdir(f"/proc/{helper.process.pid}/fd")
        for number in range(200):
            os.mkfifo(folder / f"event{1000 + number}")
            assert watch(helper, mine.fileno(), folder / f"event{1000 + number}").error in (0, errno.EMFILE)
        assert len(os.listdir(f"/proc/{helper.process.pid}/fd")) <= len(held) + 64
        assert helper.order(READY).error == 0
    os.close(device)


def test_an_input_device_that_is_pulled_out_is_let_go_of(folder: Path) -> None:
    with Helper("--device", f"{folder}/event", "events", orders="watch", accounts=()) as helper, select.epoll() as mine:
        for number in range(200):
            os.mkfifo(folder / f"event{number}")
            writer = os.open(folder / f"event{number}", os.O_RDWR | os.O_NONBLOCK)
            assert watch(helper, mine.fileno(), folder / f"event{number}").error == 0, number
            other = os.open(folder / f"event{number}", os.O_WRONLY | os.O_NONBLOCK)
            os.close(writer)
            os.close(other)  # nobody writes there any more: the device hangs up


def test_the_starter_host_begins_as_root_and_ends_by_order(helper: Helper, folder: Path) -> None:
    """As root it is beyond the startd's own rights, until it has dropped them."""
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT, 0o600)
    answer = helper.order(PROGRAM, 0, "starter-host _CONDOR_STARTER_HOST_PORT=1234", (output,))
    os.close(output)
    assert answer.error == 0
    descriptor = os.pidfd_open(answer.value)
    assert status_of(answer.value)["Uid"].split() == ["0"] * 4
    assert helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL).error == 0
    assert os.WTERMSIG(os.waitpid(answer.value, 0)[1]) == signal.SIGKILL
    os.close(descriptor)


# ---- what it is not there for


def test_no_other_kind_of_order_is_taken(helper: Helper, folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    for kind in (START, OPEN, GIVE, TAKE, REMOVE, MEASURE):
        for descriptors in ((), (opened,)):
            assert helper.order(kind, ALICE, "/etc/shadow", descriptors).reason == (
                "a kind of order that is not taken here")
    os.close(opened)


@pytest.mark.parametrize("path", [
    "/dev/mem", "/dev/pts/ptmx", "/dev/pts/", "/dev/pts/../mem", "/dev/pts/0/../../sda", "/dev/tty", "/dev/ttyS0",
    "/dev/tty1/../../etc/shadow", "/dev/input/event", "/dev/input/mice", "/dev/input/event0x", "/etc/shadow", "", "1",
    "/dev/pts/1 ", "/dev/pts/-1", "/dev/pts/" + "1" * 100, "/dev/input/event" + "1" * 4000, "/dev//pts/1",
])
def test_nothing_but_those_devices_is_watched(helper: Helper, path: str) -> None:
    with INotify(nonblocking=True) as heard, select.epoll() as ready:
        for instance in (heard.fileno(), ready.fileno()):
            answer = watch(helper, instance, path)
            assert (answer.error, answer.reason) == (errno.EPERM, "not a device that may be watched")


def test_a_link_in_the_place_of_a_device(folder: Path) -> None:
    """Where someone could lay one: neither of them is followed."""
    (folder / "secret").write_text("secret")
    (folder / "tty1").symlink_to(folder / "secret")
    with (Helper("--device", f"{folder}/tty", "reads", "--device", f"{folder}/ttyv", "events", orders="watch",
                 accounts=()) as helper, INotify(nonblocking=True) as heard):
        assert watch(helper, heard.fileno(), folder / "tty1").error == 0
        (folder / "secret").read_text()
        assert heard.read(timeout=0) == []
    with (Helper("--device", f"{folder}/tty", "events", orders="watch", accounts=()) as helper,
          select.epoll() as ready):
        assert watch(helper, ready.fileno(), folder / "tty1").error == errno.ELOOP


def test_a_watch_by_something_else(helper: Helper, folder: Path, terminal: tuple[int, int, str]) -> None:
    pipe, pipe_in = os.pipe()
    file = os.open(folder / "file", os.O_RDWR | os.O_CREAT)
    with select.epoll() as ready:
        for instance in (pipe, pipe_in, file, terminal[0], ready.fileno()):
            assert watch(helper, instance, terminal[2]).error in (errno.EINVAL, errno.EBADF)
    assert helper.order(WATCH, 0, terminal[2]).error == errno.EBADF
    assert helper.order(WATCH, 0, terminal[2], (pipe, pipe_in)).error == errno.EBADF
    for descriptor in (pipe, pipe_in, file):
        os.close(descriptor)


def test_between_orders_it_has_no_rights(helper: Helper, terminal: tuple[int, int, str]) -> None:
    with INotify(nonblocking=True) as heard:
        watch(helper, heard.fileno(), terminal[2])
    assert int(status_of(helper.process.pid)["CapEff"], 16) == 0


@pytest.mark.parametrize("text", [
    "starter-host LD_PRELOAD=/tmp/x.so", "starter-host PYTHONPATH=/tmp", "starter-host CONDOR_CONFIG=/tmp/x",
    "starter-host _CONDOR_STARTER_HOST_PORT=$(reboot)", "starter-host _CONDOR_STARTER_HOST_PORT=1\n_CONDOR_RUN=/tmp",
    "starter-host -m", "startd", "/bin/sh", "python",
])
@pytest.mark.parametrize("uid", [0, ALICE])
def test_no_other_program_is_started(helper: Helper, folder: Path, text: str, uid: int) -> None:
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
    assert helper.order(PROGRAM, uid, text, (output,)).error == errno.EPERM
    os.close(output)


@contextmanager
def elsewhere(uid: int) -> Iterator[int]:
    """A process that is not the daemon's child: its pidfd."""
    started = subprocess.Popen(["setsid", "--fork", "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                                "sh", "-c", "echo $$; exec sleep 1000"], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    descriptor = os.pidfd_open(int(started.stdout.readline()))
    started.stdout.close()
    started.wait()
    try:
        yield descriptor
    finally:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)


@pytest.mark.parametrize("uid", [0, ALICE, POOL])
def test_processes_that_it_did_not_start_are_not_signalled(helper: Helper, uid: int) -> None:
    with elsewhere(uid) as descriptor:
        answer = helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL)
        assert (answer.error, answer.reason) == (errno.EPERM, "a process of an account that is not allowed")


def test_neither_the_helper_nor_the_first_process_is_signalled(helper: Helper) -> None:
    for pid in (helper.process.pid, 1, os.getppid()):
        descriptor = os.pidfd_open(pid)
        assert helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL).error in (errno.EPERM, errno.ESRCH)
        os.close(descriptor)
    assert helper.order(READY).error == 0


# ---- the numbers of other architectures

CALLS = """
import ctypes, errno, mmap
libc = ctypes.CDLL(None, use_errno=True)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex('b814000000cd80c3'))  # mov $20, %eax; int $0x80; ret: getpid, as 32-bit programs call it
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
print('i386', call())
print('x32', libc.syscall(0x40000000 | 39), ctypes.get_errno())
print('own', libc.syscall(39) > 0)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calls are those of x86_64")
def test_calls_by_other_tables_are_refused(folder: Path) -> None:
    """32-bit and x32 numbers are no way around the filter that all have who are started here."""
    without = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, check=False)
    if without.returncode < 0:
        pytest.skip("this kernel runs no 32-bit programs")
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT, 0o600)
    with Helper("--program", "calls", "root", "", "/usr/bin/python3", "-c", CALLS, ";", orders="program") as helper:
        answer = helper.order(PROGRAM, 0, "calls", (output,))
        assert answer.error == 0
        os.waitpid(answer.value, 0)
    os.close(output)
    assert (folder / "output").read_text() == f"i386 {-errno.ENOSYS}\nx32 -1 {errno.ENOSYS}\nown True\n"


# ---- folders that the pool's account owns, when a daemon begins as root again


@pytest.fixture
def owned(folder: Path) -> Path:
    """A folder of the pool's account, which can put there what it likes."""
    path = folder / "owned"
    path.mkdir()
    os.chown(path, POOL, POOL)
    return path


def test_root_gives_nothing_away_over_a_link_of_the_pools(folder: Path, owned: Path) -> None:
    target = folder / "target"
    target.mkdir()
    (owned / "execute").symlink_to(target)
    os.chown(owned / "execute", POOL, POOL, follow_symlinks=False)
    with pytest.raises(PermissionError, match="could be another account's"):
        make_own(owned / "execute", ACCOUNT)
    os.chown(owned / "execute", 0, 0, follow_symlinks=False)  # once root's, and moved here: the folder tells
    with pytest.raises(PermissionError, match="could be another account's"):
        make_own(owned / "execute", ACCOUNT)
    with pytest.raises(PermissionError, match="could be another account's"):
        make_own(owned / "execute" / "below", ACCOUNT)
    assert target.stat().st_uid == 0
    assert os.listdir(target) == []


def test_roots_own_links_are_followed(folder: Path) -> None:
    (folder / "real" / "in").mkdir(parents=True)
    (folder / "link").symlink_to("./real/../real")
    assert make_own(folder / "link" / "in", ACCOUNT) == str((folder / "real" / "in").resolve())
    assert (folder / "real" / "in").stat().st_uid == POOL
    assert (folder / "real").stat().st_uid == 0
    (folder / "round").symlink_to("round")
    with pytest.raises(OSError, match="Too many levels"):
        open_guarded(folder / "round" / "x")
    (folder / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        open_guarded(folder / "file")
    with pytest.raises(FileNotFoundError):
        open_guarded(folder / "nothing")
