"""What happens to a job on the machine that runs it, with real processes, users and control groups."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.run.run_host import RunHost
from tests.harness.proc_files import command_lines
from tests.pool_fixture import PersonalPool, until

SCRIPT = """
    executable = /bin/sh
    transfer_executable = false
    should_transfer_files = yes
    log = {name}.log
    output = {name}.out
    error = {name}.err
    request_memory = 64MB
    arguments = "-c '{code}'"
    {more}
    queue
"""


def script(name: str, code: str, more: str = "") -> str:
    return SCRIPT.format(name=name, code=code.replace("'", "''").replace('"', '""'), more=more)


def run(pool: PersonalPool, name: str, code: str, more: str = "") -> str:
    """Run a piece of shell to its end; its output."""
    pool.submit(script(name, code, more))
    pool.wait(f"{name}.log")
    return (pool.work / f"{name}.out").read_text()


def hold_of(pool: PersonalPool, cluster: int) -> tuple[int, str]:
    pool.until_status(f"{cluster}.0", 5)
    ad = pool.jobs(f"{cluster}.0", "-attributes", "HoldReasonCode,HoldReason")[0]
    pool.run("condor_rm", str(cluster))
    return int(ad["HoldReasonCode"]), str(ad["HoldReason"])


def sleepers() -> list[str]:
    """What lives of the programs of ``ESCAPES``; their own numbers for themselves say nothing here."""
    ends = tuple(b"\0%d\0" % seconds for seconds in range(1001, 1005))
    return [line.decode() for _, line in command_lines() if line.endswith(ends)]


ESCAPES = """
sleep 1001 & echo $!
setsid sleep 1002 & echo $!
(sleep 1003 & echo $!) &
(setsid env -i /bin/sleep 1004 & echo $!) &
wait 2>/dev/null & sleep 0.3
""".strip().replace("\n", "; ").replace("&;", "&")


@pytest.fixture(scope="module", params=["cgroups", "parentage"])
def pool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PersonalPool]:
    """A pool whose jobs are tracked by control groups (where the machine has them), and one without."""
    config = "MEMORY = 256\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 1\n"
    if request.param == "parentage":
        config += "USE_CGROUPS = False\n"
    made = PersonalPool(tmp_path_factory.mktemp("execute"), slots=2, config=config)
    yield made
    made.stop()


HOWEVER_TRACKED = pytest.mark.parametrize("pool", ["cgroups"], indirect=True)
"""Of what is the same however a job's processes are tracked."""


def test_nothing_of_the_process_tree_outlives_the_job(pool: PersonalPool) -> None:
    assert len(run(pool, "tree", ESCAPES).split()) == 4
    until(lambda: not sleepers() or None, "all of them gone")
    until(lambda: not pool.scratch() or None, "scratch directories freed")


def test_a_removed_job_takes_its_tree_along(pool: PersonalPool) -> None:
    cluster = pool.submit(script("removed", ESCAPES + "; sleep 1000"))
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: len(pool.tool("condor_tail", str(cluster)).stdout.split()) == 4 or None, "four pids")
    assert len(sleepers()) == 4
    pool.run("condor_rm", str(cluster))
    until(lambda: not sleepers() or None, "all of them gone")
    until(lambda: not pool.scratch() or None, "scratch directories freed")


@HOWEVER_TRACKED
def test_environment_and_scratch(pool: PersonalPool) -> None:
    text = run(pool, "env", "env; pwd; cat $_CONDOR_MACHINE_AD; cat $_CONDOR_JOB_AD", 'environment = "A=1 B=\'x y\'"')
    lines = text.splitlines()
    assert "A=1" in lines
    assert "B=x y" in lines
    assert any(line.startswith("_CONDOR_SLOT=slot1") for line in lines)
    scratch = next(line for line in lines if line.startswith("_CONDOR_SCRATCH_DIR=")).partition("=")[2]
    assert scratch in lines
    assert "OMP_NUM_THREADS=1" in lines
    assert any(line.startswith("ClusterId =") for line in lines)
    assert any(line.startswith("SlotID =") for line in lines)


@pytest.mark.skipif(not RunHost().mount_isolation, reason="daemons cannot give jobs folders of their own here")
def test_what_a_job_leaves_in_the_machines_folders_goes_with_it(pool: PersonalPool) -> None:
    left = [Path(folder) / pool.folder.name for folder in ("/dev/shm", "/var/tmp")]
    code = "".join(f"test -e {path} || echo mine > {path}; " for path in left)
    cluster = pool.submit(script("private", code + "while ! test -e stop; do sleep 0.05; done"))
    job = f"{cluster}.0"
    pool.until_status(job, 2)
    look = ["condor_ssh_to_job", job, "cat", *map(str, left)]
    until(lambda: pool.tool(*look, stdin="").stdout.split() == ["mine"] * 2, "them to be seen in the job")
    assert not any(path.exists() for path in left)
    pool.tool("condor_ssh_to_job", job, "touch stop", stdin="")  # the job may end before its visitor has
    pool.wait("private.log")
    assert (pool.work / "private.err").read_text() == ""
    until(lambda: not pool.scratch(), "scratch directories freed")
    assert not any(path.exists() for path in left)


@HOWEVER_TRACKED
def test_new_and_changed_files_come_home(pool: PersonalPool) -> None:
    (pool.work / "in.txt").write_text("old\n")
    (pool.work / "same.txt").write_text("same\n")
    run(pool, "outputs", "echo new > made.txt; echo more >> in.txt; mkdir d; echo x > d/x",
        "transfer_input_files = in.txt, same.txt")
    assert (pool.work / "made.txt").read_text() == "new\n"
    assert (pool.work / "in.txt").read_text() == "old\nmore\n"
    assert not (pool.work / "d").exists()


