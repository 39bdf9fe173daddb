"""What a run writes into its job's ad: where it runs, what its shadow reports, what it has used.

Theory: the sums of a job (wall clock, processor time, starts) are changed here alone, once when a run begins and once
when it ends.  A shadow runs with its owner's rights, so of what it reports only the attributes of
:func:`~condor_actors.cores.schedd.job_attributes.reported` are taken.
"""

from __future__ import annotations

from condor_actors.classads import UNDEFINED, ClassAd, ClassAdSyntaxError, unparse
from condor_actors.cores.checkpoint_seals import Generation
from condor_actors.cores.chirp_protocol import is_attribute_name
from condor_actors.cores.devices.provisioned import provisioned
from condor_actors.cores.schedd.claims.held_claim import HeldClaim
from condor_actors.cores.schedd.job_attributes import reported
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.local_jobs import grid_run_s, is_grid
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.runs.run import Run
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.codes import JobEventType
from condor_actors.messages.shadow_host import RunEnded

__all__ = ["RunFacts"]

MOST_MACHINE_ATTRIBUTES = 100
MOST_RUNS_KEPT = 100
MOST_LETTERS = 8191
"""Of ``job_machine_attrs``: names, runs, and letters of a value; what is more is not kept."""


class RunFacts:
    """Keeps the ads of jobs up to date with their runs."""

    def __init__(self, context: ScheddContext, notices: JobNotices) -> None:
        self._context = context
        self._notices = notices

    def record_claim(self, job: Job, claim: HeldClaim) -> None:
        """The job's ad says what it has."""
        ad = claim.ad
        self._context.queue.set(
            job, RemoteHost=ad.get_str("Name") or claim.row.slot_name, StartdAddr=claim.row.startd,
            RemoteSlotID=ad.get_int("SlotID"), PublicClaimId=claim.row.claim_id, MachineAttrSlotWeight0=claim.weight,
            MachineAttrCpus0=ad.get_int("Cpus", 1), CpusProvisioned=ad.get_int("Cpus", 1),
            MemoryProvisioned=ad.get_int("Memory"), DiskProvisioned=ad.get_int("Disk"), **provisioned(ad, job.ad))
        self._machine_attributes(job, claim.ad)

    def _machine_attributes(self, job: Job, slot: ClassAd) -> None:
        """``job_machine_attrs``: what the slot says, kept in the job as ``MachineAttr<name><how many runs ago>``.

        The job says how much that is, so there is a bound: this is a turn of the schedd's.
        """
        wanted = job.ad.get_str("JobMachineAttrs").split(",")
        names = [name for each in wanted if is_attribute_name(name := each.strip())]
        kept = min(max(1, job.ad.get_int("JobMachineAttrsHistoryLength", 1)), MOST_RUNS_KEPT)
        for name in names[:MOST_MACHINE_ATTRIBUTES]:
            for ago in range(kept - 1, 0, -1):
                older = job.ad.find(f"machineattr{name}{ago - 1}".lower())
                if older is not None:
                    self._context.queue.set(job, **{f"MachineAttr{name}{ago}": older})
            value = slot.evaluate(name, job.ad)
            if value is not UNDEFINED and len(unparse(value)) <= MOST_LETTERS:
                self._context.queue.set(job, **{f"MachineAttr{name}0": value})

    def count_start(self, job: Job, hosts: int) -> int:
        """A run begins on so many machines; which it is."""
        context, ad = self._context, job.ad
        now, number = int(context.now_s), ad.get_int("NumShadowStarts") + 1
        context.queue.set(job, NumShadowStarts=number, JobRunCount=ad.get_int("JobRunCount") + 1, ShadowBday=now,
                          JobCurrentStartDate=now, JobLastStartDate=ad.get_int("JobCurrentStartDate"),
                          CurrentHosts=hosts, LastJobLeaseRenewal=now, RemoteUserCpu=0.0, RemoteSysCpu=0.0)
        if not ad.get_int("JobStartDate"):
            context.queue.set(job, JobStartDate=now)
        return number

    def take_report(self, job: Job, text: bytes) -> None:
        """What a run tells of itself goes into its job's ad, and nothing else that a shadow says."""
        if not text:
            return
        try:
            ad, foreign = reported(text)
        except ClassAdSyntaxError as error:
            ad, foreign = ClassAd(), (f"what is no ad: {error}",)
        if foreign:
            self._context.note(f"{job.name}: its shadow may not report {', '.join(sorted(foreign))[:500]}", "warn")
        if ad.find("lastckptgeneration") is not None:
            known = job.ad.get_str("LastCkptGeneration")
            if Generation.from_text(ad.get_str("LastCkptGeneration")) > Generation.from_text(known):
                ad["PreviousCkptGeneration"] = known
            else:  # no later than what is known: a shadow takes nothing back
                del ad["LastCkptGeneration"]
        self._context.queue.update(job, ad)

    def record_start(self, run: Run) -> None:
        """The program began: once, for the log of all jobs."""
        ad = run.job.ad
        if not run.recorded:
            run.recorded = True
            when_s = min(ad.get_float("JobCurrentStartExecutingDate"), self._context.now_s)  # its shadow says so
            when_s = when_s if when_s > 0.0 else self._context.now_s
            self._notices.record(run.job, JobEventType.EXECUTE, when_s,
                                 ExecuteHost=ad.get_str("StartdAddr", "<127.0.0.1>"), SlotName=ad.get_str("RemoteHost"))

    def account(self, run: Run, message: RunEnded) -> None:
        """What the run has used goes into the job's sums."""
        context, job, ad = self._context, run.job, run.job.ad
        self.take_report(job, message.attributes)
        weight = ad.get_float("MachineAttrSlotWeight0", 1.0) if run.gang is None else 0.0
        if message.outcome == "exited" and run.gang is None and not ad.get_bool("DataflowJobSkipped"):
            self.record_start(run)
        wall_s = grid_run_s(context, job, run.began_s) if is_grid(job) else max(0.0, context.now_s - run.began_s)
        if message.outcome != "exited":
            context.queue.unset(job, "GridJobId", "GridJobStatus")
        remote = ad.get_str("RemoteHost") or ad.get_str("GridResource")
        context.queue.set(
            job, RemoteWallClockTime=ad.get_float("RemoteWallClockTime") + round(wall_s, 3),
            CumulativeSlotTime=ad.get_float("CumulativeSlotTime") + round(wall_s * weight, 3),
            LastRemoteWallClockTime=round(wall_s, 3), LastRemoteHost=remote, CurrentHosts=0,
            CumulativeRemoteUserCpu=ad.get_float("CumulativeRemoteUserCpu") + ad.get_float("RemoteUserCpu"),
            CumulativeRemoteSysCpu=ad.get_float("CumulativeRemoteSysCpu") + ad.get_float("RemoteSysCpu"),
        )
        if message.outcome == "exited":
            context.queue.set(job, CommittedTime=ad.get_int("CommittedTime") + int(wall_s),
                           NumJobCompletions=ad.get_int("NumJobCompletions") + 1)
        since = ad.get_int("LastSuspensionTime")
        if since:
            context.queue.set(job, CumulativeSuspensionTime=ad.get_int("CumulativeSuspensionTime")
                           + int(context.now_s) - since, LastSuspensionTime=0)
        context.queue.unset(job, "RemoteHost", "PublicClaimId", "StartdAddr", "RemoteSlotID", "ShadowBday",
                            "RemoteHosts")
