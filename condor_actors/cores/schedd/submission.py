"""Submissions: cluster numbers, pages of jobs, and the one transaction that queues them.

Theory: pages wait in memory, in the name of the user who reserved the number, and become jobs when the last one is
there and all of them are valid; the answer leaves after the commit and after the submit events are in the user's log.
A number is used up when its jobs are queued; one that is not used comes back when its link ends, or in time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from typing import Any

import attrs

from condor_actors.classads import UNDEFINED, ClassAd, ClassAdSyntaxError, is_true, unparse
from condor_actors.classads.evaluation.budget import TURN_STEPS, Meter
from condor_actors.cores.schedd.charging import CHARGED_TO
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.gangs.gang import objection as gang_objection
from condor_actors.cores.schedd.gangs.groups import merged
from condor_actors.cores.schedd.job_attributes import Hand, attribute
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_status import say_why_held
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queue_operations import InsertJobs, SaveCounter
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.sets.job_sets import name_objection
from condor_actors.cores.submit_commands import MAY_BE_REFUSED, objection
from condor_actors.cores.transfer_plugins import spooled_plugins
from condor_actors.effects import job_note
from condor_actors.messages.codes import HoldCode, JobStatus, Notification, Universe
from condor_actors.messages.envelope import Delivery, Done, Refused
from condor_actors.messages.pages import LARGE_AD, MOST_AD_BYTES
from condor_actors.messages.references.urls import travels_as_url
from condor_actors.messages.spool import FinishSpooling
from condor_actors.messages.submission import ClusterReserved, ReserveCluster, SubmitItems, SubmitPage, Submitted

__all__ = ["MAX_SUBMISSION_BYTES", "Invalid", "Submissions"]

RESERVED_S = 600.0
"""How long a number waits for its jobs."""

MOST_NUMBERS = 1_000
"""How many numbers may be reserved at once."""
MAX_PENDING = 500_000
MAX_SUBMISSION_BYTES = 64 << 20
SUBMISSION_STEPS, JOB_STEPS = 10 * TURN_STEPS, 1_000
"""What job transforms and submit requirements may take of a submission in all: so much, and so much a job.  It is
queued in one turn, and attributes that they look at are the submitter's."""
LOG_PATIENCE_S = 10.0
"""How long an answer waits for the submit events to be in the log."""

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


@attrs.define(eq=False)
class _Reservation:
    """Numbers reserved at once: for whom, over which link, since when; ``left``: those not used up yet."""

    name: str
    owner: str
    node: str
    since_s: float
    left: set[int]


@attrs.define
class _Pending:
    """What came for a reserved number so far."""

    pages: list[SubmitPage] = attrs.field(factory=list)
    jobs: int = 0
    size_bytes: int = 0


