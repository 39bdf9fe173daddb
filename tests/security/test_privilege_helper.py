"""The helper that stays root, attacked by the only one who can talk to it: a daemon that somebody else has taken over.

Accounts are plain numbers: POOL is the daemon's, ALICE and BOB are users that the policy lists.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.harness.readable_python import python_for_all
from tests.harness.root_helper import (
    ALICE,
    BOB,
    GIVE,
    MAGIC,
    MEASURE,
    OPEN,
    ORDER,
    OWN_PIDS,
    POOL,
    PROGRAM,
    READY,
    REMOVE,
    SIGNAL,
    START,
    TAKE,
    Helper,
    status_of,
)
from tests.pool_fixture import fresh_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: without it nothing of a pool has root's rights")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the pool's account that everybody can enter."""
    with fresh_folder() as path:
        os.chown(path, POOL, POOL)
        yield path


@pytest.fixture
def helper(folder: Path) -> Iterator[Helper]:
    with Helper("--folder", str(folder)) as made:
        yield made


@contextmanager
def opened(path: Path | str, flags: int = os.O_RDONLY) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def owned(path: Path, uid: int, data: bytes | None = b"content", mode: int = 0o600) -> Path:
    """A file (or folder, without data) of an account."""
    if data is None:
        path.mkdir(mode=mode)
    else:
        path.write_bytes(data)
    path.chmod(mode)
    os.chown(path, uid, uid)
    return path


# ---- what it is


def test_it_keeps_what_its_orders_need_and_nothing_else(folder: Path) -> None:
    with Helper(orders="signal") as helper:
        status = status_of(helper.process.pid)
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        assert int(status["CapEff"], 16) == 0  # between two orders
        assert int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 1 << 5  # CAP_KILL
    with Helper("--folder", str(folder), orders="open,remove") as helper:
        assert int(status_of(helper.process.pid)["CapPrm"], 16) == 1 << 5 | 1 << 6 | 1 << 7


def test_nobody_looks_into_it(helper: Helper) -> None:
    for secret in ("mem", "environ", "fd/0"):
        done = subprocess.run(["setpriv", f"--reuid={POOL}", f"--regid={POOL}", "--clear-groups", "cat",
                               f"/proc/{helper.process.pid}/{secret}"], capture_output=True, check=False)
        assert done.returncode != 0, secret


def test_it_ends_with_its_daemon() -> None:
    helper = Helper()
    assert helper.order(READY).value == helper.process.pid
    helper.socket.close()
    assert helper.process.wait(60) == 0


@pytest.mark.parametrize("policy", [
    ["--pool", "0", "0"], ["--pool", "60101", "0"], ["--pool", "x", "1"], ["--orders", "start,everything"],
    ["--folder", "relative"], ["--unknown"], ["--program", "name", "root", "", "python", ";"],
    ["--program", "name", "root", "", "/bin/true"], ["--orders"], ["--launcher", "/nonexistent"], ["--account", "12"],
])
def test_a_policy_that_is_none_starts_nothing(policy: list[str]) -> None:
    helper = Helper(*policy)
    assert helper.process.wait(60) == 2
    helper.socket.close()


# ---- garbage


def test_garbage_is_answered_and_does_no_harm(helper: Helper) -> None:
    random = Random(14)
    good = ORDER.pack(MAGIC, OPEN, 1, ALICE, 0, 0, 0, 0, 0, b"/etc/hostname")
    hostile = [b"x", b"\0" * ORDER.size, good[:-1], good + b"\0", random.randbytes(ORDER.size),
               ORDER.pack(MAGIC, 999, 1, ALICE, 0, 0, 0, 0, 0, b""), ORDER.pack(MAGIC, 0, 1, ALICE, 0, 0, 0, 0, 0, b""),
               ORDER.pack(MAGIC + 1, OPEN, 1, ALICE, 0, 0, 0, 0, 0, b"/etc/hostname"),
               ORDER.pack(MAGIC, OPEN, 1, ALICE, 0, 0, 0, 0, 0, b"/etc\0/hostname"),
               ORDER.pack(MAGIC, OPEN, 1, ALICE, 0, 0, 0, 0, 0, b"/" * 4096),
               ORDER.pack(MAGIC, OPEN, 1, ALICE, 0, 0, 0, 7, 0, b"/etc/hostname")]
    hostile += [bytes(random.choice((byte, random.randrange(256))) if at < 44 else byte
                      for at, byte in enumerate(good)) for _ in range(300)]
    for data in hostile:
        helper.send(data)
        answer = helper.receive()
        if answer.descriptor >= 0:
            os.close(answer.descriptor)
    answer = helper.order(READY)
    assert (answer.error, answer.value) == (0, helper.process.pid)


