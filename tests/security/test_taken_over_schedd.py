"""A schedd that an attacker has taken over: whatever it orders of its helper, with the policy that a schedd gives it.

It may act for people; that is its office.  Root, the system's accounts and what belongs to them are out of its reach.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from condor_actors.config import load_config
from condor_actors.daemons.schedd.before_drop import before_drop
from condor_actors.daemons.schedd.shadow_processes import HOST_ID_VARIABLE, HOST_PROGRAM
from condor_actors.machine.privilege.pool_account import PoolAccount
from tests.harness.root_helper import (
    GIVE,
    MEASURE,
    OPEN,
    POOL,
    PROGRAM,
    REMOVE,
    SIGNAL,
    START,
    TAKE,
    Answer,
    Helper,
)
from tests.pool_fixture import fresh_folder
from tests.security.local_users import NEED_USERS, a_person

pytestmark = NEED_USERS

SYSTEM = 1
NOT_PEOPLE = [0, SYSTEM, 999, POOL, 2**32 - 1]


@pytest.fixture(scope="module")
def alice() -> Iterator[int]:
    """The uid of one of the people."""
    with fresh_folder() as home, a_person(f"ca{os.urandom(3).hex()}", home) as person:
        yield person.uid


@pytest.fixture
def spool() -> Iterator[Path]:
    """SPOOL, as the pool's account has it."""
    with fresh_folder() as folder:
        os.chown(folder, POOL, POOL)
        yield folder


@pytest.fixture
def helper(spool: Path, tmp_path: Path) -> Iterator[Helper]:
    """With exactly a schedd's policy."""
    file = tmp_path / "condor_config"
    file.write_text(f"SPOOL = {spool}\nRUN = {spool}\n")
    policy = before_drop(load_config(subsystem="SCHEDD", files=[file], environ={}), PoolAccount(POOL, POOL, "pool"))
    with Helper(*policy, exact=True) as made:
        yield made


@contextmanager
def opened(path: Path | str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def folder(path: Path, uid: int) -> Path:
    """A folder of an account's."""
    path.mkdir(mode=0o700)
    os.chown(path, uid, uid)
    return path


def started(helper: Helper, uid: int, text: str) -> Answer:
    with opened(os.devnull) as null:
        answer = helper.order(PROGRAM, uid, text, [null])
    if answer.error == 0:
        os.waitpid(answer.value, 0)
    return answer


def test_it_starts_one_program_and_as_people_only(helper: Helper, alice: int) -> None:
    for uid in NOT_PEOPLE:
        assert started(helper, uid, HOST_PROGRAM).error == errno.EPERM, uid
    for text in ("", "sh", "/bin/sh", f"{HOST_PROGRAM}-", f"{HOST_PROGRAM} /bin/sh", f"{HOST_PROGRAM} -c"):
        assert started(helper, alice, text).error == errno.EPERM, text
    for name in ("LD_PRELOAD", "PYTHONPATH", "PATH", "CONDOR_CONFIG", f"{HOST_ID_VARIABLE}X", ""):
        assert started(helper, alice, f"{HOST_PROGRAM} {name}=/tmp/x").error == errno.EPERM, name
    for value in ("a;b", "$(id)", "a\nb", "'"):
        assert started(helper, alice, f"{HOST_PROGRAM} {HOST_ID_VARIABLE}={value}").error == errno.EPERM, value


@pytest.mark.parametrize("kind", [START, TAKE, MEASURE])
def test_it_has_no_orders_that_it_does_not_need(helper: Helper, alice: int, spool: Path, kind: int) -> None:
    with opened(folder(spool / "7", alice)) as descriptor:
        answer = helper.order(kind, alice, "", [descriptor])
    assert (answer.error, answer.reason) == (errno.EINVAL, "a kind of order that is not taken here")


def test_it_opens_nothing_as_root_and_none_of_roots_files_as_others(helper: Helper, alice: int, spool: Path) -> None:
    for uid in NOT_PEOPLE:
        assert helper.open(uid, "/etc/hostname").error == errno.EPERM, uid
    secret = spool / "key"
    secret.write_text("the pool's")
    secret.chmod(0o600)
    os.chown(secret, POOL, POOL)
    own = helper.process.pid
    for path in ("/etc/shadow", "/root/.ssh", "/proc/1/environ", f"/proc/{own}/mem", f"/proc/{own}/fd/0", str(secret)):
        assert helper.open(alice, path).error != 0, path
    for path in ("/etc/passwd", "/etc/ld.so.preload", "/proc/sys/kernel/core_pattern"):
        assert helper.open(alice, path, os.O_WRONLY | os.O_CREAT, mode=0o644).error == errno.EACCES, path


@pytest.mark.parametrize("uid", [0, SYSTEM, POOL])
def test_it_signals_no_process_of_root_of_the_system_or_of_the_pool(helper: Helper, uid: int) -> None:
    with subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "cat"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.read(1) == b"x"  # it is that account's by now
        descriptor = os.pidfd_open(process.pid)
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, 0):
            assert helper.order(SIGNAL, 0, "", [descriptor], signal=number).error == errno.EPERM
        os.close(descriptor)
        process.stdin.close()
        assert process.wait(60) == 0


