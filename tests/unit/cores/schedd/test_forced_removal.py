"""``condor_rm -forcex`` is for jobs that are being removed already: others may still be stopped in good order."""

from __future__ import annotations

from condor_actors.messages.codes import JobStatus
from condor_actors.messages.queue import ActionResult, ActOnJobs, JobAction
from tests.unit.cores.schedd.test_job_attributes import Queue

FORCED = ActOnJobs(action=JobAction.REMOVE_FORCED, ids=((1, 0),))


def test_a_job_that_is_not_being_removed_stays() -> None:
    queue = Queue()
    assert queue.send(FORCED).results == ((1, 0, ActionResult.BAD_STATUS),)
    assert queue.job.status is JobStatus.IDLE


def test_a_job_whose_removal_waits_for_its_machine_is_forgotten() -> None:
    queue = Queue()
    core, job = queue.core, queue.job
    core.transitions.withdraw(job)
    core.runs._begin(job, None)
    assert queue.send(ActOnJobs(action=JobAction.REMOVE, ids=((1, 0),))).results == ((1, 0, ActionResult.SUCCESS),)
    assert (job.status, len(core.runs.runs)) == (JobStatus.REMOVED, 1)
    assert queue.send(FORCED).results == ((1, 0, ActionResult.SUCCESS),)
    assert core.context.queue.job(1, 0) is None
    assert not core.runs.runs
