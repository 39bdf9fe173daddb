"""condor_userlog: how long machines worked for the jobs of event logs, and how much of that counted.

Looks at nothing but the logs.  **Source**: the manual, condor_userlog.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import attrs

from condor_actors.tools.lib.command import ToolError, reminder_of, run
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.userlog.allocations import Allocation, Allocations
from condor_actors.userlog.reader import EventReader
from condor_actors.written_text import open_written

FLAGS = (
    Flag("help"),
    Flag("version"),
    Flag("total"),
    Flag("raw"),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("evict"),
    Flag("j", 1, 1),
    Flag("all"),
    Flag("hostname", 2),
)

CHUNK_BYTES = 1 << 20


@attrs.define
class Call:
    """The command line, understood; ``job``: cluster, or cluster and proc; empty: all."""

    logs: list[str] = attrs.Factory(list)
    job: tuple[int, ...] = ()
    is_total: bool = False
    is_raw: bool = False
    is_evict: bool = False
    is_hostname: bool = False


@attrs.define
class _Sum:
    """What some allocations come to; times in seconds."""

    count: int = 0
    lost: int = 0
    wall_s: float = 0.0
    good_s: float = 0.0
    cpu_s: float = 0.0

    def add(self, one: Allocation) -> None:
        """One more; it is lost where not all of it was good."""
        self.count += 1
        self.lost += one.wall_s != one.good_s
        self.wall_s += one.wall_s
        self.good_s += one.good_s
        self.cpu_s += one.cpu_s

    def row(self, name: str) -> str:
        """Its line."""
        each_s = self.wall_s / self.count if self.count else 0.0
        lost_s = (self.wall_s - self.good_s) / self.lost if self.lost else 0.0
        times = " ".join(f"{_span(value_s):>9}" for value_s in (self.wall_s, self.good_s, self.cpu_s, each_s, lost_s))
        return f"{name:<15} {times} {_percent(self.good_s, self.wall_s):>8} {_percent(self.cpu_s, self.good_s):>6}"


def main() -> int:
    """Entry of ``condor_userlog``."""
    return run(FLAGS, "condor_userlog", lambda given: _answer(_understood(given)))


def _understood(given: Sequence[Given]) -> Call:
    call = Call()
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            call.logs.append(value)
        elif item.name == "j":
            parts = value.split(".")
            if len(parts) > 2 or not all(part.isdecimal() and len(part) < 10 for part in parts):
                raise ToolError(f"-j {value}: expected CLUSTER or CLUSTER.PROC")
            call.job = tuple(int(part) for part in parts)
        elif item.name == "all":
            call.job, call.is_evict = (), False
        elif item.name in ("total", "raw", "evict", "hostname"):
            setattr(call, f"is_{item.name}", True)
    if call.is_total and call.is_raw:
        raise ToolError("-total prints sums only, -raw prints none: give one of them")
    if not call.logs:
        raise ToolError(reminder_of("condor_userlog"))
    return call


def _answer(call: Call) -> int:
    status, hosts, jobs = 0, dict[str, _Sum](), dict[tuple[int, int], _Sum]()
    names = dict[str, str]()
    is_first = True
    for log in call.logs:
        try:
            for one in _allocations(log):
                if one.job[: len(call.job)] != call.job or (call.is_evict and not one.is_eviction):
                    continue
                if one.host not in names:
                    names[one.host] = _name_of(one) if call.is_hostname else one.host
                hosts.setdefault(names[one.host], _Sum()).add(one)
                jobs.setdefault(one.job, _Sum()).add(one)
                if not call.is_total:
                    if is_first and not call.is_raw:
                        print(f"\n{'Job':<8} {'Host':<15} {'Start Time':<11} {'Evict Time':<11} "
                              f"{'Wall Time':>9} {'Good Time':>9} {'CPU Usage':>9}")
                    is_first = False
                    print(_line(one, names[one.host]))
        except (OSError, ValueError) as error:
            sys.stdout.flush()
            print(f"{log}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            status = 1
    if not call.is_raw:
        print("", *_sums(hosts, jobs), sep="\n")
    return status


def _allocations(path: str) -> Iterator[Allocation]:
    """The allocations of a log.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no event log.
    """
    reader, allocations = EventReader(), Allocations()
    with open(open_written(path), "rb") as file:
        while data := file.read(CHUNK_BYTES):
            for event in reader.feed(data):
                yield from allocations.take(event, is_xml=reader.is_xml)
            if reader.stranger:
                raise ValueError(f"line 1, {reader.stranger!r}, is no event of a job: this is no event log; give the "
                                 "one that 'log = FILE' in the submit description names")


def _line(one: Allocation, host: str) -> str:
    job = f"{one.job[0]}.{one.job[1]}"
    times = " ".join(f"{_span(value_s):>9}" for value_s in (one.wall_s, one.good_s, one.cpu_s))
    return f"{job:<8} {host:<15} {_date(one.began_s):>11} {_date(one.ended_s):>11} {times}"


def _sums(hosts: dict[str, _Sum], jobs: dict[tuple[int, int], _Sum]) -> Iterable[str]:
    yield (f"{'Host/Job':<15} {'Wall Time':>9} {'Good Time':>9} {'CPU Usage':>9} {'Avg Alloc':>9} {'Avg Lost':>9} "
           f"{'Goodput':>8} {'Util.':>6}")
    yield ""
    yield from (total.row(name) for name, total in sorted(hosts.items()))
    yield ""
    everything = _Sum()
    for (cluster, proc), total in sorted(jobs.items()):
        yield total.row(f"{cluster}.{proc}")
        everything = _Sum(*(mine + theirs for mine, theirs in zip(attrs.astuple(everything), attrs.astuple(total),
                                                                  strict=True)))
    yield ""
    yield everything.row("Total")


def _name_of(one: Allocation) -> str:
    """The machine's name: the log says it, or the name service does; else its address."""
    if one.slot:
        return one.slot.rpartition("@")[2]
    with suppress(OSError, ValueError):
        return socket.gethostbyaddr(str(ipaddress.ip_address(one.host)))[0]
    return one.host


def _span(span_s: float) -> str:
    """Days, hours and minutes: ``0+01:30``."""
    minutes = int(span_s) // 60
    return f"{minutes // 1440}+{minutes // 60 % 24:02}:{minutes % 60:02}"


def _date(when_s: float) -> str:
    moment = time.localtime(when_s)
    return f"{moment.tm_mon}/{moment.tm_mday:<2} {moment.tm_hour:02}:{moment.tm_min:02}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0.0:.1f}%"


if __name__ == "__main__":
    sys.exit(main())
