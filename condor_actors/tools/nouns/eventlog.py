"""``htcondor eventlog``: what event logs say of their jobs, a line for each.

Theory: each event changes the line of its job (`Line.take`); ``read`` prints the lines at the end of the logs,
``follow`` a job's line whenever it leaves a machine or ends.

**Source**: the manual, htcondor, "Eventlog Verbs".
"""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from condor_actors.addresses import BadAddress, split_address
from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.nouns.words import clock
from condor_actors.userlog.event_facts import facts_of
from condor_actors.userlog.reader import Event, EventReader
from condor_actors.userlog.watch import GrowingFile
from condor_actors.written_text import open_written

_USAGE = re.compile(r"Usr (\d{1,6}) (\d\d):(\d\d):(\d\d), Sys (\d{1,6}) (\d\d):(\d\d):(\d\d)")
HEADS = ("Job ID", "Host", "Start Time", "Evict Time", "Evictions", "Wall Time", "Good Time", "CPU Usage")
LEAVES = (JobEventType.JOB_EVICTED, JobEventType.JOB_TERMINATED, JobEventType.JOB_ABORTED)


@attrs.define
class Line:
    """One job: where and when it ran last, how often it was evicted, what it used (seconds)."""

    job: str
    host: str = ""
    begun_s: float = 0.0
    left_s: float = 0.0
    starts: int = 0
    evictions: int = 0
    wall_s: float = 0.0
    good_s: float = 0.0
    cpu_s: float = 0.0
    code: int | None = None
    place: dict[str, Any] = attrs.Factory(dict)

    def take(self, number: int, facts: ClassAd) -> None:
        """What an event says of the job."""
        when_s = _moment(facts)
        if number == JobEventType.SUBMIT:
            self.host = _host(facts.get_str("SubmitHost"))
        elif number == JobEventType.EXECUTE:
            self.host = facts.get_str("SlotName") or _host(facts.get_str("ExecuteHost"))
            self.begun_s, self.left_s, self.starts = when_s, 0.0, self.starts + 1
            properties = facts.get("ExecuteProps")
            self.place = {name.lower(): properties.evaluate(name) for name in properties} if isinstance(
                properties, ClassAd) else {}
        elif number in LEAVES and self.begun_s and not self.left_s:
            self.left_s = when_s
            spent_s = max(0.0, when_s - self.begun_s)
            self.wall_s += spent_s
            used = _USAGE.search(facts.get_str("RunRemoteUsage") if number == JobEventType.JOB_EVICTED
                                 else facts.get_str("TotalRemoteUsage"))
            if used is not None:
                days, hours, minutes, seconds = (int(used[n]) + int(used[n + 4]) for n in (1, 2, 3, 4))
                self.cpu_s = 86400.0 * days + 3600 * hours + 60 * minutes + seconds
            if number == JobEventType.JOB_EVICTED:
                self.evictions += 1
            elif number == JobEventType.JOB_TERMINATED:
                self.good_s = spent_s
                self.code = facts.get_int("ReturnValue", -1)

    def cells(self) -> tuple[str, ...]:
        """The line as a table shows it."""
        return (self.job, self.host, _date(self.begun_s), _date(self.left_s), str(self.evictions), clock(self.wall_s),
                clock(self.good_s), clock(self.cpu_s))

    def numbers(self) -> tuple[str | int, ...]:
        """The same for programs: times in seconds."""
        return (self.job, self.host, _date(self.begun_s), _date(self.left_s), self.evictions, int(self.wall_s),
                int(self.good_s), int(self.cpu_s))