def test_it_does_not_end_its_helper(helper: Helper) -> None:
    descriptor = os.pidfd_open(helper.process.pid)
    assert helper.order(SIGNAL, 0, "", [descriptor], signal=signal.SIGKILL).error == errno.EPERM
    os.close(descriptor)


def test_it_gives_away_nothing_outside_of_the_spool(helper: Helper, alice: int, spool: Path, tmp_path: Path) -> None:
    others = folder(tmp_path / "others", POOL)
    (spool / "way").symlink_to(others)
    for path in (spool, others, spool / "way", "/etc", "/"):
        with opened(path) as descriptor:
            assert helper.order(GIVE, alice, "", [descriptor]).error == errno.EPERM, path
    given = folder(spool / "7", POOL)
    for name, uid in (("roots", 0), ("pools", POOL)):
        target = tmp_path / name
        target.write_text("secret")
        os.chown(target, uid, uid)
        os.link(target, given / f"hard-{name}")
        (given / f"soft-{name}").symlink_to(target)
    for uid in NOT_PEOPLE:
        with opened(given) as descriptor:
            assert helper.order(GIVE, uid, "", [descriptor]).error == errno.EPERM, uid
    with opened(given) as descriptor:
        helper.order(GIVE, alice, "", [descriptor])
    assert (tmp_path / "roots").stat().st_uid == 0
    assert (tmp_path / "pools").stat().st_uid == POOL


def test_it_removes_as_people_what_they_could_remove(helper: Helper, alice: int, spool: Path, tmp_path: Path) -> None:
    beside, outside = folder(spool / "beside", alice), folder(tmp_path / "outside", alice)
    for place in (beside, outside):
        (place / "kept").write_text("x")
    hers = folder(spool / "hers", alice)
    (hers / "link").symlink_to(beside)
    deep = hers / "run"
    for _ in range(700):  # deeper than the helper walks at a time
        deep.mkdir(mode=0o700)
        os.chown(deep, alice, alice)
        if len(os.fspath(deep)) > 3_000:
            break
        deep /= "d"
    for path in sorted(hers.glob("run/**/*"))[:5]:
        path.chmod(0)
    with opened(hers) as descriptor:
        for name in (".", "..", "run/d", "../hers", "/", "run/"):
            assert helper.order(REMOVE, alice, name, [descriptor]).error == errno.EINVAL, name
        assert helper.order(REMOVE, 0, "run", [descriptor]).error == errno.EPERM
        assert helper.order(REMOVE, alice, "run", [descriptor]).error == 0
        assert helper.order(REMOVE, alice, "link", [descriptor]).error == 0
        assert helper.order(REMOVE, alice, "not there", [descriptor]).error == 0
    assert os.listdir(hers) == []
    assert (beside / "kept").exists()
    with opened(outside) as descriptor:
        assert helper.order(REMOVE, alice, "kept", [descriptor]).error == errno.EPERM
    roots = folder(spool / "roots", 0)
    (roots / "kept").write_text("x")
    with opened(roots) as descriptor:
        assert helper.order(REMOVE, alice, "kept", [descriptor]).error == errno.EACCES
        assert helper.order(OPEN, alice, "kept", [descriptor], flags=os.O_WRONLY).error == errno.EACCES
    assert (roots / "kept").exists()
