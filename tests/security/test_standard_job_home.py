"""A hostile program in the standard universe: its system calls are done at home, by a process of its owner's.

What it tries there: others' files, the pool's own, that process itself and its descriptors, other processes, rights,
answers without end, and races between a name's check and its use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.harness.standard_jobs import NEED_RUNTIME, PYTHON
from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, Person, SharedPool, a_shared_pool

pytestmark = [*NEED_USERS, *NEED_RUNTIME]

HEAD = """
import ctypes, errno, os, resource, signal, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, function, *words):
    try:
        result = function(*words)
    except OSError as error:
        result = errno.errorcode.get(error.errno, error.errno)
    else:
        result = f"DONE {result!r}"[:300]
    print(f"{name}: {result}", flush=True)
def call(number, *words):
    if libc.syscall(number, *[ctypes.c_long(word) for word in words]) < 0:
        raise OSError(ctypes.get_errno(), "")
def look(path):
    with open(path, "rb", buffering=0) as file:
        return file.read(64)
"""


class HostileJob:
    """A job of a user that runs a Python program and has ended, with what it printed."""

    def __init__(self, pool: SharedPool, owner: Person, name: str, code: str, *words: object, **commands: str) -> None:
        self.folder = owner.home / name
        self.folder.mkdir()
        os.chown(self.folder, owner.uid, owner.gid)
        (self.folder / "program.py").write_text(HEAD + code)
        self.pool, self.owner, self.name = pool, owner, name
        lines = {
            "universe": "standard", "executable": PYTHON, "output": "out", "error": "err", "log": "log",
            "arguments": " ".join(["program.py", *map(str, words)]), "initialdir": str(self.folder), **commands,
        }  # fmt: skip
        self.cluster = pool.submit_as(owner, "".join(f"{key} = {value}\n" for key, value in lines.items()) + "queue\n")

    def out(self) -> str:
        path = self.folder / "out"
        return path.read_text() if path.exists() else ""

    def results(self) -> dict[str, str]:
        """What came of each attempt, when the program has ended."""
        self.pool.wait(str(self.folder / "log"))
        assert (self.folder / "err").read_text() == ""
        assert self.out().endswith("over\n")
        return dict(re.findall(r"^(.*?): (.*)$", self.out(), re.MULTILINE))


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    with a_shared_pool(slots=3) as shared:
        yield shared


def shadow_of(pool: SharedPool, owner: Person) -> int:
    """The process in which a user's jobs have their calls done."""
    found: list[int] = until(lambda: pool.pids_of(owner, "shadow"), f"a shadow host of {owner.name}")
    return found[0]


def test_what_is_not_its_owners_is_out_of_reach(pool: SharedPool) -> None:
    secret = pool.alice.home / "secret"
    secret.write_text("hers")
    secret.chmod(0o600)
    os.chown(secret, pool.alice.uid, pool.alice.gid)
    keys = [*pool.dir.rglob("host.key"), *pool.dir.rglob("ca.key")]
    assert keys
    paths = ["/etc/shadow", secret, f"{pool.alice.home}/../{pool.alice.name}/secret", *keys,
             pool.dir / "spool" / "job_queue.sqlite", "/dev/mem", "/proc/1/environ", "/proc/1/root/etc/shadow",
             f"/proc/self/root{secret}", f"/proc/thread-self/cwd/../../../../../../../..{secret}"]
    job = HostileJob(pool, pool.mallory, "paths", """
for path in sys.argv[1:]:
    tried(path, look, path)
    tried(path + " for writing", open, path, "r+b")
    tried(path + " by a link", lambda: (os.symlink(path, "link"), look("link")))
    os.path.lexists("link") and os.unlink("link")
    tried(path + " by a hard link", lambda: (os.link(path, "hard"), look("hard")))
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/mem", "/proc/self/oom_score_adj"):
    tried(path, lambda: os.write(os.open(path, os.O_WRONLY), b"0"))
print("over")
""", *paths)
    results = job.results()
    assert len(results) == 4 * len(paths) + 4
    assert not {name: result for name, result in results.items() if result.startswith("DONE")}
    assert secret.read_text() == "hers"


