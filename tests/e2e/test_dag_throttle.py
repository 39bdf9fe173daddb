"""The limits of a DAG that runs: changed by htcondor dag throttle and condor_qedit, kept when it begins anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.user_pool import user_pool
from tests.harness.workflows import Workflows
from tests.pool_fixture import until

WAIT = "executable = /bin/true\ntransfer_executable = false\nrequirements = false\nqueue\n"


@pytest.fixture(scope="module")
def dags() -> Iterator[Workflows]:
    with user_pool() as pool:
        yield Workflows(pool)


def until_submitted(dags: Workflows, dag: int, count: int) -> None:
    out = dags.folder / "x.dag.dagman.out"
    until(lambda: out.exists() and dags.out().count("\tassigned HTCondor ID") == count, lambda: f"{count} nodes")
    jobs = dags.pool.run("condor_q", "-constraint", f"DAGManJobId == {dag}", "-af", "ClusterId").split()
    assert len(jobs) == count


def test_limits_change_while_it_runs(dags: Workflows) -> None:
    pool = dags.pool
    dags.begin("".join(f"JOB N{number} wait.sub\n" for number in range(6)), wait_sub=WAIT)
    dag = dags.submit("-maxjobs", "1")
    until_submitted(dags, dag, 1)
    until(lambda: pool.run("condor_q", str(dag), "-af", "DAGMan_MaxJobs").split() == ["1"], dags.out)
    done = pool.tool("htcondor", "dag", "throttle", "--nodes", "3", str(dag))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"DAGMan {dag} set throttles:\n")
    assert "\tMaximum Submitted Nodes-------: 3\n" in done.stdout
    assert "\tMaximum Idle Jobs-------------: 1000\n" in done.stdout
    until_submitted(dags, dag, 3)
    pool.run("condor_qedit", f"{dag}.0", "DAGMan_MaxJobs", "4")
    until_submitted(dags, dag, 4)
    for start in (1, 2):  # the second one reads in its journal of the limits that the first one had
        pool.run("condor_hold", str(dag))
        until(lambda: "012 (" in (dags.folder / "x.dag.dagman.log").read_text().rpartition("001 (")[2], dags.out)
        pool.run("condor_release", str(dag))
        until(lambda start=start: dags.out().count("done with RECOVERY mode") == start, dags.out)  # type: ignore[misc]
    assert dags.out().count("Event: ULOG_SUBMIT for HTCondor Node N3 ") == 3, "said anew at each start"
    until_submitted(dags, dag, 4)
    assert "ERROR" not in dags.out()
    events = [line[:3] for line in (dags.folder / "x.dag.dagman.log").read_text().splitlines() if line[3:5] == " ("]
    assert events == ["000", "001", "004", "012", "013", "001", "004", "012", "013", "001"], "as HTCondor tells a hold"
    pool.run("condor_rm", str(dag))


def test_what_is_no_limit(dags: Workflows) -> None:
    assert "No valid throttle specified" in dags.pool.tool("htcondor", "dag", "throttle", "1").stderr
    done = dags.pool.tool("htcondor", "dag", "throttle", "--submissions", "0", "1")
    assert done.returncode == 1
    assert "--submissions 0 is no limit; expected a number from 1 to 1000" in done.stderr
    assert dags.pool.tool("htcondor", "dag", "throttle", "--idle", "1", "999999").returncode == 1
