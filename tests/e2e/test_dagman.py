"""Workflows on a real pool: what runs, in which order, what is written, and what a crash leaves."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness.user_pool import user_pool
from tests.harness.workflows import DIAMOND, SAY, Workflows, alive, ended
from tests.pool_fixture import until


@pytest.fixture(scope="module")
def dags() -> Iterator[Workflows]:
    with user_pool() as pool:
        yield Workflows(pool)


def test_a_diamond(dags: Workflows) -> None:
    assert dags.run(DIAMOND) == 0
    said = dags.said()
    assert (said[0], sorted(said[1:3]), said[3]) == ("A 0", ["B 0", "C 0"], "D 0")
    figures = json.loads((dags.folder / "x.dag.metrics").read_text())
    assert (figures["exitcode"], figures["nodes_succeeded"], figures["jobs_submitted"]) == (0, 4, 4)
    assert " Done     Pre   Queued    Post   Ready   Un-Ready   Failed   Futile" in dags.out()
    left = {path.name for path in dags.folder.iterdir()}
    assert not left & {"x.dag.lock", "x.dag.dagman.journal", "x.dag.rescue001"}
    assert {"x.dag.condor.sub", "x.dag.lib.out", "x.dag.lib.err", "x.dag.nodes.log", "x.dag.dagman.log"} <= left
    done = dags.pool.tool("condor_submit_dag", "x.dag", cwd=dags.folder)
    assert (done.returncode, 'ERROR: "x.dag.condor.sub" already exists.' in done.stderr) == (1, True)


def test_the_command_htcondor_tells_halts_and_resumes(dags: Workflows) -> None:
    dags.begin("JOB A say.sub\nJOB B say.sub\nPARENT A CHILD B\n",
               say_sub=SAY.replace("$(then:exit 0)", "while [ ! -e go ]; do sleep 0.1; done"))
    word = str(dags.submit())

    def told(verb: str, words: str) -> str:
        def look() -> str:
            heard = dags.pool.tool("htcondor", "dag", verb, word, cwd=dags.folder)
            last.append(heard.stdout + heard.stderr)
            return last[-1] if words in last[-1] else ""

        last: list[str] = []
        return str(until(look, lambda: last[-1], 30))

    said = told("status", "running: 1 job")
    assert f"DAG {word} [x.dag] has been running" in said
    assert "2 node(s) total" in said
    assert "0.00% complete" in said
    assert "1 running; 0 idle" in told("resources", "1 running;")
    assert dags.pool.tool("htcondor", "dag", "halt", word, "--reason", "lunch", cwd=dags.folder).returncode == 0
    assert (dags.folder / "x.dag.halt").read_text() == "lunch\n"
    assert dags.pool.tool("htcondor", "dag", "resume", word, cwd=dags.folder).returncode == 0
    assert dags.pool.tool("htcondor", "dag", "resume", word, cwd=dags.folder).returncode == 1
    (dags.folder / "go").touch()
    assert dags.wait() == 0
    assert "100.00% complete" in told("status", "completed 2")


def test_the_page_runs_as_printed(dags: Workflows) -> None:
    page = (Path(__file__).parents[2] / "docs" / "dagman.md").read_text()
    dag, say = page.split("```\n")[1], page.split("```\n")[3]
    assert dags.run(dag, say_sub=say.replace("queue", "universe = local\nqueue")) == 0
    assert (dags.folder / "D.out").read_text() == "node D, try 0\n"


def test_attributes_variables_and_parents(dags: Workflows) -> None:
    text = DIAMOND + 'VARS D then="exit 0" My.Extra="\\"yes\\""\nPRIORITY D 7\n'
    assert dags.run(text) == 0
    dag = int(dags.out().split("condor_scheduniv_exec.")[1].split(".")[0])
    (ad,) = dags.pool.history("-constraint", f'DAGManJobId == {dag} && DAGNodeName == "D"')
    assert (ad["DAGParentNodeNames"], ad["Extra"], ad["JobPrio"], ad["JobBatchName"]) == (
        "B,C", "yes", 7, f"x.dag+{dag}")
    (first,) = dags.pool.history("-constraint", f'DAGManJobId == {dag} && DAGNodeName == "A"')
    assert first["DAGParentNodeNames"] == "", "$$([DAGParentNodeNames]) can be expanded in every node"
    (own,) = dags.pool.history(str(dag))
    assert (own["DAG_NodesDone"], own["DAG_NodesTotal"], own["DAG_Status"]) == (4, 4, 0)


def test_scripts_retries_and_skipped_nodes(dags: Workflows) -> None:
    text = """JOB A say.sub
