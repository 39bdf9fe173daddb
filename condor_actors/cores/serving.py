"""One cycle's decisions: who gets which slot ("spinning the pie").

Theory: the pool's weight is a pie.  Each user with requests has a share of it inversely proportional to the effective
priority; the first spin serves the users, best priority first, each up to its share less what it holds.  What nobody
could or wanted to use is cut again among those that still have requests, until nothing is left, or nobody can use it.
So shares are kept where there is competition, and no slot stays idle that somebody could use.

A user whose remaining share is less than any slot weighs may still take one slot per spin after the first: otherwise
small shares would never be served.

Source: HTCondor's manual, "User Priorities and Negotiation" ("The Layperson's Description of the Pie Spin and Pie
Slice").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import attrs

from condor_actors.cores.matchmaking import SHARE_USED_UP, Matchmaker, Pick, Request

__all__ = ["Placement", "Rejected", "UserTurn", "spin_the_pie"]

EPSILON = 1e-9
NOTHING_LEFT = "no slots are left in this cycle"


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


@attrs.define(eq=False)
class UserTurn:
    """A user within a cycle.

    Attributes:
        name: the accounting name.
        priority: effective; the least is served first.
        holding: weight held before the cycle.
        ceiling: the most it may hold; negative: no limit.
        requests: (where from, request) in the order in which they are to be served.
        gained: weight won in this cycle.
        at: the request that is served next.
    """

    name: str
    priority: float
    holding: float = 0.0
    ceiling: float = -1.0
    requests: list[tuple[str, Request]] = attrs.field(factory=list)
    gained: float = 0.0
    at: int = 0

    @property
    def done(self) -> bool:
        """Whether every request is served or refused."""
        return self.at >= len(self.requests)


Limit = Callable[["Request", float], str]
"""Says why a request may not have another piece of that weight now; empty: it may."""


def no_limit(request: Request, weight: float) -> str:
    """The limit that there is none."""
    return ""


class Spinner:
    """The state of one pie being spun; see :func:`spin_the_pie`."""

    def __init__(self, matchmaker: Matchmaker, until_s: float, limit: Limit) -> None:
        self.matchmaker = matchmaker
        self.until_s = until_s
        self.limit = limit
        self.placed: list[Placement] = []
        self.rejected: list[Rejected] = []

    def serve(self, turn: UserTurn, allowance: float, *, at_least_one: bool) -> float:
        """Serve one user up to an allowance; returns the weight given."""
        given = 0.0

        def permitted(weight: float) -> bool:
            if 0.0 <= turn.ceiling < turn.holding + turn.gained + weight - EPSILON:
                return False
            return given + weight <= allowance + EPSILON or (at_least_one and given == 0.0)

        while not turn.done:
            source, request = turn.requests[turn.at]
            picked, stop, weight = self._serve_request(turn, source, request, permitted)
            given += weight
            if stop:
                break
            if not picked:
                turn.at += 1
        return given

    def _serve_request(self, turn: UserTurn, source: str, request: Request,
                       permitted: Callable[[float], bool]) -> tuple[bool, bool, float]:
        """Place one job of a request; (placed, whether the user has to wait for the next spin, weight)."""
        if request.left <= 0:
            return False, False, 0.0
        why = self.limit(request, 1.0)
        if why:
            self._reject(turn, source, request, why, Counter())
            return False, False, 0.0
        pick, causes = self.matchmaker.choose(request, permitted)
        if pick is None:
            if causes.get(SHARE_USED_UP):
                return False, True, 0.0
            causes = self.matchmaker.why_not(request)
            self._reject(turn, source, request, self._reason(causes), causes)
            return False, False, 0.0
        self.matchmaker.take(pick, self.until_s)
        request.left -= 1
        turn.gained += pick.weight
        self.placed.append(Placement(turn, source, request, pick))
        return True, False, pick.weight

    def _reject(self, turn: UserTurn, source: str, request: Request, reason: str, causes: Counter[str]) -> None:
        self.rejected.append(Rejected(turn, source, request, reason, tuple(causes.most_common())))

    def _reason(self, causes: Counter[str]) -> str:
        if not causes:
            return NOTHING_LEFT
        return "; ".join(f"{count} slots {cause}" for cause, count in causes.most_common(3))


def spin_the_pie(turns: Sequence[UserTurn], matchmaker: Matchmaker, pie: float, *, until_s: float,
                 limit: Limit = no_limit) -> tuple[list[Placement], list[Rejected]]:
    """Serve all users.

    Args:
        turns: the users with their requests.
        matchmaker: knows the slots; begun.
        pie: weight of the whole pool.
        until_s: until when the matches are believed.
        limit: further limits (concurrency limits, quotas).

    Returns:
        What was placed and what was refused, each in the order in which it was decided.
    """
    spinner = Spinner(matchmaker, until_s, limit)
    active = sorted((turn for turn in turns if not turn.done), key=lambda turn: (turn.priority, turn.name))
    first = True
    left = pie
    while active and matchmaker.candidates:
        inverse = sum(1.0 / max(turn.priority, EPSILON) for turn in active)
        progress = 0.0
        for turn in active:
            share = left / max(turn.priority, EPSILON) / inverse
            allowance = share - turn.holding if first else share
            if allowance > 0.0 or not first:
                progress += spinner.serve(turn, allowance, at_least_one=not first)
        waiting = [turn for turn in active if not turn.done]
        if not progress and not first and len(waiting) == len(active):
            break
        active = waiting
        left = matchmaker.free_weight()
        first = False
    for turn in active:
        for source, request in turn.requests[turn.at:]:
            reason = NOTHING_LEFT if not matchmaker.candidates else SHARE_USED_UP
            spinner.rejected.append(Rejected(turn, source, request, reason, ()))
    return spinner.placed, spinner.rejected