def test_descriptors_that_nobody_asked_for_are_closed(helper: Helper) -> None:
    with opened(os.devnull) as null:
        for _ in range(200):
            assert helper.order(READY, descriptors=[null] * 3, claimed=0).error == errno.EINVAL
            helper.order(OPEN, ALICE, "/etc/hostname", [null] * 16)
            helper.send(b"not an order", [null] * 250)
            assert helper.receive().error == errno.EINVAL
    helper.order(READY)  # it closes what came with an order after its answer, and before the next order
    count = len(os.listdir(f"/proc/{helper.process.pid}/fd"))
    assert count < 12


def test_a_flood_is_answered_order_by_order(helper: Helper, folder: Path) -> None:
    owned(folder / "file", ALICE)
    answers: list[int] = []

    def read() -> None:
        for _ in range(2000):
            answer = helper.receive()
            answers.append(answer.error)
            if answer.descriptor >= 0:
                os.close(answer.descriptor)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(2000):
        helper.send(ORDER.pack(MAGIC, OPEN, number, ALICE, 0, 0, 0, 0, 0, os.fsencode(folder / "file")))
    reader.join(120)
    assert len(answers) == 2000
    assert set(answers) <= {0, errno.EAGAIN}
    assert helper.order(READY).error == 0


# ---- accounts


@pytest.mark.parametrize("uid", [0, POOL, 1, 33, 60_999, 0xFFFFFFFF, 0xFFFFFFFE])
def test_accounts_that_are_not_in_the_list(helper: Helper, folder: Path, uid: int) -> None:
    secret = owned(folder / "secret", 0)
    answer = helper.open(uid, secret)
    assert (answer.error, answer.descriptor, answer.reason) == (errno.EPERM, -1, "that account is not allowed")
    started, _, said = helper.start(uid, ["--", "/usr/bin/id"])
    assert (started.error, said) == (errno.EPERM, "")
    with opened(folder) as descriptor:
        for kind in (GIVE, TAKE, REMOVE, MEASURE):
            assert helper.order(kind, uid, descriptors=[descriptor]).error == errno.EPERM


def test_a_range_of_users_has_no_root_and_no_pool_in_it(folder: Path) -> None:
    owned(folder / "secret", 0)
    with Helper("--users", "0", "4294967293", accounts=()) as helper:
        for uid in (0, POOL):
            assert helper.open(uid, folder / "secret").reason == "that account is not allowed"


def test_an_account_without_a_group_is_none(folder: Path) -> None:
    with Helper("--users", "60000", "60200", accounts=()) as helper:
        answer = helper.open(ALICE, "/etc/hostname")
        assert (answer.error, answer.reason) == (errno.ESRCH, "the account cannot be taken on")


def test_groups_come_from_the_user_database_and_never_from_the_order(helper: Helper, folder: Path) -> None:
    shared = owned(folder / "shared", 0, mode=0o640)
    for group in (0, 42, 6):  # root, shadow, disk
        os.chown(shared, 0, group)
        assert helper.open(ALICE, shared).error == errno.EACCES


# ---- open


