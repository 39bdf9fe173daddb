"""The helper that stays root, attacked by the only one who can talk to it: a daemon that an attacker has taken over.

Accounts are plain numbers: POOL is the daemon's, ALICE and BOB are users that the policy lists.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
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
    POOL,
    READY,
    REMOVE,
    TAKE,
    Helper,
    opened,
    owned,
    status_of,
)
from tests.pool_fixture import fresh_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: without it nothing of a pool has root's rights")


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


HOLDS = """
import os, sys
name, memory = sys.argv[1:]
for path, wanted in ((name, 512), (memory, 2048)):
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.dup(file)
    os.write(file, bytes(wanted << 10))
    os.unlink(path)
print("holds", flush=True)
sys.stdin.read()
"""


def test_what_an_account_has_deleted_and_keeps_open_is_measured_once(helper: Helper, folder: Path) -> None:
    """By the account's own rights: another account's processes are not looked into, and memory is no disk."""
    top = owned(folder / "box", ALICE, None, 0o700)
    command = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", *python_for_all().words, "-c",
               HOLDS, str(top / "large"), f"/dev/shm/condor-{os.getpid()}"]
    with opened(top) as descriptor, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        with program.stdin:
            assert select.select([program.stdout], [], [], 60)[0]
            assert program.stdout.readline() == b"holds\n"
            pids = f"{program.pid} {program.pid} 1 4294967295 {os.getpid()}"
            assert helper.order(MEASURE, ALICE, descriptors=[descriptor]).value < 512
            assert 512 <= helper.order(MEASURE, ALICE, pids, [descriptor]).value < 1024
            assert helper.order(MEASURE, ALICE, "what is no number", [descriptor]).value < 512
            assert helper.order(MEASURE, BOB, pids, [descriptor]).value < 512
            inner = owned(top / "inner", ALICE, None, 0o700)
            with opened(inner) as below:  # a folder without a file in it tells the device as well
                assert 512 <= helper.order(MEASURE, ALICE, pids, [below]).value < 1024


@pytest.fixture
def layers(folder: Path) -> Iterator[Path]:
    """A folder of the list whose files lie in layers of two file systems, as in a container's root."""
    upper, top = folder / "memory", folder / "layers"
    for path in (upper, top, folder / "lower"):
        path.mkdir()
    with ExitStack() as mounts:
        for words in (["-t", "tmpfs", "none", str(upper)],
                      ["-t", "overlay", "none", "-o",
                       f"lowerdir={folder}/lower,upperdir={upper}/upper,workdir={upper}/work", str(top)]):
            done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"this machine does not let us mount layers: {done.stderr.strip()}")
            mounts.callback(subprocess.run, ["umount", "-l", words[-1]], check=True)
            if words[-1] == str(upper):
                (upper / "upper").mkdir()
                (upper / "work").mkdir()
        yield top


def test_folders_of_layers_are_given_taken_and_removed(helper: Helper, layers: Path) -> None:
    top = owned(layers / "box", POOL, None, 0o700)
    file = owned(owned(top / "in", POOL, None, 0o700) / "file", POOL)
    with opened(top) as descriptor:
        assert helper.order(GIVE, ALICE, descriptors=[descriptor]).error == 0
        assert file.stat().st_uid == ALICE
        assert helper.order(TAKE, ALICE, descriptors=[descriptor]).error == 0
        assert helper.order(GIVE, ALICE, descriptors=[descriptor]).error == 0
        assert helper.order(REMOVE, ALICE, descriptors=[descriptor]).error == 0
    assert os.listdir(top) == []


def test_what_is_mounted_in_a_tree_is_left(helper: Helper, folder: Path) -> None:
    """Also when it lies on the same file system."""
    top = owned(folder / "box", POOL, None, 0o700)
    elsewhere = owned(folder / "elsewhere", POOL, None, 0o700)
    file = owned(elsewhere / "file", POOL)
    owned(top / "in", POOL, None, 0o700)
    with ExitStack() as mounts:
        subprocess.run(["mount", "--bind", str(elsewhere), str(top / "in")], check=True)
        mounts.callback(subprocess.run, ["umount", "-l", str(top / "in")], check=True)
        with opened(top) as descriptor:
            for kind in (GIVE, REMOVE):
                assert helper.order(kind, ALICE, descriptors=[descriptor]).error == errno.EXDEV
    assert file.stat().st_uid == POOL


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
    """Someone swaps folders for links while a tree is given and removed: nothing outside is touched."""
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
