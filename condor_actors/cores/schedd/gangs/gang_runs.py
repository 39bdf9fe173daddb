"""The gangs of a schedd that run: which run is a member of which, and what is kept of them for a schedd that dies.

Theory: the members are rows of the store like all runs, named so that the gang is known by them.  What decides about
the job is in its ad from the turn in which it was decided until the job is judged: a schedd that dies in between finds
the members that are left, and why they have to end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.schedd.gangs.gang import (
    Gang,
    GangState,
    MemberBroke,
    MemberExited,
    gang_of,
    member_id,
    member_text,
    node_of,
)
from condor_actors.cores.schedd.gangs.groups import group_of_node, groups_of
from condor_actors.cores.schedd.job_attributes import reported
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.shadow_hosts import ShadowHosts
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import RunEnded
from condor_actors.numerals import whole

if TYPE_CHECKING:
    from condor_actors.cores.schedd.queued_job import Job
    from condor_actors.cores.schedd.runs.run import Run

__all__ = ["GangRuns"]

SUMS = ("RemoteUserCpu", "RemoteSysCpu", "RunBytesSent", "RunBytesRecvd")
MOST = ("ImageSize", "ResidentSetSize", "MemoryUsage", "DiskUsage")
OUTCOME = ("GangOutcome", "GangReason", "GangHoldCode", "GangHoldSubCode", *(f"GangEnded{name}" for name in SUMS))
"""What a schedd that dies must find of a gang: what decides about its job, and what its members that are over used."""


class GangRuns:
    """All gangs that run."""

    def __init__(self, context: ScheddContext, hosts: ShadowHosts) -> None:
        self._context = context
        self._hosts = hosts
        self._gangs: dict[Job, Gang] = {}

    def of_job(self, job: Job) -> Gang | None:
        """The gang of a job, while anything of it is left."""
        return self._gangs.get(job)

    def began(self, gang_id: str, job: Job, members: Sequence[Run]) -> None:
        """A gang begins; its members, by node, are given their ids."""
        gang = self._gangs[job] = self._gang(gang_id, job, len(members))
        self._context.queue.unset(job, *OUTCOME)
        for run in members:
            run.run_id, run.gang = member_id(gang_id, run.node), gang
            gang.living[run.node] = run

    @staticmethod
    def _gang(gang_id: str, job: Job, size: int) -> Gang:
        policy = job.ad.get_str("ParallelShutdownPolicy").upper()
        return Gang(gang_id, size, waits_for_all=policy == "WAIT_FOR_ALL")

    def restore(self, run: Run) -> str:
        """A member that the store had; the id of its gang."""
        job, ad = run.job, run.job.ad
        gang = self._gangs.get(job)
        if gang is None:
            gang = self._gangs[job] = self._gang(gang_of(run.run_id), job, ad.get_int("CurrentHosts", 1))
            outcome = ad.get_str("GangOutcome")
            if outcome:
                gang.state = GangState.ENDING
                gang.outcome = RunEnded(
                    run_id=gang.gang_id, outcome=outcome, attributes=b"", reason=ad.get_str("GangReason"),
                    hold_code=ad.get_int("GangHoldCode"), hold_subcode=ad.get_int("GangHoldSubCode"))
        run.node, run.gang = node_of(run.run_id), gang
        gang.living[run.node] = run
        if gang.outcome is not None:
            run.stop = _stop(run, gang.outcome)
        return gang.gang_id

    def hosts(self, job: Job) -> list[str]:
        """The machines of a job's gang, by node."""
        return [name.rpartition("@")[2] for name in job.ad.get_str("RemoteHosts").split(",")]

    def order_text(self, run: Run) -> bytes:
        """The job's ad as a member's shadow gets it."""
        groups = groups_of(run.job.ad)
        text = run.job.text + group_of_node(groups, run.node).text
        return member_text(text, run.node, self.hosts(run.job))

    def report(self, run: Run, gang: Gang, text: bytes, *, final: bool = False) -> bytes:
        """What a member says of itself, as it goes into the job's ad: how much all of them use, and of node 0 the rest.

        Args:
            run, gang: the member.
            text: what it says.
            final: whether it has ended.
        """
        try:
            ad = reported(text)[0] if text else ClassAd()
        except ClassAdSyntaxError:
            return text if run.node == 0 else b""
        known = gang.facts.setdefault(run.node, ClassAd())
        for name in (*SUMS, *MOST):
            if name in ad:
                known[name] = ad[name]
        job = run.job.ad
        told = ad if run.node == 0 else ClassAd()
        for name in ("BytesSent", "BytesRecvd"):
            if name in told:
                del told[name]
            if final:
                told[name] = job.get_int(name) + known.get_int(f"Run{name}")
        for name in SUMS:
            total = job.get_float(f"GangEnded{name}") + gang.total(name)
            told[name] = round(total, 3) if name.endswith("Cpu") else whole(total)
        told.update({name: gang.most(name) for name in MOST if gang.most(name)})
        if final:
            self._context.queue.set(run.job, **{
                f"GangEnded{name}": job.get_float(f"GangEnded{name}") + known.get_float(name) for name in SUMS})
            del gang.facts[run.node]
        return told.to_bytes()

    def ended(self, run: Run, gang: Gang, message: RunEnded) -> None:
        """A member is over: if that ends the gang, the others are stopped."""
        event = MemberExited if message.outcome == "exited" else MemberBroke
        if not gang.handle(event(run.node, message)):
            return
        outcome = gang.outcome
        assert outcome is not None
        self._context.queue.set(run.job, GangOutcome=outcome.outcome, GangReason=outcome.reason,
                                GangHoldCode=outcome.hold_code, GangHoldSubCode=outcome.hold_subcode)
        for other in gang.living.values():
            other.stop = other.stop or _stop(other, outcome)
            self._hosts.tell(other.owner, other.stop)

    def over(self, job: Job) -> None:
        """Nothing of a job's gang is left."""
        if self._gangs.pop(job, None) is not None:
            self._context.queue.unset(job, *OUTCOME)

    def validate(self, runs: Mapping[str, Run]) -> None:
        """Check what holds between two turns: the members of a gang are runs, and all runs of its job.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        for job, gang in self._gangs.items():
            gang.validate()
            if job.run_id != gang.gang_id:
                raise InvariantBroken(f"job {job.name} has the run {job.run_id!r}, its gang is {gang.gang_id}")
            for node, run in gang.living.items():
                if runs.get(member_id(gang.gang_id, node)) is not run or run.gang is not gang:
                    raise InvariantBroken(f"node {node} of the gang {gang.gang_id} is no run")
            if gang.state is GangState.ENDING and any(run.stop is None for run in gang.living.values()):
                raise InvariantBroken(f"the gang {gang.gang_id} ends, and one of its members was not stopped")
        for run in runs.values():
            if run.gang is not None and self._gangs.get(run.job) is not run.gang:
                raise InvariantBroken(f"the run {run.run_id} is a member of a gang that is over")


def _stop(run: Run, outcome: RunEnded) -> StopRun:
    """How the others are stopped: as their job's kill signal has it, within its time."""
    why = "node 0 has ended" if outcome.outcome == "exited" else f"its gang ends: {outcome.reason or outcome.outcome}"
    return StopRun(run_id=run.run_id, how="vacate", reason=why)
