"""Autoclusters: idle jobs that no slot can tell apart, and the order in which they should run.

Theory: two jobs belong to one autocluster when all *significant* attributes have the same text: those that slots and
the negotiator look at, and those that the job's own Requirements and Rank are made of.  The negotiator decides once for
all of them, and a claim that fitted one fits all.  The text of an attribute that only the cluster has is looked at once
per cluster; a job that has no significant attribute of its own costs one dictionary access.

Within an autocluster jobs stand in a heap by (priority, submission).  A job that leaves is left in the heap and skipped
when it comes up: ``job.order`` is the entry that counts.  A submitter's autoclusters stand in a heap by their first
jobs in the same way, so a free claim finds the next job without a look at them all.  A heap half of which has left is
made anew, which costs less than to take out one after the other what has come up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

import attrs

from condor_actors.classads import ClassAd, Expr, unparse
from condor_actors.cores.schedd.charging import CHARGED_TO
from condor_actors.cores.schedd.queued_job import Cluster, Job

__all__ = ["ALWAYS_SIGNIFICANT", "Autocluster", "Autoclusters", "Listing", "default_rank", "was_refused"]

ALWAYS_SIGNIFICANT = frozenset({
    "requirements", "rank", "requestcpus", "requestmemory", "requestdisk", "requestgpus", "concurrencylimits",
    "jobuniverse", "niceuser", "acctgroup", "accountinggroup", "flockto", "requiregpus", "owner", "wantpreemption",
})
PRIORITIES = dict.fromkeys(("prejobprio1", "prejobprio2", "jobprio", "postjobprio1", "postjobprio2")).keys()
_MAX_DEPTH = 10
PRUNE_EVERY = 5_000
"""New autoclusters between two looks for empty ones."""
SMALL_HEAP = 64
"""A heap of fewer entries is left as it is."""
WORTH_MAKING_ANEW = 8
"""A heap is made anew in place of one look at its first entries where at least this part of it has left."""

Rank = tuple[float, ...]
Entry = tuple[Rank, int, int]


def default_rank(job: Job) -> Rank:
    """The manual's order within a schedd; smaller runs first: the five priority attributes, then submission."""
    if not PRIORITIES.isdisjoint(job.ad.own):
        return _rank_of(job.ad)
    memo = job.cluster.memo
    rank: Rank | None = memo.get("rank")
    if rank is None:
        rank = memo["rank"] = _rank_of(job.cluster.ad)
    return rank


def _rank_of(ad: ClassAd) -> Rank:
    values = []
    for key in PRIORITIES:
        value = ad.find(key)
        values.append(-float(value) if type(value) is int or type(value) is float else 0.0)
    return tuple(values)


class Autocluster:
    """One class of jobs.

    Attributes:
        number: what the negotiator calls it.
        submitter: whose.
        waiting: how many jobs stand in it and may be asked for.
    """

    __slots__ = ("heap", "number", "signature", "submitter", "waiting")

    def __init__(self, number: int, submitter: str, signature: tuple[Any, ...]) -> None:
        self.number = number
        self.submitter = submitter
        self.signature = signature
        self.waiting = 0
        self.heap: list[tuple[Entry, Job]] = []

    def push(self, entry: Entry, job: Job) -> None:
        """A job joins."""
        heappush(self.heap, (entry, job))
        if len(self.heap) > SMALL_HEAP + 2 * self.waiting:
            self._make_anew()

    def left(self, job: Job) -> bool:
        """A job has left; whether it was the first one."""
        heap = self.heap
        was_first = heap[0][1] is job
        if self.waiting == 0:
            heap.clear()
        elif len(heap) > SMALL_HEAP + 2 * self.waiting:
            self._make_anew()
        elif was_first:
            heappop(heap)
        return was_first

    def head(self) -> Job | None:
        """The job to run first; None when there is none."""
        heap = self.heap
        looked = 0
        while heap:
            entry, job = heap[0]
            if job.order is entry:
                return job
            looked += 1
            if looked > SMALL_HEAP and (len(heap) - self.waiting) * WORTH_MAKING_ANEW > len(heap):
                self._make_anew()
                heap = self.heap
            else:
                heappop(heap)
        return None

    def _make_anew(self) -> None:
        self.heap = [each for each in self.heap if each[1].order is each[0]]
        heapify(self.heap)


