"""A pool whose schedd has dropped root, and its users: whatever they did before they can do."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.root_helper import POOL, status_of
from tests.harness.root_pool import helper_of, pid_of
from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = [*NEED_USERS, pytest.mark.root]

SPOOLED = """executable = work.sh
arguments = {seconds}
transfer_input_files = input.txt, tree
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_output_files = result, made
log = spooled.log
output = out.txt
queue
"""
WORK = "#!/bin/sh\nmkdir made\ncat input.txt tree/below/leaf > result\nid -un > made/who\nsleep $1\n"
LOCAL = """universe = {universe}
executable = /bin/sh
arguments = "-c 'id -u; grep -e ^Uid: -e ^CapEff: /proc/self/status; echo $HOME; {then}'"
output = {universe}.out
error = {universe}.err
log = {universe}.log
queue
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    with a_shared_pool(drops_root=True) as shared:
        write(shared, "work.sh", WORK).chmod(0o755)
        write(shared, "input.txt", "input ")
        write(shared, "tree/below/leaf", "leaf\n")
        yield shared


def write(pool: SharedPool, name: str, text: str) -> Path:
    """A file of alice's."""
    path = pool.alice.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for each in (path, *path.parents):
        if each == pool.alice.home:
            break
        os.chown(each, pool.alice.uid, pool.alice.gid)
    return path


def log_of(pool: SharedPool, name: str) -> str:
    path = pool.alice.home / name
    return path.read_text() if path.exists() else ""


def hosts(pool: SharedPool) -> list[int]:
    return pool.pids_of(pool.alice, "condor_actors.services shadow-host")


def test_the_schedd_has_nothing_of_root(pool: SharedPool) -> None:
    schedd = pid_of(pool, "schedd")
    status = status_of(schedd)
    for ids in ("Uid", "Gid"):
        assert status[ids].split() == [str(POOL)] * 4
    for rights in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[rights], 16) == 0, rights
    kept = int(status_of(helper_of(schedd))["CapPrm"], 16)
    # CHOWN, KILL, SETGID, SETUID; NET_BIND_SERVICE and WAKE_ALARM are lent to shadow hosts, which are not traced so
    assert kept == 1 << 0 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 35


def test_a_vanilla_job_of_hers(pool: SharedPool) -> None:
    pool.submit_as(pool.alice, "executable = /usr/bin/id\narguments = -un\noutput = who\nlog = vanilla.log\n"
                               "should_transfer_files = YES\nqueue")
    pool.run_as(pool.alice, "condor_wait", "-wait", "90", "vanilla.log")
    out = pool.alice.home / "who"
    assert (out.read_text().strip(), out.stat().st_uid) == (pool.alice.name, pool.alice.uid)
    (host,) = hosts(pool)
    status = status_of(host)
    assert status["Uid"].split() == [str(pool.alice.uid)] * 4
    assert status["Groups"].split() == [str(pool.alice.gid)]
    log = pool.dir / "log" / f"ShadowHostLog.{host}"
    assert f"belongs to {pool.alice.name}" in log.read_text()
    assert log.stat().st_uid == POOL


def test_nobody_looks_into_her_shadow_host(pool: SharedPool) -> None:
    """Not even she: it has the secrets of claims."""
    pool.submit_as(pool.alice, "universe = local\nexecutable = /bin/true\nlog = looks.log\nqueue")
    pool.run_as(pool.alice, "condor_wait", "-wait", "90", "looks.log")
    (host,) = hosts(pool)
    for secret in ("mem", "environ", "fd/0"):
        done = subprocess.run(pool.alice.command("cat", f"/proc/{host}/{secret}"), capture_output=True, check=False)
        assert done.returncode != 0, secret


def test_she_holds_releases_edits_and_removes(pool: SharedPool) -> None:
    cluster = pool.submit_as(pool.alice, "executable = /bin/sleep\narguments = 1000\nlog = acts.log\nqueue")
    job = f"{cluster}.0"
    pool.until_status(job, 2)
    pool.run_as(pool.alice, "condor_hold", job)
    pool.until_status(job, 5)
    pool.run_as(pool.alice, "condor_qedit", job, "Mine", "7")
    pool.run_as(pool.alice, "condor_release", job)
    pool.until_status(job, 2)
    said = pool.tool_as(pool.alice, "condor_ssh_to_job", job, "id", "-un")
    assert said.stdout.strip() == pool.alice.name, said.stderr
    pool.run_as(pool.alice, "condor_rm", job)
    pool.until_status(job, 0)
    (gone,) = pool.history(job)
    assert (gone["Owner"], gone["Mine"]) == (pool.alice.name, 7)


