"""Submissions: cluster numbers, pages of jobs, and what becomes of them when the last one is there.

Theory: pages wait in memory, in the name of the user who reserved the number, and become jobs when the last one is
there and all of them are valid (:mod:`condor_actors.cores.schedd.entering.entry`); the answer leaves after the commit
and after the submit events are in the user's log.
A number is used up when its jobs are queued; one that is not used comes back when its link ends, or in time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

import attrs

from condor_actors.classads.evaluation.budget import TURN_STEPS, spent
from condor_actors.cores.schedd.entering.entry import SLICE, Entry, EntryRest
from condor_actors.cores.schedd.entering.rules import EntryRules, Invalid
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queue_operations import SaveCounter
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.transfer_plugins import spooled_plugins
from condor_actors.effects import GoOn
from condor_actors.messages.codes import HoldCode, JobStatus
from condor_actors.messages.envelope import Delivery, Done, Refused
from condor_actors.messages.pages import LARGE_AD, MOST_AD_BYTES
from condor_actors.messages.references.urls import travels_as_url
from condor_actors.messages.spool import FinishSpooling
from condor_actors.messages.submission import ClusterReserved, ReserveCluster, SubmitPage, Submitted

__all__ = ["MAX_SUBMISSION_BYTES", "Submissions"]

RESERVED_S = 600.0
"""How long a number waits for its jobs."""

MOST_NUMBERS = 1_000
"""How many numbers may be reserved at once."""
MAX_PENDING = 500_000
MAX_SUBMISSION_BYTES = 64 << 20
LOG_PATIENCE_S = 10.0
"""How long an answer waits for the submit events to be in the log."""
SPOOLED, SPOOLED_AT_ONCE = 60, 100
"""What a job costs whose input has come, as the parts of an entry do; how many share their submit events."""


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
    """Reserves cluster numbers, collects the pages of a submission, and has it enter the queue.

    Attributes:
        rules: what jobs may say.
        freed: is told of a number that was reserved for nothing.
    """

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
        self._entering: dict[int, Entry] = {}
        self.rules = EntryRules(context)
        self.freed: Callable[[int], None] = lambda number: None

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
        self._begin(number, pending, delivery)

    def _begin(self, number: int, pending: _Pending, delivery: Delivery) -> None:
        """All pages are there; whatever becomes of the link, nobody else has the number meanwhile."""
        self.freed(number)  # of what else has come under it
        self.release(number)
        entry = self._entering[number] = Entry(self._context, self.rules, pending.pages, delivery,
                                               lambda: self._settle(number))

        def refused(why: str) -> None:
            del self._entering[number]
            heappush(self._free, number)
            self._context.reply(Refused(code="invalid", text=why))

        self.go_on(EntryRest(entry.steps(self._notices, self._transitions, self._entered), refused, entry.meter))

    def _entered(self, notices: set[str], delivery: Delivery, submitted: Submitted) -> None:
        del self._entering[submitted.cluster_id]
        self.answer_when_logged(notices, delivery, submitted)

    def go_on(self, rest: EntryRest) -> bool:
        """Do what a turn may do of something that concerns many new jobs.

        Returns:
            Whether that was the last of it.
        """
        left, steps_before = SLICE, spent()[0]
        if rest.meter is not None:
            rest.meter.resume()
        try:
            for cost in rest.steps:
                left -= cost
                if left <= 0 or spent()[0] - steps_before > TURN_STEPS:
                    if rest.meter is not None:
                        rest.meter.pause()
                    self._context.out.append(GoOn(rest))
                    return False
        except Invalid as error:
            rest.refused(str(error))
        return True

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
        self._settle(number)

    def _settle(self, number: int) -> None:
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

    def over_limits(self, total: int, owner: str) -> str:
        """Which limit so many more jobs of an owner would be over; empty: none."""
        settings, queue = self._context.settings, self._context.queue
        mine = sum(each.total for each in self._entering.values() if each.owner == owner)
        all_of_them = sum(each.total for each in self._entering.values())
        if total > settings.max_jobs_per_submission:
            return (f"{total} jobs in one submission; MAX_JOBS_PER_SUBMISSION is "
                    f"{settings.max_jobs_per_submission}: submit fewer at once")
        if sum(queue.counts(owner)) + mine + total > settings.max_jobs_per_owner:
            return f"{owner} would have more than MAX_JOBS_PER_OWNER ({settings.max_jobs_per_owner}) jobs"
        if sum(queue.everybody) + all_of_them + total > settings.max_jobs_submitted:
            return f"the queue would have more than MAX_JOBS_SUBMITTED ({settings.max_jobs_submitted}) jobs"
        return ""

    def answer_when_logged(self, notices: set[str], delivery: Delivery, submitted: Submitted) -> None:
        """Tell the submitter when these events are in the log, or at once where there are none."""
        context, number = self._context, submitted.cluster_id
        if not notices:
            context.reply(submitted)
            return
        self._unlogged[number] = (notices, delivery, submitted)
        context.timer(("submit-log", number), LOG_PATIENCE_S)

    def logged(self, notice_ids: tuple[str, ...]) -> None:
        """Submit events are in the log: answer those who wait for it."""
        for notice_id in notice_ids:
            found = self._unlogged.get(int(notice_id.partition(".")[0]))  # so notices are named
            if found is not None and notice_id in found[0]:
                found[0].remove(notice_id)
                if not found[0]:
                    self.answer(found[2].cluster_id)

    def answer(self, number: int) -> None:
        """Tell the submitter that the jobs are queued (also when the log is late)."""
        found = self._unlogged.pop(number, None)
        if found is not None:
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
        waiting = [job for job in cluster.jobs.values() if _waits_for_input(job)]
        self.go_on(EntryRest(self._spooled(cluster, waiting), lambda why: None))

    def _spooled(self, cluster: Cluster, waiting: list[Job]) -> Iterator[int]:
        """Release the jobs whose input is here; of those that have gone or were released meanwhile nothing is said."""
        context = self._context
        for first in range(0, len(waiting), SPOOLED_AT_ONCE):
            some = [job for job in waiting[first:first + SPOOLED_AT_ONCE] if _waits_for_input(job)]
            for job in some:
                context.queue.set(job, StageInFinish=int(context.now_s))
                self._move_into_spool(job)
            self._notices.submitted(cluster, some, context.submit_host)
            for job in some:
                self._transitions.release(job, "Data files spooled")
            yield SPOOLED * len(some)
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


def _waits_for_input(job: Job) -> bool:
    """Whether a job that is still in the queue is held until its input files are here."""
    return (job.status is JobStatus.HELD and job.ad.get_int("HoldReasonCode") == HoldCode.SPOOLING_INPUT
            and job.cluster.jobs.get(job.proc) is job)