class _Heads:
    """The autoclusters of a submitter that want something, by their first jobs."""

    def __init__(self) -> None:
        self.all: dict[int, Autocluster] = {}
        self._heap: list[tuple[Entry, int, Autocluster]] = []
        self._lost: dict[int, Autocluster] = {}
        """Those whose first job has left; the next one is looked up on demand."""

    def forget(self, autocluster: Autocluster) -> None:
        """It wants nothing any more."""
        del self.all[autocluster.number]
        self._lost.pop(autocluster.number, None)

    def lost(self, autocluster: Autocluster) -> None:
        """Its first job has left."""
        self._lost[autocluster.number] = autocluster

    def note(self, autocluster: Autocluster) -> None:
        """Its first job is another one now."""
        head = autocluster.head()
        if head is None:
            return
        if len(self._heap) > SMALL_HEAP + 2 * len(self.all):
            self._heap = [(first.order, each.number, each) for each in self.all.values() if (first := each.head())]
            heapify(self._heap)
        else:
            heappush(self._heap, (head.order, autocluster.number, autocluster))

    def __iter__(self) -> Iterator[tuple[Autocluster, Job]]:
        """Each with its first job, best first; nothing may change meanwhile.

        The heap is walked from its root: the next one is among the children of those that came.
        """
        for autocluster in self._lost.values():
            self.note(autocluster)
        self._lost.clear()
        heap = self._heap
        while heap and not _is_first(*heap[0]):
            heappop(heap)
        frontier = [(heap[0], 0)] if heap else []
        before: Entry | None = None
        while frontier:
            (entry, number, autocluster), index = heappop(frontier)
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(heap):
                    heappush(frontier, (heap[child], child))
            if entry is not before and _is_first(entry, number, autocluster):
                before = entry
                yield autocluster, autocluster.heap[0][1]


def _is_first(entry: Entry, number: int, autocluster: Autocluster) -> bool:
    head = autocluster.head()
    return head is not None and head.order is entry


