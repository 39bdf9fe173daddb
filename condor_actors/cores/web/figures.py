"""Figures over time: utilisation, queue length, wait ratio and leverage, in points that get coarser with age.

Theory: a point is a sum over the samples of a span, and points of three widths are kept, each width for as long as
the next needs: a minute's for a day, ten minutes' for a week, two hours' for three months.  So everything together is
some thousands of points, whatever the age of the pool.  The wait ratio is that of the 1988 figures: how long jobs
that ended had waited, against how long they ran; the leverage is the capacity that they got for each second that the
submit machine spent on them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.web.rows import finite

__all__ = ["ENDED_ATTRIBUTES", "SPANS", "Ended", "Figures", "Sample"]

WIDTHS: tuple[tuple[int, int], ...] = ((60, 24 * 60 + 1), (600, 7 * 24 * 6 + 1), (7200, 90 * 12 + 1))
"""(seconds a point stands for, the most points)."""
SPANS = {"hour": (0, 3600), "day": (0, 86_400), "week": (1, 7 * 86_400), "month": (2, 31 * 86_400)}
"""By name: which width, and how far back."""
ENDED_ATTRIBUTES = ("QDate", "CompletionDate", "RemoteWallClockTime", "Leverage", "RemoteUserCpu", "JobStatus")


@attrs.frozen
class Ended:
    """Jobs that have ended in a while.

    Attributes:
        jobs: how many.
        waited_s, ran_s: in the queue without running; on machines.
        leverage_cpu_s, support_s: capacity that jobs of the standard universe got; what their submit machine spent.
    """

    jobs: int = 0
    waited_s: float = 0.0
    ran_s: float = 0.0
    leverage_cpu_s: float = 0.0
    support_s: float = 0.0

    @classmethod
    def of(cls, ads: Iterable[bytes]) -> Ended:
        """Of the ads of the history."""
        jobs, waited_s, ran_s, cpu_s, support_s = 0, 0.0, 0.0, 0.0, 0.0
        for text in ads:
            try:
                ad = ClassAd.from_bytes(text)
            except ClassAdSyntaxError:
                continue
            ended_s = ad.get_float("CompletionDate")
            if not ended_s > 0:
                continue
            ran = max(0.0, finite(ad.get_float("RemoteWallClockTime")))
            jobs += 1
            ran_s += ran
            waited_s += max(0.0, finite(ended_s - ad.get_float("QDate")) - ran)
            leverage, cpu = finite(ad.get_float("Leverage")), finite(ad.get_float("RemoteUserCpu"))
            if leverage > 0 and cpu > 0:
                cpu_s += cpu
                support_s += cpu / leverage
        return cls(jobs, waited_s, ran_s, cpu_s, support_s)

    def __add__(self, other: Ended) -> Ended:
        return Ended(*(mine + its for mine, its in zip(attrs.astuple(self), attrs.astuple(other), strict=True)))


@attrs.frozen(kw_only=True)
class Sample:
    """The pool at one moment: cores by what they do, jobs by state, and what has ended since the last sample."""

    at_s: float
    cpus: int
    running: int
    owner: int
    idle_jobs: int
    running_jobs: int
    held_jobs: int
    ended: Ended


NAMES = ("at", "samples", "cpus", "running", "owner", "idle_jobs", "running_jobs", "held_jobs", "jobs", "waited_s",
         "ran_s", "leverage_cpu_s", "support_s")
"""What a point is made of: its beginning, how many samples, and sums."""
GREATEST_SUM = 1e15
"""A sum is less, whatever machines and shadows say; a file that says more is none of ours."""


class Figures:
    """All points of all widths."""

    def __init__(self) -> None:
        self._points: tuple[deque[list[float]], ...] = tuple(deque(maxlen=most) for _, most in WIDTHS)

    def add(self, sample: Sample) -> None:
        """Take a sample; one that is older than the last is counted to it."""
        ended = sample.ended
        values = [1.0, sample.cpus, sample.running, sample.owner, sample.idle_jobs, sample.running_jobs,
                  sample.held_jobs, ended.jobs, ended.waited_s, ended.ran_s, ended.leverage_cpu_s, ended.support_s]
        for (width_s, _), points in zip(WIDTHS, self._points, strict=True):
            begin_s = sample.at_s // width_s * width_s
            if points and begin_s <= points[-1][0]:
                points[-1][1:] = [_sum(old, new) for old, new in zip(points[-1][1:], values, strict=True)]
            else:
                points.append([begin_s, *(_sum(0.0, value) for value in values)])

    def span(self, name: str, now_s: float) -> dict[str, Any]:
        """The points of one of :data:`SPANS`, as they are drawn.

        Raises:
            KeyError: there is no such span.
        """
        index, length_s = SPANS[name]
        points = [point for point in self._points[index] if point[0] >= now_s - length_s]
        return {"span": name, "width": WIDTHS[index][0], "from": now_s - length_s, "to": now_s,
                "points": [_drawn(dict(zip(NAMES, point, strict=True))) for point in points]}

    # ---- to keep them

    def saved(self) -> dict[str, Any]:
        """What a file keeps."""
        return {"version": 1, "names": list(NAMES), "points": [list(points) for points in self._points]}

    def restore(self, data: Any) -> None:
        """Take over what a file kept.

        Raises:
            ValueError: it is not what :meth:`saved` returns.
        """
        if not isinstance(data, dict) or data.get("version") != 1 or data.get("names") != list(NAMES):
            raise ValueError("not a file of figures of this version")
        kept = data.get("points")
        if not isinstance(kept, list) or len(kept) != len(WIDTHS):
            raise ValueError("points of other widths")
        for points, rows in zip(self._points, kept, strict=True):
            last_s = -1.0
            points.clear()
            for row in rows if isinstance(rows, list) else []:
                if (not isinstance(row, list) or len(row) != len(NAMES) or row[0] <= last_s
                        or not all(isinstance(each, int | float) and 0 <= each < GREATEST_SUM for each in row)):
                    raise ValueError("a point is none")
                last_s = row[0]
                points.append([float(each) for each in row])


def _sum(old: float, new: float) -> float:
    """Both together, as far as a file may keep it; less than nothing is nothing."""
    return min(math.nextafter(GREATEST_SUM, 0.0), max(0.0, old + new))


def _drawn(point: dict[str, float]) -> dict[str, float | None]:
    """A point as the page draws it: shares and means; None where there is nothing to divide by."""
    samples, cpus = point["samples"], point["cpus"]

    def share(of: float, by: float, digits: int) -> float | None:
        return round(of / by, digits) if by > 0 else None

    return {
        "at": point["at"], "running": share(point["running"], cpus, 4), "owner": share(point["owner"], cpus, 4),
        "cpus": share(cpus, samples, 1), "idle_jobs": share(point["idle_jobs"], samples, 1),
        "running_jobs": share(point["running_jobs"], samples, 1), "held_jobs": share(point["held_jobs"], samples, 1),
        "ended": point["jobs"], "wait_ratio": share(point["waited_s"], point["ran_s"], 3),
        "leverage": share(point["leverage_cpu_s"], point["support_s"], 1),
    }
