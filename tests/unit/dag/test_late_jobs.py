"""Nodes whose jobs the schedd makes as they are needed: when they end, and what is counted meanwhile."""

from __future__ import annotations

import pytest

from condor_actors.dag.reports import attributes
from condor_actors.dag.run_effects import Ended, RemoveJobs, RunEffect, RunScript, Submit
from condor_actors.dag.run_events import (
    REMOVED,
    Change,
    ClusterLeft,
    JobChanged,
    JobEnded,
    JobMade,
    PostEnded,
    RemovedByUser,
    Reserved,
    Submitted,
)
from condor_actors.dag.run_state import NodeState
from tests.unit.dag.test_run import Run

TWO = "JOB A x\nJOB B x\n"


class LateRun(Run):
    """A run whose first node is a cluster of this many jobs that are made as they are needed."""

    def __init__(self, text: str, jobs: int, **settings: int) -> None:
        super().__init__(text, **settings)
        self.tell(Reserved(0, 100, True))
        self.tell(Submitted(0, 100, jobs))

    def make(self, *procs: int) -> None:
        for proc in procs:
            self.tell(JobMade(0, 100, proc))

    def leave(self, jobs: int, *, is_whole: bool = True) -> list[RunEffect]:
        return self.tell(ClusterLeft(0, 100, jobs, is_whole))


def test_a_node_ends_when_its_cluster_has_left_and_not_when_no_job_is_there() -> None:
    run = LateRun("JOB A x\nJOB B x\nPARENT A CHILD B\n", 3)
    run.make(0, 1)
    run.end(0)
    run.end(0, proc=1)
    assert run.states() == "QUEUED WAITING"
    run.make(2)
    assert run.end(0, proc=2) == []
    assert run.leave(3) == [Submit(1)]
    assert run.run.nodes.jobs_submitted == 3
    assert run.leave(3) == [], "told once more when the log is read again"


def test_the_cluster_may_leave_before_the_ends_of_its_jobs_are_told() -> None:
    run = LateRun("JOB A x\n", 2)
    run.make(0)
    assert run.leave(2) == []
    assert run.end(0) == []
    assert run.end(0, proc=1) == [Ended(0, False, ())]


def test_what_waits_counts_as_idle_from_the_submission_on() -> None:
    run = LateRun(TWO, 5, idle=1)
    assert run.run.nodes.idle == 1, "jobs are about to come"
    assert run.run.nodes.state(1) is NodeState.READY
    run.make(0)
    assert run.run.nodes.idle == 1
    assert run.tell(JobChanged(0, 100, 0, Change.RUNNING)) == [Submit(1)]
    assert attributes(run.run, 0)["DAG_JobsRunning"] == 1
    run.make(1)
    assert attributes(run.run, 0)["DAG_JobsSubmitted"] == 2


def test_an_event_of_a_job_whose_submission_was_not_told() -> None:
    run = LateRun("JOB A x\n", 3)
    run.end(0, proc=1)
    assert run.run.nodes.active[0].jobs == 2
    run.end(0, proc=0)
    run.end(0, proc=5)  # of no job that it can have
    run.make(2)
    run.end(0, proc=2)
    assert run.leave(3) == [Ended(0, False, ())]


@pytest.mark.parametrize(("made", "tolerated", "ended"), [(2, "", 1), (0, "", 1), (2, "TOLERANCE A 1\n", 0)])
def test_a_cluster_that_leaves_with_jobs_unmade(made: int, tolerated: str, ended: int) -> None:
    run = LateRun(f"JOB A x\n{tolerated}", 3)
    run.make(*range(made))
    for proc in range(made):
        run.end(0, proc=proc)
    assert run.leave(made, is_whole=False) == [Ended(ended, ended == 1, ())]
    if ended:
        assert "not all of its jobs were made" in run.run.nodes.reasons[0]


def test_a_failed_job_removes_the_cluster_and_the_node_is_tried_again_when_it_has_left() -> None:
    run = LateRun("JOB A x\nRETRY A 1\nSCRIPT POST A p\n", 9)
    run.make(0, 1)
    (removal,) = run.end(0, 7)
    assert isinstance(removal, RemoveJobs)
    assert run.run.resume() == (removal,)
    run.end(0, REMOVED, 1)
    assert run.leave(2, is_whole=False) == [RunScript(0, "post")]
    assert run.run.nodes.active[0].status == 7
    assert run.tell(PostEnded(0, 7)) == [Submit(0)]
    assert run.run.nodes.active[0].is_late is False, "the next try is described anew"


def test_a_share_of_failures_is_one_of_all_jobs() -> None:
    run = LateRun("JOB A x\nTOLERANCE A 50%\n", 4)
    run.make(0)
    assert run.end(0, 1) == []
    run.make(1, 2, 3)
    run.end(0, 1, 1)
    run.end(0, 0, 2)
    run.end(0, 0, 3)
    assert run.leave(4) == [Ended(0, False, ())]


def test_a_dag_that_is_removed_removes_a_cluster_that_has_made_nothing() -> None:
    run = LateRun("JOB A x\n", 4)
    assert RemoveJobs((100,), "the DAG has ended") in run.tell(RemovedByUser())
    assert run.run.nodes.idle == 0


def test_other_nodes_do_not_listen() -> None:
    run = Run("JOB A x\n")
    run.queue(0, 2)
    run.tell(JobMade(0, 100, 2))
    run.tell(ClusterLeft(0, 100, 0, False))
    run.end(0)
    assert run.tell(JobEnded(0, 100, 1, 0)) == [Ended(0, False, ())]