def test_open_has_the_accounts_rights_and_no_more(helper: Helper, folder: Path) -> None:
    mine, theirs = owned(folder / "mine", ALICE), owned(folder / "theirs", BOB)
    answer = helper.open(ALICE, mine)
    assert os.read(answer.descriptor, 20) == b"content"
    assert fcntl.fcntl(answer.descriptor, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(answer.descriptor)
    for other in (theirs, Path("/etc/shadow"), Path(f"/proc/{helper.process.pid}/mem"), Path("/proc/1/environ")):
        assert helper.open(ALICE, other).error in (errno.EACCES, errno.EPERM)


def test_a_link_is_followed_with_the_accounts_rights_only(helper: Helper, folder: Path) -> None:
    (folder / "link").symlink_to("/etc/shadow")
    (folder / "chain").symlink_to(folder / "link")
    assert helper.open(ALICE, folder / "chain").error == errno.EACCES
    (folder / "host").symlink_to("/etc/hostname")
    assert helper.open(ALICE, folder / "host", extra=2).error == errno.ELOOP  # where none is allowed


def test_a_magic_link_leads_nowhere(helper: Helper, folder: Path) -> None:
    assert helper.open(ALICE, "/proc/self/root/etc/hostname").error == errno.ELOOP
    assert helper.open(ALICE, "/proc/self/fd/3").error in (errno.ELOOP, errno.ENOENT, errno.EACCES)


def test_links_swapped_while_it_opens(helper: Helper, folder: Path) -> None:
    """Another user changes the path all the time: what is opened is the account's to open, every time."""
    owned(folder / "good", ALICE)
    secret = owned(folder / "secret", BOB, b"secret")
    place = folder / "place"
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for target in (folder / "good", secret, Path("/etc/shadow")):
                fresh = folder / "fresh"
                fresh.symlink_to(target)
                fresh.rename(place)

    place.symlink_to(folder / "good")
    thread = threading.Thread(target=swap)
    thread.start()
    read = set()
    try:
        for _ in range(300):
            answer = helper.open(ALICE, place)
            if answer.descriptor >= 0:
                read.add(os.read(answer.descriptor, 100))
                os.close(answer.descriptor)
    finally:
        done.set()
        thread.join()
    assert read <= {b"content"}


def test_beneath_a_folder_nothing_leads_out(helper: Helper, folder: Path) -> None:
    owned(folder / "file", ALICE)
    owned(folder / "in", ALICE, None, 0o755)
    (folder / "in" / "up").symlink_to("../file")
    (folder / "in" / "root").symlink_to("/etc/hostname")
    with opened(folder / "in") as beneath:
        for path in ("../file", "up", "root", "/etc/hostname"):
            assert helper.open(ALICE, path, folder=beneath).error == errno.EXDEV
    with opened(os.devnull) as null:
        assert helper.open(ALICE, "file", folder=null).error == errno.ENOTDIR
    assert helper.open(ALICE, "file").error == errno.EINVAL


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_plain_files_unless_asked(helper: Helper, folder: Path, kind: str) -> None:
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path, 0o666)
    elif kind == "device":
        path = Path("/dev/null")
    else:
        owned(path, ALICE, None, 0o755)
    answer = helper.open(ALICE, path)  # and nobody waits for the other end of the pipe
    assert (answer.error, answer.reason) == (errno.EINVAL, "not a plain file")
    asked = helper.open(ALICE, path, extra=1)
    assert asked.error == 0
    os.close(asked.descriptor)


@pytest.mark.parametrize("flags", [os.O_TMPFILE, os.O_PATH, os.O_SYNC, os.O_DIRECT, 1 << 31])
def test_flags_of_open_that_are_not_allowed(helper: Helper, folder: Path, flags: int) -> None:
    owned(folder / "file", ALICE, None, 0o755)
    assert helper.open(ALICE, folder / "file", flags & 0xFFFFFFFF).error == errno.EINVAL
    assert helper.open(ALICE, folder / "file", mode=0o4755).error == errno.EINVAL


