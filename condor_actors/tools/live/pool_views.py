"""What condor_watch shows: lines for a window of any width from 60 columns on.

Theory: each view is a table whose columns have a rank; in a narrow window those of the highest rank are left out, and
the last column takes what is left.  All texts are others': they come through `shown`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from rich.text import Text

from condor_actors.classads import ClassAd
from condor_actors.cores.web.picture import LOOKS
from condor_actors.cores.web.rows import COLUMNS, LONGEST
from condor_actors.messages.codes import JobStatus, Universe
from condor_actors.tools.printing.terminal import shown

__all__ = ["VIEWS", "Column", "header", "meter", "span", "story_lines", "tabled"]

STYLES = {"running": "cyan", "transferring": "cyan", "idle": "yellow", "held": "red", "completed": "green",
          "suspended": "magenta", "removed": "red", "owner": "blue", "free": "green", "matched": "yellow",
          "leaving": "magenta", "drained": "red"}
_LETTERS = {"running": "=", "transferring": ">", "idle": "-", "held": "!", "suspended": "~", "completed": "#",
            "removed": "x", "owner": "o", "free": ".", "matched": "+", "leaving": "<", "drained": "d"}
_INDEX = {name: index for index, name in enumerate(COLUMNS)}


@attrs.frozen
class Column:
    """A column of a view.

    Attributes:
        head: its heading.
        width: of its cells.
        rank: the higher, the sooner it is left out.
        is_left: texts, not numbers.
    """

    head: str
    width: int
    rank: int = 0
    is_left: bool = True


@attrs.frozen
class Line:
    """A line of a view: its cells, its style, and what it is of."""

    cells: tuple[str | Text, ...]
    style: str = ""
    key: Any = None


def span(seconds: float) -> str:
    """How long, in few letters."""
    seconds = max(int(seconds), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 100 * size or (seconds >= size and unit != "m") or (unit == "m" and seconds >= 100):
            return f"{seconds / size:.1f}{unit}" if unit == "d" else f"{seconds // size}{unit}"
    return f"{seconds}s"


def meter(part: float, width: int, style: str) -> Text:
    """A bar that is filled to this part of 1."""
    filled = round(min(max(part, 0.0), 1.0) * width)
    return Text().append("█" * filled, style=style).append("░" * (width - filled), style="dim")


def _plain(text: str) -> str:
    return shown(text).replace("\n", "\\n")


def _shares(counts: Mapping[str, int], order: Sequence[str], width: int) -> Text:
    total = sum(counts.get(name, 0) for name in order)
    lengths = [int(width * counts.get(name, 0) / total) if total else 0 for name in order]
    if total:
        lengths[lengths.index(max(lengths))] += width - sum(lengths)
    found = Text("[")
    for name, length in zip(order, lengths, strict=True):
        found.append(_LETTERS[name] * length, style=STYLES[name])
    return found.append(" " * (width - sum(lengths)) + "]")


def header(jobs: Mapping[str, int], slots: Mapping[str, int], width: int) -> list[Text]:
    """Two bars, of all jobs and of all slots, with the numbers below each."""
    found = []
    for name, counts, order in (("jobs", jobs, ("running", "transferring", "suspended", "idle", "held")),
                                ("slots", slots, ("running", "suspended", "leaving", "matched", "free", "owner",
                                                  "drained"))):
        total = sum(counts.get(each, 0) for each in order)
        found.append(Text(f"{name:<5} ", style="bold") + _shares(counts, order, max(width - 8, 10)))
        line = Text(f"{total:>5} ")
        for each in order:
            if counts.get(each):
                line.append(f" {_LETTERS[each]} {counts[each]} {each} ", style=STYLES[each])
        line.truncate(width)
        found.append(line)
    return found


def tabled(columns: Sequence[Column], lines: Sequence[Line], width: int, chosen: int) -> list[Text]:
    """The table, headings first; the line ``chosen`` is marked."""
    kept = list(range(len(columns)))
    while len(kept) > 2 and sum(columns[index].width + 1 for index in kept) > width:
        kept.remove(max(kept, key=lambda index: (columns[index].rank, index)))
    last_width = max(width - sum(columns[index].width + 1 for index in kept[:-1]), 1)

    def joined(cells: Sequence[str | Text], style: str) -> Text:
        found = Text(style=style)
        for index in kept:
            column, cell = columns[index], cells[index]
            size = last_width if index == kept[-1] else column.width
            text = cell.copy() if isinstance(cell, Text) else Text(_plain(cell))
            text.truncate(size)
            text.align("left" if column.is_left else "right", size)
            found.append_text(text)
            found.append(" " if index != kept[-1] else "")
        return found

    found = [joined([column.head for column in columns], "bold")]
    for number, line in enumerate(lines):
        text = joined(line.cells, line.style)
        if number == chosen:
            text.stylize("reverse")
        found.append(text)
    return found


# ---- views


def job_columns() -> tuple[Column, ...]:
    """Of the first view."""
    return (Column("JOB", 10), Column("OWNER", 10), Column("STATE", 9), Column("FOR", 6, is_left=False),
            Column("MOVES", 5, 3, is_left=False), Column("CKPTS", 5, 4, is_left=False),
            Column("MB", 6, 5, is_left=False), Column("HOST", 18, 2), Column("BATCH", 14, 6), Column("COMMAND", 10))


def job_lines(rows: Sequence[tuple[Any, ...]], now_s: float) -> list[Line]:
    """A line for each row of the queue."""
    found = []
    for row in rows:
        def of(name: str, row: tuple[Any, ...] = row) -> Any:
            return row[_INDEX[name]]

        since_s = of("entered") or of("submitted")
        host = of("host").partition("@")
        found.append(Line((
            f"{of('cluster')}.{of('proc')}", of("owner"), of("status"), span(now_s - since_s) if since_s else "",
            str(of("moves") or ""), str(of("checkpoints") or ""), str(of("memory") or ""),
            f"{host[2].partition('.')[0]} {host[0]}".strip() if host[1] else of("host"), of("batch"),
            of("reason") or of("command")), STYLES.get(of("status"), ""), (of("schedd"), of("cluster"), of("proc"))))
    return found


def slot_columns() -> tuple[Column, ...]:
    """Of the second view."""
    return (Column("SLOT", 24), Column("STATE", 9), Column("FOR", 6, is_left=False),
            Column("CPUS", 4, 3, is_left=False), Column("LOAD", 5, 4, is_left=False),
            Column("USER", 16, 2), Column("JOB", 10, 1))


def slot_lines(slots: Sequence[Mapping[str, Any]], now_s: float) -> list[Line]:
    """A line for each slot."""
    return [Line((slot["name"], slot["look"], span(now_s - slot["since"]) if slot["since"] else "", str(slot["cpus"]),
                  f"{slot['load']:.2f}", slot["user"], slot["job"]), STYLES[slot["look"]], slot["name"])
            for slot in slots if not (slot["parent"] and slot["cpus"] == 0)]


def owner_columns() -> tuple[Column, ...]:
    """Of the third view."""
    return (Column("MACHINE", 24), Column("OWNER", 16), Column("LOAD", 6, 2, is_left=False), Column("SLOTS", 20, 1))


def owner_lines(machines: Sequence[Mapping[str, Any]], now_s: float) -> list[Line]:
    """A line for each machine: whether its owner is there, and what its slots do."""
    found = []
    for machine in machines:
        idle_s = machine["idle"]
        word = "no keyboard" if idle_s < 0 else "here now" if idle_s < 60 else f"away {span(idle_s)}"
        looks = machine["looks"]
        bar = Text()
        for look in LOOKS:
            bar.append(_LETTERS[look] * looks.get(look, 0), style=STYLES[look])
        found.append(Line((machine["machine"], word, f"{machine['load']:.2f}", bar),
                          "blue" if looks.get("owner") else "", machine["machine"]))
    return found


def transfer_columns() -> tuple[Column, ...]:
    """Of the fourth view."""
    return (Column("JOB", 10), Column("OWNER", 10, 2), Column("WHAT", 8), Column("FOR", 6, is_left=False),
            Column("SENT MB", 8, 3, is_left=False), Column("BACK MB", 8, 4, is_left=False), Column("HOST", 18))


def transfer_lines(ads: Sequence[ClassAd], now_s: float) -> list[Line]:
    """A line for each job whose files are on their way, and below these what the others have moved."""
    found: list[tuple[int, Line]] = []
    for ad in ads:
        status, start_s = ad.get_int("JobStatus"), ad.get_int("JobCurrentStartDate")
        executing = ad.get_int("JobCurrentStartExecutingDate")
        if status == JobStatus.TRANSFERRING_OUTPUT:
            rank, what, since_s = 0, "output", ad.get_int("EnteredCurrentStatus")
        elif executing < start_s and ad.get_int("JobUniverse", Universe.VANILLA) == Universe.VANILLA:
            rank, what, since_s = 1, "input", start_s
        else:
            rank, what, since_s = 2, "done", executing or start_s
        found.append((rank, Line((
            f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}", ad.get_str("Owner")[:LONGEST], what,
            span(now_s - since_s) if since_s else "",
            f"{max(ad.get_float('BytesRecvd') / 1e6, ad.get_float('TransferInputSizeMB')):.1f}",
            f"{ad.get_float('BytesSent') / 1e6:.1f}", ad.get_str("RemoteHost")[:LONGEST]),
            "cyan" if rank < 2 else "", _key(ad))))
    return [line for _, line in sorted(found, key=lambda each: each[0])]


def checkpoint_columns() -> tuple[Column, ...]:
    """Of the fifth view."""
    return (Column("JOB", 10), Column("OWNER", 10, 2), Column("CKPTS", 5, is_left=False),
            Column("LAST", 7, is_left=False), Column("SIZE MB", 8, 3, is_left=False), Column("SAVED OF THIS RUN", 22))


def checkpoint_lines(ads: Sequence[ClassAd], now_s: float) -> list[Line]:
    """A line for each job that runs: how much of its run a checkpoint has saved; what has most to lose comes first."""
    found: list[tuple[float, Line]] = []
    for ad in ads:
        count, start_s, last_s = (ad.get_int(name) for name in ("NumCkpts", "JobCurrentStartDate", "LastCkptTime"))
        if not count and ad.get_int("JobUniverse") != Universe.STANDARD:
            continue
        run_s = max(now_s - start_s, 1.0)
        part = min(max((last_s - start_s) / run_s, 0.0), 1.0)
        bar = meter(part, 14, "green" if part > 0.5 else "yellow").append(f" {part:>4.0%}")
        found.append((run_s * (1 - part), Line((
            f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}", ad.get_str("Owner")[:LONGEST], str(count),
            f"{span(now_s - last_s)}" if last_s else "none", f"{ad.get_float('CkptSize') / 1e6:.1f}", bar), "",
            _key(ad))))
    return [line for _, line in sorted(found, key=lambda each: -each[0])]


def _key(ad: ClassAd) -> tuple[str, int, int]:
    return ad.get_str("Schedd"), ad.get_int("ClusterId"), ad.get_int("ProcId")


VIEWS: tuple[tuple[str, Callable[[], tuple[Column, ...]], Callable[[Any, float], list[Line]]], ...] = (
    ("jobs", job_columns, job_lines), ("slots", slot_columns, slot_lines), ("owners", owner_columns, owner_lines),
    ("transfers", transfer_columns, transfer_lines), ("checkpoints", checkpoint_columns, checkpoint_lines),
)


def story_lines(story: Mapping[str, Any], width: int) -> list[Text]:
    """What became of a job, line by line."""
    found = [Text(f"{story['id']} of {_plain(story['owner'])}: {story['status']}", style="bold")]
    for event in story["events"]:
        moment = time.strftime("%m-%d %H:%M:%S", time.localtime(event["at"]))
        found.append(Text(f"{moment}  ", style="dim"))
        found[-1].append(_plain(event["text"]), style=STYLES.get(event["kind"], ""))
    found.append(Text(""))
    found += [Text(f"{name} = {_plain(value)}") for name, value in story["attributes"]]
    for line in found:
        line.truncate(width)
    return found
