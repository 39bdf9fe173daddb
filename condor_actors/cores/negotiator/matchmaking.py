"""Which slot is best for a request.

Theory: a slot fits when both ``Requirements`` are true and it has what the job asks for.  Of those that fit the best
is taken, by

1. NEGOTIATOR_PRE_JOB_RANK, 2. the job's Rank, 3. NEGOTIATOR_POST_JOB_RANK, 4. no preemption before preemption by
   the machine's Rank before preemption by priority, 5. PREEMPTION_RANK.

A request stands for many jobs that are alike, so its candidates are found and ordered once, in a heap.  Candidates that
other matches shrink meanwhile are judged again when the heap is next looked at (:attr:`CandidateSet.changes`); those
that are gone are passed over.  A candidate whose ranks do not depend on the job brings its place in the order along, so
that most requests judge nothing at all.

Source: HTCondor's manual, "How negotiation works", and the parameters named.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

import attrs

from condor_actors.classads import ClassAd, Expr, is_true, rank
from condor_actors.cores.negotiator.candidates import NO_PREEMPTION, Candidate, CandidateSet, Entry, number
from condor_actors.cores.negotiator.lending import NOT_LENT, Lending
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.pool_view import COUNTED, Handout, PoolView
from condor_actors.cores.negotiator.reservations import Reservations
from condor_actors.cores.negotiator.time_budget import TimeBudget
from condor_actors.messages.realm import MARK

__all__ = ["PUT_OFF", "SHARE_USED_UP", "MatchSettings", "Matchmaker", "Pick", "Request"]

PREEMPT_FOR_PRIORITY, PREEMPT_FOR_RANK = 0, 1
OUT_OF_REACH = "do not answer your schedd"
DISBELIEVED = "gave your schedd grants that it does not believe (its log says why)"
SHARE_USED_UP = "the submitter's share of the pool is used up"
PUT_OFF = "the submitter's requests took too long in this cycle (NEGOTIATOR_MAX_TIME_PER_SUBMITTER)"
NOT_COUNTED = "do not fit your job"
NOT_LOOKED_AT = "were not looked at, since that takes too long for your job's requirements"
REFUSED_BY_JOB = "are rejected by your job's requirements"
OWN_JOBS = "run your own jobs"
OWNER_PREFERS = "serve a job that their owner prefers"
BETTER_PRIORITY = "serve users with a better priority in the pool"
REFUSED_BY_SLOT = "reject your job because of their own requirements"

Cost = dict[str, int]


@attrs.define(eq=False)
class Request:
    """Jobs that are alike: how many, and the ad of the first.

    Attributes:
        autocluster, job_id: as the schedd calls them.
        left: how many still want a slot in this cycle.
        ad: the job, with the submitter's priority in it.
        submitter: whose; priority: its effective priority (less is better).
        heap: the candidates that fit, best first; None before anyone looked.
        seen: how many of the cycle's changes are in the heap.
        fitted, looked_at: how many candidates fitted when it was first looked at, of how many.
        causes: slots by why they do not fit.
        limits: the concurrency limits that each of its jobs holds.
        avoided: startds that the schedd cannot reach; disbelieved: those whose grants it does not believe.
        hurried: the budget ended the look at the candidates.
        costs: what the job takes, by the resources a slot counts, where that does not depend on the slot.
    """

    autocluster: int
    job_id: str
    left: int
    ad: ClassAd
    submitter: str
    priority: float = 1.0
    heap: list[Entry] | None = None
    seen: int = 0
    fitted: int = 0
    looked_at: int = 0
    causes: Counter[str] = attrs.field(factory=Counter)
    costs: dict[tuple[str, ...], Cost | None] = attrs.field(factory=dict)
    limits: Mapping[str, float] = attrs.field(factory=dict)
    avoided: frozenset[str] = frozenset()
    disbelieved: frozenset[str] = frozenset()
    hurried: bool = False
    rank: Expr | None = None
    dependent: frozenset[frozenset[str]] = frozenset()


@attrs.frozen
class Pick:
    """A slot chosen for a request; ``cost`` is what it takes, ``weight`` what that counts for."""

    candidate: Candidate
    cost: Cost
    weight: float
    preempting: bool


class Matchmaker:
    """Finds the best slot for a request.

    Args:
        settings: the expressions.
        priority_of: effective priority of a user.
        beats: whether the first of two effective priorities may preempt for the second.
    """

    def __init__(self, settings: MatchSettings, priority_of: Callable[[str], float],
                 beats: Callable[[float, float], bool]) -> None:
        self.settings = settings
        self.priority_of = priority_of
        self.candidates = CandidateSet(settings)
        self._view = PoolView()
        self._beats = beats
        self.reservations = Reservations()
        self.lending = Lending()

    def begin(self, view: PoolView, now_s: float) -> None:
        """Follow the view."""
        self._view = view
        self.candidates.follow(view, now_s)

    def free_weight(self) -> float:
        """The weight of what is left and free."""
        return sum(each.weight for each in self.candidates if not each.preempts)

    # ---- choosing

    def choose(self, request: Request, permitted: Callable[[float], bool], may_displace: Callable[[Candidate], bool],
               budget: TimeBudget | None = None) -> tuple[Pick | None, Counter[str]]:
        """The best slot for one job of a request.

        Args:
            request: the job.
            permitted: whether the submitter may have another piece of that weight.
            may_displace: asked once more before someone is displaced.
            budget: the submitter's; None: as long as it takes.

        Returns:
            The pick and, when there is none, how many slots were refused for which cause; ``PUT_OFF`` when the budget
            did not do.
        """
        heap = self._heap_of(request, budget or TimeBudget())
        if heap is None:
            return None, Counter({PUT_OFF: 1})
        aside: list[Entry] = []
        least_refused = math.inf
        found: Pick | None = None
        while heap:
            entry = heap[0]
            candidate = entry[7]
            if candidate.gone or candidate.version != entry[6]:
                heappop(heap)
                continue
            if self.reservations.aside and not self._may_have(request, candidate):
                request.causes["are reserved for another user"] += 1
                heappop(heap)
                continue
            if MARK in request.submitter and not self.lending.lends(candidate.ad, request.submitter):
                request.causes[NOT_LENT] += 1
                heappop(heap)
                continue
            if candidate.slot.startd in request.avoided or candidate.slot.startd in request.disbelieved:
                request.causes[OUT_OF_REACH if candidate.slot.startd in request.avoided else DISBELIEVED] += 1
                heappop(heap)
                continue
            cost = self._cost(request, candidate)
            lacking = next((name for name, amount in cost.items() if amount > _amount(candidate.ad, name)), "")
            if lacking:
                request.causes[f"have too little {lacking}"] += 1
                heappop(heap)
                continue
            if candidate.preempts and not may_displace(candidate):
                heappop(heap)
                continue
            weight = self._weight(candidate, cost)
            if weight < least_refused and permitted(weight):
                found = Pick(candidate, cost, weight, candidate.preempts)
                break
            least_refused = min(least_refused, weight)
            if all(each[7].weight >= least_refused and not each[7].slot.partitionable for each in heap):
                break
            aside.append(heappop(heap))
        for entry in aside:
            heappush(heap, entry)
        if found is None and least_refused < math.inf:
            return None, Counter({SHARE_USED_UP: 1})
        return found, request.causes

    def _may_have(self, request: Request, candidate: Candidate) -> bool:
        return self.reservations.may_use(candidate.ad.get_str("Machine"), request.submitter)

    def _heap_of(self, request: Request, budget: TimeBudget) -> list[Entry] | None:
        """The candidates that fit; None: the budget did not do for a look at all of them, a full one may."""
        candidates = self.candidates
        if request.heap is None:
            return self._first_look(request, budget)
        heap = request.heap
        while request.seen < len(candidates.changes) and budget.has_more():
            changed = candidates.changes[request.seen]
            request.seen += 1
            if not changed.gone and candidates.fits(request.ad, changed):
                entry = self._judge(request, changed)
                if entry is not None:
                    heappush(heap, entry)
        return heap

    def _first_look(self, request: Request, budget: TimeBudget) -> list[Entry] | None:
        """Judge the candidates; where not even a full budget does for all, those looked at must do."""
        candidates = self.candidates
        is_fresh = budget.is_fresh()
        self._prepare(request)
        fitting = candidates.fitting(request.ad, budget.has_more)
        request.fitted, request.looked_at = len(fitting), len(candidates)
        heap: list[Entry] = []
        if request.rank is None and not request.dependent:
            heap = [each.entry for each in fitting if each.entry is not None]
            fitting = [each for each in fitting if each.entry is None] if len(heap) < len(fitting) else []
        for each in fitting:
            if not budget.has_more():
                break
            entry = self._judge(request, each)
            if entry is not None:
                heap.append(entry)
        request.hurried = not budget.has_more()
        if request.hurried and not is_fresh:
            return None
        heapify(heap)
        request.heap = heap
        request.seen = len(candidates.changes)
        return heap

    def why_not(self, request: Request, budget: TimeBudget | None = None) -> Counter[str]:
        """Slots by why they do not fit, counted when a request found nothing, as far as the budget does for that."""
        causes = Counter(request.causes)
        not_fitting = request.looked_at - request.fitted
        if request.hurried:  # another look would take as long
            causes[NOT_LOOKED_AT] += not_fitting
            return causes
        by_job, by_slot = self.candidates.refusals(request.ad, not_fitting, (budget or TimeBudget()).has_more)
        if by_job + by_slot < not_fitting:
            causes[NOT_COUNTED] += not_fitting - by_job - by_slot
        if by_job:
            causes[REFUSED_BY_JOB] += by_job
        if by_slot:
            causes[REFUSED_BY_SLOT] += by_slot
        return causes

    def _prepare(self, request: Request) -> None:
        """What the job's side of the ranking depends on."""
        stored = request.ad.find("rank")
        request.rank = stored if isinstance(stored, Expr) else None
        request.dependent = frozenset(
            names for names in self.candidates.external_sets
            if any(request.ad.find(name) is not None for name in names)
        )

    def _judge(self, request: Request, candidate: Candidate) -> Entry | None:
        """A candidate's place in the order for this job; None when it may not be preempted for it."""
        job, ad, now_s = request.ad, candidate.ad, self.candidates.now_s
        standard = candidate.entry
        kind, preemption_rank = NO_PREEMPTION, 0.0
        if candidate.preempts:
            holding = self.priority_of(candidate.slot.user)
            verdict: int | str = self._hopeless(request, candidate, holding)
            if not verdict:
                ad = ad.copy()
                ad["RemoteUserPrio"] = holding
                verdict = self._preemption(request, candidate, ad, holding)
            if isinstance(verdict, str):
                request.causes[verdict] += 1
                return None
            kind = candidate.preference = verdict
            preemption_rank = number(self.settings.preemption_rank, ad, job, now_s)
        own_rank = rank(job, ad, now_s) if request.rank is not None else 0.0
        if standard is not None and candidate.externals not in request.dependent:
            return (standard[0], -own_rank, *standard[2:])
        settings = self.settings
        return (-number(settings.pre_job_rank, ad, job, now_s), -own_rank,
                -number(settings.post_job_rank, ad, job, now_s), -float(kind), -preemption_rank,
                candidate.position, candidate.version, candidate)

    def _hopeless(self, request: Request, candidate: Candidate, holding: float) -> str:
        """Why the candidate must not be preempted, as far as that is known without a look at its ad; empty: it may."""
        if candidate.promised or candidate.plain_rank is None or candidate.plain_rank > candidate.rank:
            return ""
        return self._by_rank_and_priority(request, candidate, candidate.plain_rank, holding)

    def _by_rank_and_priority(self, request: Request, candidate: Candidate, mine: float, holding: float) -> str:
        """Why a job that the machine likes as much as ``mine`` or less must not displace the one that runs there."""
        if candidate.slot.user == request.submitter:
            return OWN_JOBS
        if mine < candidate.rank:
            return OWNER_PREFERS
        return "" if self._beats(request.priority, holding) else BETTER_PRIORITY

    def _preemption(self, request: Request, candidate: Candidate, ad: ClassAd, holding: float) -> int | str:
        """Which kind of preemption a claim on the candidate would be, or why it must not be."""
        job, now_s = request.ad, self.candidates.now_s
        if candidate.promised and not self.settings.early_preemption and _promised_s(ad, now_s) > 0.0:
            return "have promised their job more time (MaxJobRetirementTime)"
        mine = rank(ad, job, now_s)
        if mine > candidate.rank:
            return PREEMPT_FOR_RANK
        hopeless = self._by_rank_and_priority(request, candidate, mine, holding)
        if hopeless:
            return hopeless
        requirements = self.settings.preemption_requirements
        if requirements is None or not is_true(requirements.evaluate(ad, job, now_s)):
            return "are not to be preempted (PREEMPTION_REQUIREMENTS)"
        return PREEMPT_FOR_PRIORITY

    # ---- costs and weights

    def _cost(self, request: Request, candidate: Candidate) -> Cost:
        resources = candidate.slot.resources
        if resources not in request.costs:
            job = request.ad
            plain = all(isinstance(job.own.get(f"request{name}", 0), (int, float)) for name in resources)
            request.costs[resources] = cost_of(job, resources, None) if plain else None
        known = request.costs[resources]
        return known if known is not None else cost_of(request.ad, resources, candidate.ad)

    def _weight(self, candidate: Candidate, cost: Cost) -> float:
        if not candidate.slot.partitionable:
            return candidate.weight
        if candidate.by_cpus:
            return float(cost.get("cpus", 0))
        part = candidate.ad.copy()
        for name, amount in cost.items():
            part[name] = amount
        return candidate.slot.weight_of(part)

    # ---- taking

    def take(self, pick: Pick, until_s: float, limits: Mapping[str, float], submitter: str = "") -> None:
        """The pick is handed out: nobody else gets it in this cycle, nor until its ad shows it."""
        slot = pick.candidate.slot
        self._view.handed_out(slot, Handout(pick.cost, until_s, limits, submitter, pick.weight))
        if slot.partitionable:
            self.candidates.shrink(pick.candidate, pick.cost)
        else:
            self.candidates.take_whole(pick.candidate)


def _promised_s(ad: ClassAd, now_s: float) -> float:
    """For how long the job on a slot may still run undisturbed."""
    promised_s = ad.get_float("MaxJobRetirementTime")
    if promised_s <= 0.0:
        return 0.0
    began_s = ad.get_float("JobStart")
    return promised_s - (now_s - began_s if began_s else ad.get_float("TotalJobRunTime"))


def _amount(ad: ClassAd, name: str) -> int:
    value = ad.own.get(name)
    return value if type(value) is int else ad.get_int(name)


def cost_of(job: ClassAd, resources: tuple[str, ...], slot: ClassAd | None) -> Cost:
    """What a job takes out of a slot: its Request… of each resource the slot counts, evaluated beside the slot."""
    cost = {}
    for name in resources:
        value = job.evaluate(f"Request{name}", slot)
        default = 1 if name in COUNTED else 0
        amount = math.ceil(value) if isinstance(value, (int, float)) and math.isfinite(value) else default
        if amount > 0:
            cost[name] = amount
    return cost
