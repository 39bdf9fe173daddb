"""Who the daemons of a real pool are that root has started, by what the kernel says of them."""

from __future__ import annotations

import os
import re
import select
import signal
from collections.abc import Iterator

import pytest

from tests.harness.root_helper import POOL, status_of
from tests.harness.root_pool import RootPool, children, helper_of, root_pool
from tests.pool_fixture import until

DROPPED = ("collector", "negotiator", "schedd", "startd", "starter-host")


@pytest.fixture(scope="module")
def pool() -> Iterator[RootPool]:
    with root_pool() as made:
        yield made


@pytest.mark.parametrize("name", DROPPED)
def test_a_daemon_has_nothing_of_root(pool: RootPool, name: str) -> None:
    status = pool.status(name)
    for ids in ("Uid", "Gid"):
        assert status[ids].split() == [str(POOL)] * 4
    assert status["Groups"].split() == [str(POOL)]
    for rights in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[rights], 16) == 0, rights
    assert status["NoNewPrivs"] == "1"


def test_jobs_run_in_a_pool_without_root(pool: RootPool) -> None:
    pool.submit("executable = /usr/bin/id\narguments = -un\noutput = who.$(Process)\nlog = job.log\nqueue 3")
    pool.wait()
    assert [(pool.work / f"who.{number}").read_text().strip() for number in range(3)] == ["nobody"] * 3


def test_the_folders_are_the_pools(pool: RootPool) -> None:
    for name in ("log", "run", "spool"):
        assert (pool.dir / name).stat().st_uid == POOL
    lasting = [folder for folder in pool.dir.iterdir() if folder.name != "execute"]  # there they come and go
    keys = [key for folder in lasting for key in (folder, *folder.rglob("*")) if key.suffix == ".key"]
    for key in keys:
        assert (key.stat().st_uid, key.stat().st_mode & 0o777) == (POOL, 0o600)


def test_a_pool_of_an_earlier_version_is_taken_over(pool: RootPool) -> None:
    """All that was root's is the pool's after a start; what is a user's stays the user's, and links lead nowhere."""
    pool.run("condor_personal", "stop", "--dir", str(pool.dir))
    top = pool.dir / "spool"
    for path in (top, pool.dir / "log", pool.dir / "run"):
        for each in (path, *path.rglob("*")):
            os.chown(each, 0, 0, follow_symlinks=False)
    theirs = top / "7" / "0"
    theirs.mkdir(parents=True)
    os.chown(theirs, 60_123, 60_123)
    outside = pool.folder / "outside"
    outside.write_text("root's")
    (top / "link").symlink_to(outside)
    os.link(outside, top / "second name")
    pool.run("condor_personal", "start", "--dir", str(pool.dir), "--slots", "4")
    assert theirs.stat().st_uid == 60_123
    assert outside.stat().st_uid == 0
    assert top.stat().st_uid == (top / "7").stat().st_uid == POOL
    test_jobs_run_in_a_pool_without_root(pool)


SLEEPER = "#!/bin/sh\nmkdir -m 700 shut\necho $1 > shut/file\nln -s /etc link\necho ready > state\nexec sleep 1000\n"


def program(pool: RootPool, name: str, text: str) -> str:
    path = pool.work / name
    path.write_text(text)
    path.chmod(0o755)
    return name


def test_files_go_there_and_come_back(pool: RootPool) -> None:
    name = program(pool, "files.sh", "#!/bin/sh\ncat input > copied\nmkdir -m 700 tree\necho below > tree/leaf\nid -u\n"
                                     "ln copied second\n")
    (pool.work / "input").write_text("what goes there")
    pool.submit(f"executable = {name}\ntransfer_input_files = input\ntransfer_output_files = copied, second, tree\n"
                "output = id\nlog = files.log\nqueue")
    pool.wait("files.log")
    assert (pool.work / "copied").read_text() == (pool.work / "second").read_text() == "what goes there"
    assert (pool.work / "tree" / "leaf").read_text() == "below\n"
    assert (pool.work / "id").read_text() == "65534\n"


def test_a_running_job_is_read_suspended_and_removed(pool: RootPool) -> None:
    cluster = pool.submit(f"executable = {program(pool, 'sleeper.sh', SLEEPER)}\nlog = sleep.log\nqueue")
    job = f"{cluster}.0"
    pool.until_status(job, 2)
    until(lambda: "ready" in pool.tool("condor_tail", job, "state").stdout, "what the job has written")
    assert "root" not in pool.tool("condor_tail", job, "link/passwd").stdout
    said = pool.tool("condor_ssh_to_job", job, "id", "-u")
    assert said.stdout.strip() == "65534", said.stderr
    pool.run("condor_suspend", job)
    pool.until_status(job, 7)
    pool.run("condor_continue", job)
    pool.until_status(job, 2)
    pool.run("condor_vacate_job", job)
    until(lambda: "Job was evicted" in (pool.work / "sleep.log").read_text(), "the job is evicted")
    pool.run("condor_rm", job)
    pool.until_status(job, 0)
    until(lambda: not pool.scratch(), "no scratch directory left")


def test_a_job_that_checkpoints_itself_goes_on(pool: RootPool) -> None:
    text = ("#!/bin/sh\nn=$(cat state 2>/dev/null || echo 0)\nn=$((n+1))\necho $n > state\n[ $n -ge 3 ] && exit 0\n"
            "ln -sf /etc/shadow _condor_stdin; exit 85\n")
    pool.submit(f"executable = {program(pool, 'steps.sh', text)}\ncheckpoint_exit_code = 85\n"
                "transfer_checkpoint_files = state\ntransfer_output_files = state\nlog = steps.log\nqueue")
    pool.wait("steps.log")
    assert (pool.work / "state").read_text() == "3\n"


def test_what_the_helper_cannot_do_any_more_its_daemon_says(pool: RootPool) -> None:
    """A helper that dies ends its daemon, which is started again with a new one; the job is run again."""
    cluster = pool.submit(f"executable = {program(pool, 'again.sh', SLEEPER)}\nlog = again.log\nqueue")

    def runs() -> int:
        return len(re.findall("Job executing", (pool.work / "again.log").read_text()))

    until(runs, "the job runs")
    before = pool.pid("starter-host")
    helper = helper_of(before)
    assert status_of(helper)["Uid"].split() == ["0"] * 4
    os.kill(helper, signal.SIGKILL)
    until(lambda: pool.pid("starter-host") != before, "another starter host")
    until(lambda: "condor_root" in (pool.dir / "log" / "StarterHostLog").read_text(), "the log says why")
    until(lambda: runs() > 1, "the job runs again")
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)


def test_a_daemon_that_is_killed_leaves_no_helper_and_no_job(pool: RootPool) -> None:
    cluster = pool.submit(f"executable = {program(pool, 'gone.sh', SLEEPER)}\nlog = gone.log\nqueue")
    pool.until_status(f"{cluster}.0", 2)
    daemon = pool.pid("starter-host")
    watched = [os.pidfd_open(pid) for pid in (helper_of(daemon), *children(daemon))]
    os.kill(daemon, signal.SIGKILL)
    for descriptor in watched:
        assert select.select([descriptor], [], [], 60)[0]
        os.close(descriptor)
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)
