"""What condor_watch_q shows: a table of groups of jobs, a bar for all, a line of sums.

**Source**: the manual, condor_watch_q, and what the command prints.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import attrs
from rich.text import Text

from condor_actors.tools.live.tracked_jobs import ACTIVE, Cluster, State
from condor_actors.tools.printing.terminal import shown

__all__ = ["Group", "abbreviated", "bar", "nice_path", "progress", "summary", "table"]

_ALWAYS = {State.IDLE, State.RUN, State.DONE}
_BAR: Mapping[State, tuple[str, str]] = {
    State.IDLE: ("-", "bright_yellow"), State.INPUT: (">", "cyan"), State.RUN: ("=", "cyan"),
    State.OUTPUT: (">", "cyan"), State.DONE: ("#", "green"), State.HELD: ("!", "red"), State.SUSPENDED: ("!", "red"),
    State.REMOVED: ("!", "red"),
}
"""In the order of the bar."""
_SUMS: tuple[tuple[str, tuple[State, ...]], ...] = (
    ("completed", (State.DONE,)), ("removed", (State.REMOVED,)), ("idle", (State.IDLE,)),
    ("running", (State.INPUT, State.RUN, State.OUTPUT)), ("held", (State.HELD,)), ("suspended", (State.SUSPENDED,)),
)
_WIDEST_BAR = 79
_LEAST_BAR = 10
_HEAD = "Total Progress: "


@attrs.frozen
class Group:
    """A line of the table.

    Attributes:
        name: of the batch, the log or the cluster.
        counts: jobs by state.
        total: jobs in all, with those that nobody has heard of yet.
        ids: of those in the queue.
    """

    name: str
    counts: Counter[State]
    total: int
    ids: str

    @classmethod
    def of(cls, name: str, clusters: Sequence[Cluster], expected: int = 0) -> Group:
        """The line of these clusters; ``expected``: how many jobs a workflow says that there will be."""
        counts: Counter[State] = Counter()
        active: list[tuple[int, int]] = []
        for cluster in clusters:
            counts.update(cluster.states.values())
            active += ((cluster.number, proc) for proc, state in cluster.states.items() if state in ACTIVE)
        active.sort()
        names = [f"{cluster}.{proc}" for cluster, proc in (active if len(active) <= 2 else (active[0], active[-1]))]
        ids = " ... ".join(names) if len(active) > 2 else ", ".join(names)
        return cls(name, counts, max(expected, sum(cluster.jobs for cluster in clusters)), ids)

    @property
    def style(self) -> str:
        """Its colour: jobs that need attention stand out."""
        if self.counts[State.HELD]:
            return "red"
        if self.counts[State.DONE] == self.total:
            return "green"
        if self.counts[State.RUN]:
            return "cyan"
        return "yellow" if self.counts[State.IDLE] else "bright_white"


def table(heading: str, groups: Sequence[Group], width: int, *, has_bars: bool) -> list[Text]:
    """The table, its heading first.

    Args:
        heading: of the first column: ``BATCH``, ``LOG`` or ``CLUSTER``.
        width: of the terminal.
        has_bars: a bar behind each line, where there is room.
    """
    states = [state for state in State if state in _ALWAYS or any(group.counts[state] for group in groups)]
    heads = [heading, *(state.value for state in states), "TOTAL", "JOB_IDS"]
    is_left = [True, *(False for _ in states), False, True]
    rows = [[f"{cell} " for cell in (shown(group.name).replace("\n", "\\n"),
                                     *(str(group.counts[state] or "-") for state in states),
                                     str(group.total or "-"), group.ids)] for group in groups]
    widths = [max([len(head), *(len(row[index]) for row in rows)]) for index, head in enumerate(heads)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(size) if left else cell.rjust(size)
                         for cell, size, left in zip(cells, widths, is_left, strict=True))

    found = [Text(line(heads).rstrip()[:width])]
    for group, row in zip(groups, rows, strict=True):
        text = line(row)
        left = width - len(text)
        found.append(Text().append(text[:width], style=group.style))
        if has_bars and left > _LEAST_BAR:
            found[-1].append_text(bar(group.counts, group.total, left))
    return found


def bar(counts: Mapping[State, int], total: int, width: int) -> Text:
    """Jobs by state, in ``width`` columns, brackets among them."""
    inside = max(min(width, _WIDEST_BAR) - 2, 1)
    lengths = [int(inside * counts.get(state, 0) / total) if total else 0 for state in _BAR]
    lengths[lengths.index(max(lengths))] += inside - sum(lengths)
    found = Text("[")
    for (letter, style), length in zip(_BAR.values(), lengths, strict=True):
        found.append(letter * length, style=style)
    return found.append("]")


def progress(counts: Mapping[State, int], total: int, width: int) -> Text:
    """The bar of all jobs."""
    return Text(_HEAD) + bar(counts, total, width - len(_HEAD))


def summary(counts: Mapping[State, int], total: int, width: int, *, is_percent: bool) -> Text:
    """The line of sums; its words are shortened where the line would be too long."""
    sums = [(word, sum(counts.get(state, 0) for state in states)) for word, states in _SUMS]
    for letters in range(10, 1, -1):
        if is_percent:
            short = letters < 10
            parts = [f"{round(100 * count / total) if total else 0}% {word[0].upper() if short else word}"
                     for word, count in sums]
        else:
            parts = [f"{count} {word[:letters]}" for word, count in sums if count]
        text = f"Total: {total} jobs; {', '.join(parts)}"
        if len(text) <= width:
            break
    return Text(text)


def nice_path(path: str) -> str:
    """The shortest way to write a path: whole, from the home folder, or from here."""
    whole = os.path.abspath(path)
    ways = [whole]
    home = os.path.expanduser("~")
    if whole.startswith(f"{home}/") and home != "/":
        ways.append(f"~/{os.path.relpath(whole, home)}")
    here = os.path.relpath(whole)
    if not here.startswith("../"):
        ways.append(f"./{here}")
    return min(ways, key=len)


def abbreviated(path: str) -> str:
    """A path with each folder's name cut to what is beyond the common beginning of all that stand beside it."""
    *folders, last = path.split("/")
    found, so_far = [], ""
    for folder in folders:
        so_far = os.path.join(so_far, folder) if so_far or folder else "/"
        if folder in ("", "~", "."):
            found.append(folder)
            so_far = os.path.expanduser(so_far)
            continue
        try:
            beside = os.listdir(os.path.dirname(so_far) or ".")
        except OSError:
            beside = [folder]
        common = _common(beside)
        found.append(folder[: common + 1])
    return "/".join([*found, last])


def _common(names: Sequence[str]) -> int:
    """How many letters all names begin with alike; 0 of a single one."""
    if len(names) < 2:
        return 0
    first, last = min(names), max(names)
    return next((index for index, (a, b) in enumerate(zip(first, last, strict=False)) if a != b),
                min(len(first), len(last)))