def test_what_it_makes_is_the_accounts(helper: Helper, folder: Path) -> None:
    owned(folder / "home", ALICE, None, 0o700)
    answer = helper.open(ALICE, folder / "home" / "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o644)
    facts = os.fstat(answer.descriptor)
    os.close(answer.descriptor)
    assert (facts.st_uid, facts.st_gid) == (ALICE, ALICE)
    assert helper.open(ALICE, folder / "new", os.O_WRONLY | os.O_CREAT, mode=0o644).error == errno.EACCES



ELSEWHERE = """
import os, socket, subprocess, sys
folder, secret = sys.argv[1:]
ours = socket.socket(fileno=0)
if subprocess.run(["/bin/mount", "--bind", secret, folder]).returncode == 0:
    socket.send_fds(ours, [b"x"], [os.open(folder, os.O_RDONLY)])
    ours.recv(1)
"""


def test_a_folder_that_has_an_allowed_name_in_another_mount_namespace(helper: Helper, folder: Path) -> None:
    """Who has the pool's account mounts a user's folder below one of the list's, where nobody but itself sees it."""
    owned(folder / "in", POOL, None, 0o755)
    with fresh_folder() as outside, opened(folder / "in") as true:
        outside.chmod(0o755)
        hers = owned(outside / "hers", ALICE, None, 0o755)
        owned(hers / "file", ALICE)
        ours, its = socket.socketpair()
        command = ["setpriv", f"--reuid={POOL}", f"--regid={POOL}", "--clear-groups", "unshare", "--user",
                   "--map-root-user", "--mount", *python_for_all().words, "-c", ELSEWHERE, str(folder / "in"),
                   str(hers)]
        with subprocess.Popen(command, stdin=its), ours:
            its.close()
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
            if not descriptors:
                pytest.skip("users make no namespaces here")
            assert os.readlink(f"/proc/self/fd/{descriptors[0]}") == str(folder / "in")  # as the kernel tells it
            for kind in (GIVE, TAKE, MEASURE, REMOVE):
                answer = helper.order(kind, ALICE, descriptors=descriptors)
                assert (answer.error, answer.reason) == (errno.EPERM, "not a folder that may be touched")
            os.close(descriptors[0])
            ours.sendall(b"x")
        assert (hers / "file").stat().st_uid == ALICE
        assert helper.order(MEASURE, ALICE, descriptors=[true]).error == 0


# ---- start


def test_the_launcher_is_the_account_before_it_reads_a_word(helper: Helper) -> None:
    answer, complaint, said = helper.start(ALICE, ["--", "/bin/cat", "/proc/self/status"])
    status = {name: value.split() for name, _, value in (line.partition(":") for line in said.splitlines())}
    assert (answer.error, complaint) == (0, "")
    assert status["Uid"] == [str(ALICE)] * 4
    assert status["Gid"] == [str(ALICE)] * 4
    assert status["Groups"] == [str(ALICE)]
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name][0], 16) == 0, name
    assert status["NoNewPrivs"] == ["1"]
    assert status["PPid"] == [str(os.getpid())]  # the daemon's own child, and not the helper's


def test_the_first_process_of_a_namespace_is_the_account_as_well_and_no_other_flag_is_taken(helper: Helper) -> None:
    script = "set -- /proc/[0-9]*; echo $# $$; grep -E '^(Uid|Gid|CapPrm|CapEff|CapInh|CapAmb)' /proc/self/status"
    answer, complaint, said = helper.start(
        ALICE, ["--first", "--isolate", "mount,pid", "--", "/bin/sh", "-c", script], flags=OWN_PIDS)
    seen, *lines = said.splitlines()
    assert (answer.error, complaint, seen) == (0, "", "2 2")
    for name, *values in (line.replace(":", "").split() for line in lines):
        assert set(values) == ({str(ALICE)} if name in ("Uid", "Gid") else {"0" * 16}), name
    assert int(status_of(helper.process.pid)["CapEff"], 16) == 0  # it made the namespace, and has no rights again
    for flags in (2, 3, 1 << 31):
        refused, _, said = helper.start(ALICE, ["--", "/bin/true"], flags=flags)
        assert (refused.error, refused.reason, said) == (errno.EPERM, "a start has no such flag", "")


@pytest.mark.parametrize("words", [
    ["--uid", "0", "--gid", "0", "--", "/usr/bin/id"],
    ["--uid", str(BOB), "--gid", str(BOB), "--", "/usr/bin/id"],
    ["--gid", "0", "--", "/usr/bin/id"],
    ["--nice", "-5", "--", "/usr/bin/id"],
    ["--chdir", "/root", "--", "/usr/bin/id"],
    ["--cgroup", "/sys/fs/cgroup/freezer", "--", "/usr/bin/id"],
    ["--join", "/proc/1/ns/mnt", "--", "/usr/bin/id"],
    ["--isolate", "mount", "--bind", "/root", "/tmp", "--", "/bin/ls", "/tmp"],
])
def test_words_of_the_launcher_that_would_be_more_than_the_account(helper: Helper, words: list[str]) -> None:
    answer, _, said = helper.start(ALICE, words)
    assert (answer.error, said) == (0, "")


