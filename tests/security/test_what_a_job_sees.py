"""An ordinary job looks at everything it can: what it may write to, what else is there, what it may ask the kernel for.

What it finds is what docs/security.md and docs/threat-model.md say, in a pool of root's and in one of a user's.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from condor_actors.machine.run.confinement import PARTS, confinement_here
from tests.harness.user_pool import UserPool, user_pool
from tests.pool_fixture import PersonalPool, fresh_folder

pytestmark = pytest.mark.skipif(bool(set(PARTS) - set(confinement_here(frozenset(PARTS)))),
                                reason="this kernel does not shut jobs in")
SEGMENT, QUEUE = 0x5A5A_1107, b"/condor-test-queue"
LOOKS = r"""
import ctypes, errno, json, os, socket, stat, sys
segment, queue, shared = int(sys.argv[1]), sys.argv[2], sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
def answer(result):
    return errno.errorcode[ctypes.get_errno()] if result < 0 else "DONE"
def tried(function, *words):
    try:
        function(*words)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "DONE"
own = {"self", "thread-self", *(name for name in os.listdir("/proc") if name.isdigit())}
writable, devices = [], []
for top in ("/proc", "/sys", "/dev", "/etc", "/usr", "/var", "/boot", "/opt"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc":
            folders[:] = [name for name in folders if name not in own]
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if stat.S_ISLNK(mode):
                continue
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                if os.access(path, os.R_OK, effective_ids=True) or os.access(path, os.W_OK, effective_ids=True):
                    devices.append(("block " if stat.S_ISBLK(mode) else "") + path)
            elif os.access(path, os.W_OK, effective_ids=True):
                writable.append(path)
calls = {  # of the x86-64 table
    "mount": (165, b"x", b"/tmp", b"tmpfs", 0, 0), "umount2": (166, b"/proc", 2), "pivot_root": (155, b".", b"."),
    "unshare user": (272, 0x10000000), "unshare mount": (272, 0x20000), "unshare pid": (272, 0x20000000),
    "unshare net": (272, 0x40000000), "unshare cgroup": (272, 0x02000000), "setns": (308, 0, 0),
    "clone into namespaces": (56, 0x10000000 | 17, 0, 0, 0, 0), "open_tree": (428, -100, b"/", 1),
    "move_mount": (429, 0, b"", 0, b"", 0), "fsopen": (430, b"tmpfs", 0), "mount_setattr": (442, -100, b"/", 0, 0, 0),
    "bpf": (321, 0, 0, 0), "perf_event_open": (298, 0, 0, -1, -1, 0), "userfaultfd": (323, 1),
    "io_uring_setup": (425, 8, 0), "keyctl": (250, 0, 0), "add_key": (248, b"user", b"x", b"y", 1, -3),
    "request_key": (249, b"user", b"x", 0, 0), "open_by_handle_at": (304, 0, 0, 0),
    "name_to_handle_at": (303, -100, b"/", 0, 0, 0), "fanotify_init": (300, 0, 0), "kexec_load": (246, 0, 0, 0, 0),
    "init_module": (175, 0, 0, b""), "finit_module": (313, 0, b"", 0), "delete_module": (176, b"x", 0),
    "reboot": (169, 0, 0, 0, 0), "swapon": (167, b"x", 0), "syslog": (103, 2, 0, 0), "acct": (163, 0),
    "settimeofday": (164, 0, 0), "clock_settime": (227, 0, 0), "sethostname": (170, b"x", 1), "iopl": (172, 3),
    "ioperm": (173, 0, 1, 1), "modify_ldt": (154, 0, 0, 0), "quotactl": (179, 0, 0, 0, 0), "vhangup": (153,),
}
found = {
    "writable": writable, "devices": devices,
    "calls": {name: answer(libc.syscall(*[ctypes.c_long(w) if isinstance(w, int) else w for w in words]))
              for name, words in calls.items()},
    "segment": answer(libc.shmget(segment, 0, 0)), "queue": answer(libc.mq_open(queue.encode(), 0)),
    "queue file": tried(open, "/dev/mqueue" + queue), "shared file": tried(open, "/dev/shm/" + shared),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "parent": os.getppid(), "session": os.getsid(0) == os.getpid(),
    "limits": tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
    "root": tried(os.chroot, "/tmp"), "raw": tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
    "packets": tried(socket.socket, 17, socket.SOCK_RAW), "crypto": tried(socket.socket, 38, socket.SOCK_SEQPACKET),
    "device": tried(os.mknod, "x", 0o600 | stat.S_IFBLK, os.makedev(8, 0)),
    "gives away": tried(os.chown, ".", 0, 0), "set-uid": tried(os.setuid, 0),
}
print(json.dumps(found))
"""
FOR_ALL = ["/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/sys/kernel/ns_last_pid"]
"""The kernel's own modes let everybody open them; what is written there takes rights that a job has not."""


def devices_for_all() -> set[str]:
    """Those that this machine lets every account open."""
    found = set()
    for folder, _, names in os.walk("/dev"):
        for path in (os.path.join(folder, name) for name in names):
            mode = os.lstat(path).st_mode
            if stat.S_ISCHR(mode) and mode & (stat.S_IROTH | stat.S_IWOTH):
                found.add(path)
    return found


@pytest.fixture(scope="module", params=["of root", "of a user"])
def pool(request: pytest.FixtureRequest) -> Iterator[PersonalPool]:
    if request.param == "of a user":
        with user_pool() as made:
            yield made
        return
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1)
        yield pool
        pool.stop()