@HOWEVER_TRACKED
def test_named_directories_and_large_files(pool: PersonalPool) -> None:
    run(pool, "named", "mkdir -p d/e; echo x > d/e/x; head -c 3000000 /dev/zero > big; echo no > other",
        "transfer_output_files = d, big")
    assert (pool.work / "d/e/x").read_text() == "x\n"
    assert (pool.work / "big").stat().st_size == 3_000_000
    assert not (pool.work / "other").exists()


@HOWEVER_TRACKED
def test_a_missing_output_is_a_hold(pool: PersonalPool) -> None:
    cluster = pool.submit(script("missing", "true", "transfer_output_files = never_made"))
    code, reason = hold_of(pool, cluster)
    assert code == 12
    assert "never_made" in reason


@HOWEVER_TRACKED
def test_a_program_that_cannot_be_executed_is_a_hold(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /no/such/program\ntransfer_executable = false\nlog = x.log\nqueue\n")
    code, reason = hold_of(pool, cluster)
    assert code == 6
    assert "No such file" in reason


def test_death_by_signal_is_recorded(pool: PersonalPool) -> None:
    cluster = pool.submit(script("signal", "kill -SEGV $$"))
    pool.wait("signal.log")
    ad = until(lambda: pool.history(str(cluster)), "the history")[0]
    assert (ad["ExitBySignal"], ad["ExitSignal"]) == (True, 11)


def test_a_vacated_job_is_asked_to_go_saves_and_runs_again(pool: PersonalPool) -> None:
    code = ("if [ -e saved ]; then echo again; cat saved; exit 0; fi; "
            "trap 'echo kept > saved; exit 1' TERM; echo first; while true; do sleep 0.1; done")
    cluster = pool.submit(script("vacated", code, "when_to_transfer_output = ON_EXIT_OR_EVICT"))
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: "first" in pool.tool("condor_tail", str(cluster)).stdout or None, "the trap is set")
    pool.run("condor_vacate_job", str(cluster))
    pool.wait("vacated.log")
    assert (pool.work / "vacated.out").read_text() == "again\nkept\n"


def test_suspended_jobs_stand_still(pool: PersonalPool) -> None:
    counts = "(i=0; while [ ! -e go ]; do i=`expr $i + 1`; echo $i; sleep 0.05; done) & wait"
    cluster = pool.submit(script("frozen", counts))  # the whole tree: a child counts

    def count() -> str:
        return pool.tool("condor_tail", "-maxbytes", "8", str(cluster)).stdout.split()[-1:][0]

    pool.until_status(f"{cluster}.0", 2)
    until(lambda: pool.tool("condor_tail", str(cluster)).stdout.split() or None, "it counts")
    pool.run("condor_suspend", str(cluster))
    pool.until_status(f"{cluster}.0", 7)
    first = count()
    assert count() == first
    until(lambda: "Suspended" in pool.run("condor_status", "-af", "Activity") or None, "the slot says so")
    pool.run("condor_continue", str(cluster))
    until(lambda: "Suspended" not in pool.run("condor_status", "-af", "Activity") or None, "and that it goes on")
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: count() != first or None, "it counts again")
    pool.run("condor_rm", str(cluster))


@HOWEVER_TRACKED
def test_a_drained_machine_runs_nothing_until_it_is_back(pool: PersonalPool) -> None:
    pool.run("condor_drain", "-fast", pool.run("condor_status", "-af", "Machine").split()[0])
    until(lambda: set(pool.run("condor_status", "-af", "State").split()) == {"Drained"} or None, "all drained")
    cluster = pool.submit(script("later", "echo ran"))
    pool.run("condor_drain", "-cancel", pool.run("condor_status", "-af", "Machine").split()[0])
    pool.wait("later.log")
    assert (pool.work / "later.out").read_text() == "ran\n"
    assert cluster


@HOWEVER_TRACKED
def test_urls_are_fetched_here(pool: PersonalPool) -> None:
    source = Path("/tmp") / f"condor-url-{os.getpid()}"
    source.write_text("by url\n")
    try:
        text = run(pool, "url", f"cat {source.name}", f"transfer_input_files = file://{source}")
    finally:
        source.unlink()
    assert text == "by url\n"


@HOWEVER_TRACKED
def test_memory_beyond_the_request_is_a_hold(pool: PersonalPool) -> None:
    if os.geteuid() != 0:
        pytest.skip("memory is limited by control groups only")
    cluster = pool.submit(script("hog", "head -c 400000000 /dev/zero | tail -c 390000000 > /dev/null"))
    code, reason = hold_of(pool, cluster)
    assert code == 34, reason


@HOWEVER_TRACKED
def test_the_machines_ad_says_who_uses_it(pool: PersonalPool) -> None:
    cluster = pool.submit(script("used", "while [ ! -e go ]; do sleep 0.1; done"))
    pool.until_status(f"{cluster}.0", 2)

    def claimed() -> list[dict[str, object]]:
        text = pool.run("condor_status", "-json", "-constraint", 'State == "Claimed" && Activity == "Busy"')
        return [ad for ad in json.loads(text or "[]") if ad.get("JobId") == f"{cluster}.0"]

    ad = until(claimed, "the slot's ad")[0]
    assert str(ad["RemoteOwner"]).startswith(pool.jobs(str(cluster))[0]["Owner"])
    pool.run("condor_rm", str(cluster))