def test_the_helpers_own_descriptors_are_no_launchers_to_keep(helper: Helper) -> None:
    """Not its end of the socket, from which orders are read, nor anything else that it holds."""
    for each in sorted(int(name) for name in os.listdir(f"/proc/{helper.process.pid}/fd") if int(name) > 2):
        answer, complaint, said = helper.start(ALICE, ["--keep-fd", str(each), "--", "/usr/bin/id"])
        assert (answer.error, complaint.strip(), said) == (0, "descriptors 9 --keep-fd", ""), each


def test_folders_that_only_root_enters_stay_shut_behind_a_mount(helper: Helper, folder: Path) -> None:
    owned(folder / "secret", 0, None, 0o700)
    (folder / "secret" / "open").write_text("for all")
    _, complaint, said = helper.start(
        ALICE, ["--isolate", "mount", "--bind", f"{folder}/secret/open", "/etc/hostname", "--", "/bin/cat",
                "/etc/hostname"])
    assert complaint.startswith("bind 13")
    assert said == ""


def test_a_program_with_a_users_bit_gives_nothing(helper: Helper, folder: Path) -> None:
    program = folder / "id"
    shutil.copy2("/usr/bin/id", program)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    _, _, said = helper.start(ALICE, ["--", str(program), "-u"])
    assert said.strip() == str(ALICE)


@pytest.mark.parametrize("variable", ["LD_PRELOAD=/tmp/x.so", "PATH=/tmp", "x", "", "BASH_ENV=/x"])
def test_variables_that_are_not_the_jobs(helper: Helper, variable: str) -> None:
    answer, complaint, said = helper.start(ALICE, ["--", "/usr/bin/id"], variables=[variable])
    assert (answer.error, said) == (0, "")
    assert complaint.startswith("variables ")


@pytest.mark.parametrize("group", [
    "/sys/fs/cgroup/freezer", "/tmp", "/sys/fs/cgroup/allowed/../freezer", "relative", "/sys/fs/cgroup/allowedelse",
])
def test_control_groups_that_are_not_the_pools(group: str) -> None:
    with Helper("--group", "/sys/fs/cgroup/allowed") as helper:
        _, complaint, said = helper.start(ALICE, ["--", "/usr/bin/id"], groups=[group])
        assert (complaint.split()[0], said) == ("cgroup", "")