JOB B say.sub
JOB C say.sub NOOP
VARS A then="test $(RETRY) -ge 2"
RETRY A 3
SCRIPT PRE B ./skip
PRE_SKIP B 9
SCRIPT DEBUG debug ALL POST A ./note $NODE $RETURN $RETRY $JOB_COUNT $SUCCESS $MAX_RETRIES $NODE_COUNT x$NODE
SCRIPT POST C ./note $NODE $RETURN
PARENT A CHILD B
PARENT B CHILD C
"""
    status = dags.run(text, skip="#!/bin/sh\nexit 9\n", note="#!/bin/sh\necho note $* | tee -a all\nexit $2\n")
    assert status == 0
    assert dags.said() == ["A 0", "note A 1 0 1 False 3 3 x$NODE", "A 1", "note A 1 1 1 False 3 3 x$NODE",
                           "A 2", "note A 0 2 1 True 3 3 x$NODE", "note C 0"]
    assert "note A 1 0 1" in (dags.folder / "debug").read_text()


def test_a_rescue_file(dags: Workflows) -> None:
    text = DIAMOND + 'VARS C then="test -e mended"\nRETRY C 1\n'
    assert dags.run(text) == 1
    assert sorted(dags.said()) == ["A 0", "B 0", "C 0", "C 1"]
    rescue = (dags.folder / "x.dag.rescue001").read_text()
    assert "# Nodes that failed: 1\n#   C,<ENDLIST>\n" in rescue
    assert [line for line in rescue.splitlines() if line.startswith("DONE")] == ["DONE A", "DONE B"]
    (dags.folder / "mended").touch()
    (dags.folder / "x.dag.dagman.log").unlink()
    dags.submit()
    assert dags.wait() == 0
    assert sorted(dags.said()) == ["A 0", "B 0", "C 0", "C 0", "C 1", "D 0"]
    assert "Restoring state from x.dag.rescue001" in dags.out()


def test_splices_and_a_dag_in_a_dag(dags: Workflows) -> None:
    text = "JOB A say.sub\nSPLICE S inner.dag\nSUBDAG EXTERNAL E outer.dag\nPARENT A CHILD S\nPARENT S CHILD E\n"
    inner = "JOB I1 say.sub\nJOB I2 say.sub\nPARENT I1 CHILD I2\n"
    assert dags.run(text, inner_dag=inner, outer_dag="JOB O say.sub\n") == 0
    assert dags.said() == ["A 0", "S+I1 0", "S+I2 0", "O 0"]
    assert (dags.folder / "outer.dag.metrics").exists()


def test_the_final_node_runs_when_others_fail(dags: Workflows) -> None:
    text = DIAMOND + 'VARS B then="exit 4"\nFINAL F say.sub\nVARS F then="echo status $(DAG_STATUS) >> all"\n'
    assert dags.run(text) == 0
    assert dags.said()[-2:] == ["F 0", "status 2"]
    assert "D 0" not in dags.said()


def test_an_abort(dags: Workflows) -> None:
    text = 'JOB A say.sub\nJOB B say.sub\nVARS A then="sleep 300"\nVARS B then="exit 10"\nABORT-DAG-ON B 10 RETURN 1\n'
    assert dags.run(text) == 1
    assert (dags.folder / "x.dag.rescue001").exists()
    until(lambda: not dags.pool.jobs("-constraint", "JobStatus != 3"), "the jobs of the DAG are removed")


def test_a_mistake_is_told_before_anything_is_submitted(dags: Workflows) -> None:
    dags.begin(DIAMOND + "PARENT D CHILD A\n")
    done = dags.pool.tool("condor_submit_dag", "x.dag", cwd=dags.folder)
    assert done.returncode == 1
    assert "there is a cycle" in done.stderr
    assert not (dags.folder / "x.dag.condor.sub").exists()


def test_a_submit_file_that_is_wrong_fails_its_node(dags: Workflows) -> None:
    assert dags.run("JOB A no.sub\nJOB B say.sub\n") == 1
    assert dags.said() == ["B 0"]
    assert "submit of node A failed: " in dags.out()


def test_a_dag_that_is_removed(dags: Workflows) -> None:
    dags.begin(DIAMOND + 'VARS A then="sleep 300"\nFINAL F say.sub\n')
    cluster = dags.submit()
    until(lambda: dags.said() == ["A 0"], "the first node runs")
    dags.pool.run("condor_rm", str(cluster))
    assert dags.wait() == 2
    assert dags.said() == ["A 0", "F 0"]
    assert (dags.folder / "x.dag.rescue001").exists()
    until(lambda: not dags.pool.jobs(), "nothing of it is left in the queue")


def test_a_dag_that_is_held_goes_on_and_takes_its_jobs_along(dags: Workflows) -> None:
    text = 'JOB A say.sub\nJOB B say.sub\nPARENT A CHILD B\nVARS A then="while ! test -e go; do sleep 0.1; done"\n'
    dags.begin(text)
    cluster = dags.submit()
    until(lambda: dags.said() == ["A 0"], "the first node runs")
    dags.pool.run("condor_hold", str(cluster))
    dags.pool.until_status(f"{cluster}.0", 5)
    dags.pool.run("condor_release", str(cluster))
    until(lambda: "Running in RECOVERY mode" in dags.out(), "it goes on")
    (dags.folder / "go").touch()
    assert dags.wait() == 0
    assert dags.said() == ["A 0", "B 0"]
    dags.begin(text)
    cluster = dags.submit()
    until(lambda: dags.said() == ["A 0"], "the first node runs")
    dags.pool.run("condor_hold", str(cluster))
    dags.pool.until_status(f"{cluster}.0", 5)
    dags.pool.run("condor_rm", str(cluster))
    until(lambda: not dags.pool.jobs(), "its jobs have gone with it")


def test_the_halt_file(dags: Workflows) -> None:
    dags.begin(DIAMOND + 'VARS A then="while ! test -e go; do sleep 0.1; done"\n')
    dags.submit()
    until(lambda: dags.said() == ["A 0"], "the first node runs")
    (dags.folder / "x.dag.halt").touch()
    until(lambda: "DAG is halted" in dags.out(), "the halt file is seen")
    (dags.folder / "go").touch()
    assert dags.wait() == 1
    assert dags.said() == ["A 0"]
    assert "DONE A" in (dags.folder / "x.dag.rescue001").read_text()


def test_a_provisioner_before_all_and_a_service_beside(dags: Workflows) -> None:
    dags.begin('PROVISIONER P say.sub\nSERVICE S say.sub\nJOB A say.sub\nVARS P then="sleep 5"\n'
               'VARS S then="sleep 300"\n')
    dags.submit()

    def running(node: str) -> list[str]:
        return [f"{job['ClusterId']}.0" for job in dags.pool.jobs()
                if job.get("DAGNodeName") == node and job["JobStatus"] == 2]

    (job,) = until(lambda: running("P"), "the provisioner runs")
    until(lambda: running("S"), "the service runs")
    assert "A 0" not in dags.said()
    dags.pool.run("condor_qedit", job, "ProvisionerState", "2")
    assert dags.wait() == 0
    assert dags.said()[-1] == "A 0"
    until(lambda: not running("S"), "the service is removed")


def test_several_files_each_in_its_folder(dags: Workflows) -> None:
    folder = dags.begin("CONFIG x.cfg\nJOB A say.sub\n", x_cfg="DAGMAN_METRICS_FILE_VERSION = 1\n")
    inner = folder / "d"
    inner.mkdir()
    inner.chmod(0o777)
    (inner / "y.dag").write_text('JOB A say.sub\nJOB B say.sub\nPARENT A CHILD B\nVARS A then="test -e mended"\n')
    (inner / "say.sub").write_text(SAY)
    command = ("condor_submit_dag", "-usedagdir", "-dagman", str(dags.program), "x.dag", "d/y.dag")
    dags.pool.run(*command, cwd=folder)
    assert dags.wait() == 1
    assert '"jobs":3' in (folder / "x.dag.metrics").read_text()
    rescue = (folder / "x.dag_multi.rescue001").read_text()
    assert [line for line in rescue.splitlines() if line.startswith("DONE")] == ["DONE 0.A"]
    (inner / "mended").touch()
    (folder / "x.dag.dagman.log").unlink()
    dags.pool.run(*command, cwd=folder)
    assert dags.wait() == 0
    assert (dags.said(), (inner / "all").read_text().split("\n")[1:3]) == (["0.A 0"], ["1.A 0", "1.B 0"])


def test_a_script_when_a_job_is_held(dags: Workflows) -> None:
    dags.begin('JOB A say.sub\nVARS A then="test -e go || sleep 300"\nSCRIPT HOLD A ./note held $NODE\n',
               note="#!/bin/sh\necho $* >> all\n")
    dags.submit()
    until(lambda: dags.said() == ["A 0"], "it runs")
    (job,) = [f"{job['ClusterId']}.0" for job in dags.pool.jobs() if job.get("DAGNodeName") == "A"]
    dags.pool.run("condor_hold", job)
    until(lambda: dags.said() == ["A 0", "held A"], "the script has run")
    (dags.folder / "go").touch()
    dags.pool.run("condor_release", job)
    assert dags.wait() == 0
    assert dags.said() == ["A 0", "held A", "A 0"]


def test_condor_q_shows_nodes(dags: Workflows) -> None:
    dags.begin(DIAMOND + 'VARS B then="while ! test -e go; do sleep 0.1; done"\nSUBDAG EXTERNAL E inner.dag\n'
               "PARENT A CHILD E\n", inner_dag='JOB I say.sub\nVARS I then="while ! test -e go; do sleep 0.1; done"\n')
    cluster = dags.submit()

    def line() -> list[str]:
        said = dags.pool.run("condor_q", "-all").splitlines()
        return next((text.split() for text in said if f"x.dag+{cluster}" in text), [])

    until(lambda: line()[4:8] == ["2", "2", "_", "5"], lambda: f"two of five nodes are done, two jobs run: {line()}")
    tree = [text.split()[1] for text in dags.pool.run("condor_q", "-all", "-dag").splitlines() if " R " in text]
    assert tree[1:] == ["|-B", "|-E", "|-I"]
    assert "OWNER/NODENAME" in dags.pool.run("condor_q", "-all", "-dag")
    asked = dags.pool.run("condor_q", "-all", "-batch", "-constraint", "true").splitlines()
    assert asked[4].split()[4:8] == line()[4:8]
    (dags.folder / "go").touch()
    assert dags.wait() == 0


def test_files_for_programs(dags: Workflows) -> None:
    text = DIAMOND + "NODE_STATUS_FILE status 0 ALWAYS-UPDATE\nJOBSTATE_LOG states\nDOT x.dot UPDATE\n"
    text += "SAVE_POINT_FILE D\n"
    assert dags.run(text) == 0
    status = (dags.folder / "status").read_text()
    assert 'Node = "D";\n  NodeStatus = 5;' in status
    assert "NodesDone = 4;" in status
    states = [line.split(" ", 1)[1] for line in (dags.folder / "states").read_text().splitlines()]
    assert [line for line in states if line.startswith("A ")][-1].startswith("A JOB_SUCCESS 0 - - 1")
    assert states[-1] == "INTERNAL *** DAGMAN_FINISHED 0 ***"
    assert '"A" -> "B"' in (dags.folder / "x.dot").read_text()
    saved = (dags.folder / "save_files" / "D-x.dag.save").read_text()
    assert [line for line in saved.splitlines() if line.startswith("DONE")] == ["DONE A", "DONE B", "DONE C"]
    dags.submit("-force", "-load_save", "D-x.dag.save")
    assert dags.wait() == 0
    assert dags.said().count("D 0") == 2
    assert dags.said().count("A 0") == 1


def test_killed_twenty_times(dags: Workflows) -> None:
    """Each node's successful run is there once, whatever instant the kills come at."""
    rng = random.Random(7)
    lines = []
    for node in range(150):
        lines.append(f"JOB n{node} say.sub{' NOOP' if node % 10 == 9 else ''}")
        fails = rng.choice([0, 0, 0, 1, 2])
        lines.append(f'VARS n{node} then="test $(RETRY) -ge {fails}"\nRETRY n{node} 2')
        if node % 7 == 0:
            lines.append(f"SCRIPT POST n{node} ./post $RETURN")
        lines += [f"PARENT n{parent} CHILD n{node}" for parent in rng.sample(range(node), min(node, 2)) if node > 10]
    folder = dags.begin("\n".join(lines) + "\n", post="#!/bin/sh\nexit $1\n")
    dags.submit()
    kills = 0
    while kills < 20:
        before = len(dags.said())
        pid = until(lambda: ended(folder) or dags.pid(), "the DAG runs")
        if ended(folder):
            break
        until(lambda before=before: ended(folder) or len(dags.said()) > before + 2, "it comes on")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            kills += 1
        until(lambda pid=pid: ended(folder) or not alive(pid), "it is dead")
    assert kills >= 5
    assert dags.wait() == 0
    runs = Counter(line.split()[0] for line in dags.said())
    expected = {f"n{node}": fails for node, fails in enumerate(failures(lines)) if node % 10 != 9}
    assert runs == Counter({name: fails + 1 for name, fails in expected.items()})


