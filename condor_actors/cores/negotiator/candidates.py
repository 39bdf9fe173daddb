"""Slots as candidates of a match: what is left of each, what it ranks, and which of them fit a job.

Theory: a :class:`Candidate` is the working copy of a slot.  Within a cycle it shrinks (a partitionable slot, part by
part) or is gone (any other, at once); between cycles it follows the slot's ad.  :class:`CandidateSet` keeps all of them
in an index that finds those with both Requirements true without asking each
(:class:`~.AdIndex`), and knows, for those whose ranks do not depend on the job, their place
in the order once and for all jobs.

A candidate's *version* counts its changes; what was computed for an older version does not count any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import attrs

from condor_actors.classads import ClassAd, Expr, is_true, match_ads, requirements_hold
from condor_actors.classads.language.expressions import Reference
from condor_actors.classads.matching.index import AdIndex
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.pool_view import PoolView, Slot

__all__ = ["NO_PREEMPTION", "Candidate", "CandidateSet", "Entry", "number"]

NO_PREEMPTION = 2
Entry = tuple[float, float, float, float, float, int, int, "Candidate"]
"""A place in the order, least first: the five ranks negated, position, version, candidate."""
NOBODY = ClassAd()


@attrs.define(eq=False)
class Candidate:
    """A slot in one cycle: what is left of it, and how it ranks for a job.

    Attributes:
        slot: whose copy it is; ad: what is left of it.
        position: in the index; version: counts changes; gone: taken as a whole.
        preempts: whether a match displaces someone; preference: 1 when that is for the machine's Rank.
        externals: names of the job that its ranks depend on.
        entry: its place in the order for jobs that have none of these and no Rank of their own.
        weight: what it counts for as it is; by_cpus: whether a part counts for its cpus.
        rank: the machine's Rank of the job that it runs; plain_rank: of any job, None when it depends on the job.
        promised: whether that job was promised time (MaxJobRetirementTime).
    """

    slot: Slot
    ad: ClassAd
    position: int
    version: int = 0
    gone: bool = False
    preempts: bool = False
    preference: int = 0
    externals: frozenset[str] = frozenset()
    entry: Entry | None = None
    weight: float = 0.0
    by_cpus: bool = True
    rank: float = 0.0
    plain_rank: float | None = None
    promised: bool = False


class CandidateSet:
    """All candidates; see the module.

    Args:
        settings: the negotiator's expressions.
    """

    def __init__(self, settings: MatchSettings) -> None:
        self.settings = settings
        self.by_key: dict[str, Candidate] = {}
        self.changes: list[Candidate] = []
        """Candidates that shrank in this cycle, in order."""
        self.external_sets: set[frozenset[str]] = set()
        self.now_s = 0.0
        self._index = AdIndex(())
        self._at: list[Candidate | None] = []
        self._free_positions: list[int] = []
        self._externals: dict[tuple[int, ...], frozenset[str]] = {}
        self._exprs: list[Expr] = []
        self._unsettled = 0

    def __len__(self) -> int:
        return len(self.by_key)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.by_key.values())

    # ---- following the view

    def follow(self, view: PoolView, now_s: float) -> None:
        """Take what changed in the view since the last time."""
        self.now_s = now_s
        self.changes = []
        changed, view.changed = view.changed, {}
        for key in changed:
            slot = view.slots.get(key)
            old = self.by_key.pop(key, None)
            if slot is None or not self._eligible(slot):
                if old is not None:
                    self._remove(old)
                continue
            self._put(slot, old)
        self._unsettled += len(changed)
        if self._unsettled > 16 + len(self.by_key) // 16:
            self._settle()

    def _settle(self) -> None:
        """Index all candidates anew: those that changed one by one are asked one by one."""
        self._unsettled = 0
        self._free_positions = []
        self._at = list(self.by_key.values())
        self._index = AdIndex(candidate.ad for candidate in self.by_key.values())
        for position, candidate in enumerate(self.by_key.values()):
            candidate.position = position
            if candidate.entry is not None:
                candidate.entry = (*candidate.entry[:5], position, candidate.version, candidate)

    def _eligible(self, slot: Slot) -> bool:
        if "OwnerPausedUntil" in slot.ad:
            return False  # its owner has paused it
        if not slot.capability or (slot.handouts and not slot.partitionable):
            return False
        if not slot.free and not self._preemptible(slot):
            return False
        if slot.partitionable and slot.amount("cpus") <= sum(each.cost.get("cpus", 0) for each in slot.handouts):
            return False
        constraint = self.settings.slot_constraint
        return constraint is None or is_true(constraint.evaluate(slot.ad, None, self.now_s))

    def _preemptible(self, slot: Slot) -> bool:
        """Whether a claim on it could displace the one that holds it."""
        settings = self.settings
        if not settings.consider_preemption or not slot.user or slot.state != "Claimed" or slot.partitionable:
            return False
        return settings.may_preempt_for_priority or isinstance(slot.ad.find("rank"), Expr)

    def _put(self, slot: Slot, old: Candidate | None) -> None:
        ad = slot.ad
        if slot.handouts:
            ad = ad.copy()
            for handout in slot.handouts:
                for name, amount in handout.cost.items():
                    ad[name] = max(0, ad.get_int(name) - amount)
        if old is not None:
            position = old.position
            old.gone = True
            self._index.replace(position, ad)
        elif self._free_positions:
            position = self._free_positions.pop()
            self._index.replace(position, ad)
        else:
            position = self._index.add(ad)
            self._at.append(None)
        candidate = Candidate(slot, ad, position, preempts=not slot.free)
        self.by_key[slot.key] = candidate
        self._at[position] = candidate
        self._appraise(candidate)

    def _remove(self, candidate: Candidate) -> None:
        candidate.gone = True
        self._index.remove(candidate.position)
        self._at[candidate.position] = None
        self._free_positions.append(candidate.position)

    def _appraise(self, candidate: Candidate) -> None:
        """Work out what does not depend on the job."""
        slot, ad, settings = candidate.slot, candidate.ad, self.settings
        candidate.weight = slot.weight_of(ad)
        rule = ad.own.get("slotweight")
        candidate.by_cpus = slot.weighed and (rule is None or (isinstance(rule, Reference) and rule.key == "cpus"))
        candidate.externals = self._externals_of(ad)
        self.external_sets.add(candidate.externals)
        if candidate.preempts:
            candidate.entry = None
            candidate.rank = ad.get_float("CurrentRank")
            stored = ad.find("rank")
            if not isinstance(stored, Expr):
                candidate.plain_rank = float(stored) if isinstance(stored, (int, float)) else 0.0
            candidate.promised = ad.find("maxjobretirementtime") is not None
            return
        candidate.entry = (
            -number(settings.pre_job_rank, ad, NOBODY, self.now_s), 0.0,
            -number(settings.post_job_rank, ad, NOBODY, self.now_s), -float(NO_PREEMPTION), 0.0,
            candidate.position, candidate.version, candidate,
        )

    def _externals_of(self, ad: ClassAd) -> frozenset[str]:
        """Which attributes of a job the ranks of a slot depend on; the same expressions are looked at once."""
        signature = tuple(id(value) if isinstance(value, Expr) else hash(name) for name, value in ad.own.items())
        found = self._externals.get(signature)
        if found is None:
            names: set[str] = set()
            for expression in (self.settings.pre_job_rank, self.settings.post_job_rank):
                if expression is not None:
                    names |= expression.references(ad)[1]
            if len(self._externals) > 5000:
                self._externals.clear()
                self._exprs.clear()
            found = self._externals[signature] = frozenset(names)
            self._exprs.extend(value for value in ad.own.values() if isinstance(value, Expr))
        return found

    # ---- changes within a cycle

    def take_whole(self, candidate: Candidate) -> None:
        """The candidate is handed out."""
        self.by_key.pop(candidate.slot.key, None)
        self._remove(candidate)

    def shrink(self, candidate: Candidate, cost: dict[str, int]) -> None:
        """A part of the candidate is handed out."""
        ad = candidate.ad = candidate.ad.copy()
        for name, amount in cost.items():
            ad[name] = max(0, ad.get_int(name) - amount)
        candidate.version += 1
        if ad.get_int("Cpus") <= 0:
            self.take_whole(candidate)
            return
        self._index.replace(candidate.position, ad)
        self._appraise(candidate)
        self.changes.append(candidate)

    # ---- fitting

    def fitting(self, job: ClassAd, go_on: Callable[[], bool] | None = None) -> list[Candidate]:
        """The candidates whose Requirements and those of the job are both true.

        Args:
            job: the job.
            go_on: asked before each pair that is evaluated; the rest is not looked at when it says no.
        """
        at = self._at
        found = [at[position] for position in self._index.matching(job, self.now_s, go_on=go_on)]
        return [candidate for candidate in found if candidate is not None]

    def fits(self, job: ClassAd, candidate: Candidate) -> bool:
        """Whether both Requirements are true."""
        return match_ads(job, candidate.ad, self.now_s)

    def refusals(self, job: ClassAd, not_fitting: int, go_on: Callable[[], bool] = lambda: True) -> tuple[int, int]:
        """Of the candidates that do not fit: how many the job refuses, and how many only refuse the job.

        Args:
            job: the job.
            not_fitting: how many do not fit.
            go_on: asked before each that is evaluated; the rest is in neither figure when it says no.
        """
        if not not_fitting:
            return 0, 0
        total = len(self.by_key)
        if total <= 200:
            refused = 0
            for looked_at, each in enumerate(self.by_key.values()):
                if not go_on():
                    return min(refused, not_fitting), max(0, looked_at - refused - total + not_fitting)
                refused += not requirements_hold(job, each.ad, self.now_s)
        else:
            refused = total - min(total, self._index.possible(job).bit_count())
        return min(refused, not_fitting), max(0, not_fitting - refused)


def number(expression: Expr | None, my: ClassAd, target: ClassAd, now_s: float) -> float:
    """The value of a ranking expression, 0 when it is no number."""
    if expression is None:
        return 0.0
    value = expression.evaluate(my, target, now_s)
    return float(value) if isinstance(value, (int, float)) and not math.isnan(value) else 0.0