class Submissions:
    """Reserves cluster numbers, collects the pages of a submission, and queues it in one transaction."""

    def __init__(self, context: ScheddContext, transitions: JobTransitions, notices: JobNotices) -> None:
        self._context = context
        self._transitions = transitions
        self._notices = notices
        self._reservations: dict[_Reservation, None] = {}
        """The oldest first."""
        self._begun: Counter[str] = Counter()
        """How many each has."""
        self._reserved: dict[int, _Reservation] = {}
        self._pending: dict[int, _Pending] = {}
        self._free: list[int] = []
        """Numbers that were given back; the least first."""
        self._unlogged: dict[int, tuple[set[str], Delivery, Submitted]] = {}
        self._waiting_for: dict[str, int] = {}
        self.schedd_ad: Callable[[], ClassAd] = ClassAd
        self.freed: Callable[[int], None] = lambda number: None
        """A number was reserved for nothing."""

    def reserve(self, message: ReserveCluster, delivery: Delivery) -> None:
        """Give numbers away, to be used up when their jobs are queued."""
        context, identity = self._context, delivery.identity
        self._expire()
        mine = self._begun[identity.name]
        problem = self.over_limits(1, identity.user)
        if not 1 <= message.count <= MOST_NUMBERS:
            problem = f"{message.count} numbers at once: 1 to {MOST_NUMBERS} can be reserved"
        elif mine >= context.settings.max_reserved or len(self._reserved) >= MAX_PENDING:
            problem = (f"{identity.user} has begun {mine} submissions and not finished them "
                       f"(MAX_RESERVED_CLUSTERS_PER_OWNER is {context.settings.max_reserved})")
        if problem:
            context.reply(Refused(code="busy" if mine else "invalid", text=problem))
            return
        number = heappop(self._free) if self._free and message.count == 1 else context.queue.next_cluster
        context.queue.next_cluster = max(context.queue.next_cluster, number + message.count)
        reservation = _Reservation(identity.name, identity.user, delivery.sender.node, context.now_s,
                                   set(range(number, number + message.count)))
        self._reservations[reservation] = None
        self._begun[identity.name] += 1
        self._reserved.update(dict.fromkeys(reservation.left, reservation))
        context.persist(SaveCounter("next_cluster", context.queue.stored_cluster))  # a full disk is noticed now
        context.reply(ClusterReserved(cluster_id=number, schedd_name=context.settings.name, now_s=context.now_s,
                                   uid_domain=context.settings.uid_domain))

    def page(self, message: SubmitPage, delivery: Delivery) -> None:
        """Take a page; with the last, queue them all."""
        context = self._context
        number = message.cluster_id
        owner = self.owner_of(number, delivery)
        if not owner:
            return
        pending = self._pending.setdefault(number, _Pending())
        pending.jobs += len(message.procs)
        pending.size_bytes += len(message.cluster_ad) + sum(len(text) for text in message.procs)
        problem = self.over_limits(pending.jobs, owner)
        if pending.size_bytes > MAX_SUBMISSION_BYTES:
            problem = f"a submission has at most {MAX_SUBMISSION_BYTES >> 20} MiB of ads: submit fewer jobs at once"
        if len((*pending.pages, message)[0].cluster_ad) + max(map(len, message.procs), default=0) > MOST_AD_BYTES:
            problem = LARGE_AD
        if problem:
            self.give_back(number)
            context.reply(Refused(code="invalid", text=problem))
            return
        if message.page != len(pending.pages):
            self.give_back(number)
            context.reply(Refused(code="invalid", text=f"page {message.page} of cluster {number} came instead of page "
                               f"{len(pending.pages)}; submit again"))
            return
        pending.pages.append(message)
        if not message.last:
            context.reply(Done())
            return
        try:
            cluster, jobs = self._build(number, pending, delivery)
        except (Invalid, ClassAdSyntaxError, ValueError) as error:
            self.give_back(number)
            context.reply(Refused(code="invalid", text=str(error)))
            return
        self.use_up(number)
        self._queue(cluster, jobs, delivery, spool=message.spool)

    def owner_of(self, number: int, delivery: Delivery) -> str:
        """For whom a number is reserved, when it is for him who asks; else he is told, and it is empty."""
        reservation = self._reserved.get(number)
        if reservation is not None and reservation.name == delivery.identity.name:
            return reservation.owner
        self._context.reply(Refused(code="invalid", text=(
            f"cluster {number} is not reserved for {delivery.identity.name}; the schedd may have been restarted: "
            "submit again")))
        return ""

    def give_back(self, number: int) -> None:
        """Nothing was queued under the number: another submission may have it."""
        self.freed(number)
        self.release(number)
        heappush(self._free, number)

    def use_up(self, number: int) -> None:
        """Jobs are queued under the number: it is never given again."""
        self.freed(number)  # of what else has come under it
        self.release(number)
        queue = self._context.queue
        if number >= queue.stored_cluster:
            queue.stored_cluster = number + 1
            self._context.persist(SaveCounter("next_cluster", number + 1))

    def release(self, number: int) -> None:
        """The number is reserved no longer."""
        self._pending.pop(number, None)
        reservation = self._reserved.pop(number)
        reservation.left.discard(number)
        if not reservation.left:
            self._end(reservation)

    def _end(self, reservation: _Reservation) -> None:
        """What is left of it comes back."""
        for number in reservation.left:
            del self._reserved[number]
            self._pending.pop(number, None)
            self.freed(number)
            heappush(self._free, number)
        reservation.left.clear()
        del self._reservations[reservation]
        self._begun[reservation.name] -= 1
        if not self._begun[reservation.name]:
            del self._begun[reservation.name]

    def link_lost(self, node: str) -> None:
        """Numbers reserved over this link will not be used."""
        for reservation in [each for each in self._reservations if each.node == node]:
            self._end(reservation)

    def _expire(self) -> None:
        """Reservations that are too old end."""
        old_s = self._context.now_s - RESERVED_S
        while self._reservations:
            oldest = next(iter(self._reservations))
            if oldest.since_s >= old_s:
                return
            self._end(oldest)

    def _build(self, number: int, pending: _Pending, delivery: Delivery) -> tuple[Cluster, list[tuple[int, ClassAd]]]:
        """The cluster and the (proc, ad) of its jobs; nothing is in the queue yet."""
        settings = self._context.settings
        total = pending.jobs
        first = pending.pages[0]
        common = self.cluster_ad(first, delivery)
        common.store("TotalSubmitProcs", total)
        prefix = f"{settings.name}#{number}."
        suffix = f"#{int(self._context.now_s)}"
        rows: list[tuple[int, ClassAd]] = []
        telling: dict[bytes, ClassAd] = {}
        for page in pending.pages:
            proc = page.first_proc
            for text in page.procs:
                ad = ClassAd.from_bytes(text) if text else ClassAd()
                self.without_foreign(ad, delivery)
                ad.store("ProcId", proc)
                ad.store("GlobalJobId", f"{prefix}{proc}{suffix}")
                ad.parent = common
                if text:
                    self.check_status(ad)
                    say_why_held(ad, spool=page.spool)
                telling.setdefault(text, ad)
                rows.append((proc, ad))
                proc += 1
        self._check(number, common, [ad for _, ad in rows], telling.values())
        if rows and is_gang(rows[0][1]):
            if first.spool and len(rows) > 1:
                raise Invalid("universe = parallel: the files of several groups of nodes cannot be spooled: submit "
                               "without -spool, or with one queue statement")
            rows = [(rows[0][0], merged(common, [ad for _, ad in rows]))]
            problem = gang_objection(rows[0][1], 1)
            if problem:
                raise Invalid(problem)
            total = 1
            common.store("TotalSubmitProcs", 1)
        cluster = Cluster(number, delivery.identity.user, common, total)
        if not rows or len({proc for proc, _ in rows}) != len(rows):
            raise Invalid(f"cluster {number}: no jobs, or two of the same number")
        return cluster, rows

    def _check(self, number: int, common: ClassAd, jobs: list[ClassAd], telling: Collection[ClassAd]) -> None:
        """The administrator's rules, and what no job may be; of jobs that differ by their number alone one tells."""
        settings = self._context.settings
        meter = Meter("the administrator's rules", None, SUBMISSION_STEPS + JOB_STEPS * len(jobs))
        self.transform(number, common, jobs, meter)
        if settings.transforms.transforms or settings.submit_requirements:  # which may look at the numbers too
            telling = jobs
        self.check_commands(common, telling)
        self.check_set(common, telling)
        for ad in telling:
            problem = gang_objection(ad, len(jobs))
            if problem:
                raise Invalid(problem)
            self.check_requirements(ad)
            meter.refuse_when_spent()

    def transform(self, number: int, common: ClassAd, jobs: list[ClassAd], meter: Meter) -> None:
        """JOB_TRANSFORM_NAMES: the admin's changes, but for what the schedd alone says of a job."""
        context = self._context
        if not context.settings.transforms.transforms:
            return
        before = [self._ours(ad) for ad in (common, *jobs)]
        applied = context.settings.transforms.apply(common, jobs, context.now_s, meter)
        for ad, ours in zip((common, *jobs), before, strict=True):
            for name in self._ours(ad).keys() - ours.keys():
                del ad[name]
            for name, value in ours.items():
                ad.own[name] = value
        for ad in jobs:
            charged = ad.own.get(CHARGED_TO)
            if charged is not None and type(charged) is not str:  # a job is charged to a name, not to an expression
                ad.store("AccountingGroup", ad.get_str("AccountingGroup") or common.get_str("User"))
        if applied:
            context.note(f"job transforms of cluster {number}: {', '.join(applied)}")
            for ad in (common, *jobs):
                self.check_status(ad)
                say_why_held(ad)

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

    def over_limits(self, total: int, owner: str) -> str:
        """Which limit so many more jobs of an owner would be over; empty: none."""
        settings, queue = self._context.settings, self._context.queue
        if total > settings.max_jobs_per_submission:
            return (f"{total} jobs in one submission; MAX_JOBS_PER_SUBMISSION is "
                    f"{settings.max_jobs_per_submission}: submit fewer at once")
        if sum(queue.counts(owner)) + total > settings.max_jobs_per_owner:
            return f"{owner} would have more than MAX_JOBS_PER_OWNER ({settings.max_jobs_per_owner}) jobs"
        if sum(queue.everybody) + total > settings.max_jobs_submitted:
            return f"the queue would have more than MAX_JOBS_SUBMITTED ({settings.max_jobs_submitted}) jobs"
        return ""

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

    def _queue(self, cluster: Cluster, rows: list[tuple[int, ClassAd]], delivery: Delivery, *, spool: bool) -> None:
        context = self._context
        context.queue.clusters[cluster.number] = cluster
        context.queue.sets.join(cluster)
        jobs = context.queue.enter_all(cluster, rows)
        context.persist(context.queue.cluster_row(cluster))
        context.persist(InsertJobs(cluster.number, tuple([(job.proc, job.own) for job in jobs])))
        self._transitions.offer_all(cluster, jobs)
        last = f" and {len(jobs) - 1} more, up to {jobs[-1].name}," if len(jobs) > 1 else ""
        context.out.append(job_note(jobs[0].name, "submitted", f"submitted by {cluster.user}{last}"))
        submitted = Submitted(cluster_id=cluster.number, first_proc=jobs[0].proc, last_proc=jobs[-1].proc)
        notices: set[str] = set() if spool else set(self._notices.submitted(cluster, jobs, self._context.submit_host))
        if cluster.ad.find("userlog") is None and all(job.ad.own.get("userlog") is None for job in jobs):
            notices.clear()
        self.answer_when_logged(notices, delivery, submitted)

    def answer_when_logged(self, notices: set[str], delivery: Delivery, submitted: Submitted) -> None:
        """Tell the submitter when these events are in the log, or at once where there are none."""
        context, number = self._context, submitted.cluster_id
        if not notices:
            context.reply(submitted)
            return
        self._unlogged[number] = (notices, delivery, submitted)
        self._waiting_for.update(dict.fromkeys(notices, number))
        context.timer(("submit-log", number), LOG_PATIENCE_S)

    def logged(self, notice_ids: tuple[str, ...]) -> None:
        """Submit events are in the log: answer those who wait for it."""
        for notice_id in notice_ids:
            number = self._waiting_for.pop(notice_id, None)
            if number is None or number not in self._unlogged:
                continue
            waiting = self._unlogged[number][0]
            waiting.discard(notice_id)
            if not waiting:
                self.answer(number)

    def answer(self, number: int) -> None:
        """Tell the submitter that the jobs are queued (also when the log is late)."""
        found = self._unlogged.pop(number, None)
        if found is not None:
            for notice_id in found[0]:
                self._waiting_for.pop(notice_id, None)
            self._context.reply(found[2], found[1])

    def finish_spooling(self, message: FinishSpooling, delivery: Delivery) -> None:
        """All input is here: the jobs may run."""
        context = self._context
        cluster = context.queue.clusters.get(message.cluster_id)
        if cluster is None:
            context.reply(Refused(code="not-found", text=f"there is no cluster {message.cluster_id}"))
            return
        if not context.may_touch(delivery.identity, cluster.owner):
            context.reply(Refused(code="denied", text=f"cluster {message.cluster_id} belongs to {cluster.owner}"))
            return
        waiting = [job for job in cluster.jobs.values() if job.status is JobStatus.HELD
                   and job.ad.get_int("HoldReasonCode") == HoldCode.SPOOLING_INPUT]
        for job in waiting:
            context.queue.set(job, StageInFinish=int(context.now_s))
            self._move_into_spool(job)
        self._notices.submitted(cluster, waiting, self._context.submit_host)
        for job in waiting:
            self._transitions.release(job, "Data files spooled")
        context.reply(Done())

    def _move_into_spool(self, job: Job) -> None:
        """From now on the job lives in its spool folder; where it came from stays in ``SUBMIT_…`` attributes."""
        ad = job.ad
        folder = f"{self._context.settings.spool}/{job.cluster.number}/{job.proc}"
        changes: dict[str, str] = {"Iwd": folder}
        if ad.get_bool("TransferExecutable", True):
            changes["Cmd"] = ad.get_str("Cmd").rpartition("/")[2]
        if ad.get_str("In") not in ("", "/dev/null"):
            changes["In"] = ad.get_str("In").rpartition("/")[2]
        if ad.get_str("UserLog"):
            changes["UserLog"] = ad.get_str("UserLog").rpartition("/")[2]
        if ad.get_str("TransferPlugins"):
            changes["TransferPlugins"] = spooled_plugins(ad.get_str("TransferPlugins"))
        urls = [name.strip() for name in ad.get_str("TransferInput").split(",") if travels_as_url(name.strip())]
        changes["TransferInput"] = ",".join([*urls, f"{folder}/"])
        for name, value in changes.items():
            self._context.queue.set(job, **{f"SUBMIT_{name}": ad.get_str(name), name: value})
