"""One record for every run that ended on this machine (STARTD_HISTORY): the starter host writes, the startd answers.

STARTD_PER_JOB_HISTORY_DIR gets the same, a file ``history.GLOBALJOBID`` for each job, with what its last run here left.

What a record has is what the machine knows: the job as its shadow sent it, without its environment, and how this run
of it ended here.  The owner in its banner is the one of the claim, whom the schedd's machine has vouched for; the
startd shows a user the records of that name alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThread
from twisted.logger import Logger

from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.messages.codes import JobStatus
from condor_actors.store.record_file import AdRecord, Defer, RecordFile, RecordFileSettings

if TYPE_CHECKING:
    from condor_actors.cores.starter.job_run import JobRun
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["JOB", "RunHistory", "run_history_settings"]

JOB = "JOB"
LEFT_OUT = ("Environment", "Env")
NEVER = 1 << 62


def run_history_settings(config: Config) -> RecordFileSettings:
    """Where the records are, and how much of them is kept."""
    rotates = config.boolean("ENABLE_HISTORY_ROTATION")
    return RecordFileSettings(path=config.text("STARTD_HISTORY") or "",
                              most_bytes=config.size("MAX_HISTORY_LOG") if rotates else NEVER,
                              rotations=config.integer("MAX_HISTORY_ROTATIONS"),
                              folder=config.text("STARTD_PER_JOB_HISTORY_DIR") or "", kind=JOB, last_only=True)


class RunHistory:
    """Records the runs of one starter host.

    Args:
        settings: of the file.
        log: of the process.
        defer: runs a function beside the reactor; tests run it at once.
        clock: as for :class:`RecordFile`.
    """

    def __init__(self, settings: RecordFileSettings, log: Logger, defer: Defer = deferToThread,
                 clock: IReactorTime | None = None) -> None:
        self.file = RecordFile(settings, what="records of runs", log=log, defer=defer, clock=clock)

    def run_over(self, starter: Starter) -> None:
        """A run is over; how, its core knows."""
        if self.file.settings.path or self.file.settings.folder:
            self.file.record(run_record(starter.core, starter.job_ad, starter.claim.owner, starter.claim.slot_name))


def run_record(core: JobRun, job_ad: bytes, owner: str, slot_name: str) -> AdRecord:
    """The record of a run.

    Args:
        core: of its starter, when the run is over.
        job_ad: the job's, in text.
        owner: of the claim (``alice@dom``).
        slot_name: where it ran.
    """
    ad = ClassAd.from_bytes(job_ad)
    for name in LEFT_OUT:
        if name in ad:
            del ad[name]
    ad.update(_facts(core))
    ad["RemoteHost"] = slot_name
    number = ad.get_int("NumShadowStarts", 1)
    return AdRecord(kind=JOB, cluster=max(0, ad.get_int("ClusterId")), proc=max(0, ad.get_int("ProcId")),
                    instance=max(0, number - 1), owner=owner, when_s=core.now_s, ad=ad.to_bytes(),
                    is_written=True)


def _facts(core: JobRun) -> dict[str, Any]:
    """How the run ended, and what it has used."""
    exited = core.exited
    assert exited is not None
    usage = exited.usage
    memory_kib = max(usage.memory_kib, usage.peak_memory_kib)
    facts: dict[str, Any] = {
        "EpochWriteDate": int(core.now_s), "RemoteWallClockTime": round(usage.wall_s, 3),
        "RemoteUserCpu": round(usage.user_cpu_s, 3), "RemoteSysCpu": round(usage.system_cpu_s, 3),
        "ResidentSetSize": memory_kib, "MemoryUsage": (memory_kib + 1023) // 1024, "DiskUsage": usage.disk_kib,
    }
    if core.began is not None:
        facts["JobCurrentStartExecutingDate"] = int(core.began.when_s)
    if exited.cause == "exited":
        by_signal = exited.exit_signal > 0
        facts |= {"JobStatus": int(JobStatus.COMPLETED), "CompletionDate": int(core.now_s), "ExitBySignal": by_signal,
                  "JobCoreDumped": exited.core_dumped,
                  "ExitSignal" if by_signal else "ExitCode": exited.exit_signal if by_signal else exited.exit_code}
    elif exited.hold_code:
        facts |= {"JobStatus": int(JobStatus.HELD), "HoldReason": exited.reason, "HoldReasonCode": exited.hold_code,
                  "HoldReasonSubCode": exited.hold_subcode}
    elif core.stopping is not None and core.stopping.how == "remove":
        facts |= {"JobStatus": int(JobStatus.REMOVED), "RemoveReason": exited.reason}
    else:
        facts |= {"JobStatus": int(JobStatus.IDLE), "VacateReason": exited.reason}
    return facts
