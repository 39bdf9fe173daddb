"""The states of a job in the queue, and what each action of a user does in each of them.

Theory: ``JobStatus`` is what tools show; the table below is total over status × action.  A running job keeps its run
until the shadow has reported its end, so an action on it sets the new status at once and asks the run to stop; what
the run then reports is read in the light of that status.  Only suspend and continue leave the status to the run; one of
them that follows the other at once is read as if the other had happened.

===================  ======= ======= ======= ========= ======= ============ =========
action               idle    running removed completed held    transferring suspended
===================  ======= ======= ======= ========= ======= ============ =========
remove               leave   stop    –       leave     leave   stop         stop
remove-forced        –       –       leave   –         –       –            –
hold                 hold    stop    –       –         already stop         stop
release              –       –       –       –         release –            –
suspend              –       suspend –       –         –       –            already
continue             –       –       –       –         –       –            continue
vacate, vacate-fast  –       vacate  –       –         –       vacate       vacate
===================  ======= ======= ======= ========= ======= ============ =========

**Source**: the manual's ``JobStatus`` attribute and the pages of ``condor_rm``, ``condor_hold`` and the like.
"""

from __future__ import annotations

import enum

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import HoldCode, JobStatus
from condor_actors.messages.queue import ActionResult, JobAction

__all__ = ["ACTIONS", "ALIVE", "Step", "say_why_held"]


ALIVE = frozenset({JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT, JobStatus.SUSPENDED})
"""The states in which a job has a run that counts."""


class Step(enum.Enum):
    """What an action makes the queue do with a job."""

    NOTHING = "nothing"
    LEAVE = "leave the queue for the history"
    STOP = "take the new status and stop the run"
    HOLD = "hold"
    RELEASE = "release"
    SUSPEND = "ask the run to suspend"
    CONTINUE = "ask the run to go on"
    VACATE = "ask the run to vacate"
    CHECKPOINT = "ask the run for a checkpoint"


_S, _A, _R = JobStatus, JobAction, ActionResult
_BAD = (ActionResult.BAD_STATUS, Step.NOTHING)
_ALREADY = (ActionResult.ALREADY_DONE, Step.NOTHING)


def _row(idle: tuple[ActionResult, Step] | Step, running: tuple[ActionResult, Step] | Step,
         removed: tuple[ActionResult, Step] | Step, completed: tuple[ActionResult, Step] | Step,
         held: tuple[ActionResult, Step] | Step, transferring: tuple[ActionResult, Step] | Step,
         suspended: tuple[ActionResult, Step] | Step) -> dict[JobStatus, tuple[ActionResult, Step]]:
    cells = (idle, running, removed, completed, held, transferring, suspended)
    return {
        status: (ActionResult.SUCCESS, cell) if isinstance(cell, Step) else cell
        for status, cell in zip(JobStatus, cells, strict=True)
    }


ACTIONS: dict[JobAction, dict[JobStatus, tuple[ActionResult, Step]]] = {
    _A.REMOVE: _row(Step.LEAVE, Step.STOP, _ALREADY, Step.LEAVE, Step.LEAVE, Step.STOP, Step.STOP),
    _A.REMOVE_FORCED: _row(_BAD, _BAD, Step.LEAVE, _BAD, _BAD, _BAD, _BAD),
    _A.HOLD: _row(Step.HOLD, Step.STOP, _BAD, _BAD, _ALREADY, Step.STOP, Step.STOP),
    _A.RELEASE: _row(_BAD, _BAD, _BAD, _BAD, Step.RELEASE, _BAD, _BAD),
    _A.SUSPEND: _row(_BAD, Step.SUSPEND, _BAD, _BAD, _BAD, _BAD, _ALREADY),
    _A.CONTINUE: _row(_BAD, _BAD, _BAD, _BAD, _BAD, _BAD, Step.CONTINUE),
    _A.VACATE: _row(_BAD, Step.VACATE, _BAD, _BAD, _BAD, Step.VACATE, Step.VACATE),
    _A.VACATE_FAST: _row(_BAD, Step.VACATE, _BAD, _BAD, _BAD, Step.VACATE, Step.VACATE),
    _A.CHECKPOINT: _row(_BAD, Step.CHECKPOINT, _BAD, _BAD, _BAD, _BAD, _BAD),
}
"""(result told to the user, step) for every action and status; see the module."""


def say_why_held(ad: ClassAd, *, spool: bool = False) -> None:
    """A job submitted on hold has a reason and a code; ``spool``: a cluster's is held for its files."""
    if spool and ad.parent is None:
        ad.update({"JobStatus": int(JobStatus.HELD), "HoldReason": "Spooling input data files",
                   "HoldReasonCode": int(HoldCode.SPOOLING_INPUT), "HoldReasonSubCode": 0})
    elif ad.own.get("jobstatus") == JobStatus.HELD and ad.find("holdreason") is None:
        ad.update({"HoldReason": "submitted on hold at user's request",
                   "HoldReasonCode": int(HoldCode.SUBMITTED_ON_HOLD), "HoldReasonSubCode": 0})
