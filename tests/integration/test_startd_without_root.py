"""A startd that has dropped root minds its owner, its claims and its starter host as one that is root."""

from __future__ import annotations

import os
import pty
import pwd
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.root_helper import ALICE, POOL, status_of
from tests.harness.root_pool import RootPool, root_pool
from tests.pool_fixture import until

pytestmark = pytest.mark.quiet

SLEEP = ("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nshould_transfer_files = yes\n"
         "log = {log}\nqueue\n")
POLICY = """
POLLING_INTERVAL = 0.5
START = True
WANT_SUSPEND = True
SUSPEND = KeyboardIdle < 2
CONTINUE = KeyboardIdle > 3
WANT_VACATE = True
MACHINEMAXVACATETIME = 2
RunBenchmarks = False
DESKTOP_OWNERS = daemon
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[RootPool]:
    with root_pool(slots=1, config=POLICY) as made:
        yield made


@pytest.fixture
def job(pool: RootPool, request: pytest.FixtureRequest) -> Iterator[str]:
    """One that runs; removed in the end."""
    cluster = pool.submit(SLEEP.format(log=log_of(request)))
    pool.until_status(f"{cluster}.0", 2)
    shows(pool, request, "001")
    yield f"{cluster}.0"
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)
    until(lambda: not pool.scratch(), "no scratch directory left")


def log_of(request: pytest.FixtureRequest) -> str:
    return f"{request.node.name}.log"


def shows(pool: RootPool, request: pytest.FixtureRequest, event: str, times: int = 1) -> None:
    log = pool.work / log_of(request)
    until(lambda: len(re.findall(rf"^{event} \(", log.read_text(), re.MULTILINE)) >= times, f"event {event}")


def children(pid: int) -> dict[str, int]:
    """The processes right below one, by name."""
    pids = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return {status_of(child)["Name"]: child for child in pids}


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of someone's terminal, which the pool's account can neither read nor write."""
    ours, theirs = pty.openpty()
    os.fchown(theirs, ALICE, ALICE)
    os.fchmod(theirs, 0o600)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_nothing_of_root_is_left_but_the_helper(pool: RootPool) -> None:
    status = pool.status("startd")
    for ids in ("Uid", "Gid"):
        assert status[ids].split() == [str(POOL)] * 4
    assert status["Groups"].split() == [str(POOL)]
    assert {int(status[rights], 16) for rights in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    helper = status_of(children(pool.pid("startd"))["condor_root"])
    assert helper["Uid"].split() == ["0"] * 4
    assert (int(helper["CapEff"], 16), helper["Seccomp"]) == (0, "2")


def test_its_owner_types_and_goes(pool: RootPool, job: str, terminal: tuple[int, int],
                                  request: pytest.FixtureRequest) -> None:
    """At a terminal of another account: the job is suspended as it happens, goes on, and leaves when it is told."""
    ours, theirs = terminal
    source = f"tty:pts/{os.minor(os.fstat(theirs).st_rdev)}"
    os.utime(os.ttyname(theirs), (0, 0))
    until(lambda: source in pool.run("condor_who", "-owner"), "the terminal is seen")
    pool.until_status(job, 2)
    os.write(ours, b"secret words\n")
    os.read(theirs, 100)
    shows(pool, request, "010")
    shows(pool, request, "011")
    pool.run("condor_vacate_job", job)
    shows(pool, request, "004")


def test_what_is_typed_is_not_in_the_startd(pool: RootPool, terminal: tuple[int, int]) -> None:
    """It has no descriptor of a terminal or of an input device, and cannot open that terminal."""
    until(lambda: f"pts/{os.minor(os.fstat(terminal[1]).st_rdev)}" in pool.run("condor_who", "-owner"), "it is seen")
    pid = pool.pid("startd")
    opened = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    assert not [path for path in opened if path.startswith(("/dev/pts", "/dev/tty", "/dev/input"))]


def test_the_owner_pauses_and_resumes(pool: RootPool, job: str, request: pytest.FixtureRequest) -> None:
    owner = pwd.getpwnam("daemon")
    assert "is paused on" in pool.run("setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups",
                                      *pool.command("condor_owner", "pause", "5m"))
    shows(pool, request, "010")
    pool.run("setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups",
             *pool.command("condor_owner", "resume"))
    shows(pool, request, "011")
    assert job.partition(".")[0] in pool.run("condor_who")


def test_a_drain_and_its_end(pool: RootPool, job: str, request: pytest.FixtureRequest) -> None:
    machine = pool.run("condor_status", "-af", "Machine").split()[0]
    pool.run("condor_drain", "-fast", machine)
    shows(pool, request, "004")
    until(lambda: "Drained" in pool.run("condor_status", "-af", "State", "Activity"), "the machine is drained")
    pool.run("condor_drain", "-cancel", machine)
    pool.until_status(job, 2)


@pytest.mark.parametrize("victim", ["startd", "condor_root"])
def test_a_startd_that_is_killed_comes_back_to_its_jobs(pool: RootPool, job: str, victim: str,
                                                        request: pytest.FixtureRequest) -> None:
    """It, or its helper: the job goes on below the same starter host, and the old helper is gone."""
    startd, starter = pool.pid("startd"), pool.pid("starter-host")
    helper = children(startd)["condor_root"]
    os.kill(startd if victim == "startd" else helper, signal.SIGKILL)
    until(lambda: pool.pid("startd") != startd, "another startd")
    until(lambda: not Path(f"/proc/{helper}").exists(), "its helper is gone")
    assert pool.status("startd")["Uid"].split() == [str(POOL)] * 4
    pool.run("condor_suspend", job)
    shows(pool, request, "010")
    pool.run("condor_continue", job)
    shows(pool, request, "011")
    assert pool.pid("starter-host") == starter
    assert "004 (" not in (pool.work / log_of(request)).read_text()


def test_a_starter_host_that_is_killed_is_started_again_as_root(pool: RootPool, job: str,
                                                               request: pytest.FixtureRequest) -> None:
    """By an order; it drops root again, and clears what the former one has left in EXECUTE."""
    starter = pool.pid("starter-host")
    before = pool.scratch()
    os.kill(starter, signal.SIGKILL)
    until(lambda: pool.pid("starter-host") != starter, "another starter host")
    shows(pool, request, "001", 2)
    assert pool.status("starter-host")["Uid"].split() == [str(POOL)] * 4
    assert status_of(children(pool.pid("starter-host"))["condor_root"])["Uid"].split() == ["0"] * 4
    assert int(pool.status("starter-host")["PPid"]) == pool.pid("startd")
    until(lambda: not set(before) & set(pool.scratch()), "the former scratch directory is gone")
    until(lambda: job.partition(".")[0] in pool.run("condor_who"), "the job is seen again")
