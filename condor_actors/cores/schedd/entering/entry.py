"""A submission all pages of which have come, on its way into the queue: many jobs take many turns, and enter as one.

Theory: first each job is made and looked at, which changes nothing, so that what cannot be queued leaves no trace.  A
large submission then has the rows of its jobs and of their submit events stored a piece at a time, under a counter that
says that the cluster is not whole; a store that finds this counter when it is read forgets all of it.  The last turn
stores the row of the cluster and takes the counter back in one transaction, and puts the cluster into the queue: who
looks finds all of its jobs or none, whenever the schedd is killed.  Where they stand among the jobs that wait is found
out afterwards, again a piece at a time.  A small submission does all this in one turn.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd
from condor_actors.classads.evaluation.budget import TURN_STEPS, Meter
from condor_actors.cores.schedd.entering.rules import EntryRules, Invalid
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.gangs.gang import objection as gang_objection
from condor_actors.cores.schedd.gangs.groups import merged
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_status import say_why_held
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queue_operations import ENTERING, DropCounters, InsertJobs, SaveCounter
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.effects import job_note
from condor_actors.messages.envelope import Delivery
from condor_actors.messages.submission import SubmitPage, Submitted

if TYPE_CHECKING:
    from condor_actors.cores.schedd.job_queue import Tally

__all__ = ["Entry", "EntryRest", "SUBMISSION_STEPS"]

MAKE, CHECK, STORE, NOTICE = 3, 1, 8, 20
"""What a job costs in each part of its way, in millionths of a second or so."""
MAKE_OWN, MAKE_BYTES, CHECK_OWN = 7, 40, 7
"""One with a text of its own costs so much more to make, so many bytes of it one more; and so much to check."""
SLICE = 25_000
"""What one turn may cost."""
STAGED = 3_000
"""So many jobs, some hundredths of a second, are stored in the turn in which they enter the queue; more, before it."""
STORED_AT_ONCE = 250
SUBMISSION_STEPS, JOB_STEPS = 10 * TURN_STEPS, 1_000
"""What job transforms and submit requirements may take of a submission in all: so much, and so much a job.  Attributes
that they look at are the submitter's."""


@attrs.define(eq=False)
class EntryRest:
    """What is left of something that concerns many new jobs; also the event with which it goes on.

    Attributes:
        steps: does it, a job or some at a time; yields what that cost.
        refused: is told why nothing comes of it.
        meter: what the administrator's rules take; None: they are not asked.
    """

    steps: Iterator[int]
    refused: Callable[[str], None]
    meter: Meter | None = None