def test_what_she_spools_is_hers_and_comes_back(pool: SharedPool) -> None:
    cluster = pool.submit_as(pool.alice, SPOOLED.format(seconds=0), "-spool")
    folder = pool.dir / "spool" / str(cluster) / "0"
    pool.until_status(f"{cluster}.0", 4)
    assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (pool.alice.uid, 0o700)
    assert {each.stat().st_uid for each in folder.rglob("*")} == {pool.alice.uid}
    back = pool.alice.home / "result"
    back.unlink(missing_ok=True)
    pool.run_as(pool.alice, "condor_transfer_data", str(cluster))
    assert back.read_text() == "input leaf\n"
    assert (pool.alice.home / "made" / "who").read_text() == f"{pool.alice.name}\n"
    assert back.stat().st_uid == pool.alice.uid
    pool.run_as(pool.alice, "condor_rm", str(cluster))
    until(lambda: not folder.parent.exists(), "its spool folder goes with the job")


def test_what_a_run_has_left_goes_with_the_job(pool: SharedPool) -> None:
    """It lies in a folder that only she can enter."""
    text = ("#!/bin/sh\nmkdir -p deep/er\necho x > deep/er/leaf\ntrap 'exit 0' TERM\necho ready\n"
            "while :; do sleep 0.1; done\n")
    write(pool, "keeper.sh", text).chmod(0o755)
    cluster = pool.submit_as(pool.alice, "executable = keeper.sh\nshould_transfer_files = YES\nlog = keeper.log\n"
                                         "output = k\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\nqueue")
    job = f"{cluster}.0"
    until(lambda: "ready" in pool.tool_as(pool.alice, "condor_tail", job).stdout, "it has made its files")
    pool.run_as(pool.alice, "condor_vacate_job", job)
    until(lambda: "Job was evicted" in log_of(pool, "keeper.log"), "the job is evicted")
    kept = pool.dir / "spool" / "owners" / pool.alice.name / "evicted" / job
    until(kept.exists, "what it left is kept")
    assert kept.parent.stat().st_uid == pool.alice.uid
    for folder in (kept, *kept.rglob("*")):
        folder.chmod(0)
    pool.run_as(pool.alice, "condor_rm", job)
    pool.until_status(job, 0)
    until(lambda: not kept.exists(), "it goes with the job")


@pytest.mark.parametrize("universe", ["local", "scheduler"])
def test_jobs_beside_the_schedd_are_hers(pool: SharedPool, universe: str) -> None:
    pool.submit_as(pool.alice, LOCAL.format(universe=universe, then="exit 3"))
    pool.run_as(pool.alice, "condor_wait", "-wait", "90", f"{universe}.log")
    lines = log_of(pool, f"{universe}.out").split("\n")
    assert lines[0] == str(pool.alice.uid)
    assert lines[1].split()[1:] == [str(pool.alice.uid)] * 4
    assert lines[2].split() == ["CapEff:", "0" * 16]
    assert str(pool.alice.home) in lines
    assert "return value 3" in log_of(pool, f"{universe}.log")


@pytest.mark.parametrize("more", [(), ("-stream",)], ids=["at its end", "streamed"])
def test_a_command_of_hers_runs_as_a_job(pool: SharedPool, more: tuple[str, ...]) -> None:
    """By condor_run, which makes the files that the job writes before it does."""
    assert pool.run_as(pool.alice, "condor_run", *more, "echo begun; id -u; echo ended") == (
        f"begun\n{pool.alice.uid}\nended\n")
    assert not list(pool.alice.home.glob(".condor_*"))