def test_the_process_that_does_its_calls_is_none_of_its_files(pool: SharedPool) -> None:
    """By the number that it takes for its own the program finds itself; by those of that process's threads nothing."""
    waiting = HostileJob(pool, pool.mallory, "waiting", """
import time
while not os.path.exists("go-on"):
    time.sleep(0.05)
print("over")
""")
    host = shadow_of(pool, pool.mallory)
    until(lambda: len(psutil.Process(host).threads()) > 1, "a thread that serves a program")
    threads = [thread.id for thread in psutil.Process(host).threads() if thread.id != host]
    job = HostileJob(pool, pool.mallory, "shadow", """
host, *others = map(int, sys.argv[1:])
for number in others:
    for name in ("environ", "mem", "maps", "auxv", "root/etc/shadow", "cwd/x", "task/%s/mem" % host,
                 "task/%s/environ" % number, "fdinfo/3", "stack", "syscall", "pagemap", "io"):
        tried(f"{name} of {number}", look, f"/proc/{number}/{name}")
        tried(f"{name} of {number} in its task", look, f"/proc/{host}/task/{number}/{name}")
    for fd in range(40):
        for flags in (os.O_RDONLY, os.O_WRONLY, os.O_PATH):
            tried(f"fd {fd} of {number} {flags}", os.open, f"/proc/{number}/fd/{fd}", flags)
for fd in (*range(3, 200), 1023, 4095):
    tried(f"descriptor {fd}", os.fstat, fd)
    tried(f"copy of {fd}", os.dup, fd)
    tried(f"fd {fd} of its own", os.open, f"/proc/{host}/fd/{fd}", os.O_RDONLY)
print("itself:", host != os.getpid() or look(f"/proc/{host}/environ") == look("/proc/self/environ"))
print("over")
""", host, *threads)
    results = job.results()
    (waiting.folder / "go-on").touch()
    assert waiting.results() == {}
    assert results.pop("itself") == "True"
    assert len(results) > 700
    assert not {name: result for name, result in results.items() if result.startswith("DONE")}


def test_no_other_process_is_reached_and_no_right_gained(pool: SharedPool) -> None:
    host = shadow_of(pool, pool.mallory)
    job = HostileJob(pool, pool.mallory, "calls", """
host = int(sys.argv[1])
for number in (0, signal.SIGSTOP, signal.SIGKILL):
    for pid in (host, 1, -1, -host, os.getppid()):
        if pid != os.getpid():
            tried(f"signal {number} to {pid}", os.kill, pid, number)
for name, number, *words in (
        ("setuid", 105, 0), ("setresuid", 117, 0, 0, 0), ("setgid", 106, 0), ("setgroups", 116, 0, 0),
        ("chroot", 161, 0), ("mount", 165, 0, 0, 0, 0, 0), ("unshare", 272, 0x10000000), ("setns", 308, 0, 0),
        ("ptrace", 101, 16, host, 0, 0), ("process_vm_readv", 310, host, 0, 0, 0, 0, 0), ("pidfd_open", 434, host, 0),
        ("pidfd_getfd", 438, 3, 0, 0), ("kcmp", 312, host, host, 0, 0, 0), ("bpf", 321, 0, 0, 0),
        ("perf_event_open", 298, 0, 0, -1, -1, 0), ("io_uring_setup", 425, 1, 0), ("userfaultfd", 323, 0),
        ("open_by_handle_at", 304, -100, 0, 0), ("reboot", 169, 0, 0, 0, 0), ("keyctl", 250, 0, -3, 0)):
    tried(name, call, number, *words)
tried("limits of another", resource.prlimit, host, resource.RLIMIT_NOFILE, (1, 1))
tried("priority of all of hers", os.setpriority, os.PRIO_USER, os.getuid(), -5)
for family, address in ((socket.AF_INET, ("127.0.0.1", 22)), (socket.AF_UNIX, sys.argv[2])):
    tried(f"a socket {family}", lambda: socket.socket(family).connect(address))
print("over")
""", host, f"{pool.dir}/run/schedd.sock")
    results = job.results()
    assert len(results) > 30
    assert not {name: result for name, result in results.items() if result.startswith("DONE")}
    assert psutil.pid_exists(host)
    assert shadow_of(pool, pool.mallory) == host


