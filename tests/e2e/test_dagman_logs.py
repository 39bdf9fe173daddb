"""What clients of workflows read while they run, and what the DAG says of its nodes' jobs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from tests.harness.commands import program_of
from tests.harness.readable_python import python_for_all
from tests.harness.user_pool import user_pool
from tests.harness.workflows import SAY, Workflows


@pytest.fixture(scope="module")
def dags() -> Iterator[Workflows]:
    with user_pool() as pool:
        yield Workflows(pool)


def test_a_final_node_finds_the_rescue_file_and_logs_tell_of_scripts(dags: Workflows) -> None:
    """Clients follow dagman.out and the jobs' event log; a final node may save what a failure has left."""
    script = "#!/bin/sh\nexit $1\n"
    text = ('JOB A say.sub\nJOB B say.sub\nJOB C say.sub\nPARENT A CHILD B\nVARS A then="exit 3"\n'
            "SCRIPT POST A ./end.sh 4\nSCRIPT PRE C ./end.sh 7\nPRE_SKIP C 7\nNODE_STATUS_FILE x.status\n"
            'FINAL F say.sub\nVARS F then="test -e x.dag.rescue001"\n')
    assert dags.run(text, end_sh=script) == 0
    out = dags.out()
    cluster = out.split("Node A job(s)...", 1)[1].split("(", 1)[1].split(".")[0]
    for line in ("Parsing x.dag ...", f"Node A job proc ({cluster}.0.0) failed with status 3.",
                 f"Event: ULOG_POST_SCRIPT_TERMINATED for HTCondor Node A ({cluster}.0.0) {{",
                 "PRE_SKIP return value 7 indicates we are done (successfully) with node C",
                 "DAG status: 2 (DAG_STATUS_NODE_FAILED)"):
        assert line in out
    log = (dags.folder / "x.dag.nodes.log").read_text()
    for event in ("POST Script terminated.\n\t(1) Normal termination (return value 4)\n    DAG Node: A\n...\n",
                  "PRE script return value is PRE_SKIP value\n    DAG Node: C\n...\n"):
        assert event in log
    assert "DONE C\n" in (dags.folder / "x.dag.rescue001").read_text()
    status = (dags.folder / "x.status").read_text()
    assert "Job exited with status 3 and POST Script failed with status 4" in status
    assert 'DagStatus = 5; /* "STATUS_DONE (success)" */' in status



def test_what_a_node_has_without_effect_is_said(dags: Workflows) -> None:
    streams = SAY.replace("queue", "stream_input = true\nqueue")
    assert dags.run("JOB A streams.sub\n", streams_sub=streams) == 0
    assert "WARNING: node A: stream_input has no effect: " in dags.out()


def ads_of(dags: Workflows, *attributes: str) -> dict[str, dict[str, object]]:
    """What the jobs of the folder's DAG and those below it were, by the names of their nodes."""
    found = dags.pool.history("-attributes", ",".join(("DAGNodeName", "Iwd", *attributes)))
    return {str(ad["DAGNodeName"]): ad for ad in found if "DAGNodeName" in ad and ad["Iwd"] == str(dags.folder)}


def test_what_a_dag_is_configured_to_decides_over_its_nodes(dags: Workflows) -> None:
    own = SAY.replace("queue", "log = own.log\nnotification = always\nqueue")
    config = "DAGMAN_SUPPRESS_NOTIFICATION = true\nDAGMAN_SUPPRESS_JOB_LOGS = true\n"
    assert dags.run("JOB A own.sub\nCONFIG x.config\n", own_sub=own, x_config=config) == 0
    assert ads_of(dags, "JobNotification", "UserLog")["A"] == {
        "DAGNodeName": "A", "Iwd": str(dags.folder), "JobNotification": 0}
    assert not (dags.folder / "own.log").exists()
    assert dags.run("JOB A own.sub\n", own_sub=own) == 0
    assert ads_of(dags, "JobNotification")["A"]["JobNotification"] == 1
    assert dags.run("JOB A own.sub\nCONFIG x.config\n", own_sub=own.replace("queue", "queue 2"),
                    x_config="DAGMAN_PROHIBIT_MULTI_JOBS = true\n") == 1
    assert "DAGMAN_PROHIBIT_MULTI_JOBS" in dags.out()


def test_the_nodes_of_a_subdag_have_its_priority_and_their_own(dags: Workflows) -> None:
    assert dags.run("SUBDAG EXTERNAL S y.dag\nPRIORITY S 100\n", "-allowversionmismatch",
                    y_dag="JOB P say.sub\nPRIORITY P 7\nJOB Q say.sub\n") == 0
    ads = ads_of(dags, "JobPrio")
    assert {name: ad["JobPrio"] for name, ad in ads.items()} == {"S": 100, "P": 107, "Q": 100}
    assert "-AllowVersionMismatch" in (dags.folder / "y.dag.condor.sub").read_text()


def test_each_job_of_a_node_is_submitted_in_the_logs(dags: Workflows) -> None:
    assert dags.run("JOB A two.sub\nJOBSTATE_LOG x.states\n", two_sub=SAY.replace("queue", "queue 2")) == 0
    submits = [line.split()[3].split(".")[1] for line in (dags.folder / "x.states").read_text().splitlines()
               if line.split()[2] == "SUBMIT"]
    assert submits == ["0", "1"]
    assert dags.out().count("Event: ULOG_SUBMIT for HTCondor Node A") == 2


def test_a_job_uses_the_pools_commands(dags: Workflows) -> None:
    """The variable that marks a job's processes was taken for the parameter RUN."""
    ask = "executable = ask.sh\ngetenv = true\noutput = ask.out\nerror = ask.err\nqueue\n"
    tool = shlex.join([*python_for_all().words, "-c", program_of("condor_config_val"), "condor_config_val", "RUN"])
    assert dags.run("JOB A ask.sub\n", ask_sub=ask, ask_sh=f"#!/bin/sh\nexec {tool}\n") == 0
    assert (dags.folder / "ask.out").read_text().strip() == str(dags.pool.dir / "run")