def test_the_way_up_from_a_control_group_of_the_pools() -> None:
    """The group above one of the pool's has other limits."""
    roots = [Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup")]
    above = next((root for root in roots if (root / "cgroup.procs").exists()), None)
    if above is None:
        pytest.skip("no control groups are mounted here")
    own = above / f"condor-test-{os.getpid()}"
    own.mkdir()
    try:
        with Helper("--group", str(own)) as helper:
            for group in (f"{own}/..", f"{own}/../"):
                _, complaint, said = helper.start(ALICE, ["--", "/usr/bin/id"], groups=[group])
                assert (complaint.split()[0], said) == ("cgroup", "")
    finally:
        own.rmdir()


def test_a_file_that_looks_like_a_control_group(folder: Path) -> None:
    owned(folder / "group", POOL, None, 0o755)
    target = owned(folder / "target", 0, b"before")
    (folder / "group" / "cgroup.procs").symlink_to(target)
    (folder / "plain").mkdir()
    owned(folder / "plain" / "cgroup.procs", 0, b"before")
    with Helper("--group", str(folder)) as helper:
        for name in ("group", "plain"):
            _, complaint, _ = helper.start(ALICE, ["--", "/usr/bin/id"], groups=[str(folder / name)])
            assert complaint.startswith("cgroup ")
    assert target.read_bytes() == (folder / "plain" / "cgroup.procs").read_bytes() == b"before"


def test_sheets_that_are_none(helper: Helper, folder: Path) -> None:
    words = ["condor_launcher", "--status-fd", "63", "--", "/usr/bin/id"]
    pipe, pipe_in = os.pipe()
    os.close(pipe_in)
    hostile = [
        pipe, os.open(owned(folder / "file", POOL), os.O_RDONLY), os.open("/etc/shadow", os.O_RDONLY),
        os.open(folder, os.O_RDONLY), Helper.sheet(words, targets=(0, 1, 2, 63), seal=False),
        Helper.sheet(words, targets=(0, 1, 2, 63), counts=(99, 0, 0)),
        Helper.sheet(words, targets=(0, 1, 2, 63), counts=(0xFFFFFFFF, 0xFFFFFFFF, 7)),
        Helper.sheet(words, targets=(0, 1, 2, 63), counts=(0, 5, 0)),
        Helper.sheet(words, targets=(0, 1, 2, 2)), Helper.sheet(words, targets=(0, 1, 2, -1)),
        Helper.sheet(words, targets=(0, 1, 2, 99_999_999)), os.memfd_create("empty", os.MFD_ALLOW_SEALING),
    ]
    for sheet in hostile:
        answer, complaint, said = helper.start(ALICE, [], sheet=sheet)
        assert (answer.error, complaint, said) == (errno.EPERM, "", ""), answer
    assert helper.order(START, ALICE).error == errno.EPERM


def test_what_it_starts_dies_with_the_daemon(folder: Path) -> None:
    """The job's parent is the daemon: its death signal comes however the daemon ends."""
    code = ("import os, sys; from tests.harness.root_helper import *; h = Helper()\n"
            "null = os.open('/dev/null', os.O_RDWR); r, w = os.pipe()\n"
            "s = h.sheet(['l', '--status-fd', '63', '--death-signal', '9', '--', '/bin/sleep', '1000'], (), (),"
            " (0, 1, 2, 63))\n"
            f"a = h.order(START, {ALICE}, b'', (s, null, null, null, w)); os.close(w); os.read(r, 1)\n"
            "print(a.value, h.process.pid, flush=True); sys.stdin.read()")
    daemon = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              cwd=Path(__file__).parents[2])
    assert daemon.stdout is not None
    watched = [os.pidfd_open(int(word)) for word in daemon.stdout.readline().split()]
    daemon.kill()
    daemon.communicate()
    for descriptor in watched:
        assert select.select([descriptor], [], [], 60)[0]
        os.close(descriptor)


# ---- signals


@contextmanager
def sleeping(uid: int) -> Iterator[tuple[int, int]]:
    """A process of an account, and its descriptor."""
    process = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "sleep", "1000"],
                               stdout=subprocess.PIPE)
    while status_of(process.pid)["Name"] != "sleep":
        pass
    descriptor = os.pidfd_open(process.pid)
    try:
        yield process.pid, descriptor
    finally:
        os.close(descriptor)
        process.kill()
        process.communicate()


def test_processes_of_accounts_in_the_list_are_signalled(helper: Helper) -> None:
    with sleeping(ALICE) as (pid, descriptor):
        assert helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL).error == 0
        assert os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOWAIT) is not None
        assert helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL).error in (0, errno.ESRCH)
        assert pid


@pytest.mark.parametrize("uid", [0, POOL, 33])
def test_processes_of_others_are_not(helper: Helper, uid: int) -> None:
    with sleeping(uid) as (_, descriptor):
        answer = helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL)
        assert (answer.error, answer.reason) == (errno.EPERM, "a process of an account that is not allowed")


def test_the_helper_and_the_first_process_are_not_signalled(helper: Helper) -> None:
    for pid in (helper.process.pid, 1, os.getpid()):
        descriptor = os.pidfd_open(pid)
        assert helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL).error in (errno.EPERM, errno.ESRCH)
        os.close(descriptor)
    assert helper.order(READY).error == 0