class Entry:
    """One submission.

    Args:
        rules: what jobs may say.
        pages: all of them.
        delivery: the last one.
        accepted: called when nothing is refused any more.

    Attributes:
        owner: whose jobs these are.
        total: how many.
        meter: see :class:`EntryRest`.
    """

    def __init__(self, context: ScheddContext, rules: EntryRules, pages: Sequence[SubmitPage], delivery: Delivery,
                 accepted: Callable[[], None]) -> None:
        self._context = context
        self._rules = rules
        self._pages = pages
        self._delivery = delivery
        self._accepted = accepted
        self._number = pages[0].cluster_id
        self._spool = pages[-1].spool
        self._rows: list[tuple[int, ClassAd]] = []
        self._telling: dict[bytes, ClassAd] = {}
        self._is_logged = False
        self.owner = delivery.identity.user
        self.total = sum(len(page.procs) for page in pages)
        self.meter = Meter("the administrator's rules", None, SUBMISSION_STEPS + JOB_STEPS * self.total)

    def steps(self, notices: JobNotices, transitions: JobTransitions,
              answer: Callable[[set[str], Delivery, Submitted], None]) -> Iterator[int]:
        """All of it.

        Args:
            answer: called when the jobs are in the queue: with the notices that the submitter waits for, the delivery,
                and what is to be told then.

        Raises:
            Invalid: it is refused; nothing was stored.
        """
        try:
            common = self._rules.cluster_ad(self._pages[0], self._delivery)
            common.store("TotalSubmitProcs", self.total)
            yield from self._make(common)
            yield from self._check(common)
            self._gather(common)
        except ValueError as error:
            raise Invalid(str(error)) from error
        self._accepted()
        cluster = Cluster(self._number, self.owner, common, self.total)
        yield from self._enter(cluster, notices, transitions, answer)

    def _make(self, common: ClassAd) -> Iterator[int]:
        """The ads of the jobs; nothing is in the queue yet."""
        rules, delivery = self._rules, self._delivery
        prefix = f"{self._context.settings.name}#{self._number}."
        suffix = f"#{int(self._context.now_s)}"
        for page in self._pages:
            proc = page.first_proc
            for text in page.procs:
                ad = ClassAd.from_bytes(text) if text else ClassAd()
                rules.without_foreign(ad, delivery)
                ad.store("ProcId", proc)
                ad.store("GlobalJobId", f"{prefix}{proc}{suffix}")
                ad.parent = common
                if text:
                    rules.check_status(ad)
                    say_why_held(ad, spool=page.spool)
                self._telling.setdefault(text, ad)
                self._rows.append((proc, ad))
                proc += 1
                yield MAKE + MAKE_OWN + len(text) // MAKE_BYTES if text else MAKE
        self._pages = ()

    def _check(self, common: ClassAd) -> Iterator[int]:
        """The administrator's rules, and what no job may be; of jobs that differ by their number alone one tells."""
        settings, rules = self._context.settings, self._rules
        for _ in rules.transform(self._number, common, (ad for _, ad in self._rows), self.meter):
            yield CHECK
        telling: Iterable[ClassAd] = self._telling.values()
        if settings.transforms.transforms or settings.submit_requirements:  # which may look at the numbers too
            telling = (ad for _, ad in self._rows)
        rules.check_commands(common, ())
        rules.check_set(common, ())
        for ad in telling:
            rules.check_commands(ad, ())
            rules.check_set(common, (ad,))
            problem = gang_objection(ad, len(self._rows))
            if problem:
                raise Invalid(problem)
            rules.check_requirements(ad)
            self.meter.refuse_when_spent()
            yield CHECK + CHECK_OWN
        self._telling = {}

    def _gather(self, common: ClassAd) -> None:
        """The jobs of a parallel submission are one; all of them have numbers of their own."""
        rows = self._rows
        if rows and is_gang(rows[0][1]):
            if self._spool and len(rows) > 1:
                raise Invalid("universe = parallel: the files of several groups of nodes cannot be spooled: submit "
                               "without -spool, or with one queue statement")
            rows = self._rows = [(rows[0][0], merged(common, [ad for _, ad in rows]))]
            problem = gang_objection(rows[0][1], 1)
            if problem:
                raise Invalid(problem)
            self.total = 1
            common.store("TotalSubmitProcs", 1)
        if not rows or len({proc for proc, _ in rows}) != len(rows):
            raise Invalid(f"cluster {self._number}: no jobs, or two of the same number")

    def _enter(self, cluster: Cluster, notices: JobNotices, transitions: JobTransitions,
               answer: Callable[[set[str], Delivery, Submitted], None]) -> Iterator[int]:
        context, queue, rows = self._context, self._context.queue, self._rows
        tally: Tally = Counter()
        is_large = len(rows) > STAGED
        jobs: deque[Job] = deque()
        found: set[str] = set()
        if is_large:
            yield from self._store(cluster, tally, notices, jobs, found)
        else:
            jobs.extend(queue.arrive(cluster, rows, tally))
        queue.show(cluster, tally)
        context.persist(queue.cluster_row(cluster))
        if is_large:
            context.persist(DropCounters((f"{ENTERING}{self._number}",)))
            notices.release(self._number)
        else:
            context.persist(_rows_of(cluster, jobs))
            found.update(each for each in self._notices_of(cluster, jobs, notices) if each)
        first_proc, last_proc = jobs[0].proc, jobs[-1].proc
        last = f" and {len(jobs) - 1} more, up to {jobs[-1].name}," if len(jobs) > 1 else ""
        context.out.append(job_note(jobs[0].name, "submitted", f"submitted by {cluster.user}{last}"))
        if is_large:
            transitions.offer_anew(jobs)
        else:
            self._is_logged = any(job.ad.own.get("userlog") is not None for job in jobs)
            transitions.offer_all(cluster, jobs)
        if cluster.ad.find("userlog") is None and not self._is_logged:
            found = set()
        answer(found, self._delivery, Submitted(cluster_id=cluster.number, first_proc=first_proc, last_proc=last_proc))

    def _store(self, cluster: Cluster, tally: Tally, notices: JobNotices, jobs: deque[Job],
               found: set[str]) -> Iterator[int]:
        """Store what nobody sees before the cluster itself is stored."""
        context, rows = self._context, self._rows
        notices.withhold(cluster)
        context.persist(SaveCounter(f"{ENTERING}{self._number}", self._number))
        for first in range(0, len(rows), STORED_AT_ONCE):
            some = context.queue.arrive(cluster, rows[first:first + STORED_AT_ONCE], tally)
            context.persist(_rows_of(cluster, some))
            jobs.extend(some)
            self._is_logged |= any(job.ad.own.get("userlog") is not None for job in some)
            yield STORE * len(some)
        for notice_id in self._notices_of(cluster, cluster.jobs.values(), notices):
            if notice_id:
                found.add(notice_id)
            yield NOTICE if notice_id else 1

    def _notices_of(self, cluster: Cluster, jobs: Iterable[Job], notices: JobNotices) -> Iterator[str]:
        return iter(()) if self._spool else notices.submitting(cluster, jobs, self._context.submit_host)


def _rows_of(cluster: Cluster, jobs: Iterable[Job]) -> InsertJobs:
    return InsertJobs(cluster.number, tuple([(job.proc, job.own) for job in jobs]))
