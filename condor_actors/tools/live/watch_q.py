"""condor_watch_q: the jobs of event logs, by batch, as they go on.

Reads the logs alone once it knows where they are.

**Source**: the manual, condor_watch_q.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs
from rich.text import Text

from condor_actors import accounts
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.flags import MANY, NO_DEBUG, Flag, Given
from condor_actors.tools.live.event_logs import FollowedLogs, Found, find_logs
from condor_actors.tools.live.job_table import Group, abbreviated, nice_path, progress, summary, table
from condor_actors.tools.live.screen import Screen
from condor_actors.tools.live.tracked_jobs import ACTIVE, State, TrackedJobs

SWITCHES = ("exit-on-key-press", "display-exited", "decay-start-at-read", "table", "progress", "row-progress",
            "summary", "updated-at", "abbreviate", "color", "refresh")
SWITCHED_OFF = ("no-exit-on-key-press", "no-display-exited", "no-decay-start-at-read", "no-table", "no-progress",
                "no-row-progress", "no-summary", "no-updated-at", "no-abbreviate", "no-color", "no-refresh")
FLAGS = (
    Flag("help", 1), Flag("debug", 3, idle=NO_DEBUG), Flag("version", 1),
    Flag("users", 1, MANY), Flag("clusters", 2, MANY), Flag("larger-than", 1, 1), Flag("files", 1, MANY),
    Flag("batches", 1, MANY), Flag("collector", 4, 1), Flag("schedd", 2, 1), Flag("interval", 1, 1),
    Flag("exit", 4, 1), Flag("groupby", 1, 1), Flag("exited-row-decay", 7, 1), Flag("summary-type", 8, 1),
    *(Flag(name, len(name)) for name in (*SWITCHES, *SWITCHED_OFF)),
)  # fmt: skip
_LIKE_Q = re.compile(r"\d+(\.\d+)?")
GROUPERS = ("all", "any", "none")
STATES = {"active": ACTIVE, "done": {State.DONE}, "idle": {State.IDLE}, "held": {State.HELD}}
HEADS = {"batch": "BATCH", "log": "LOG", "cluster": "CLUSTER"}
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "M": 31 * 86400, "y": 365 * 86400}
CLOCK_S = 1.0
"""How often the line with the time is written anew."""
AGAIN_S = 0.5


@attrs.frozen
class ExitWhen:
    """When to end: ``all``, ``any`` or ``none`` of the jobs are in a state; and with which status."""

    grouper: str
    state: str
    status: int

    def is_met(self, states: Iterable[State]) -> bool:
        """Whether it is so now; of no jobs at all nothing can be said but ``none``."""
        wanted = STATES[self.state]
        hits = [state in wanted for state in states]
        if self.grouper == "none":
            return not any(hits)
        return any(hits) if self.grouper == "any" else bool(hits) and all(hits)


@attrs.define
class Call:
    """The command line, understood; ``is_…`` are the switches."""

    users: list[str] = attrs.Factory(list)
    clusters: list[int] = attrs.Factory(list)
    files: list[str] = attrs.Factory(list)
    batches: list[str] = attrs.Factory(list)
    least: int = 0
    collector: str = ""
    schedd: str = ""
    exits: list[ExitWhen] = attrs.Factory(list)
    groupby: str = "batch"
    decay_s: float = float(UNITS_S["w"])
    interval_s: float = 0.5
    is_percent: bool = False
    switches: dict[str, bool] = attrs.Factory(dict)


def main() -> int:
    """Entry of ``condor_watch_q``."""
    return run(FLAGS, "condor_watch_q", lambda given: _watch(_understood(given)),
               words=Words(unknown="condor_watch_q: error: unrecognized arguments: {word}\n{usage}",
                           missing="condor_watch_q: error: argument {word}: expected one argument\n{usage}"))


def _understood(given: Sequence[Given]) -> Call:
    on_terminal = sys.stdout.isatty()
    call = Call(switches={name: name not in ("decay-start-at-read", "abbreviate") for name in SWITCHES})
    call.switches.update(dict.fromkeys(("color", "refresh", "exit-on-key-press"), on_terminal))
    for item in given:
        _take(call, item)
    if call.clusters and call.least:
        raise ToolError("ERROR: Use of both -clusters and -larger-than flag is prohibited.")
    if not (call.users or call.clusters or call.files or call.batches):
        call.users = [accounts.own_name()]
    return call


def _take(call: Call, item: Given) -> None:
    name, values = item.name, item.values
    value = values[0] if values else ""
    if not name:
        like = f"to track specific cluster IDs, try -clusters {value}" if _LIKE_Q.fullmatch(value) else (
            f"to track jobs from specific event logs, try -files {value}; of specific users, -users {value}")
        raise _wrong(value, like)
    if name in ("users", "files", "batches", "clusters") and not values:
        raise _wrong(item.word, "expected at least one argument")
    switch = name.removeprefix("no-")
    if switch in SWITCHES:
        call.switches[switch] = switch == name
    elif name == "clusters":
        call.clusters += [_number(item.word, each) for each in values]
    elif name in ("users", "files", "batches"):
        getattr(call, name).extend(values)
    elif name == "larger-than":
        call.least = _number(item.word, value)
    elif name in ("collector", "schedd"):
        setattr(call, name, value)
    elif name == "interval":
        call.interval_s = _seconds(item.word, value)
    elif name == "exit":
        call.exits.append(_exit_when(item.word, value))
    elif name == "groupby":
        call.groupby = _choice(item.word, value, HEADS)
    elif name == "summary-type":
        call.is_percent = _choice(item.word, value, ("totals", "percentages")) == "percentages"
    elif name == "exited-row-decay":
        call.decay_s = _decay(item.word, value)


def _wrong(word: str, problem: str) -> ToolError:
    return ToolError(f"condor_watch_q: error: argument {word}: {problem}")


def _number(word: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 18:
        raise _wrong(word, f"{value!r} is no number of a cluster")
    return int(value)


def _seconds(word: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86400:
        raise _wrong(word, f"{value!r} is no number of seconds above 0 and up to a day")
    return seconds


def _choice(word: str, value: str, choices: Iterable[str]) -> str:
    if value not in choices:
        raise _wrong(word, f"invalid choice: {value!r} (choose from {', '.join(map(repr, choices))})")
    return value


def _exit_when(word: str, value: str) -> ExitWhen:
    parts = value.split(",")
    if len(parts) not in (2, 3):
        raise _wrong(word, "invalid -exit specification; expected GROUPER,JOB_STATUS[,EXIT_STATUS], such as all,done,0")
    grouper, state, status = (*parts, "0")[:3]
    if grouper not in GROUPERS:
        raise _wrong(word, f'invalid GROUPER "{grouper}", must be one of {{{", ".join(GROUPERS)}}}')
    if state not in STATES:
        raise _wrong(word, f'invalid JOB_STATUS "{state}", must be one of {{{", ".join(STATES)}}}')
    if not status.isdecimal() or int(status[:9]) > 255:
        raise _wrong(word, f'exit_status must be an integer from 0 to 255, but was "{status}"')
    return ExitWhen(grouper, state, int(status))


def _decay(word: str, value: str) -> float:
    unit = value[-1:] if not value[-1:].isdecimal() else "w"
    count = value.removesuffix(unit)
    if unit not in UNITS_S:
        raise _wrong(word, f"Unknown unit specifier {unit!r}, must be one of {', '.join(UNITS_S)}")
    if not count.isdecimal() or len(count) > 9:
        raise _wrong(word, f"{value!r} is no time; expected a number and a unit, such as 12h")
    return float(int(count) * UNITS_S[unit])


# ---- watching


def _watch(call: Call) -> int:
    found = find_logs(users=call.users, clusters=call.clusters, batches=call.batches, files=call.files,
                      pool=call.collector, name=call.schedd)
    only = {*call.clusters, *found.of_batches} if call.clusters or found.of_batches else None
    if only is not None and call.users:
        only |= found.expected.keys()
    jobs = TrackedJobs(only=only, least=call.least, batches=found.batches, expected=found.expected,
                       decays_from_read=call.switches["decay-start-at-read"])
    logs = FollowedLogs(found.logs)
    try:
        _warn(found.warnings + logs.warnings)
        logs.warnings.clear()
        if not found.logs:
            _warn(["No jobs found, exiting..."])
            return 0
        return _follow(call, found, jobs, logs)
    except KeyboardInterrupt:
        return 0
    finally:
        logs.close()


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"WARNING: {warning}", file=sys.stderr)


def _follow(call: Call, found: Found, jobs: TrackedJobs, logs: FollowedLogs) -> int:
    is_in_place = call.switches["refresh"] and sys.stdout.isatty()
    with Screen(is_whole=is_in_place, is_colored=call.switches["color"]) as screen:
        is_first = True
        while True:
            has_changed = logs.read(jobs)
            if logs.warnings:
                _warn(logs.warnings)
                logs.warnings.clear()
            if is_first or has_changed or is_in_place:
                _show(call, screen, _lines(call, found, jobs, screen.size[0]), is_in_place)
            is_first = False
            for when in call.exits:
                if when.is_met(jobs.states()):
                    screen.leave()
                    print(f'Exiting with code {when.status} because of condition "{when.grouper} {when.state}" at '
                          f"{_clock()}")
                    return when.status
            keys = _pause(call, screen, logs, is_in_place)
            if "closed" in keys or (keys and call.switches["exit-on-key-press"]):
                return 0


def _pause(call: Call, screen: Screen, logs: FollowedLogs, is_in_place: bool) -> list[str]:
    """Until there is something new, and no sooner than the interval; the keys that were typed."""
    began_s = time.monotonic()
    often_s = AGAIN_S if logs.waits_for_more else CLOCK_S if is_in_place else None
    descriptors = logs.descriptors()
    keys = screen.wait(descriptors, often_s)
    left_s = call.interval_s - (time.monotonic() - began_s)
    while not keys and left_s > 0:
        keys = screen.wait((), left_s)
        left_s = call.interval_s - (time.monotonic() - began_s)
    return keys


def _clock() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _show(call: Call, screen: Screen, lines: list[Text], is_in_place: bool) -> None:
    if not is_in_place:
        lines.append(Text("..."))
    if not call.exits:
        lines.append(Text("Press any key to exit" if call.switches["exit-on-key-press"] else "Press ^C to exit"))
    if is_in_place:
        height = screen.size[1]
        if len(lines) > height:
            lines = [*lines[: height - 1], Text("Insufficient terminal height to display full output!")]
        screen.show(Text("\n", no_wrap=True, end="").join(lines))
    elif call.switches["color"]:
        from rich.console import Console

        Console(file=sys.stdout, force_terminal=True, highlight=False, width=10_000).print(Text("\n").join(lines))
    else:
        print("\n".join(line.plain for line in lines))
    sys.stdout.flush()


def _lines(call: Call, found: Found, jobs: TrackedJobs, width: int) -> list[Text]:
    groups, counts, total = _groups(call, found, jobs)
    switches = call.switches
    parts: list[list[Text]] = []
    if switches["table"]:
        parts.append(table(HEADS[call.groupby], groups, width, has_bars=switches["row-progress"]))
    if switches["progress"]:
        parts.append([progress(counts, total, width)])
    if switches["summary"]:
        parts.append([summary(counts, total, width, is_percent=call.is_percent)])
    if switches["updated-at"]:
        parts.append([Text(f"Updated at {_clock()}")])
    lines: list[Text] = []
    for part in parts:
        lines += ([Text("")] if lines else []) + part
    return lines


def _groups(call: Call, found: Found, jobs: TrackedJobs) -> tuple[list[Group], Counter[State], int]:
    """The lines of the table, what has jobs in the queue first; the sums of all, those too that are not shown."""
    members: dict[str, list[int]] = {}
    for number, cluster in sorted(jobs.clusters.items()):
        batch = found.workflows.get(cluster.log)
        if call.groupby == "batch" and batch and number not in found.managers:
            name = batch
        elif number in found.managers and not call.clusters:
            continue
        else:
            name = {"batch": cluster.batch, "log": cluster.log, "cluster": str(number)}[call.groupby]
        members.setdefault(name, []).append(number)
    now_s = time.time()
    counts: Counter[State] = Counter()
    total = 0
    rows: list[tuple[tuple[bool, int], Group]] = []
    for name, numbers in members.items():
        clusters = [jobs.clusters[number] for number in numbers]
        shown_name = name
        if call.groupby == "log":
            shown_name = nice_path(name)
            if call.switches["abbreviate"]:
                shown_name = abbreviated(shown_name)
        group = Group.of(shown_name, clusters, found.nodes.get(name, 0) if call.groupby == "batch" else 0)
        counts.update(group.counts)
        total += group.total
        if call.switches["display-exited"] or any(each.is_shown(now_s, call.decay_s) for each in clusters):
            rows.append(((all(each.is_over for each in clusters), numbers[0]), group))
    return [group for _, group in sorted(rows, key=lambda row: row[0])], counts, total


if __name__ == "__main__":
    sys.exit(main())
