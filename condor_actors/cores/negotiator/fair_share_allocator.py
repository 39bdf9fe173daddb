"""One cycle's decisions: who gets which slot.

Theory, by shares ("spinning the pie"): the pool's weight is a pie.  Each user with requests has a share of it inversely
proportional to the effective priority; the first spin serves the users, best priority first, each up to its share less
what it holds.  What nobody could or wanted to use is cut again among those that still have requests, until nothing is
left, or nobody can use it.  So shares are kept where there is competition, and no slot stays idle that someone could
use.  A user whose remaining share is less than any slot weighs may still take one slot per spin after the first:
otherwise small shares would never be served.

Theory, by index (UP_DOWN, UPDATE_PRIO): the user with the lowest index gets one slot, which makes its index worse by a
step for the rest of the cycle; then the next.

A user whose budget (:mod:`condor_actors.cores.negotiator.time_budget`) is empty is put off: what is left is neither
served nor refused, and the others go on.  One who was put off before is served after the others of a spin.

Users of other pools come after all of this one, unless their pool's terms have them alike
(:mod:`condor_actors.cores.negotiator.lending`).

Where there are accounting groups, both are done in two rounds (:mod:`condor_actors.cores.negotiator.group_quotas`).

Source: HTCondor's manual, "User Priorities and Negotiation".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush

import attrs

from condor_actors.cores.negotiator.candidates import Candidate
from condor_actors.cores.negotiator.concurrency_limits import ConcurrencyLimits
from condor_actors.cores.negotiator.group_quotas import GroupBudget
from condor_actors.cores.negotiator.matchmaking import PUT_OFF, SHARE_USED_UP, Matchmaker, Pick, Request
from condor_actors.cores.negotiator.time_budget import TimeBudget
from condor_actors.cores.negotiator.user_priority import PriorityPolicy

__all__ = ["Placement", "Rejected", "FairShareAllocator", "UserTurn"]

EPSILON = 1e-9
LASTING_PASSES = 5
"""Nobody takes a slot by an index that would be the worse one after so many passes (ten minutes, usually)."""
NOTHING_LEFT = "no slots are left in this cycle"


@attrs.define(eq=False)
class UserTurn:
    """A user within a cycle.

    Attributes:
        name: the accounting name.
        priority: effective; the least is served first.
        holding: weight held before the cycle.
        ceiling: the most it may hold; negative: no limit.
        requests: (where from, request) in the order in which they are to be served.
        gained: weight won in this cycle; slots: how many.
        at: the request that is served next.
        budget: what serving it may take now; put_off: it was not enough.
        is_slow: it was not enough in an earlier turn or cycle.
    """

    name: str
    priority: float
    holding: float = 0.0
    ceiling: float = -1.0
    requests: list[tuple[str, Request]] = attrs.field(factory=list)
    gained: float = 0.0
    slots: int = 0
    at: int = 0
    budget: TimeBudget = attrs.field(factory=TimeBudget)
    put_off: bool = False
    is_slow: bool = False

    @property
    def done(self) -> bool:
        """Whether every request is served, refused or put off."""
        return self.put_off or self.at >= len(self.requests)


@attrs.frozen
class Placement:
    """A slot for one job of a request."""

    turn: UserTurn
    source: str
    request: Request
    pick: Pick


@attrs.frozen
class Rejected:
    """Why the rest of a request got nothing."""

    turn: UserTurn
    source: str
    request: Request
    reason: str
    causes: tuple[tuple[str, int], ...]


class FairShareAllocator:
    """Serves the users of one cycle.

    Args:
        matchmaker: knows the slots; begun.
        policy: the priorities in force.
        until_s: until when the matches are believed.
        limits: gives the concurrency limits, asked for when the first job has one.
        budget: of the accounting groups; None when there are none.
    """

    def __init__(self, matchmaker: Matchmaker, policy: PriorityPolicy, until_s: float,
                 limits: Callable[[], ConcurrencyLimits], budget: GroupBudget | None = None) -> None:
        self.matchmaker = matchmaker
        self.placed: list[Placement] = []
        self.rejected: list[Rejected] = []
        self._policy = policy
        self._until_s = until_s
        self._make_limits = limits
        self._limits: ConcurrencyLimits | None = None
        self._budget = budget
        self._lost: dict[str, int] = {}

    def serve(self, turns: Sequence[UserTurn], pie: float) -> None:
        """Serve everybody; ``pie`` is the weight of the whole pool."""
        spin = self._by_shares if self._policy.BY_SHARES else self._by_index
        budget = self._budget
        if budget is not None:
            groups: dict[str, list[UserTurn]] = {}
            for turn in turns:
                groups.setdefault(budget.tree.group_of(turn.name), []).append(turn)
            for group in budget.order(groups):
                if group:
                    spin(groups[group], budget.quotas[group])
            budget.surplus_round = True
        lending = self.matchmaker.lending
        guests = [turn for turn in turns if lending.is_below(turn.name)]
        spin([turn for turn in turns if not lending.is_below(turn.name)] if guests else turns, pie)
        if guests:
            spin(guests, pie)
        for turn in turns:
            for source, request in () if turn.put_off else turn.requests[turn.at:]:
                self._reject(turn, source, request, SHARE_USED_UP if self.matchmaker.candidates else NOTHING_LEFT)

    def may_have(self, turn: UserTurn, weight: float) -> bool:
        """Whether a user's ceiling and groups leave room for so much more."""
        if 0.0 <= turn.ceiling < turn.holding + turn.gained + weight - EPSILON:
            return False
        return self._budget is None or self._budget.permits(turn.name, weight)

    # ---- orders

    def _by_shares(self, turns: Iterable[UserTurn], pie: float) -> None:
        active = sorted((turn for turn in turns if not turn.done),
                        key=lambda turn: (turn.is_slow, turn.priority, turn.name))
        first = True
        left = pie
        while active and self.matchmaker.candidates:
            inverse = sum(1.0 / max(turn.priority, EPSILON) for turn in active)
            progress = 0.0
            for turn in active:
                share = left / max(turn.priority, EPSILON) / inverse
                allowance = share - turn.holding if first else share
                if allowance > 0.0 or not first:
                    progress += self._serve(turn, allowance, at_least_one=not first)
            waiting = [turn for turn in active if not turn.done]
            if not progress and not first and len(waiting) == len(active):
                break
            active = waiting
            left = self.matchmaker.free_weight()
            first = False

    def _by_index(self, turns: Iterable[UserTurn], pie: float) -> None:
        step = self._policy.step
        heap = [(turn.priority + step * turn.slots, turn.name, turn) for turn in turns if not turn.done]
        heapify(heap)
        while heap and self.matchmaker.candidates:
            _, _, turn = heappop(heap)
            if self._serve(turn, math.inf, at_least_one=True, most=1) and not turn.done:
                heappush(heap, (turn.priority + step * turn.slots, turn.name, turn))

    # ---- one user

    def _serve(self, turn: UserTurn, allowance: float, *, at_least_one: bool, most: int = 1_000_000_000) -> float:
        """Serve one user up to an allowance of weight and ``most`` slots; returns the weight given."""
        given = 0.0

        def permitted(weight: float) -> bool:
            if not self.may_have(turn, weight):
                return False
            if not self.matchmaker.lending.permits(turn.name, weight):
                return False
            return given + weight <= allowance + EPSILON or (at_least_one and given == 0.0)

        with turn.budget as budget:
            while not turn.done and most > 0:
                if not budget.has_more():
                    turn.put_off = True
                    break
                source, request = turn.requests[turn.at]
                pick, waits = self._pick(turn, source, request, permitted)
                if pick is not None:
                    given += pick.weight
                    most -= 1
                elif waits:
                    break
                else:
                    turn.at += 1
        return given

    def _pick(self, turn: UserTurn, source: str, request: Request,
              permitted: Callable[[float], bool]) -> tuple[Pick | None, bool]:
        """Place one job of a request; when there is no pick: whether the user has to wait for the next spin."""
        if request.left <= 0:
            return None, False
        if request.limits:
            why = self.limits.why_not(request.limits)
            if why:
                self._reject(turn, source, request, why)
                return None, False
        pick, causes = self.matchmaker.choose(request, permitted, lambda candidate: self._may_displace(turn, candidate),
                                              turn.budget)
        if pick is None:
            if causes.get(SHARE_USED_UP):
                return None, True
            if causes.get(PUT_OFF):
                turn.put_off = True
                return None, True
            causes = self.matchmaker.why_not(request, turn.budget)
            self._reject(turn, source, request, _sentence(causes), causes)
            return None, False
        self._take(turn, source, request, pick)
        return pick, False

    def _take(self, turn: UserTurn, source: str, request: Request, pick: Pick) -> None:
        self.matchmaker.take(pick, self._until_s, request.limits, turn.name)
        self.matchmaker.lending.give(turn.name, pick.weight)
        request.left -= 1
        turn.gained += pick.weight
        turn.slots += 1
        self.placed.append(Placement(turn, source, request, pick))
        if request.limits:
            self.limits.take(request.limits)
        if self._budget is not None:
            self._budget.add(turn.name, pick.weight)
        if pick.preempting:
            user = pick.candidate.slot.user
            self._lost[user] = self._lost.get(user, 0) + 1

    def _may_displace(self, turn: UserTurn, candidate: Candidate) -> bool:
        """Whether a user served by index may still displace another, after what both gained and lost in the cycle.

        An index rises with each pass by what its user holds.  A slot that would soon go back is not taken: two users of
        equal indices would exchange their slots forever, and their jobs would hardly run.
        """
        policy = self._policy
        if policy.BY_SHARES or candidate.preference == 1:
            return True
        step, user = policy.step, candidate.slot.user
        lost = self._lost.get(user, 0)
        mine, theirs = turn.priority + step * turn.slots, self.matchmaker.priority_of(user) - step * lost
        lead = self._holds(turn.name) + turn.slots - self._holds(user) + lost + 2
        return policy.beats(mine, theirs) and (lead <= 0 or policy.beats(mine + step * lead * LASTING_PASSES, theirs))

    def _holds(self, user: str) -> int:
        """Slots that a user held before the cycle."""
        record = self._policy.users.get(user)
        return record.slots if record is not None else 0

    @property
    def limits(self) -> ConcurrencyLimits:
        """The concurrency limits of the cycle."""
        if self._limits is None:
            self._limits = self._make_limits()
        return self._limits

    def _reject(self, turn: UserTurn, source: str, request: Request, reason: str,
                causes: Counter[str] | None = None) -> None:
        if request.left > 0:
            counted = tuple(causes.most_common()) if causes else ()
            self.rejected.append(Rejected(turn, source, request, reason, counted))


def _sentence(causes: Counter[str]) -> str:
    if not causes:
        return NOTHING_LEFT
    return "; ".join(f"{count} {'slot' if count == 1 else 'slots'} {cause}" for cause, count in causes.most_common(3))