def test_a_local_job_is_ended(pool: SharedPool) -> None:
    cluster = pool.submit_as(pool.alice, "universe = local\nexecutable = /bin/sleep\narguments = 4321\nqueue")
    pool.until_status(f"{cluster}.0", 2)
    (pid,) = until(lambda: pool.pids_of(pool.alice, "4321"), "it runs")
    pool.run_as(pool.alice, "condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)
    assert not Path(f"/proc/{pid}").exists()


def test_roots_jobs_are_nobodys(pool: SharedPool) -> None:
    """At home as well: what nobody may not read, root's job is not given."""
    pool.submit(LOCAL.format(universe="local", then="cat /etc/shadow"))
    pool.wait("local.log")
    assert (pool.work / "local.out").read_text().split("\n")[0] == "65534"
    assert "denied" in (pool.work / "local.err").read_text()
    secret = pool.work / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    cluster = pool.submit("executable = /bin/cat\narguments = secret\ntransfer_input_files = secret\n"
                          "should_transfer_files = YES\nlog = secret.log\nqueue")
    pool.until_status(f"{cluster}.0", 5)
    pool.run("condor_rm", str(cluster))


def test_system_accounts_submit_nothing(pool: SharedPool) -> None:
    """What the helper would not start is refused at once, and said."""
    daemon = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups"]
    done = subprocess.run([*daemon, *pool.command("condor_submit", "-")], cwd="/", text=True, capture_output=True,
                          input="executable = /bin/true\nqueue", env={**pool.environment, "HOME": "/"}, check=False)
    assert done.returncode != 0
    assert "MIN_USER_UID" in done.stderr


def test_a_schedd_that_is_killed_goes_on_with_her_jobs(pool: SharedPool) -> None:
    cluster = pool.submit_as(pool.alice, "executable = /bin/sleep\narguments = 1000\nlog = killed.log\nqueue")
    job = f"{cluster}.0"
    pool.until_status(job, 2)
    schedd, before = pid_of(pool, "schedd"), hosts(pool)
    helper = os.pidfd_open(helper_of(schedd))
    os.kill(schedd, signal.SIGKILL)
    assert select.select([helper], [], [], 60)[0]
    os.close(helper)
    until(lambda: pid_of(pool, "schedd") != schedd, "another schedd")
    pool.until_status(job, 2)
    assert hosts(pool) == before
    assert log_of(pool, "killed.log").count("Job executing") == 1
    pool.run_as(pool.alice, "condor_rm", job)
    pool.until_status(job, 0)


def test_a_helper_that_is_killed_ends_its_schedd_and_no_job(pool: SharedPool) -> None:
    cluster = pool.submit_as(pool.alice, "executable = /bin/sleep\narguments = 1000\nlog = helper.log\nqueue")
    job = f"{cluster}.0"
    pool.until_status(job, 2)
    schedd, before = pid_of(pool, "schedd"), hosts(pool)
    os.kill(helper_of(schedd), signal.SIGKILL)
    until(lambda: pid_of(pool, "schedd") != schedd, "another schedd")
    assert "condor_root" in (pool.dir / "log" / "ScheddLog").read_text()
    pool.until_status(job, 2)
    assert hosts(pool) == before
    assert log_of(pool, "helper.log").count("Job executing") == 1
    os.kill(before[0], signal.SIGSTOP)  # the new schedd ends it as well as the old one would have
    os.kill(before[0], signal.SIGKILL)
    until(lambda: hosts(pool) not in ([], before), "another shadow host")
    pool.run_as(pool.alice, "condor_rm", job)
    pool.until_status(job, 0)


def test_what_a_schedd_with_root_has_left_is_taken_over(pool: SharedPool) -> None:
    """Root's own spooled jobs are nobody's then, hers stay hers."""
    source = pool.work / "input.txt"
    source.write_text("of root")
    cluster = pool.submit("executable = /bin/cat\narguments = input.txt\ntransfer_input_files = input.txt\n"
                          "output = out\nlog = up.log\nshould_transfer_files = YES\nqueue\n", "-spool")
    folder = pool.dir / "spool" / str(cluster) / "0"
    pool.until_status(f"{cluster}.0", 4)
    pool.run("condor_personal", "stop", "--dir", str(pool.dir))
    for each in (folder, *folder.rglob("*"), pool.dir / "spool" / "owners" / "root" / "evicted"):
        os.chown(each, 0, 0)
    pool.run("condor_personal", "start", "--dir", str(pool.dir), "--slots", "4")
    until(lambda: folder.stat().st_uid == 65_534, "root's job is nobody's")
    assert {each.stat().st_uid for each in folder.rglob("*")} == {65_534}
    pool.run("condor_rm", str(cluster))
    until(lambda: not folder.exists(), "its spool folder goes with the job")