@pytest.mark.parametrize(("splices", "nodes", "kills"), [
    pytest.param(3, 10, 2, id="small"), pytest.param(10, 98, 20, id="thousand", marks=pytest.mark.soak)])
def test_splices_with_failures_and_kills(dags: Workflows, splices: int, nodes: int, kills: int) -> None:
    """Each node's successful run is there once: over retries, nodes that fail, kill -9 of DAGMan, and a rescue DAG."""
    rng, files, top = random.Random(nodes), dict[str, str](), list[str]()
    for splice in range(splices):
        inside = [line for node in range(nodes)
                  for line in node_of(rng, f"n{node}", node if node > 4 else 0)]
        inside[1] = 'VARS n0 then="test -e mended"'  # fails until someone mends it
        files[f"part{splice}_dag"] = "\n".join(inside) + "\n"
        top += [line for end in "ab" for line in node_of(rng, f"{end}{splice}", 0)]
        top += [f"SPLICE S{splice} part{splice}.dag", f"PARENT a{splice} CHILD S{splice}",
                f"PARENT S{splice} CHILD b{splice}"]
    body = SAY.replace("echo $(JOB) $(RETRY) >> all; $(then:exit 0)", "$(then) && echo $(JOB) >> all")
    folder = dags.begin("\n".join(top) + "\n", say_sub=body, **files)
    names = [f"{end}{splice}" for end in "ab" for splice in range(splices)]
    names += [f"S{splice}+n{node}" for splice in range(splices) for node in range(nodes)]

    dags.submit("-maxjobs", "20")
    killed = dags.kill(kills // 2, len(names) // (3 * kills))
    assert dags.wait() == 1
    assert (folder / "x.dag.rescue001").exists()
    mended = Counter(dags.said())
    assert not [name for name in mended if name.endswith("+n0") or name.startswith("b")]
    (folder / "mended").touch()
    (folder / "x.dag.metrics").unlink()
    dags.submit("-maxjobs", "20")
    killed += dags.kill(kills - killed, len(names) // (3 * kills))
    assert dags.wait() == 0
    assert killed >= kills // 2  # it may end before the last one
    assert Counter(dags.said()) == Counter(names)


def node_of(rng: random.Random, name: str, parents: int) -> list[str]:
    """A node that succeeds at one of its attempts, and is the child of some of so many before it."""
    fails = rng.choice([0, 0, 0, 1, 2])
    lines = [f"JOB {name} say.sub", f'VARS {name} then="test $(RETRY) -ge {fails}"', f"RETRY {name} 2"]
    return lines + [f"PARENT n{parent} CHILD {name}" for parent in rng.sample(range(parents), min(parents, 2))]


def test_the_schedd_dies_and_the_machine_is_switched_off(dags: Workflows) -> None:
    pool, names = dags.pool, [f"n{number}" for number in range(12)]
    text = "".join(f"JOB {name} say.sub\n" for name in names) + 'VARS ALL_NODES then="sleep 0.5"\n'
    text += "".join(f"PARENT {' '.join(names[at:at + 3])} CHILD {' '.join(names[at + 3:at + 6])}\n" for at in (0, 3, 6))
    folder = dags.begin(text)
    dags.submit()
    until(lambda: len(dags.said()) >= 2, "it has begun")
    pool.until_restarted("schedd", pool.kill("schedd"))
    until(lambda: len(dags.said()) >= 6, "it goes on with another schedd")
    pool.power_off()
    pool.run("condor_personal", "start", "--dir", str(pool.dir))
    assert dags.wait() == 0
    assert json.loads((folder / "x.dag.metrics").read_text())["nodes_succeeded"] == 12
    log = (folder / "x.dag.nodes.log").read_text().splitlines()
    assert Counter(line.split()[-1] for line in log if "DAG Node: " in line) == Counter(names)


def failures(lines: list[str]) -> list[int]:
    return [int(line.split("-ge ")[1].split('"')[0]) for line in lines if line.startswith("VARS")]
