"""The numbers that cross between machines, stand in job ads and logs, and are read by programs: declared here, once.

Each has the name that HTCondor's manual gives it.  The numbers are a contract: ads in old queues, users' ``condor_q
-constraint`` expressions and programs that read event logs hold them.

**Source**: the manual's appendices of job ClassAd attributes (``JobStatus``, ``JobUniverse``, ``HoldReasonCode``,
``JobNotification``) and of job event log codes.
"""

from __future__ import annotations

import enum
import errno

from condor_actors.messages.job_codes import JobStatus, Universe

__all__ = [
    "CHECKPOINT_SIGNAL", "HELPERS_RUN", "FileTransferEventType", "HoldCode", "HoldSubCode", "JobEventType", "JobStatus",
    "LauncherExit", "Notification", "Universe", "hold_label", "plugin_subcode",
]


class Notification(enum.IntEnum):
    """The attribute ``JobNotification``: when the owner of a job wants mail."""

    NEVER = 0
    ALWAYS = 1
    COMPLETE = 2
    ERROR = 3
    START = 4


class HoldCode(enum.IntEnum):
    """The attribute ``HoldReasonCode``."""

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
    INVALID_TRANSFER_GO_AHEAD = 18
    HOOK_PREPARE_JOB_FAILURE = 19
    MISSED_DEFERRED_EXECUTION_TIME = 20
    STARTD_HELD_JOB = 21
    UNABLE_TO_INIT_USER_LOG = 22
    FAILED_TO_ACCESS_USER_ACCOUNT = 23
    NO_COMPATIBLE_SHADOW = 24
    INVALID_CRON_SETTINGS = 25
    SYSTEM_POLICY = 26
    SYSTEM_POLICY_UNDEFINED = 27
    MAX_TRANSFER_INPUT_SIZE_EXCEEDED = 32
    MAX_TRANSFER_OUTPUT_SIZE_EXCEEDED = 33
    JOB_OUT_OF_RESOURCES = 34
    INVALID_DOCKER_IMAGE = 35
    FAILED_TO_CHECKPOINT = 36
    PRE_SCRIPT_FAILED = 43
    POST_SCRIPT_FAILED = 44
    SINGULARITY_TEST_FAILED = 45
    JOB_DURATION_EXCEEDED = 46
    JOB_EXECUTE_EXCEEDED = 47
    HOOK_SHADOW_PREPARE_JOB_FAILURE = 48


def hold_label(code: int) -> str:
    """The name of a hold code in the manual's table and in ``NumHoldsByReason``: ``UserRequest``."""
    return _HOLD_LABELS.get(code) or f"Code{code}"


_HOLD_LABELS = {int(code): "".join(word.capitalize() for word in code.name.split("_")) for code in HoldCode}


class HoldSubCode(enum.IntEnum):
    """The attribute ``HoldReasonSubCode`` where it is no ``errno``: which limit a held job was over.

    The templates ``use POLICY : HOLD_IF_…_EXCEEDED`` set the same numbers.
    """

    CPU_EXCEEDED = 101
    MEMORY_EXCEEDED = 102
    RUNTIME_EXCEEDS = 103
    DISK_EXCEEDED = 104


def plugin_subcode(status: int) -> int:
    """``HoldReasonSubCode`` of a job whose files a transfer plugin has failed to bring or take: its exit status, moved
    to the left by 8 bits, so that it is no ``errno``; -1: it has none, and counts as 1."""
    return (1 if status < 0 else status) << 8


class JobEventType(enum.IntEnum):
    """The number that begins an event of a job event log, as far as this system writes or reads it."""

    SUBMIT = 0
    EXECUTE = 1
    CHECKPOINTED = 3
    JOB_EVICTED = 4
    JOB_TERMINATED = 5
    IMAGE_SIZE = 6
    SHADOW_EXCEPTION = 7
    GENERIC = 8
    JOB_ABORTED = 9
    JOB_SUSPENDED = 10
    JOB_UNSUSPENDED = 11
    JOB_HELD = 12
    JOB_RELEASED = 13
    NODE_EXECUTE = 14
    NODE_TERMINATED = 15
    POST_SCRIPT_TERMINATED = 16
    REMOTE_ERROR = 21
    JOB_DISCONNECTED = 22
    JOB_RECONNECTED = 23
    JOB_RECONNECT_FAILED = 24
    GRID_RESOURCE_UP = 25
    GRID_RESOURCE_DOWN = 26
    GRID_SUBMIT = 27
    JOB_AD_INFORMATION = 28
    PRESKIP = 34
    CLUSTER_SUBMIT = 35
    CLUSTER_REMOVE = 36
    FACTORY_PAUSED = 37
    FACTORY_RESUMED = 38
    FILE_TRANSFER = 40
    DATAFLOW_JOB_SKIPPED = 46


class FactoryMode(enum.IntEnum):
    """Whether a cluster makes its jobs as they are needed, and why not (JobMaterializePaused)."""

    INVALID = -1
    RUNNING = 0
    HELD = 1
    DONE = 2
    REMOVED = 3


class FileTransferEventType(enum.IntEnum):
    """What a ``FILE_TRANSFER`` event tells."""

    IN_QUEUED = 1
    IN_STARTED = 2
    IN_FINISHED = 3
    OUT_QUEUED = 4
    OUT_STARTED = 5
    OUT_FINISHED = 6


class LauncherExit(enum.IntEnum):
    """How the launcher of a standard universe program ends when it is not the program that ended.

    The native side has the same numbers in ``native/protocol.h``.
    """

    MOVED = 112
    CHANNEL_LOST = 113
    RUNTIME_FAULT = 114
    CANNOT_START = 115


HELPERS_RUN = errno.EAGAIN
"""Why a standard universe program took no checkpoint: its helper processes still run; asked later it will."""

CHECKPOINT_SIGNAL = 33
"""The real-time signal that asks the runtime of a standard universe program for a checkpoint.

C libraries keep it from programs.
"""