def test_descriptors_that_are_no_processes(helper: Helper, folder: Path) -> None:
    pipe, pipe_in = os.pipe()
    pair = socket.socketpair()
    fake = owned(folder / "fake", POOL, b"Pid:\t1\n")
    with opened(fake) as file, opened("/proc/self/fdinfo/0") as info, opened("/proc/1/status") as first:
        for descriptor in (pipe, pipe_in, pair[0].fileno(), file, info, first):
            assert helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL).error == errno.EBADF
    assert helper.order(SIGNAL, signal=signal.SIGKILL).error == errno.EBADF
    for end in (pipe, pipe_in):
        os.close(end)
    for sock in pair:
        sock.close()


def test_only_what_descends_from_the_daemon_where_the_policy_says_so() -> None:
    outside = subprocess.Popen(["setsid", "--fork", "setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups",
                                "sh", "-c", "echo $$; exec sleep 1000"], stdout=subprocess.PIPE, text=True)
    assert outside.stdout is not None
    pid = int(outside.stdout.readline())
    outside.stdout.close()
    outside.wait()
    descriptor = os.pidfd_open(pid)
    try:
        with Helper("--descendants") as helper:
            answer = helper.order(SIGNAL, descriptors=[descriptor], signal=signal.SIGKILL)
            assert (answer.error, answer.reason) == (errno.EPERM, "a process that was not started from here")
            with sleeping(ALICE) as (_, child):
                assert helper.order(SIGNAL, descriptors=[child], signal=signal.SIGKILL).error == 0
    finally:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)


@pytest.mark.parametrize("number", [-1, 65, 1 << 20])
def test_numbers_that_are_no_signals(helper: Helper, number: int) -> None:
    with sleeping(ALICE) as (_, descriptor):
        assert helper.order(SIGNAL, descriptors=[descriptor], signal=number).error == errno.EINVAL


# ---- trees of files


def test_a_prepared_folder_is_given_and_taken_back(helper: Helper, folder: Path) -> None:
    top = owned(folder / "box", POOL, None, 0o700)
    owned(top / "in", POOL, None, 0o700)
    owned(top / "in" / "file", POOL)
    (top / "link").symlink_to("/etc/shadow")
    os.chown(top / "link", POOL, POOL, follow_symlinks=False)
    with opened(top) as descriptor:
        assert helper.order(GIVE, ALICE, descriptors=[descriptor]).error == 0
        found = [top, top / "in", top / "in" / "file", top / "link"]
        assert {(path.lstat().st_uid, path.lstat().st_gid) for path in found} == {(ALICE, ALICE)}
        assert helper.order(MEASURE, ALICE, descriptors=[descriptor]).value >= 4
        assert helper.order(TAKE, ALICE, descriptors=[descriptor]).error == 0
        assert {(path.lstat().st_uid, path.lstat().st_gid) for path in found} == {(POOL, POOL)}
    assert os.stat("/etc/shadow").st_uid == 0


def test_what_is_not_the_pools_is_not_given(helper: Helper, folder: Path) -> None:
    top = owned(folder / "box", POOL, None, 0o700)
    secret = owned(top / "root", 0)
    theirs = owned(top / "bob", BOB)
    owned(folder / "outside", POOL)
    os.link(folder / "outside", top / "second")
    with opened(top) as descriptor:
        assert helper.order(GIVE, ALICE, descriptors=[descriptor]).error in (errno.EPERM, errno.EMLINK)
    assert (secret.stat().st_uid, theirs.stat().st_uid, (folder / "outside").stat().st_uid) == (0, BOB, POOL)


def test_a_bit_that_makes_a_program_somebody_else_is_lost(helper: Helper, folder: Path) -> None:
    top = owned(folder / "box", POOL, None, 0o700)
    program = owned(top / "program", POOL, mode=0o755)
    program.chmod(0o6755)
    with opened(top) as descriptor:
        assert helper.order(GIVE, ALICE, descriptors=[descriptor]).error == 0
    assert stat.S_IMODE(program.stat().st_mode) & 0o6000 == 0


