"""What the schedd tells the collector: one ad of its own, one per submitter.

Theory: a submitter that wants more than before is told of at once, since the negotiator starts a cycle on it; one that
wants less is told of a little later, together with what else happened meanwhile.  When the new number is no larger than
the one that was last said, the negotiator would see nothing new in it, and is asked for a cycle besides.
"""

from __future__ import annotations

from collections.abc import Hashable

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.advertise import AdKind, InvalidateAd, UpdateAd
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Address, Done
from condor_actors.messages.negotiate import RequestCycle

__all__ = ["SubmitterAdvertiser"]

EAGER_GAP_S = 0.05
LAZY_GAP_S = 2.0
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
        self._hidden = False
        self.negotiators: dict[Hashable, Address] = {}
        self._due_s = float("inf")
        self._last_s = 0.0

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
                continue
            idle = counts[S.IDLE]
            if idle > self._seen.get(submitter, 0):
                eager = True
                said = self._said.get(submitter)
                self._hidden = self._hidden or (said is not None and idle <= said[S.IDLE])
            self._seen[submitter] = idle
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
        if counts is not None:
            self._said[submitter] = list(counts)
        elif self._said.pop(submitter, None) is None:
            return
        self._tell(AdKind.SUBMITTER, self._submitter_ad(submitter, counts or [0] * 8))

    def _submitter_ad(self, submitter: str, counts: list[int]) -> ClassAd:
        context = self._context
        running = counts[S.RUNNING] + counts[S.TRANSFERRING_OUTPUT] + counts[S.SUSPENDED]
        return ClassAd({
            "MyType": "Submitter", "TargetType": "", "Name": submitter, "ScheddName": context.settings.name,
            "Machine": context.settings.machine, "MyAddress": context.my_address, "ScheddIpAddr": context.my_address,
            "RunningJobs": running, "IdleJobs": counts[S.IDLE], "HeldJobs": counts[S.HELD], "LocalJobsIdle": 0,
            "LocalJobsRunning": 0, "WeightedRunningJobs": running, "WeightedIdleJobs": counts[S.IDLE],
            "FlockedJobs": 0, "SubmitterTag": "", "CondorVersion": self._version,
            "LastHeardFrom": int(context.now_s),
        })

    def schedd_ad(self) -> ClassAd:
        """The schedd's own ad."""
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
            "MaxJobsRunning": settings.max_jobs_running, "TotalFlockedJobs": 0, "TotalLocalJobsIdle": 0,
            "TotalLocalJobsRunning": 0, "TotalSchedulerJobsIdle": 0, "TotalSchedulerJobsRunning": 0,
            "JobQueueBirthdate": int(self._started_s), "UpdateInterval": int(settings.advertise_interval_s),
            "MyCurrentTime": int(context.now_s),
        })

    def farewell(self) -> None:
        """The schedd ends: its ads are no longer true."""
        for kind in (AdKind.SCHEDD, AdKind.SUBMITTER):
            for node in self._context.settings.collectors:
                self._context.tell(Address(node, "collector"),
                                InvalidateAd(ad_kind=kind, my_address=self._context.my_address))

    def _tell(self, kind: AdKind, ad: ClassAd) -> None:
        lifetime_s = max(60, int(self._context.settings.advertise_interval_s * 3))
        text = ad.to_bytes()
        for node in self._context.settings.collectors:
            self._context.tell(Address(node, "collector"), UpdateAd(ad_kind=kind, ad=text, lifetime_s=lifetime_s))
