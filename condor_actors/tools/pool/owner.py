"""condor_owner: shows the person at a machine what the pool does there, and lets them stop it for a time.

It asks this machine's startd over its own socket; the startd lets the person at the machine (a session at its seat, a
console), is named in DESKTOP_OWNERS, runs the daemon, or is root pause it.  A pause outlives the startd.
"""

from __future__ import annotations

import re
import sys
import time
from textwrap import wrap
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.messages.owner import OwnerView, PauseMachine, QueryOwner, ResumeMachine
from condor_actors.tools.lib.command import ToolError, framed, help_of, senseless
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.machine_commands import STARTD, ask, local_startd
from condor_actors.tools.printing.formats import elapsed

WIDTH = 79
HOWS = ("suspend", "vacate", "kill")
UNITS = {"": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@framed
def main() -> int:
    """Entry of ``condor_owner``."""
    words = sys.argv[1:]
    if {"-h", "-help", "--help"} & set(words):
        print(help_of("condor_owner"))
        return 0
    how = [word.lstrip("-") for word in words if word.lstrip("-") in HOWS and word[:1] == "-"]
    words = [word for word in words if word[:1] != "-" or word.lstrip("-") not in how]
    command = words[0] if words else "status"
    takes = {"status": 1, "resume": 1, "pause": 2}
    if command not in takes or len(words) > takes[command] or len(how) > (command == "pause"):
        print(senseless("condor_owner"), file=sys.stderr)
        return 2
    duration_s = span_s(words[1]) if len(words) > 1 else 3600.0
    if duration_s is None:
        print(f"condor_owner: {words[1]!r} is no time; expected a number with s, m, h or d, such as 1h",
              file=sys.stderr)
        return 2
    try:
        name, _, client = local_startd(load())
        with client:
            if command == "status":
                print("\n".join(report(ask(client, STARTD, QueryOwner()))))
            elif command == "pause":
                done = ask(client, STARTD, PauseMachine(duration_s=duration_s, how=how[0] if how else ""))
                print(f"The pool is paused on {name} until {clock(float(done.text))}.  condor_owner resume ends it.")
            else:
                done = ask(client, STARTD, ResumeMachine())
                print(done.text or f"The pool may use {name} again, as its policy says.")
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    return 0


def span_s(text: str) -> float | None:
    """The seconds of ``90s``, ``20m`` (or ``20``), ``1.5h``, ``2d``; None: it is no such thing."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip().lower())
    return float(found[1]) * UNITS[found[2]] if found and float(found[1]) > 0 else None


def clock(when_s: float) -> str:
    """A moment as people say it."""
    form = "%H:%M" if time.strftime("%x", time.localtime(when_s)) == time.strftime("%x") else "%a %d %b %H:%M"
    return time.strftime(form, time.localtime(when_s))


def report(view: OwnerView) -> list[str]:
    """The lines of ``status``."""
    ad = ClassAd.from_bytes(view.ad)
    now_s = ad.get_int("MyCurrentTime")
    lines = [f"Machine {ad.get_str('Machine')}"]
    if "OwnerPausedUntil" in ad:
        until = clock(ad.get_int("OwnerPausedUntil"))
        lines.append(f"The pool is paused until {until} by {ad.get_str('OwnerPausedBy')} "
                     f"(jobs: {ad.get_str('OwnerPauseHow')}).")
    elif view.may_pause:
        lines.append("The pool may use it as its policy says; condor_owner pause 1h pauses it.")
    else:
        lines.append("The pool may use it as its policy says; you do not sit at it, so you cannot pause it.")
    lines += ["", "What runs:"]
    taken = [slot for slot in records(ad, "Slots") if slot.get_str("RemoteUser")]
    lines += [_slot(slot, now_s) for slot in taken] or ["  nothing of the pool"]
    load = f"{ad.get_float('OwnerLoad'):.2f} yours, {ad.get_float('PoolLoad'):.2f} the pool's"
    idle = elapsed(ad.get_int("KeyboardIdle")) if "KeyboardIdle" in ad else "unknown"
    lines += ["", f"Load {load}.", f"You have been away for {idle}, as the sensors say:"]
    rows = [wrap(line, WIDTH, subsequent_indent="    ") if len(line) > WIDTH else [line] for line in lines]
    return [*(row for parts in rows for row in parts), *sensor_lines(ad, now_s)]


def _slot(slot: ClassAd, now_s: int) -> str:
    name = slot.get_str("Name").partition("@")[0]
    since = elapsed(max(0, now_s - slot.get_int("JobStart", now_s)))
    state = slot.get_str("Activity") if slot.get_str("State") == "Claimed" else slot.get_str("State")
    state += ", lowered" if slot.get_bool("Lowered") else ""
    size = f"{slot.get_int('Cpus')} cpu, {slot.get_int('MemoryUsage')} MB"
    job = slot.get_str("JobId") or "-"
    return (f"  {name:<10} {state:<18} {slot.get_str('RemoteUser')}  job {job}  {since}  {size}  "
            f"{slot.get_str('JobProgram')}").rstrip()


def sensor_lines(ad: ClassAd, now_s: int) -> list[str]:
    """A line or two a sensor; terminals and devices of one kind that say the same share one."""
    rows = [("Sensor", "Idle", "Accuracy", "what it says")]
    alike: dict[tuple[str, ...], list[str]] = {}
    for sensor in records(ad, "Sensors"):
        idle = elapsed(max(0, now_s - sensor.get_int("LastInput"))) if "LastInput" in sensor else "unknown"
        source = sensor.get_str("Source")
        kind, _, name = source.partition(":")
        alike.setdefault((kind, "-" if kind == "load" else idle, sensor.get_str("Accuracy"), sensor.get_str("Says")),
                         []).append(name)
    for (kind, idle, accuracy, says), names in alike.items():
        first = ":".join(filter(None, (kind, names[0])))
        rows.append((first if len(names) == 1 else f"{first} and {len(names) - 1} more", idle, accuracy, says))
    widths = [max(len(row[n]) for row in rows) for n in range(2)]
    lines: list[str] = []
    for name, idle, accuracy, says in rows:
        margin = f"  {name:<{widths[0]}}  {idle:<{widths[1]}}  "
        text = "; ".join(filter(None, (accuracy, says)))
        lines += wrap(text, WIDTH, initial_indent=margin, subsequent_indent=" " * len(margin)) or [margin.rstrip()]
    return lines


def records(ad: ClassAd, name: str) -> list[ClassAd]:
    """The records of a list attribute."""
    found: Any = ad.evaluate(name)
    return [each for each in found if isinstance(each, ClassAd)] if isinstance(found, (list, tuple)) else []


if __name__ == "__main__":
    sys.exit(main())
