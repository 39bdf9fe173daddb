"""What condor_top makes of two ads of one daemon: how much of what it did between them.

**Source**: the manual, condor_top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import attrs

from condor_actors.classads import ClassAd
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.printing.terminal import shown

__all__ = ["COLUMNS", "COLUMN_SETS", "Row", "between", "health", "process", "table"]

COLUMNS: dict[str, tuple[str, str, str]] = {
    "TotalRt": ("Total", "Runtime", "(s)"), "InstRt": ("Recent", "Runtime", "(s)"),
    "InstAvg": ("Recent", "Avg", "(s)"), "TotAvg": ("Lifetime", "Avg", "(s)"), "TotMax": ("Lifetime", "Max", "(s)"),
    "TotMin": ("Lifetime", "Min", "(s)"), "RtPctAvg": ("Pct of", "Avg", "(%)"), "RtPctMax": ("Pct of", "Max", "(%)"),
    "RtSigmas": ("Std", "Devs", ""), "TotalCt": ("Total", "Count", "(#)"), "InstCt": ("Recent", "Count", "(#)"),
    "InstRate": ("Recent", "Rate", "(/s)"), "AvgRate": ("Lifetime", "Rate", "(/s)"),
    "CtPctAvg": ("Pct of", "Rate", "(%)"), "Item": ("", "Name", ""),
}
"""The three rows of each heading."""
COLUMN_SETS = {
    "default": ("InstRt", "InstAvg", "TotAvg", "TotMax", "RtPctAvg", "InstRate", "AvgRate", "Item"),
    "runtime": ("InstRt", "InstAvg", "TotAvg", "TotMax", "RtPctAvg", "RtPctMax", "RtSigmas", "Item"),
    "count": ("TotalCt", "InstCt", "InstRate", "AvgRate", "CtPctAvg", "Item"),
    "all": tuple(COLUMNS),
}
_WHOLE = ("TotalCt", "InstCt")
_SUFFIX = "Runtime"


@attrs.frozen
class Row:
    """What is told of one kind of work; None: nobody knows."""

    item: str
    values: dict[str, float | None]


def span_s(old: ClassAd, new: ClassAd) -> tuple[float, float]:
    """When the two ads were made, seconds since 1970.

    Raises:
        ToolError: they are not of one life of one daemon, or of the same moment.
    """
    begins = (old.get_float("DaemonStartTime", -1.0), new.get_float("DaemonStartTime", -1.0))
    lives = (old.get_float("StatsLifetime", -1.0), new.get_float("StatsLifetime", -1.0))
    if min(*begins, *lives) >= 0:
        if begins[0] != begins[1]:
            raise ToolError("Error: Daemon ads have different start times: the daemon was started again between them.")
        then_s, now_s = begins[0] + lives[0], begins[1] + lives[1]
    else:
        then_s, now_s = old.get_float("MyCurrentTime"), new.get_float("MyCurrentTime")
    if not now_s - then_s > 0:
        raise ToolError("Error: ClassAds have the same timestamp.")
    return then_s, now_s


def between(old: ClassAd, new: ClassAd, more: Sequence[str] = ()) -> list[Row]:
    """A row for each kind of work that both ads count.

    Args:
        more: further attributes that count something.

    Raises:
        ToolError: see `span_s`.
    """
    then_s, now_s = span_s(old, new)
    names = [name[: -len(_SUFFIX)] for name in new if name.endswith(_SUFFIX) and len(name) > len(_SUFFIX)]
    return [_row(name, old, new, now_s - then_s) for name in dict.fromkeys([*names, *more])
            if _number(old, name) is not None and _number(new, name) is not None]


def _number(ad: ClassAd, name: str) -> float | None:
    value = ad.evaluate(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _row(name: str, old: ClassAd, new: ClassAd, spent_s: float) -> Row:
    count, before = _number(new, name) or 0.0, _number(old, name) or 0.0
    total, was = _number(new, f"{name}{_SUFFIX}"), _number(old, f"{name}{_SUFFIX}")
    ran = total - was if total is not None and was is not None else None
    average, longest, least, deviation = (
        _number(new, f"{name}{_SUFFIX}{each}") for each in ("Avg", "Max", "Min", "Std"))
    times = count - before
    recent = ran / times if ran is not None and times > 0 else None
    lifetime_s = _number(new, "StatsLifetime")
    rate = times / spent_s
    mean_rate = count / lifetime_s if lifetime_s else None
    of_longest = None
    if recent is not None and longest is not None and least is not None:
        of_longest = 100.0 * _part(recent - least, longest - least, 1.0)
    sigmas = None
    if recent is not None and average is not None and deviation:
        sigmas = (recent - average) / deviation
    values = {
        "TotalRt": total, "InstRt": ran, "InstAvg": recent, "TotAvg": average, "TotMax": longest, "TotMin": least,
        "RtPctAvg": 100.0 * _part(recent, average, 0.0) if recent is not None and average is not None else None,
        "RtPctMax": of_longest,
        "RtSigmas": sigmas,
        "TotalCt": count, "InstCt": times, "InstRate": rate, "AvgRate": mean_rate,
        "CtPctAvg": 100.0 * rate / mean_rate if times > 0 and mean_rate else None,
    }
    return Row(name.removeprefix("DC"), values)


def _part(value: float, whole: float, of_nothing: float) -> float:
    return value / whole if whole else of_nothing


# ---- as text


def _moment(seconds: float) -> str:
    return str(datetime.fromtimestamp(seconds))  # noqa: DTZ006 - people read it


def process(kind: str, name: str, ad: ClassAd) -> Iterator[str]:
    """The process: its age, its time, its memory."""
    yield f"{kind} {shown(name)} status at {_moment(ad.get_float('MonitorSelfTime'))}:"
    yield ""
    yield f"Uptime: {timedelta(seconds=int(ad.get_float('MonitorSelfAge')))}"
    yield (f"SysCpuTime: {timedelta(seconds=round(ad.get_float('MonitorSelfSysCpuTime'), 2))}    "
           f"UserCpuTime: {timedelta(seconds=round(ad.get_float('MonitorSelfUserCpuTime'), 2))}")
    yield (f"Memory: {_memory(ad.get_float('MonitorSelfImageSize'))}    "
           f"RSS: {_memory(ad.get_float('MonitorSelfResidentSetSize'))}")
    yield ""


def _memory(kib: float) -> str:
    for unit in "KMGT":
        if kib < 1000:
            return f"{kib:.1f} {unit}"
        kib /= 1000
    return f"{kib:.1f} P"


def health(old: ClassAd, new: ClassAd) -> Iterator[str]:
    """How busy the daemon was between the two ads."""
    then_s, now_s = span_s(old, new)
    waited = new.get_float("DCSelectWaittime") - old.get_float("DCSelectWaittime")
    whole = new.get_float("DCPumpCycleSum") - old.get_float("DCPumpCycleSum")
    turns = new.get_float("DCCommands") - old.get_float("DCCommands")
    yield f"DC status from {_moment(then_s)} to {_moment(now_s)}:"
    cycle = f"{100.0 * (1 - waited / whole):.2f}%" if whole > 0 else "undefined, try setting a larger delay (-d)"
    yield f"Duty Cycle: {cycle}    Ops/second: {turns / (now_s - then_s):.3f}"
    yield ""


def table(old: ClassAd, new: ClassAd, columns: Sequence[str], sort: str, more: Sequence[str] = ()) -> Iterator[str]:
    """The table, the largest of ``sort`` first."""
    then_s, now_s = span_s(old, new)
    rows = between(old, new, more)
    rows.sort(key=lambda row: row.item.lower() if sort == "Item" else -(row.values[sort] or 0.0))
    yield f"Runtime stats from {_moment(then_s)} to {_moment(now_s)}:"
    cells = {column: [_cell(row, column) for row in rows] for column in columns}
    widths = {column: max(map(len, (*COLUMNS[column], *cells[column]))) for column in columns}
    for index in range(3):
        yield " ".join(COLUMNS[column][index].rjust(widths[column]) if column != "Item" else COLUMNS[column][index]
                       for column in columns).rstrip()
    yield " ".join("-" * (widths[column] if column != "Item" else 4) for column in columns)
    for index in range(len(rows)):
        yield " ".join(cells[column][index].rjust(widths[column]) if column != "Item" else cells[column][index]
                       for column in columns).rstrip()


def _cell(row: Row, column: str) -> str:
    if column == "Item":
        return shown(row.item)
    value = row.values[column]
    if value is None:
        return "n/a"
    if column in _WHOLE:
        return str(int(value))
    return f"{value:.{max(0, 5 - len(str(int(abs(value)))))}f}"
