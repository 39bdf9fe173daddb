"""A run made anew from the event log of its nodes' jobs alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.dag.dag_run import DagRun, Phase
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_effects import RunEffect
from condor_actors.dag.run_events import RunEvent, ThrottlesSet, event_of, line_of
from condor_actors.dag.run_state import DagStatus, NodeState, RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.job_events import jobs_made
from condor_actors.tools.dag.log_recovery import LogMisfit, events_of, give_up_lost, recover, whole_bytes
from condor_actors.userlog.reader import Event

CHAIN = "JOB A x\nJOB B x\nPARENT A CHILD B\n"
OVER = "\t(1) Normal termination (return value {})"


def event(number: int, cluster: int, proc: int = 0, *lines: str) -> str:
    return "\n".join([f"{number:03d} ({cluster:03d}.{proc:03d}.000) 2026-11-30 10:00:00 Something.", *lines, "...", ""])


def submit(cluster: int, node: str, proc: int = 0) -> str:
    return event(0, cluster, proc, f"    DAG Node: {node}")


def end(cluster: int, status: int = 0, proc: int = 0) -> str:
    return event(5, cluster, proc, OVER.format(status))


def post(node: str, status: int) -> str:
    return event(16, 0, 0, OVER.format(status), f"    DAG Node: {node}")


class Recovery:
    """What a log has made of a run."""

    def __init__(self, folder: Path, dag: str, *log: str, limits: ThrottlesSet | None = None, **settings: bool) -> None:
        path = folder / "nodes.log"
        path.write_text("".join(log))
        self.dag = read_dag(["x.dag"], Reading(lambda _: dag))
        self.run = DagRun(self.dag, RunSettings(jobs=0, idle=0, pre=0, post=0, hold=0, **settings))
        self.told: list[RunEvent] = []
        size = whole_bytes(str(path))
        recover(self.run, str(path), lambda: events_of(str(path), size), self.told.append,
                limits or ThrottlesSet(0, 0, 0, 0, 0))
        self.run.validate()

    def states(self) -> str:
        return " ".join(self.run.nodes.state(number).name for number in range(len(self.dag.nodes)))

    def resumes(self) -> list[RunEffect]:
        """What it goes on with; and that its journal would make the same of it."""
        again = DagRun(self.dag, RunSettings(jobs=0, idle=0, pre=0, post=0, hold=0))
        for told in self.told:
            again.handle(event_of(line_of(told)))
        assert bytes(again.nodes.states) == bytes(self.run.nodes.states)
        assert again.resume() == self.run.resume()
        return list(self.run.resume())


def test_what_has_ended_and_what_is_in_the_queue(tmp_path: Path) -> None:
    found = Recovery(tmp_path, CHAIN, submit(7, "A"), event(1, 7), end(7), submit(9, "B"), submit(9, "B", 1), end(9))
    assert (found.states(), found.resumes()) == ("DONE QUEUED", [])
    attempt = found.run.nodes.active[1]
    assert (attempt.cluster, attempt.jobs, attempt.statuses) == (9, 2, {0: 0})


def test_a_run_that_had_ended_and_one_that_had_not_begun(tmp_path: Path) -> None:
    assert Recovery(tmp_path, CHAIN, submit(7, "A"), end(7), submit(8, "B"), end(8)).run.phase is Phase.OVER
    assert Recovery(tmp_path, CHAIN, event(0, 4, 0, "    of no node")).states() == "SUBMITTING WAITING"


def test_tries_are_counted_and_a_removed_job_has_failed(tmp_path: Path) -> None:
    found = Recovery(tmp_path, "JOB A x\nRETRY A 3\n", submit(7, "A"), end(7, 3), submit(8, "A"), event(9, 8),
                     submit(9, "A"))
    assert (found.states(), found.run.nodes.attempt_of(0)) == ("QUEUED", 2)


def test_scripts(tmp_path: Path) -> None:
    dag = ("JOB A x\nSCRIPT PRE A a\nSCRIPT POST A a\nJOB B x\nSCRIPT PRE B b\nPRE_SKIP B 3\nJOB C x NOOP\n"
           "SCRIPT PRE C c\nJOB D x\nPARENT C CHILD D\nJOB E x NOOP\nSCRIPT POST E e\n")
    found = Recovery(tmp_path, dag, submit(7, "A"), end(7, 1), event(34, 0, 0, "    DAG Node: B"), submit(8, "D"),
                     post("E", 0))
    assert found.states() == "POST DONE DONE QUEUED DONE"
    assert [effect.which for effect in found.resumes()] == ["post"], "the POST script of A had not ended"


@pytest.mark.parametrize("always", [True, False])
def test_a_post_script_without_jobs(tmp_path: Path, always: bool) -> None:
    dag = "JOB A x\nSCRIPT PRE A a\nSCRIPT POST A a\nRETRY A 1\n"
    found = Recovery(tmp_path, dag, post("A", 4), always_post=always)
    assert (found.run.nodes.attempt_of(0), found.states()) == (1, "PRE"), "its PRE script runs before the next try"
    assert Recovery(tmp_path, dag, post("A", 0), always_post=always).states() == "DONE"


def test_late_jobs(tmp_path: Path) -> None:
    log = (event(35, 7, -1, "    DAG Node: A"), submit(7, "A"), end(7), submit(7, "A", 1))
    found = Recovery(tmp_path, CHAIN, *log)
    assert (found.states(), found.run.nodes.active[0].is_late) == ("QUEUED WAITING", True)
    left = event(36, 7, -1, "\tMaterialized 2 jobs from 2 items.\tComplete")
    assert Recovery(tmp_path, CHAIN, *log, end(7, 0, 1), left).states() == "DONE SUBMITTING"
    paused = left.replace("Complete", "Paused")
    assert Recovery(tmp_path, CHAIN, *log, end(7, 0, 1), paused).states() == "FAILED FUTILE"


@pytest.mark.parametrize(("text", "made"), [
    ("\tMaterialized 12 jobs from 9 items.\tComplete", (12, True)),
    ("Materialized 0 jobs from 0 items.\tError -1", (0, False)),
    ('<a n="NextProcId"><i>4</i></a> <a n="Completion"><i>1</i></a>', (4, True)), ("nothing", (-1, False))])
def test_what_a_cluster_has_made(text: str, made: tuple[int, bool]) -> None:
    assert jobs_made(Event(36, 1, -1, 0, text)) == made


def test_jobs_that_the_schedd_does_not_know_count_as_removed(tmp_path: Path) -> None:
    """The run waited for their ends, which no event would ever tell."""
    dag = "JOB A x\nJOB B x\nJOB C x\nRETRY C 1\n"
    found = Recovery(tmp_path, dag, submit(7, "A"), submit(8, "B"), submit(8, "B", 1), end(8),
                     event(35, 9, -1, "    DAG Node: C"))
    said = give_up_lost(found.run, lambda cluster, name: (cluster, name) == (7, "A"), found.told.append)
    assert [sentence.split(" has ", 1)[0] for sentence in said] == [
        "the log tells that cluster 8 of node B", "the log tells that cluster 9 of node C"]
    assert (found.states(), found.run.nodes.attempt_of(2)) == ("QUEUED FAILED SUBMITTING", 1)
    found.run.validate()
    found.resumes()


def test_limits_hold_for_what_follows_and_not_for_what_was(tmp_path: Path) -> None:
    dag = "".join(f"JOB n{n} x\nCATEGORY n{n} c\n" for n in range(4)) + "MAXJOBS c 2\n"
    found = Recovery(tmp_path, dag, submit(7, "n3"), submit(8, "n1"), limits=ThrottlesSet(0, 0, 0, 0, 0))
    assert found.states() == "READY QUEUED READY QUEUED"


def test_a_service_a_provisioner_and_a_final_node(tmp_path: Path) -> None:
    dag = "PROVISIONER P x\nSERVICE S x\nJOB A x\nFINAL F x\n"
    found = Recovery(tmp_path, dag, submit(5, "S"), submit(6, "P"))
    assert (found.run.phase, found.states()) == (Phase.PROVISIONING, "QUEUED QUEUED WAITING WAITING")
    found = Recovery(tmp_path, dag, submit(6, "P"), submit(7, "A"), end(7, 1), submit(8, "F"))
    assert found.run.phase is Phase.FINAL
    assert found.run.nodes.state(found.dag.final) is NodeState.QUEUED


def test_a_final_node_when_others_left_no_trace_or_the_dag_was_removed(tmp_path: Path) -> None:
    dag = "JOB A x\nSCRIPT PRE A a\nRETRY A 2\nJOB B x NOOP\nSCRIPT PRE B b\nJOB C x\nFINAL F x\n"
    found = Recovery(tmp_path, dag, submit(7, "C"), end(7), submit(8, "F"))
    assert found.states() == "FAILED DONE DONE QUEUED"
    found = Recovery(tmp_path, dag, submit(7, "C"), submit(8, "F"), event(9, 7))
    assert found.states() == "FAILED DONE STOPPED QUEUED"
    assert found.run.status is DagStatus.REMOVED


@pytest.mark.parametrize(("log", "said"), [
    (submit(7, "B"), "B, which was submitted before its parents had ended"),
    (submit(7, "Z"), "is of the node Z, which the DAG has not"),
    (submit(7, "A") + submit(8, "A"), "A, which was submitted once more when it was QUEUED"),
    (post("B", 0), "is of the node B, which had not begun")])
def test_the_log_of_another_dag(tmp_path: Path, log: str, said: str) -> None:
    with pytest.raises(LogMisfit, match="-DoRecovery needs the log of the run") as raised:
        Recovery(tmp_path, CHAIN + "SCRIPT POST B b\n", log)
    assert said in str(raised.value)
    assert "nodes.log: the event '" in str(raised.value)


def test_hostile_numbers_take_no_memory(tmp_path: Path) -> None:
    found = Recovery(tmp_path, CHAIN, submit(7, "A", 10**17), submit(7, "A"), end(7, 0, 10**17))
    assert found.run.nodes.active[0].jobs == 1
    log = (event(35, 7, -1, "    DAG Node: A"), submit(7, "A", 10**17),
           event(36, 7, -1, "Materialized 999999999 jobs from 1"))
    assert Recovery(tmp_path, CHAIN, *log).run.nodes.jobs_submitted <= 100_000


def test_what_is_not_whole_at_the_end_is_read_later(tmp_path: Path) -> None:
    path = tmp_path / "nodes.log"
    path.write_text(submit(7, "A") + end(7)[:-3])
    assert whole_bytes(str(path)) == len(submit(7, "A"))
    assert [each.number for each in events_of(str(path), 10_000)] == [0]
