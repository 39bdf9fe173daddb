"""What a job may say when it is submitted: by the table of job attributes, and by the administrator's rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from condor_actors.classads import UNDEFINED, ClassAd, is_true, unparse
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.cores.schedd.charging import CHARGED_TO
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.job_attributes import Hand, attribute
from condor_actors.cores.schedd.job_status import say_why_held
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.sets.job_sets import name_objection
from condor_actors.cores.submit_commands import MAY_BE_REFUSED, objection
from condor_actors.messages.codes import JobStatus, Notification, Universe
from condor_actors.messages.envelope import Delivery
from condor_actors.messages.submission import SubmitItems, SubmitPage

__all__ = ["EntryRules", "Invalid"]

FRESH = {
    "NumJobStarts": 0, "NumShadowStarts": 0, "NumJobMatches": 0, "NumRestarts": 0, "NumSystemHolds": 0,
    "NumJobCompletions": 0, "NumCkpts": 0, "JobRunCount": 0, "CompletionDate": 0, "ExitStatus": 0, "JobPrio": 0,
    "RemoteWallClockTime": 0.0, "RemoteUserCpu": 0.0, "RemoteSysCpu": 0.0, "LocalUserCpu": 0.0, "LocalSysCpu": 0.0,
    "CommittedTime": 0, "CommittedSlotTime": 0, "CumulativeSlotTime": 0, "CumulativeRemoteUserCpu": 0.0,
    "CumulativeRemoteSysCpu": 0.0, "CumulativeSuspensionTime": 0, "CommittedSuspensionTime": 0,
    "LastSuspensionTime": 0, "TotalSuspensions": 0, "CurrentHosts": 0, "MinHosts": 1, "MaxHosts": 1,
    "JobUniverse": int(Universe.VANILLA), "JobNotification": int(Notification.NEVER), "WantRemoteIO": True,
    "ExitBySignal": False, "Rank": 0.0,
    "LeaveJobInQueue": False, "OnExitHold": False, "OnExitRemove": True, "PeriodicHold": False,
    "PeriodicRelease": False, "PeriodicRemove": False,
}
"""What a cluster ad has unless the submitter said otherwise."""


class Invalid(ValueError):
    """A submission that cannot be queued: says why."""


class EntryRules:
    """Looks at the ads of new jobs, and adds what every job has.

    Attributes:
        schedd_ad: the schedd's own ad, which SUBMIT_REQUIREMENT_NAMES may look at.
    """

    def __init__(self, context: ScheddContext) -> None:
        self._context = context
        self.schedd_ad: Callable[[], ClassAd] = ClassAd

    def cluster_ad(self, page: SubmitPage | SubmitItems, delivery: Delivery) -> ClassAd:
        context = self._context
        ad = ClassAd.from_bytes(page.cluster_ad)
        user = delivery.identity.user
        self.without_foreign(ad, delivery)
        for name, value in FRESH.items():
            if ad.find(name.lower()) is None:
                ad.store(name, value)
        ad.update({
            "MyType": "Job", "TargetType": "Machine", "ClusterId": page.cluster_id, "Owner": user,
            "User": f"{user}@{context.settings.uid_domain}", "QDate": int(context.now_s),
            "EnteredCurrentStatus": int(context.now_s),
        })
        if ad.find("joblease" + "duration") is None:
            ad.store("JobLeaseDuration", int(context.settings.job_lease_s))
        for name, most_mb in (("MaxTransferInputMB", context.settings.max_input_mb),
                              ("MaxTransferOutputMB", context.settings.max_output_mb)):
            if most_mb >= 0 and ad.find(name.lower()) is None:
                ad.store(name, most_mb)
        if is_gang(ad):
            ad.store("Scheduler", f"DedicatedScheduler@{context.settings.name}")
        self.check_status(ad)
        if ad.find("jobstatus") is None:
            ad.store("JobStatus", int(JobStatus.IDLE))
        say_why_held(ad, spool=isinstance(page, SubmitPage) and page.spool)
        return ad

    def without_foreign(self, ad: ClassAd, delivery: Delivery) -> None:
        """What only the schedd says of a job (the table of job attributes, SECURE_JOB_ATTRS) is passed over or refused;
        nobody submits in another's name, or has another charged without leave."""
        if not ad.own:
            return
        denied = self._context.charge_objection(delivery.identity, ad)
        if denied:
            raise Invalid(denied)
        self.without_ours(ad, delivery.identity.user)

    def without_ours(self, ad: ClassAd, user: str) -> None:
        """As `without_foreign`, but for the charge."""
        settings = self._context.settings
        for name, own in (("Owner", user), ("User", f"{user}@{settings.uid_domain}")):
            said = ad.own.get(name.lower())
            if said is not None and said not in (own, UNDEFINED):
                raise Invalid(f"{name} = {unparse(said)[:200]}: jobs are submitted in one's own name, which is {own}")
        for name in sorted(ad.own):
            if name not in settings.secure and attribute(name).set_by is not Hand.SCHEDD:
                continue
            if name in settings.secure and not settings.ignores_secure:
                raise Invalid(f"attempt to set the secure attribute {ad.spelling(name)}: only the schedd may")
            del ad[name]

    @staticmethod
    def _ours(ad: ClassAd) -> dict[str, Any]:
        """What only the schedd says of a job."""
        return {name: value for name, value in ad.own.items() if attribute(name).set_by is Hand.SCHEDD}

    @staticmethod
    def check_commands(common: ClassAd, jobs: Collection[ClassAd]) -> None:
        """What would have no effect is refused, by whatever client it was submitted."""
        for ad in (common, *jobs):
            problem = None if MAY_BE_REFUSED.isdisjoint(ad.own) else objection(ad, ad.own)
            if problem is not None:
                raise Invalid(problem)

    def check_set(self, common: ClassAd, jobs: Collection[ClassAd]) -> None:
        """The set that jobs name can be theirs."""
        problem = name_objection(common, jobs, is_on=self._context.settings.uses_sets)
        if problem:
            raise Invalid(problem)

    @staticmethod
    def check_status(ad: ClassAd) -> None:
        if "jobstatus" in ad.own and ad.get_int("JobStatus", JobStatus.IDLE) not in (JobStatus.IDLE, JobStatus.HELD):
            raise Invalid("a job can be submitted idle (JobStatus 1) or held (5) only")

    def check_requirements(self, ad: ClassAd) -> None:
        """SUBMIT_REQUIREMENT_NAMES: MY is the schedd, TARGET the job."""
        context = self._context
        for each in context.settings.submit_requirements:
            mine = self.schedd_ad()
            if is_true(each.expression.evaluate(mine, ad, context.now_s)):
                continue
            told = each.reason.evaluate(mine, ad, context.now_s) if each.reason is not None else None
            text = told if isinstance(told, str) else f"Submit requirement {each.name} not met."
            if each.is_warning is not None and is_true(each.is_warning.evaluate(mine, ad, context.now_s)):
                context.note(f"a job of {ad.get_str('Owner')} was taken all the same: {text}", "warn")
            else:
                raise Invalid(text)

    def transform(self, number: int, common: ClassAd, jobs: Iterable[ClassAd], meter: Meter) -> Iterator[None]:
        """JOB_TRANSFORM_NAMES: the admin's changes, a job at a time, but for what the schedd alone says of a job.

        Raises:
            Invalid: what they made of a job cannot be submitted.
            ValueError: one cannot be carried out, or they take more than they may.
        """
        context = self._context
        applied: dict[str, None] = {}
        before, user = self._ours(common), common.get_str("User")
        is_common = True
        for _ in context.settings.transforms.steps(common, self._kept(jobs, applied, user), context.now_s, applied,
                                                   meter):
            if is_common:
                is_common = False
                self._take_back(common, before)
                if applied:
                    self.check_status(common)
                    say_why_held(common)
            yield
        if applied:
            context.note(f"job transforms of cluster {number}: {', '.join(applied)}")

    def _kept(self, jobs: Iterable[ClassAd], applied: Collection[str], user: str) -> Iterator[ClassAd]:
        """The jobs one after the other; each is put right when the next is asked for."""
        for ad in jobs:
            before = self._ours(ad)
            yield ad
            self._take_back(ad, before)
            charged = ad.own.get(CHARGED_TO)
            if charged is not None and type(charged) is not str:  # a job is charged to a name, not to an expression
                ad.store("AccountingGroup", ad.get_str("AccountingGroup") or user)
            if applied:
                self.check_status(ad)
                say_why_held(ad)

    def _take_back(self, ad: ClassAd, before: dict[str, Any]) -> None:
        """What only the schedd says of a job is as it was."""
        for name in self._ours(ad).keys() - before.keys():
            del ad[name]
        for name, value in before.items():
            ad.own[name] = value