def test_large_answers_are_the_programs_own_trouble(pool: SharedPool) -> None:
    """The process at home takes no more memory for one program's wishes than for honest ones, and serves others."""
    honest = HostileJob(pool, pool.mallory, "honest", """
for number in range(200):
    with open("state", "w") as state:
        state.write(str(number))
tried("state", look, "state")
print("over")
""")
    job = HostileJob(pool, pool.mallory, "large", """
zero = os.open("/dev/zero", os.O_RDONLY)
for size in (1 << 20, 1 << 26, 1 << 28):
    tried(f"read {size}", lambda: len(os.read(zero, size)) <= size)
    tried(f"pieces {size}", lambda: os.readv(zero, [bytearray(size // 1000)] * 1000) <= size)
for number, words in ((0, (zero, 8, 1 << 62)), (217, (zero, 8, -1)), (79, (8, 1 << 40)), (17, (zero, 8, -1, -1))):
    tried(f"call {number}", call, number, *words)
tried("a path without end", os.open, "x" * (1 << 20), os.O_RDONLY)
tried("many names", lambda: [open(f"many-{number}", "x").close() for number in range(3000)] and len(os.listdir(".")))
print("over")
""")
    results = job.results()
    assert results["a path without end"] == "ENAMETOOLONG"
    assert honest.results()["state"] == "DONE b'199'"
    for pid in pool.pids_of(pool.mallory, "shadow"):
        assert psutil.Process(pid).memory_info().rss < 300 << 20


@pytest.mark.parametrize("change", ["file for link", "folder for link"])
def test_a_name_that_changes_between_check_and_use(change: str, pool: SharedPool) -> None:
    """With a root directory, while threads of the program swap what names mean."""
    outside = pool.mallory.home / f"outside-{change.split()[0]}"
    outside.mkdir()
    (outside / "inner").write_text("not for the job")
    os.chown(outside, pool.mallory.uid, pool.mallory.gid)
    name = f"race-{change.split()[0]}"
    job = HostileJob(pool, pool.mallory, name, """
outside, kind = sys.argv[1:]
os.mkdir("real"); open("real/inner", "w").write("its own"); os.rename("real/inner", "real/inner")
over = threading.Event()
def swap():
    while not over.is_set():
        if kind == "folder":
            os.symlink(outside, "link"); os.rename("real", "aside"); os.rename("link", "real")
            os.unlink("real"); os.rename("aside", "real")
        else:
            os.symlink(outside + "/inner", "real/link"); os.rename("real/link", "real/inner")
            open("real/new", "w").write("its own"); os.rename("real/new", "real/inner")
thread = threading.Thread(target=swap); thread.start()
seen, wrote = set(), 0
for number in range(4000):
    try:
        seen.add(open("real/inner").read())
    except OSError as error:
        seen.add(errno.errorcode[error.errno])
    try:
        os.close(os.open("real/made", os.O_CREAT | os.O_WRONLY))
        os.chmod("real/inner", 0o644)
        os.truncate("real/inner", 7)
    except OSError:
        pass
over.set(); thread.join()
print(f"seen: {sorted(seen)}")
print("over")
""", outside, change.split()[0], job_root=str(pool.mallory.home / name))
    seen = job.results()["seen"]
    assert "not for the job" not in seen
    assert "its own" in seen
    assert sorted(path.name for path in outside.iterdir()) == ["inner"]
    assert (outside / "inner").read_text() == "not for the job"


def test_names_of_its_own_folder_lead_nowhere(pool: SharedPool) -> None:
    """Devices, pipes that nobody opens, and names that are no text: the program alone waits for them."""
    honest = HostileJob(pool, pool.mallory, "beside", "tried('alive', os.getpid)\nprint('over')")
    job = HostileJob(pool, pool.mallory, "names", """
os.mkfifo("pipe")
tried("pipe", os.open, "pipe", os.O_RDONLY | os.O_NONBLOCK)
tried("pipe for writing", os.open, "pipe", os.O_WRONLY | os.O_NONBLOCK)
tried("device", os.mknod, "device", 0o600 | 0o020000, os.makedev(1, 1))
tried("no text", look, b"\\xff\\xfe/..//\\n")
tried("setuid file", lambda: (open("tool", "w").close(), os.chmod("tool", 0o6755), os.chown("tool", 0, 0)))
def wait():
    os.open("pipe", os.O_RDONLY)
threading.Thread(target=wait, daemon=True).start()
print("over", flush=True)
os._exit(0)
""")
    results = job.results()
    assert results["pipe"].startswith("DONE")
    assert results["device"] in ("EPERM", "EACCES")
    assert results["setuid file"] == "EPERM"
    assert honest.results()["alive"].startswith("DONE")


def test_the_folder_is_of_its_owner(pool: SharedPool) -> None:
    """What a program makes at home is its owner's, no matter who runs the pool."""
    job = HostileJob(pool, pool.mallory, "made", "open('made', 'w').close()\ntried('x', os.getuid)\nprint('over')")
    job.results()
    facts = Path(job.folder / "made").stat()
    assert (facts.st_uid, facts.st_gid) == (pool.mallory.uid, pool.mallory.gid)