def _moment(facts: ClassAd) -> float:
    try:
        return time.mktime(time.strptime(facts.get_str("EventTime")[:19], "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return 0.0


def _date(when_s: float) -> str:
    if not when_s:
        return ""
    day = time.localtime(when_s)
    return f"{day.tm_mon}/{day.tm_mday}/{day.tm_year % 100:02} {day.tm_hour:02}:{day.tm_min:02}"


def _host(address: str) -> str:
    try:
        return split_address(address)[0]
    except BadAddress:
        return address


def lines_of(paths: Iterable[str]) -> dict[str, Line]:
    """The jobs of some logs.

    Raises:
        ToolError: a log cannot be read.
    """
    lines: dict[str, Line] = {}
    for path in paths:
        events = EventReader()
        try:
            with open(open_written(path), "rb") as file:
                while data := file.read(1 << 20):
                    for event in events.feed(data):
                        _take(lines, event, events.is_xml)
        except OSError as error:
            raise ToolError(f"Could not find file: {path}" if isinstance(error, FileNotFoundError)
                            else f"Could not access file: {path}: {error.strerror}") from None
        except ValueError as error:
            raise ToolError(f"{path} is no event log: {error}") from None
    return lines


def _take(lines: dict[str, Line], event: Event, is_xml: bool) -> Line:
    job = f"{event.cluster}.{event.proc}"
    line = lines.setdefault(job, Line(job))
    line.take(event.number, facts_of(event, is_xml=is_xml))
    return line


def read(given: dict[str, Any]) -> int:
    """A line for each job of some logs, or for each value of an attribute."""
    lines = list(lines_of(given["log_file"]).values())
    if given["groupby"]:
        heads, rows, cells = _groups(lines, given["groupby"])
    else:
        heads, rows, cells = HEADS, [line.numbers() for line in lines], [line.cells() for line in lines]
    if given["json"]:
        print(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=4))
    elif given["csv"]:
        csv.writer(sys.stdout, lineterminator="\n").writerows([heads, *rows])
    else:
        sys.stdout.writelines(f"{line}\n" for line in _table(("Job", *heads[1:]) if heads is HEADS else heads, cells))
    return 0


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(head), *(len(row[n]) for row in rows)) if rows else len(head) for n, head in enumerate(heads)]
    for row in (heads, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _groups(lines: list[Line], attribute: str) -> tuple[tuple[str, ...], list[tuple[str | int, ...]],
                                                       list[tuple[str, ...]]]:
    """Sums of the jobs that share the value of an attribute of their machines."""
    heads = (attribute, "Evictions", "Wall Time", "Good Time", "CPU Usage", "Job Starts", "Job Successes",
             "Job Failures")
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(str(line.place.get(attribute.lower(), "")), []).append(line)
    rows: list[tuple[str | int, ...]] = []
    cells = []
    for value, some in groups.items():
        times = [int(sum(getattr(line, name) for line in some)) for name in ("wall_s", "good_s", "cpu_s")]
        counts = (sum(line.starts for line in some), sum(line.code == 0 for line in some),
                  sum(line.code not in (0, None) for line in some))
        evictions = sum(line.evictions for line in some)
        rows.append((value, evictions, *times, *counts))
        cells.append((value, str(evictions), *map(clock, times), *map(str, counts)))
    return heads, rows, cells


def follow(given: dict[str, Any]) -> int:
    """Print a job's line whenever it leaves a machine or ends, until interrupted."""
    if given["groupby"]:
        raise ToolError("sums are not made while following; use eventlog read -groupby")
    path = given["log_file"]
    lines: dict[str, Line] = {}
    events = EventReader()
    try:
        log = GrowingFile(path)
    except FileNotFoundError:
        raise ToolError(f"Could not find file: {path}") from None
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if given["csv"]:
        writer.writerow(HEADS)
    try:
        while True:
            while data := log.read():
                for event in events.feed(data):
                    line = _take(lines, event, events.is_xml)
                    if event.number not in LEAVES:
                        continue
                    if given["json"]:
                        print(json.dumps(dict(zip(HEADS, line.numbers(), strict=True))))
                    elif given["csv"]:
                        writer.writerow(line.numbers())
                    else:
                        print("  ".join(line.cells()))
            sys.stdout.flush()
            log.wait(None)
            log.forget()
    finally:
        log.close()