@pytest.fixture(scope="module")
def others() -> Iterator[tuple[str, str]]:
    """What other processes of the machine share with everybody: memory, a queue, a file; the names of the last two."""
    libc = ctypes.CDLL(None, use_errno=True)
    with ExitStack() as stack:
        segment = libc.shmget(SEGMENT, 4096, 0o1666)
        assert segment >= 0
        stack.callback(libc.shmctl, segment, 0, None)
        mask = os.umask(0)
        queue = libc.mq_open(QUEUE, os.O_CREAT | os.O_RDWR, 0o666, None)
        os.umask(mask)
        assert queue >= 0
        stack.callback(libc.mq_unlink, QUEUE)
        name = f"condor-test-{os.getpid()}"
        with open(f"/dev/shm/{name}", "w") as file:  # noqa: S108
            os.fchmod(file.fileno(), 0o666)
        stack.callback(os.unlink, f"/dev/shm/{name}")  # noqa: S108
        yield QUEUE.decode(), name


@pytest.fixture(scope="module")
def found(pool: PersonalPool, others: tuple[str, str]) -> dict[str, Any]:
    """What the job of this pool has seen."""
    python = shutil.which("python3", path="/usr/bin:/bin") or pytest.skip("needs the system's Python")
    (pool.work / "looks.py").write_text(LOOKS)
    queue, shared = others
    pool.submit(f"executable = {python}\ntransfer_executable = false\ntransfer_input_files = looks.py\n"
                f"should_transfer_files = YES\narguments = looks.py {SEGMENT} {queue} {shared}\n"
                "output = seen\nerror = errors\nlog = job.log\nqueue")
    pool.wait()
    assert (pool.work / "errors").read_text() == ""
    seen: dict[str, Any] = json.loads((pool.work / "seen").read_text())
    return seen


def test_it_writes_nowhere_in_the_system(found: dict[str, Any]) -> None:
    """Every file and folder that there is was tried: settings of the kernel, control groups, devices' controls."""
    own = ("/dev/shm", "/var/tmp")
    assert [path for path in found["writable"] if not path.startswith(own) and path not in FOR_ALL] == []


def test_it_opens_no_device_that_is_not_for_all(found: dict[str, Any]) -> None:
    assert not [path for path in found["devices"] if path.startswith("block ")]
    assert {path for path in found["devices"] if not path.startswith("/dev/pts/")} <= devices_for_all()


def test_the_kernel_does_nothing_out_of_the_ordinary_for_it(found: dict[str, Any]) -> None:
    assert {name: said for name, said in found["calls"].items() if said != "EPERM"} == {}


def test_memory_and_queues_that_others_share_are_not_there(found: dict[str, Any]) -> None:
    assert [found[name] for name in ("segment", "queue", "queue file", "shared file")] == ["ENOENT"] * 4


def test_it_inherits_and_reaches_nothing_else(pool: PersonalPool, found: dict[str, Any]) -> None:
    of_root = "EINVAL" if isinstance(pool, UserPool) else "EPERM"  # there is no such account in its namespace
    assert found["descriptors"] == [0, 1, 2]
    assert (found["parent"], found["session"]) == (1, True)
    names = ("limits", "root", "raw", "packets", "crypto", "device", "gives away", "set-uid")
    assert {name: found[name] for name in names} == {
        "limits": "EACCES", "root": "EPERM", "raw": "EPERM", "packets": "EAFNOSUPPORT", "crypto": "EAFNOSUPPORT",
        "device": "EPERM", "gives away": of_root, "set-uid": of_root}
