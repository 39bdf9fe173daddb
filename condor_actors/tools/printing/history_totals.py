"""Totals of the history: groups that come page by page are added up, and shown as a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from condor_actors.classads import ClassAd, unparse
from condor_actors.tools.lib.command import ToolError

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from condor_actors.messages.queue import JobsPage

__all__ = ["MOST_GROUPS", "Progress", "added_up", "totals_table"]

MOST_GROUPS = 100_000
"""Groups that one answer may have: they are all in memory."""
SUMS = ("Jobs", "JobStarts", "WallClockSeconds", "CoreSeconds", "CpuSeconds")
DATES = ("Day", "Month", "Year")
PROGRESS_S = 2.0
"""After which it is said how far a question has come, and again after each."""
MANY = 100_000
"""Of jobs that were looked at one by one; of fewer nothing is said."""


class Progress:
    """Says on standard error how far a long question has come, and in the end what made it long."""

    def __init__(self) -> None:
        self._told_s = time.monotonic()
        self._looked = self._scanned = 0
        self._reason = ""

    def tell(self, page: JobsPage) -> None:
        """A page has come."""
        self._looked += page.looked
        self._scanned += page.scanned
        if page.scanned > 0 and page.reason:
            self._reason = self._reason if self._scanned - page.scanned > page.scanned else page.reason
        now_s = time.monotonic()
        if page.left and page.looked and now_s > self._told_s + PROGRESS_S:
            self._told_s = now_s
            print(f"{self._looked:,} of {self._looked + page.left:,} jobs", file=sys.stderr, flush=True)
        if not page.left and self._scanned > MANY:
            print(f"Note: {self._scanned:,} of {self._looked:,} jobs were looked at one by one: {self._reason}",
                  file=sys.stderr)


def added_up(by: Sequence[str], ads: Iterable[ClassAd]) -> list[ClassAd]:
    """One ad for each group: where there are dates in the order in which they came, otherwise the most jobs first.

    Raises:
        ToolError: there are more groups than are shown.
    """
    groups: dict[tuple[str, ...], ClassAd] = {}
    for ad in ads:
        key = tuple(_text(ad, name) for name in by)
        found = groups.get(key)
        if found is None:
            if len(groups) >= MOST_GROUPS:
                raise ToolError(f"Error: there are more than {MOST_GROUPS:,} groups; choose jobs by -constraint, or "
                                "group by what has fewer values")
            groups[key] = ad
            continue
        for name in SUMS:
            found[name] = found.evaluate(name) + ad.evaluate(name)
    is_dated = any(name in DATES for name in by) or list(by) == ["Owner"]
    if is_dated:
        return list(groups.values())
    return [groups[key] for key in sorted(groups, key=lambda key: (-groups[key].get_int("Jobs"), key))]


def _text(ad: ClassAd, name: str) -> str:
    expression = ad.expression(name)
    return "undefined" if expression is None else unparse(expression)


def totals_table(by: Sequence[str], ads: Iterable[ClassAd]) -> Iterator[str]:
    """The groups, and below them the sum of all."""
    from condor_actors.tools.printing.formats import shown as text_of

    found = list(ads)
    shown = [[text_of(ad.evaluate(name)) for name in by] for ad in found]
    widths = [max([len(name), *(len(keys[column]) for keys in shown)]) for column, name in enumerate(by)]

    def line(keys: Sequence[str], *columns: str) -> str:
        left = " ".join(f"{key:<{width}}" for key, width in zip(keys, widths, strict=True))
        return left + "".join(f"{column:>13}" for column in columns) + "\n"

    def numbers(ads: Sequence[ClassAd]) -> list[str]:
        hours = (sum(ad.get_float(name) for ad in ads) / 3600
                 for name in ("WallClockSeconds", "CoreSeconds", "CpuSeconds"))
        return [str(sum(ad.get_int(name) for ad in ads)) for name in ("Jobs", "JobStarts")] + [
            f"{each:.1f}" for each in hours]

    yield line([name.upper() for name in by], "JOBS", "STARTS", "HOURS", "CORE_HOURS", "CPU_HOURS")
    for keys, ad in zip(shown, found, strict=True):
        yield line(keys, *numbers([ad]))
    yield "\n" + line(["All", *("" for _ in by[1:])], *numbers(found))
