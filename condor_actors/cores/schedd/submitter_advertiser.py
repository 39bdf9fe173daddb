"""What the schedd tells the collector: one ad of its own, one per submitter.

Theory: a submitter that wants more than before is told of at once, since the negotiator starts a cycle on it; one that
wants less is told of a little later, together with what else happened meanwhile.  When the new number is no larger than
the one that was last said, the negotiator would see nothing new in it, and is asked for a cycle besides; negotiators of
other pools see it by ``DemandNumber``, which changes whenever more is wanted.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.flocking import FlockLevels
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.site_programs.programs import SiteAd, SiteAdsTold
from condor_actors.messages.advertise import AdKind, InvalidateAd, UpdateAd
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Address, Done
from condor_actors.messages.negotiate import RequestCycle
from condor_actors.messages.pool import KnownPartner

__all__ = ["SubmitterAdvertiser"]

EAGER_GAP_S = 0.05
LAZY_GAP_S = 2.0
ABROAD_S, ABROAD_AGAIN_S = 20.0, 10.0
"""So long another pool's collector has for an answer, and so long after a bad one it is told again."""
FLOCK_PATIENCE_S = 5.0
"""So long jobs are idle before they are offered to a further pool, where no negotiator sends them on sooner."""
S = JobStatus


class SubmitterAdvertiser:
    """Tells the collector what the schedd is and how many jobs each submitter has."""

    def __init__(self, context: ScheddContext, started_s: float, version: str) -> None:
        self._context = context
        self._started_s = started_s
        self._version = version
        self._said: dict[str, list[int]] = {}
        self._changed: dict[str, None] = {}
        self._seen: dict[str, int] = {}
        self._wishes = 0
        self._wished: dict[str, int] = {}
        self._hidden = False
        self.negotiators: dict[Hashable, Address] = {}
        self.flocked: dict[str, int] = {}
        self._failed: dict[str, None] = {}
        """Submitters of whom another pool has not heard, and is told again."""
        self._refusals: dict[str, str] = {}
        """Why a pool does not take our submitters, as it was last said."""
        self._patient: set[str] = set()
        """Submitters whose jobs are offered to a further pool after a while."""
        self.flock = FlockLevels(context.settings.flock)
        self._due_s = float("inf")
        self._last_s = 0.0
        self.site_ads: tuple[SiteAd, ...] = ()
        """What programs of the site say of this schedd."""
        self._refused: set[str] = set()

    def started(self) -> None:
        """The schedd runs: say everything."""
        self.everything()

    def plan(self) -> None:
        """After a turn: plan what is to be said."""
        context = self._context
        eager = False
        for submitter in context.queue.take_touched():
            self._changed[submitter] = None
            counts = context.queue.by_submitter.get(submitter)
            if counts is None:
                self._seen.pop(submitter, None)
                self._wished.pop(submitter, None)
                continue
            idle = counts[S.IDLE]
            if idle > self._seen.get(submitter, 0):
                eager = True
                self._wishes += 1
                self._wished[submitter] = self._wishes
                said = self._said.get(submitter)
                self._hidden = self._hidden or (said is not None and idle <= said[S.IDLE])
            self._seen[submitter] = idle
            if idle:
                self._be_patient(submitter)
        if self._changed:
            self._plan(eager)

    def wish_cycle(self) -> None:
        """What we want may be given now, although we want no more than before."""
        self._hidden = True
        self._plan(eager=True)

    def _plan(self, eager: bool) -> None:
        context = self._context
        due_s = max(context.now_s, self._last_s + EAGER_GAP_S) if eager else context.now_s + LAZY_GAP_S
        if due_s < self._due_s:
            self._due_s = due_s
            context.timer(("advertise",), max(0.0, due_s - context.now_s))

    def say(self) -> None:
        """Tell what changed."""
        changed, self._changed = self._changed, {}
        self._due_s = float("inf")
        self._last_s = self._context.now_s
        for submitter in changed:
            self._say_submitter(submitter)
        if changed:
            self._tell(AdKind.SCHEDD, self.schedd_ad())
        if self._hidden:
            self._hidden = False
            for address in self.negotiators.values():
                self._context.tell(address, RequestCycle())

    def everything(self) -> None:
        """Tell all of it, as every SCHEDD_INTERVAL."""
        self._last_s = self._context.now_s
        self._tell(AdKind.SCHEDD, self.schedd_ad())
        for submitter in self._context.queue.by_submitter:
            self._say_submitter(submitter)
        self._context.timer(("advertise-all",), self._context.settings.advertise_interval_s)

    def reschedule(self) -> None:
        """condor_reschedule: tell everything, and ask for a cycle."""
        self.everything()
        for address in self.negotiators.values():
            self._context.tell(address, RequestCycle())
        self._context.reply(Done())

    def _say_submitter(self, submitter: str) -> None:
        counts = self._context.queue.by_submitter.get(submitter)
        if counts is None or not counts[S.IDLE]:
            self._withdraw(submitter)
        if counts is not None:
            self._said[submitter] = list(counts)
        elif self._said.pop(submitter, None) is None:
            return
        ad = self._submitter_ad(submitter, counts or [0] * 8)
        self._tell(AdKind.SUBMITTER, ad)
        if counts is not None and counts[S.IDLE]:
            self._say_to(self.flock.pools(submitter), submitter, ad)

    # ---- other pools

    def know_partners(self, partners: tuple[KnownPartner, ...]) -> None:
        """These pools are partners now."""
        if not self.flock.learn(partners):
            return
        if self.flock.targets:
            names = ", ".join(pool.name for pool in self.flock.targets)
            self._context.note(f"jobs may go to {names}, on the terms that condor_flock limit shows")
        for submitter, idle in self._seen.items():
            if idle:
                self._be_patient(submitter)
        for word in self.flock.unknown():
            self._context.note(f"FLOCK_TO = {word}: that is no partner of this pool; condor_flock list shows them, and "
                               "condor_flock accept makes one", "warn")
        for name in self.flock.not_permitted():
            self._context.note(f"FLOCK_COLLECTOR_HOSTS names {name}: no jobs go there, since FLOCK_TO does not name it",
                               "warn")

    def _be_patient(self, submitter: str) -> None:
        if submitter not in self._patient and self.flock.goes_on(submitter):
            self._patient.add(submitter)
            self._context.timer(("flock", submitter), FLOCK_PATIENCE_S)

    def out_of_patience(self, submitter: str) -> None:
        """Jobs of a submitter have been idle for a while."""
        self._patient.discard(submitter)
        self.unserved(submitter, None)
        if self._seen.get(submitter, 0):
            self._be_patient(submitter)

    def unserved(self, submitter: str, realm: str | None) -> None:
        """Some of a submitter's jobs found nothing in a pool, or (None) for a while."""
        counts = self._context.queue.by_submitter.get(submitter)
        jobs = (job.ad for _, job in self._context.autoclusters.of_submitter(submitter))
        if counts is not None and counts[S.IDLE] and self.flock.unserved(submitter, realm, jobs):
            names = ", ".join(pool.name for pool in self.flock.pools(submitter))
            self._context.note(f"jobs of {submitter} are offered to {names} as well")
            self._changed[submitter] = None
            self._plan(eager=True)

    def say_abroad(self, submitter: str) -> None:
        """Tell the other pools again what a submitter wants, as one of them has not heard it."""
        self._failed.pop(submitter, None)
        counts = self._context.queue.by_submitter.get(submitter)
        if counts is not None:
            self._say_to(self.flock.pools(submitter), submitter, self._submitter_ad(submitter, counts))

    def _say_to(self, pools: tuple[KnownPartner, ...], submitter: str, ad: ClassAd) -> None:
        for pool in pools:
            self._context.ask(Address(pool.central, "collector"), self._update(AdKind.SUBMITTER, ad.to_bytes()),
                              ABROAD_S, ("flocked", submitter, pool.name))

    def advertised(self, submitter: str, pool: str, answer: Any) -> None:
        """Another pool's collector has a submitter's ad, or not."""
        if isinstance(answer, Done):
            self._refusals.pop(pool, None)
            return
        text = getattr(answer, "text", str(answer))
        if self._refusals.get(pool) != text:
            self._refusals[pool] = text
            self._context.note(f"the pool {pool} does not take our submitters: {text}", "warn")
        if submitter not in self._failed:
            self._failed[submitter] = None
            self._context.timer(("flock-again", submitter), ABROAD_AGAIN_S)

    def _withdraw(self, submitter: str) -> None:
        """Nothing is wanted of other pools any more."""
        for pool in self.flock.served(submitter):
            self._context.tell(Address(pool.central, "collector"), InvalidateAd(
                ad_kind=AdKind.SUBMITTER, names=(submitter,), my_address=self._context.my_address))

    def _submitter_ad(self, submitter: str, counts: list[int]) -> ClassAd:
        context = self._context
        running = counts[S.RUNNING] + counts[S.TRANSFERRING_OUTPUT] + counts[S.SUSPENDED]
        return ClassAd({
            "MyType": "Submitter", "TargetType": "", "Name": submitter, "ScheddName": context.settings.name,
            "Machine": context.settings.machine, "MyAddress": context.my_address, "ScheddIpAddr": context.my_address,
            "RunningJobs": running, "IdleJobs": counts[S.IDLE], "HeldJobs": counts[S.HELD], "LocalJobsIdle": 0,
            "LocalJobsRunning": 0, "WeightedRunningJobs": running, "WeightedIdleJobs": counts[S.IDLE],
            "FlockedJobs": self.flocked.get(submitter, 0), "DemandNumber": self._wished.get(submitter, 0),
            "SubmitterTag": "", "CondorVersion": self._version, "LastHeardFrom": int(context.now_s),
        })

    def schedd_ad(self) -> ClassAd:
        """The schedd's own ad."""
        ad = self._own_ad()
        self._say_site(ad)
        return ad

    def site_told(self, told: SiteAdsTold) -> None:
        """Programs of the site have said something new."""
        self.site_ads = told.ads
        wrong = self._say_site(self._own_ad()) - self._refused
        if wrong:
            self._refused |= wrong
            self._context.note(f"programs of the site may not say {', '.join(sorted(wrong))}, which the schedd does; "
                               "give the program a PREFIX", "warn")
        if told.now:
            self._tell(AdKind.SCHEDD, self.schedd_ad())

    def _say_site(self, ad: ClassAd) -> set[str]:
        """Write what programs of the site say; the names that they may not say."""
        own = {name.lower() for name in ad}
        said = {name.lower(): (name, value) for site in self.site_ads for name, value in site.attributes.items()}
        for name, value in said.values():
            if name.lower() not in own:
                ad[name] = value
        return {name for name, _ in said.values() if name.lower() in own}

    def _own_ad(self) -> ClassAd:
        context = self._context
        counts = context.queue.everybody
        settings = context.settings
        return ClassAd({
            "MyType": "Scheduler", "TargetType": "", "Name": settings.name, "Machine": settings.machine,
            "MyAddress": context.my_address, "ScheddIpAddr": context.my_address, "CondorVersion": self._version,
            "DaemonStartTime": int(self._started_s), "TotalIdleJobs": counts[S.IDLE],
            "TotalRunningJobs": counts[S.RUNNING] + counts[S.TRANSFERRING_OUTPUT] + counts[S.SUSPENDED],
            "TotalHeldJobs": counts[S.HELD], "TotalRemovedJobs": counts[S.REMOVED],
            "TotalCompletedJobs": counts[S.COMPLETED], "TotalJobAds": sum(counts),
            "NumUsers": len(context.queue.by_owner),
            "MaxJobsRunning": settings.max_jobs_running, "TotalFlockedJobs": sum(self.flocked.values()),
            "TotalLocalJobsIdle": 0, "TotalLocalJobsRunning": 0, "TotalSchedulerJobsIdle": 0,
            "TotalSchedulerJobsRunning": 0,
            "JobQueueBirthdate": int(self._started_s), "UpdateInterval": int(settings.advertise_interval_s),
            "MyCurrentTime": int(context.now_s),
        })

    def farewell(self) -> None:
        """The schedd ends: its ads are no longer true."""
        for submitter in tuple(self._said):
            self._withdraw(submitter)
        for kind in (AdKind.SCHEDD, AdKind.SUBMITTER):
            for node in self._context.settings.collectors:
                self._context.tell(Address(node, "collector"),
                                InvalidateAd(ad_kind=kind, my_address=self._context.my_address))

    def _tell(self, kind: AdKind, ad: ClassAd) -> None:
        update = self._update(kind, ad.to_bytes())
        for node in self._context.settings.collectors:
            self._context.tell(Address(node, "collector"), update)

    def _update(self, kind: AdKind, text: bytes) -> UpdateAd:
        lifetime_s = max(60, int(self._context.settings.advertise_interval_s * 3))
        return UpdateAd(ad_kind=kind, ad=text, lifetime_s=lifetime_s)
