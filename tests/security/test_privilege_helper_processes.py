"""The privilege helper and processes: what it starts, whom it signals, which programs it runs for other daemons."""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.root_helper import (
    ALICE,
    BOB,
    GIVE,
    MEASURE,
    OPEN,
    OWN_PIDS,
    POOL,
    PROGRAM,
    READY,
    REMOVE,
    SIGNAL,
    START,
    TAKE,
    Helper,
    opened,
    owned,
    status_of,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: without it nothing of a pool has root's rights")


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
    assert (answer.error, complaint, seen) == (0, "", "2 3"), "the second was to ask for the account's groups"
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
    assert complaint.startswith("source 13")
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
