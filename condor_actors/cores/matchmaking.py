"""Which slots fit a request, and which of them is best.

Theory: a *candidate* is the working copy of a slot within one cycle: what earlier matches of the cycle took out of a
partitionable slot is gone from it.  A slot fits when both ``Requirements`` are true and it has what the job asks for.
Of those that fit the best is taken, by

1. NEGOTIATOR_PRE_JOB_RANK, 2. the job's Rank, 3. NEGOTIATOR_POST_JOB_RANK, 4. no preemption before preemption by
   the machine's Rank before preemption by priority, 5. PREEMPTION_RANK.

Source: HTCondor's manual, "How negotiation works", and the parameters named.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import attrs

from condor_actors.classads import ClassAd, Expr, is_true, parse_expression, rank, requirements_hold
from condor_actors.cores.pool_view import COUNTED, Handout, PoolView, Slot

__all__ = ["SHARE_USED_UP", "Candidate", "MatchSettings", "Matchmaker", "Pick", "Request",
           "total_weight"]

PREEMPT_FOR_PRIORITY, PREEMPT_FOR_RANK, NO_PREEMPTION = 0, 1, 2
PRIORITY_MARGIN = 1.2
"""A priority must be better by this factor to preempt for."""

PRE_JOB_RANK = "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory"
POST_JOB_RANK = (
    "(RemoteOwner =?= UNDEFINED) * (ifThenElse(isUndefined(KFlops), 1000, KFlops) - SlotID"
    " - 1.0e10 * (Offline =?= True))"
)
SHARE_USED_UP = "the submitter's share of the pool is used up"


@attrs.frozen(kw_only=True)
class MatchSettings:
    """The expressions of the negotiator; None where one is not set.

    Attributes:
        slot_constraint, job_constraint: which slots and jobs are considered at all.
        consider_preemption: whether slots that somebody has are candidates.
    """

    pre_job_rank: Expr | None = attrs.field(factory=lambda: parse_expression(PRE_JOB_RANK))
    post_job_rank: Expr | None = attrs.field(factory=lambda: parse_expression(POST_JOB_RANK))
    preemption_requirements: Expr | None = None
    preemption_rank: Expr | None = None
    slot_constraint: Expr | None = None
    job_constraint: Expr | None = None
    consider_preemption: bool = True


@attrs.define(eq=False)
class Request:
    """Jobs that are alike: how many, and the ad of the first.

    Attributes:
        autocluster, job_id: as the schedd calls them.
        left: how many still want a slot in this cycle.
        ad: the job, with the submitter's priority in it.
        priority: effective priority of its submitter (less is better).
    """

    autocluster: int
    job_id: str
    left: int
    ad: ClassAd
    submitter: str
    priority: float = 1.0


@attrs.define(eq=False)
class Candidate:
    """The working copy of a slot within a cycle: ``ad`` shrinks as parts of it are given away."""

    slot: Slot
    ad: ClassAd
    user_priority: float = 0.0


@attrs.frozen
class Pick:
    """A slot chosen for a request; ``cost`` is what it takes, ``weight`` what that counts for."""

    candidate: Candidate
    cost: Mapping[str, int]
    weight: float
    preempting: bool


class Matchmaker:
    """See the module.

    Args:
        settings: the expressions.
        priority_of: effective priority of a user.
    """

    def __init__(self, settings: MatchSettings, priority_of: Callable[[str], float]) -> None:
        self.settings = settings
        self.candidates: dict[str, Candidate] = {}
        self._priority_of = priority_of
        self._now_s = 0.0

    def begin(self, view: PoolView, now_s: float) -> None:
        """Take working copies of all slots that may be matched; what was handed out is taken out of them."""
        self._now_s = now_s
        self.candidates = {}
        constraint = self.settings.slot_constraint
        for slot in view.slots.values():
            if not slot.capability or not (slot.free or self._preemptible(slot)):
                continue
            if constraint is not None and not is_true(constraint.evaluate(slot.ad, None, now_s)):
                continue
            if slot.handouts and not slot.partitionable:
                continue
            candidate = Candidate(slot, slot.ad)
            for handout in slot.handouts:
                self._take(candidate, handout.cost)
            if slot.user and not slot.partitionable:
                candidate.user_priority = self._priority_of(slot.user)
                candidate.ad = slot.ad.copy()
                candidate.ad["RemoteUserPrio"] = candidate.user_priority
            self.candidates[slot.key] = candidate

    def _preemptible(self, slot: Slot) -> bool:
        return self.settings.consider_preemption and bool(slot.user) and slot.state == "Claimed"

    # ---- choosing

    def choose(self, request: Request, permitted: Callable[[float], bool]) -> tuple[Pick | None, Counter[str]]:
        """The best slot for one job of a request.

        Args:
            request: the job.
            permitted: whether the submitter may have another piece of that weight.

        Returns:
            The pick and, when there is none, how many slots were refused for which cause.
        """
        causes: Counter[str] = Counter()
        best: Pick | None = None
        best_rank: tuple[float, ...] = ()
        for candidate in self.candidates.values():
            found = self._judge(request, candidate)
            if isinstance(found, str):
                causes[found] += 1
                continue
            pick, ranks = found
            if not permitted(pick.weight):
                causes[SHARE_USED_UP] += 1
                continue
            if best is None or ranks > best_rank:
                best, best_rank = pick, ranks
        return best, causes

    def _judge(self, request: Request, candidate: Candidate) -> tuple[Pick, tuple[float, ...]] | str:
        job, ad, now_s = request.ad, candidate.ad, self._now_s
        if not requirements_hold(job, ad, now_s):
            return "rejected by your job's requirements"
        if not requirements_hold(ad, job, now_s):
            return "reject your job because of their own requirements"
        cost = cost_of(job, candidate)
        for name, amount in cost.items():
            if amount > ad.get_int(name):
                return f"have too little {name}"
        preemption = self._preemption(request, candidate)
        if isinstance(preemption, str):
            return preemption
        settings = self.settings
        ranks = (
            number(settings.pre_job_rank, ad, job, now_s), rank(job, ad, now_s),
            number(settings.post_job_rank, ad, job, now_s), float(preemption),
            number(settings.preemption_rank, ad, job, now_s) if preemption != NO_PREEMPTION else 0.0,
        )
        weight = self._weight(candidate, cost)
        return Pick(candidate, cost, weight, preemption != NO_PREEMPTION), ranks

    def _preemption(self, request: Request, candidate: Candidate) -> int | str:
        """Which kind of preemption a claim on the candidate would be, or why it must not be."""
        if candidate.slot.free:
            return NO_PREEMPTION
        ad, job, now_s = candidate.ad, request.ad, self._now_s
        mine, current = rank(ad, job, now_s), ad.get_float("CurrentRank")
        if mine > current:
            return PREEMPT_FOR_RANK
        if candidate.slot.user == request.submitter or mine < current:
            return "serve somebody whom their owner prefers or who is the same user"
        if candidate.user_priority <= request.priority * PRIORITY_MARGIN:
            return "serve users with a better priority in the pool"
        requirements = self.settings.preemption_requirements
        if requirements is None or not is_true(requirements.evaluate(ad, job, now_s)):
            return "are not to be preempted (PREEMPTION_REQUIREMENTS)"
        return PREEMPT_FOR_PRIORITY

    def _weight(self, candidate: Candidate, cost: Mapping[str, int]) -> float:
        if not candidate.slot.partitionable:
            return candidate.slot.weight()
        part = candidate.ad.copy()
        for name, amount in cost.items():
            part[name] = amount
        return candidate.slot.weight(part)

    def free_weight(self) -> float:
        """The weight of what is left and free."""
        return sum(each.slot.weight(each.ad) for each in self.candidates.values() if each.slot.free)

    # ---- taking

    def take(self, pick: Pick, until_s: float) -> None:
        """The pick is handed out: nobody else gets it in this cycle, nor until its ad shows it."""
        slot = pick.candidate.slot
        slot.handouts.append(Handout(pick.cost, until_s))
        if slot.partitionable:
            self._take(pick.candidate, pick.cost)
        else:
            self.candidates.pop(slot.key, None)

    def _take(self, candidate: Candidate, cost: Mapping[str, int]) -> None:
        if candidate.ad is candidate.slot.ad:
            candidate.ad = candidate.ad.copy()
        for name, amount in cost.items():
            candidate.ad[name] = max(0, candidate.ad.get_int(name) - amount)


def cost_of(job: ClassAd, candidate: Candidate) -> dict[str, int]:
    """What a job takes out of a slot: its Request… of each resource the slot counts, evaluated beside the slot."""
    cost = {}
    for name in candidate.slot.resources:
        value = job.evaluate(f"Request{name}", candidate.ad)
        default = 1 if name in COUNTED else 0
        amount = math.ceil(value) if isinstance(value, (int, float)) and math.isfinite(value) else default
        if amount > 0:
            cost[name] = amount
    return cost


def number(expression: Expr | None, my: ClassAd, target: ClassAd, now_s: float) -> float:
    """The value of a ranking expression, 0 when it is no number."""
    if expression is None:
        return 0.0
    value = expression.evaluate(my, target, now_s)
    return float(value) if isinstance(value, (int, float)) else 0.0


def total_weight(slots: Iterable[Slot]) -> float:
    """What all slots together count for; parts of a partitionable slot are counted once."""
    total = 0.0
    for slot in slots:
        if slot.capability or slot.user:
            total += slot.weight()
    return total
