"""The states of a job in the queue, and what each action of a user does in each of them.

Theory: ``JobStatus`` is what tools show; the table below is total over status × action.  A running job keeps its run
until the shadow has reported its end, so an action on it sets the new status at once and asks the run to stop; what
the run then reports is read in the light of that status.

===================  ======= ======= ======= ========= ======= ============ =========
action               idle    running removed completed held    transferring suspended
===================  ======= ======= ======= ========= ======= ============ =========
remove               leave   stop    –       leave     leave   stop         stop
remove-forced        leave   leave   leave   leave     leave   leave        leave
hold                 hold    stop    –       –         already stop         stop
release              –       –       –       –         release –            –
suspend              –       suspend –       –         –       –            already
continue             –       –       –       –         –       –            continue
vacate, vacate-fast  –       vacate  –       –         –       vacate       vacate
===================  ======= ======= ======= ========= ======= ============ =========

**Source**: the manual's ``JobStatus`` attribute and the pages of ``condor_rm``, ``condor_hold`` and their kin.
"""

from __future__ import annotations

import enum

from condor_actors.messages.queue import ActionResult, JobAction

__all__ = ["ACTIONS", "ALIVE", "HoldCode", "JobStatus", "Step"]


class JobStatus(enum.IntEnum):
    """The attribute ``JobStatus``."""

    IDLE = 1
    RUNNING = 2
    REMOVED = 3
    COMPLETED = 4
    HELD = 5
    TRANSFERRING_OUTPUT = 6
    SUSPENDED = 7


ALIVE = frozenset({JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT, JobStatus.SUSPENDED})
"""The states in which a job has a run that counts."""


class HoldCode(enum.IntEnum):
    """The attribute ``HoldReasonCode``, as far as the submit side sets it."""

    USER_REQUEST = 1
    JOB_POLICY = 3
    CORRUPTED_CREDENTIAL = 4
    JOB_POLICY_UNDEFINED = 5
    FAILED_TO_CREATE_PROCESS = 6
    UNABLE_TO_OPEN_OUTPUT = 7
    UNABLE_TO_OPEN_INPUT = 8
    UNABLE_TO_OPEN_OUTPUT_STREAM = 9
    UNABLE_TO_OPEN_INPUT_STREAM = 10
    INVALID_TRANSFER_ACK = 11
    TRANSFER_OUTPUT_ERROR = 12
    TRANSFER_INPUT_ERROR = 13
    IWD_ERROR = 14
    SUBMITTED_ON_HOLD = 15
    SPOOLING_INPUT = 16
    JOB_SHADOW_MISMATCH = 17
    PREVIOUS_RUN_FAILED = 21
    UNABLE_TO_INIT_USER_LOG = 22
    SYSTEM_POLICY = 26
    SYSTEM_POLICY_UNDEFINED = 27
    MAX_TRANSFER_INPUT_SIZE = 32
    MAX_TRANSFER_OUTPUT_SIZE = 33
    JOB_OUT_OF_RESOURCES = 34
    JOB_DURATION_EXCEEDED = 46
    JOB_EXECUTE_EXCEEDED = 47


HOLD_LABELS = {
    1: "UserRequest", 3: "JobPolicy", 4: "CorruptedCredential", 5: "JobPolicyUndefined", 6: "FailedToCreateProcess",
    7: "UnableToOpenOutput", 8: "UnableToOpenInput", 9: "UnableToOpenOutputStream", 10: "UnableToOpenInputStream",
    11: "InvalidTransferAck", 12: "TransferOutputError", 13: "TransferInputError", 14: "IwdError",
    15: "SubmittedOnHold", 16: "SpoolingInput", 17: "JobShadowMismatch", 21: "HookPrepareJobFailure",
    22: "UnableToInitUserLog", 26: "SystemPolicy", 27: "SystemPolicyUndefined", 32: "MaxTransferInputSizeExceeded",
    33: "MaxTransferOutputSizeExceeded", 34: "JobOutOfResources", 46: "JobDurationExceeded",
    47: "JobExecuteExceeded",
}
"""Keys of ``NumHoldsByReason``."""


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
    _A.REMOVE_FORCED: _row(*(Step.LEAVE,) * 7),
    _A.HOLD: _row(Step.HOLD, Step.STOP, _BAD, _BAD, _ALREADY, Step.STOP, Step.STOP),
    _A.RELEASE: _row(_BAD, _BAD, _BAD, _BAD, Step.RELEASE, _BAD, _BAD),
    _A.SUSPEND: _row(_BAD, Step.SUSPEND, _BAD, _BAD, _BAD, _BAD, _ALREADY),
    _A.CONTINUE: _row(_BAD, _BAD, _BAD, _BAD, _BAD, _BAD, Step.CONTINUE),
    _A.VACATE: _row(_BAD, Step.VACATE, _BAD, _BAD, _BAD, Step.VACATE, Step.VACATE),
    _A.VACATE_FAST: _row(_BAD, Step.VACATE, _BAD, _BAD, _BAD, Step.VACATE, Step.VACATE),
    _A.CHECKPOINT: _row(_BAD, Step.CHECKPOINT, _BAD, _BAD, _BAD, _BAD, _BAD),
}
"""(result told to the user, step) for every action and status; see the module."""