class Autoclusters:
    """All autoclusters of a schedd.

    Args:
        rank: gives the order of a job; equal ranks go by submission.

    Attributes:
        always, never, only: attributes, lower case, that the admin adds to the significant ones, takes from them, or
            puts in their place.
        unsettled: clusters that are being edited: some of their jobs stand where they stood before.
    """

    def __init__(self, rank: Callable[[Job], Rank] = default_rank) -> None:
        self.significant: frozenset[str] = ALWAYS_SIGNIFICANT
        self.always: frozenset[str] = frozenset()
        self.never: frozenset[str] = frozenset()
        self.only: frozenset[str] = frozenset()
        self.unsettled: set[int] = set()
        self.by_number: dict[int, Autocluster] = {}
        self._by_submitter: dict[str, _Heads] = {}
        self._rank = rank
        self._by_signature: dict[tuple[Any, ...], Autocluster] = {}
        self._next = 1
        self._ranks: dict[Rank, Rank] = {}

    def learn(self, names: Iterable[str], jobs: Iterable[Job]) -> list[Job]:
        """The negotiator finds these attributes significant too.

        Args:
            names: in any case.
            jobs: all jobs of the queue, asked for only when something changed.

        Returns:
            Jobs that have lost their place by it and want one again.
        """
        wanted = (frozenset(name.lower() for name in names) | self.significant | self.always) - self.never
        if self.only:
            wanted = self.only
        if wanted == self.significant:
            return []
        self.significant = wanted
        self.by_number.clear()
        self._by_submitter.clear()
        self._by_signature.clear()
        ready = []
        for job in jobs:
            job.cluster.memo.pop("autocluster", None)
            waits = job.order is not None
            job.order = None
            job.autocluster = 0
            if waits:
                ready.append(job)
        return ready

    # ---- membership

    def add(self, job: Job) -> None:
        """A job wants to run; one that is in already is put in its place again."""
        if job.order is not None:
            self.remove(job)
        autocluster = self._of(job)
        rank = self._rank(job)
        entry = job.order = (self._ranks.setdefault(rank, rank), job.cluster.number, job.proc)
        job.autocluster = autocluster.number
        autocluster.waiting += 1
        autocluster.push(entry, job)
        if autocluster.heap[0][1] is job:
            self._by_submitter[autocluster.submitter].note(autocluster)

    def add_all(self, cluster: Cluster, jobs: Iterable[Job]) -> None:
        """Jobs of one cluster want to run, and none is in: as :meth:`add` of each.

        Those that differ from their cluster in nothing that matters here are put in their place together.
        """
        special = PRIORITIES | self._shared(cluster)[0].keys() | {CHARGED_TO}
        alike: list[Job] = []
        for job in jobs:
            if self._rank is default_rank and special.isdisjoint(job.ad.own):
                alike.append(job)
            else:
                self.add(job)
        if not alike:
            return
        autocluster = self._of(alike[0])
        rank = self._rank(alike[0])
        rank = self._ranks.setdefault(rank, rank)
        heap, number, place = autocluster.heap, cluster.number, autocluster.number
        for job in alike:
            entry = job.order = (rank, number, job.proc)
            job.autocluster = place
            heappush(heap, (entry, job))
        autocluster.waiting += len(alike)
        self._by_submitter[autocluster.submitter].note(autocluster)

    def remove(self, job: Job) -> None:
        """A job wants to run no longer (it starts, is held, is gone); one that is not in is no error."""
        if job.order is None:
            return
        job.order = None
        autocluster = self.by_number.get(job.autocluster)
        if autocluster is None:
            return
        autocluster.waiting -= 1
        if autocluster.left(job) and autocluster.waiting:
            self._by_submitter[autocluster.submitter].lost(autocluster)

    def _of(self, job: Job) -> Autocluster:
        cluster = job.cluster
        shared, known = self._shared(cluster)
        own = job.ad.own
        different = tuple([(key, _text(own[key])) for key in shared if key in own])
        submitter = job.submitter
        place = different if submitter == cluster.submitter else (submitter, different)
        found: Autocluster | None = known.get(place)
        if found is None or found.number not in self.by_number:
            texts = dict(shared)
            texts.update(different)
            signature = (submitter, cluster.user, *sorted(texts.items()))
            found = self._by_signature.get(signature)
            if found is None:
                found = self._new(submitter, signature)
            known[place] = found
        return found

    def _shared(self, cluster: Cluster) -> tuple[dict[str, str], dict[Any, Autocluster]]:
        """Significant attributes with the cluster's text of each, and autoclusters by what a job has of its own."""
        memo = cluster.memo.get("autocluster")
        if memo is None:
            names = self._closure(cluster.ad)
            find = cluster.ad.find
            memo = cluster.memo["autocluster"] = ({name: _text(find(name)) for name in sorted(names)}, {})
        shared: dict[str, str] = memo[0]
        known: dict[Any, Autocluster] = memo[1]
        return shared, known

    def _closure(self, ad: ClassAd) -> set[str]:
        """The significant attributes and everything of the job that their expressions refer to."""
        names = set(self.significant)
        names.update(key for key in ad.own if key.startswith("request"))
        fresh = names
        for _ in range(_MAX_DEPTH):
            more: set[str] = set()
            for name in fresh:
                value = ad.find(name)
                if isinstance(value, Expr):
                    internal, external = value.references()
                    more.update(internal)
                    more.update(name for name in external if ad.find(name) is not None)
            fresh = more - names
            if not fresh:
                break
            names |= fresh
        return names - {"procid", "clusterid", "currenttime", "globaljobid"} - self.never

    def _prune(self) -> None:
        """Forget the classes that no job waits in."""
        for autocluster in [each for each in self.by_number.values() if not each.waiting]:
            del self.by_number[autocluster.number]
            del self._by_signature[autocluster.signature]
            heads = self._by_submitter[autocluster.submitter]
            heads.forget(autocluster)
            if not heads.all:
                del self._by_submitter[autocluster.submitter]

    def _new(self, submitter: str, signature: tuple[Any, ...]) -> Autocluster:
        if self._next % PRUNE_EVERY == 0:
            self._prune()
        autocluster = Autocluster(self._next, submitter, signature)
        self._next += 1
        self.by_number[autocluster.number] = autocluster
        self._by_submitter.setdefault(submitter, _Heads()).all[autocluster.number] = autocluster
        self._by_signature[signature] = autocluster
        return autocluster

    # ---- order

    def of_submitter(self, submitter: str) -> Iterator[tuple[Autocluster, Job]]:
        """The autoclusters of a submitter that want something, each with its first job, best first.

        Nothing may be added or removed while they are looked at.
        """
        return iter(self._by_submitter.get(submitter, ()))

    def candidates(self, submitter: str, first: int, overdue_s: float) -> Iterator[tuple[Job, bool]]:
        """Jobs for a free claim, best first; the flag says that the claim is known to fit.

        The claim's own autocluster comes before others, unless one of them has a job of higher priority, or one that
        was submitted earlier and waits since before ``overdue_s``: a claim that is used again starves nobody.
        """
        own = self.by_number.get(first)
        own_head = own.head() if own is not None and own.submitter == submitter else None
        for autocluster, job in self.of_submitter(submitter):
            if own_head is not None and (autocluster is own or not _goes_before(job, own_head, overdue_s)):
                yield own_head, own_head.cluster.number not in self.unsettled
                own_head = None
            if autocluster is not own:
                yield job, False


def _goes_before(job: Job, own: Job, overdue_s: float) -> bool:
    """Whether a job of another autocluster comes before the one that the claim is known to fit."""
    if job.order[0] < own.order[0]:
        return True
    return bool(job.order < own.order) and job.ad.get_int("EnteredCurrentStatus") < overdue_s


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, Expr) else f"{type(value).__name__}:{value}" if isinstance(
        value, (int, float, str)) else unparse(value)


def was_refused(job: Job) -> bool:
    """Whether no slot was found for jobs like this one when it was asked for last: then it keeps no room for itself."""
    return job.ad.get_int("LastRejMatchTime") > job.ad.get_int("LastMatchTime")


@attrs.define
class Listing:
    """What a submitter wants, as it is told page by page.

    Attributes:
        autoclusters: best first.
        next: the one that comes next.
        room: how many more jobs may run.
    """

    autoclusters: list[Autocluster]
    next: int
    room: int