def test_folders_outside_the_list(helper: Helper, folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    elsewhere = owned(tmp_path / "home", ALICE, None, 0o755)
    owned(elsewhere / "file", ALICE)
    (folder / "way").symlink_to(elsewhere)
    for path in (elsewhere, folder, folder / "way", Path("/etc"), Path("/")):
        with opened(path) as descriptor:
            for kind in (GIVE, TAKE, REMOVE):
                answer = helper.order(kind, ALICE, descriptors=[descriptor])
                assert (answer.error, answer.reason) == (errno.EPERM, "not a folder that may be touched")
    assert (elsewhere / "file").exists()


def test_a_tree_that_fights_its_removal(helper: Helper, folder: Path) -> None:
    top = owned(folder / "box", ALICE, None, 0o755)
    secret = owned(folder / "secret", BOB)
    script = ("cd $1; mkdir -p shut/in; echo x > shut/in/file; chmod 000 shut/in shut; ln -s /etc link; ln -s .. up\n"
              "i=0; mkdir deep; cd deep; while [ $i -lt 1200 ]; do mkdir d; cd ./d; i=$((i+1)); done; echo x > bottom")
    subprocess.run(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", "sh", "-c", script, "sh",
                    str(top)], check=True)
    with opened(top) as descriptor:
        assert helper.order(REMOVE, ALICE, descriptors=[descriptor]).error == 0
    assert os.listdir(top) == []
    assert secret.exists()
    assert os.path.exists("/etc/passwd")


def test_links_put_in_the_way_of_a_removal(helper: Helper, folder: Path) -> None:
    """Somebody swaps folders for links while a tree is given and removed: nothing outside is touched."""
    victim = owned(folder / "victim", ALICE, None, 0o755)
    for number in range(20):
        owned(victim / str(number), ALICE)
    for _ in range(10):
        top = owned(folder / "box", ALICE, None, 0o755)
        owned(top / "in", ALICE, None, 0o755)
        for number in range(50):
            owned(top / "in" / str(number), ALICE)
        done = threading.Event()

        def swap(top: Path = top, done: threading.Event = done) -> None:
            while not done.is_set():
                try:
                    (top / "in").rename(top / "aside")
                    (top / "in").symlink_to(victim)
                    (top / "in").unlink()
                    (top / "aside").rename(top / "in")
                except OSError:
                    continue

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            with opened(top) as descriptor:
                helper.order(REMOVE, ALICE, descriptors=[descriptor])
        finally:
            done.set()
            thread.join()
        shutil.rmtree(top)
    assert len(os.listdir(victim)) == 20


# ---- programs


@pytest.fixture
def programs(folder: Path) -> Iterator[Helper]:
    with Helper("--program", "show", "root", "MARK,PORT", "/usr/bin/env", ";",
                "--program", "own", "account", "", "/usr/bin/id", "-u", ";", orders="program") as helper:
        yield helper


def run_program(helper: Helper, text: str, uid: int, folder: Path) -> tuple[int, str]:
    output = folder / "output"
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    answer = helper.order(PROGRAM, uid, text, [descriptor])
    os.close(descriptor)
    if answer.error == 0:
        os.waitpid(answer.value, 0)
    return answer.error, output.read_text()


def test_programs_are_those_of_the_list(programs: Helper, folder: Path) -> None:
    error, said = run_program(programs, "show MARK=/a/b:SCHEDD", 0, folder)
    assert (error, sorted(said.split())) == (0, ["MARK=/a/b:SCHEDD", "PATH=/usr/bin:/bin"])
    assert run_program(programs, "own", ALICE, folder) == (0, f"{ALICE}\n")


@pytest.mark.parametrize(("text", "uid"), [
    ("", 0), ("other", 0), ("show LD_PRELOAD=/tmp/x.so", 0), ("show MARK=$(reboot)", 0), ("show PATH=/tmp", 0),
    ("show MARK", 0), ("show", ALICE), ("own", 0), ("own", POOL), ("own", 33), ("own MARK=1", ALICE),
    ("show MARK=a\nPATH=/tmp", 0), ("/bin/sh", 0),
])
def test_programs_that_are_not(programs: Helper, folder: Path, text: str, uid: int) -> None:
    assert run_program(programs, text, uid, folder) == (errno.EPERM, "")


def test_orders_of_other_daemons_are_not_taken(programs: Helper) -> None:
    for kind in (START, OPEN, SIGNAL, GIVE, TAKE, REMOVE, MEASURE):
        assert programs.order(kind, ALICE).reason == "a kind of order that is not taken here"
