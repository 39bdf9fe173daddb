"""When a job will begin, by what became of jobs like it.

Theory: a first guess is the number of jobs that wait, by the pace at which jobs have begun lately.  How wrong such
guesses are is seen in the past: at many moments of it the same guess is made for those that waited then, from what was
known then, and compared with when they began.  The middle 80 % of these errors around today's guess is the answer, and
a little more: the next observation is between the k-th and the m-th of n with the probability (m - k) / (n + 1), and n
is the number of moments, since jobs that wait together err together.  Of a job that still waits it is only known that
its error is not smaller than so much (Kaplan and Meier, 1958): without those the past would consist of the lucky ones.
Cases are the newest of the most alike kind of which there are enough; with too few nothing is said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.answers.words import span_text

__all__ = ["Case", "Estimate", "case_of", "estimate", "estimate_of"]

LEAST_CASES = 20
NEWEST = 300
PACE = 20
"""The pace is that of so many starts."""
MOMENTS = 60
"""Moments of the past at which guesses are tried."""
LOW, HIGH = 0.1, 0.9


@attrs.frozen
class Case:
    """A job of the past, or one that waits.

    Attributes:
        came_s, began_s: when; ``began_s`` None: it still waits.
        kinds: what it has in common with others, the most alike first.
    """

    came_s: float
    began_s: float | None
    kinds: tuple[tuple[object, ...], ...] = ()


@attrs.frozen
class Estimate:
    """When a job begins: in the middle 80 % of cases between these, counted from now.

    Attributes:
        soonest_s, latest_s: the bounds; ``latest_s`` None: nobody can say.
        cases: how many jobs it comes from.
    """

    soonest_s: float
    latest_s: float | None
    cases: int

    def text(self) -> str:
        """A sentence."""
        by = f"going by {self.cases} jobs like it"
        if self.latest_s is None:
            return f"It is to begin in {span_text(self.soonest_s)} at the earliest, {by}; how late cannot be said."
        if self.latest_s < 1:
            return f"It is to begin in a moment, {by}."
        return (f"It is to begin in {span_text(self.soonest_s)} to {span_text(self.latest_s)}, {by} (8 of 10 began in "
                "such a time).")


def case_of(job: ClassAd) -> Case | None:
    """What a job's ad says of its wait; None: nothing that can be compared."""
    came_s, began_s = job.get_int("QDate"), job.get_int("JobStartDate")
    if came_s <= 0 or job.find("deferraltime") is not None or job.get_int("NumHolds"):
        return None
    universe, user = job.get_int("JobUniverse"), job.get_str("AccountingGroup") or job.get_str("User")
    memory = max(job.get_int("RequestMemory"), 1).bit_length()
    size = (job.get_int("RequestCpus", 1), memory, job.get_int("RequestGPUs"))
    kinds = ((universe, user, size), (universe, size), (universe, user), (universe,))
    return Case(came_s, float(began_s) if began_s >= came_s else None, kinds)


def estimate(job: ClassAd, others: Iterable[ClassAd], now_s: float) -> Estimate | None:
    """When a job that waits will begin.

    Args:
        job: it.
        others: those that began lately, newest first, and those that wait.
        now_s: the time.

    Returns:
        None when there are too few to go by.
    """
    own = case_of(job)
    if own is None or own.began_s is not None:
        return None
    cases = [case for ad in others if (case := case_of(ad)) is not None]
    for place, kind in enumerate(own.kinds):
        found = estimate_of([case for case in cases if case.kinds[place] == kind], now_s)
        if found is not None:
            return found
    return None


def estimate_of(cases: Sequence[Case], now_s: float) -> Estimate | None:
    """The middle 80 % of when one that waits now will begin; None: too few cases.

    Args:
        cases: of one kind; those that began, the newest first, and those that wait.
        now_s: the time.
    """
    begun = [case for case in cases if case.began_s is not None and case.began_s <= now_s][:NEWEST]
    if len(begun) < LEAST_CASES:
        return None
    waits = [case for case in cases if case.began_s is None or case.began_s > now_s]
    past = _Past([*begun, *waits])
    guess_s = past.guess_s(now_s)
    first_s = past.starts[PACE // 2]
    errors: list[tuple[float, bool]] = []
    telling = 0
    for number in range(MOMENTS):
        moment_s = first_s + (now_s - first_s) * (number + 0.5) / MOMENTS
        then_s = past.guess_s(moment_s)
        before = len(errors)
        for case in past.cases:
            if case.came_s <= moment_s and (case.began_s is None or case.began_s > moment_s):
                until_s = now_s if case.began_s is None or case.began_s > now_s else case.began_s
                errors.append(((until_s - moment_s) / then_s, until_s == case.began_s))
        telling += len(errors) > before
    if sum(is_known for _, is_known in errors) < LEAST_CASES:
        return None
    errors.sort(key=lambda error: (error[0], not error[1]))
    wider = (HIGH - LOW) / 2 / telling
    soonest, latest = _quantile(errors, LOW - wider), _quantile(errors, HIGH + wider)
    if soonest is None:
        return None
    return Estimate(soonest * guess_s, None if latest is None else latest * guess_s, len(begun))


class _Past:
    """What was known at each moment."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        self.starts = sorted(case.began_s for case in cases if case.began_s is not None)
        self._arrivals = sorted(case.came_s for case in cases)

    def guess_s(self, moment_s: float) -> float:
        """How long those that waited then had to wait on, by their number and the pace of the starts before."""
        begun = bisect_right(self.starts, moment_s)
        waiting = max(1, bisect_right(self._arrivals, moment_s) - begun)
        before = max(0, begun - PACE)
        pace_s = (moment_s - self.starts[before]) / max(1, begun - before)
        return max(1.0, waiting * pace_s)


def _quantile(errors: Sequence[tuple[float, bool]], share: float) -> float | None:
    """Which error this share is not over; None: it is not known."""
    left, rest = 1.0, len(errors)
    for error, is_known in errors:
        if is_known:
            left *= 1.0 - 1.0 / rest
            if 1.0 - left >= share - 1e-9:
                return error
        rest -= 1
    return None
