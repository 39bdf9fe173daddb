"""The totals below the tables of condor_status.

Each kind of total is a row of numbers per key (platform, activity, submitter) and one for all.  **Source**: the
manual, condor_status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd

STATES = ("Owner", "Claimed", "Unclaimed", "Matched", "Preempting", "Drained", "Backfill", "BkIdle")


@records.frozen
class Total:
    """One kind of totals.

    Attributes:
        heads: (heading, width) of each number.
        key: the line that an ad counts for; empty: the last line only.
        count: the numbers that an ad adds.
        names: attributes that it needs.
        form: how a sum is written.
    """

    heads: tuple[tuple[str, int], ...]
    key: Callable[[ClassAd], str]
    count: Callable[[ClassAd], Sequence[float]]
    names: tuple[str, ...]
    form: Callable[[float], str] = lambda value: str(int(value))


def _platform(ad: ClassAd) -> str:
    return f"{ad.get_str('Arch')}/{ad.get_str('OpSys')}"


def _states(order: Sequence[str]) -> Callable[[ClassAd], Sequence[float]]:
    def count(ad: ClassAd) -> Sequence[float]:
        state = ad.get_str("State")
        backfill = ad.get_bool("BackfillSlot")
        if state == "Backfill" or (backfill and state == "Unclaimed"):
            state = "Backfill" if state == "Backfill" else "BkIdle"
        return [1, *(1 if name == state else 0 for name in order)]

    return count


def _sums(*names: str) -> Callable[[ClassAd], Sequence[float]]:
    return lambda ad: [ad.get_float(name) for name in names]


def _running(ad: ClassAd) -> Sequence[float]:
    return [1, ad.get_float("Mips"), ad.get_float("KFlops"), ad.get_float("LoadAvg")]


def _server(ad: ClassAd) -> Sequence[float]:
    state = ad.get_str("State")
    available = state in ("Claimed", "Unclaimed", "Matched", "Preempting")
    return [1, 1 if available else 0, *(ad.get_float(name) for name in ("Memory", "Disk", "Mips", "KFlops"))]


_STATE_ORDER = ("Owner", "Unclaimed", "Claimed", "Preempting", "Matched", "Drained", "Backfill", "BkIdle")
_NORMAL = Total(
    (("Total", 6), ("Owner", 5), ("Claimed", 7), ("Unclaimed", 9), ("Matched", 7), ("Preempting", 10), ("Drain", 6),
     ("Backfill", 8), ("BkIdle", 6)),
    _platform, _states(STATES), ("Arch", "OpSys", "State", "BackfillSlot"),
)
TOTALS: dict[str, Total] = {
    "normal": _NORMAL,
    "compact": _NORMAL,
    "state": Total(
        (("Total", 6), ("Owner", 5), ("Unclaimed", 9), ("Claimed", 7), ("Preempting", 10), ("Matched", 7),
         ("Drain", 6), ("Backfill", 8), ("BkIdle", 6)),
        lambda ad: ad.get_str("Activity"), _states(_STATE_ORDER), ("Activity", "State", "BackfillSlot"),
    ),
    "run": Total((("Machines", 9), ("MIPS", 12), ("KFLOPS", 12), ("AvgLoadAvg", 12)), _platform, _running,
                 ("Arch", "OpSys", "Mips", "KFlops", "LoadAvg")),
    "server": Total((("Slots", 9), ("Avail", 5), ("Memory", 11), ("Disk", 11), ("MIPS", 11), ("KFLOPS", 11)),
                    _platform, _server, ("Arch", "OpSys", "State", "Memory", "Disk", "Mips", "KFlops")),
    "schedd": Total((("TotalRunningJobs", 18), ("TotalIdleJobs", 18), ("TotalHeldJobs", 18)), lambda ad: "",
                    _sums("TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs"),
                    ("TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs")),
    "submitters": Total((("RunningJobs", 11), ("IdleJobs", 10), ("HeldJobs", 10)), lambda ad: ad.get_str("Name"),
                        _sums("RunningJobs", "IdleJobs", "HeldJobs"), ("Name", "RunningJobs", "IdleJobs", "HeldJobs")),
}
"""The totals by view; a view that is not here has none."""


def totals(ads: Iterable[ClassAd], kind: Total, *, average_last: bool = False) -> str:
    """The lines below a table; empty when there was no ad."""
    lines: dict[str, list[float]] = {}
    everything = [0.0] * len(kind.heads)
    counted = 0
    for ad in ads:
        counted += 1
        numbers = kind.count(ad)
        for row in (lines.setdefault(kind.key(ad), [0.0] * len(kind.heads)), everything):
            for index, value in enumerate(numbers):
                row[index] += value
    if not counted:
        return ""
    keys = [key for key in sorted(lines, key=str.lower) if key]
    width = max(14, *(len(key) + 2 for key in (*keys, "Total")))
    out = ["\n", " " * width + " ".join(head.rjust(size) for head, size in kind.heads) + "\n\n"]
    for key in keys:
        out.append(key.rjust(width) + _numbers(lines[key], kind, average_last=average_last) + "\n")
    if keys:
        out.append("\n")
    out.append("Total".rjust(width) + _numbers(everything, kind, average_last=average_last) + "\n")
    return "".join(out)


def _numbers(row: Sequence[float], kind: Total, *, average_last: bool) -> str:
    texts = [kind.form(value) for value in row]
    if average_last and row[0]:
        texts[-1] = f"{row[-1] / row[0]:.3f}"
    return " ".join(text.rjust(size) for text, (_, size) in zip(texts, kind.heads, strict=True))
