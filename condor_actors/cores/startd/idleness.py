"""How long the owner has been away: the least of what the sensors say.

Theory: each sensor reports (source, idle seconds, known).  One that cannot read says so and is left out; it is never
taken for idle.  A report is a fact about a moment, so an idle time grows by itself until the sensor speaks again;
a sensor that has not spoken for ``stale_s`` counts as unknown.  What kinds of sensors there are, what each reads and
how wrong it can be is :data:`SENSOR_KINDS`; those at the machine itself (``console``) also make up the console's idle
time.
"""

from __future__ import annotations

import attrs

__all__ = ["CONSOLE_PREFIXES", "Idleness", "Report", "SENSOR_KINDS", "SensorKind", "kind_of"]

MAX_SENSORS = 256


@attrs.frozen(kw_only=True)
class SensorKind:
    """A kind of sensor.

    Attributes:
        prefix: what its sources' names begin with, before the colon.
        reads: where it gets it from; error: how wrong it can be.
        console: whether it speaks of someone at the machine itself.
        event: whether it tells at once, or only when it is asked.
    """

    prefix: str
    reads: str
    error: str
    console: bool = False
    event: bool = True


SENSOR_KINDS = (
    SensorKind(prefix="tty", reads="reads from a pseudo terminal (inotify), its access time",
               error="1 s; 8 s unwatched"),
    SensorKind(prefix="ssh", reads="the terminals of sessions from elsewhere (utmp)", error="1 s; 8 s unwatched"),
    SensorKind(prefix="console", reads="reads from virtual consoles and CONSOLE_DEVICES", error="1 s; 8 s unwatched",
               console=True),
    SensorKind(prefix="input", reads="events of keyboards, mice, touch pads (evdev)", error="1 s", console=True),
    SensorKind(prefix="x11", reads="the X server's idle counter and raw input events (kbdd)", error="1 s",
               console=True),
    SensorKind(prefix="logind", reads="IdleHint of graphical sessions (D-Bus)",
               error="the desktop's own idle delay, on the owner's side", console=True),
    SensorKind(prefix="lock", reads="LockedHint of graphical sessions (D-Bus)", error="none; tells of changes only",
               console=True),
    SensorKind(prefix="login", reads="new sessions (logind, D-Bus)", error="none"),
    SensorKind(prefix="screensaver", reads="the session's screen saver (D-Bus, kbdd)", error="1 s", console=True),
    SensorKind(prefix="seen", reads="what was seen before the startd was started again", error="1 s", event=False),
    SensorKind(prefix="boot", reads="the time since the machine was started", error="none", event=False),
)
CONSOLE_PREFIXES = tuple(f"{kind.prefix}:" for kind in SENSOR_KINDS if kind.console)
_BY_PREFIX = {kind.prefix: kind for kind in SENSOR_KINDS}


def kind_of(source: str) -> SensorKind | None:
    """The kind of a source; None for one that nobody knows."""
    return _BY_PREFIX.get(source.partition(":")[0])


@attrs.frozen(kw_only=True)
class Report:
    """What one sensor said.

    Attributes:
        source: which one: ``tty:pts/3``, ``x11::0``, ``input:event4``, ``logind:2``.
        last_input_s: wall-clock time of the last input; None: it cannot tell, and ``text`` says why.
        seen_s: when it said so.
    """

    source: str
    last_input_s: float | None
    seen_s: float
    text: str = ""


class Idleness:
    """Keeps the latest report of every sensor.

    Args:
        stale_s: how old a report of a sensor may be.
    """

    def __init__(self, stale_s: float = 600.0) -> None:
        self.stale_s = stale_s
        self.reports: dict[str, Report] = {}

    def report(self, source: str, idle_s: float | None, now_s: float, text: str = "") -> bool:
        """Take a report; returns whether it shows fresh input."""
        before = self.reports.get(source)
        if before is None and len(self.reports) >= MAX_SENSORS:
            self._prune(now_s)
        last_s = None if idle_s is None else now_s - max(0.0, idle_s)
        self.reports[source] = Report(source=source, last_input_s=last_s, seen_s=now_s, text=text)
        if last_s is None:
            return False
        return before is None or before.last_input_s is None or last_s > before.last_input_s + 1.0

    def _prune(self, now_s: float) -> None:
        """Make room: those not heard for too long go, else the one heard longest ago."""
        old = [source for source, report in self.reports.items() if now_s - report.seen_s > self.stale_s]
        for source in old or [min(self.reports, key=lambda each: self.reports[each].seen_s)]:
            del self.reports[source]

    def forget(self, source: str) -> None:
        """A sensor is gone (its display or terminal closed)."""
        self.reports.pop(source, None)

    def forget_silent(self, now_s: float) -> None:
        """Sensors that have been silent for too long: gone (a terminal that was closed) rather than broken."""
        for source in [each.source for each in self.reports.values() if now_s - each.seen_s > self.stale_s]:
            del self.reports[source]

    def keyboard_idle_s(self, now_s: float) -> float | None:
        """Seconds since any input; None when no sensor knows."""
        return self._least(now_s, ())

    def console_idle_s(self, now_s: float) -> float | None:
        """Seconds since input at the console or a local display; None when no sensor knows."""
        return self._least(now_s, CONSOLE_PREFIXES)

    def _least(self, now_s: float, prefixes: tuple[str, ...]) -> float | None:
        latest = None
        for report in self.reports.values():
            if report.last_input_s is None or now_s - report.seen_s > self.stale_s:
                continue
            if prefixes and not report.source.startswith(prefixes):
                continue
            latest = report.last_input_s if latest is None else max(latest, report.last_input_s)
        return None if latest is None else max(0.0, now_s - latest)

    def unknown(self, now_s: float) -> tuple[str, ...]:
        """Sensors that cannot tell, with their reasons."""
        return tuple(
            f"{report.source}: {report.text or 'no word for too long'}"
            for report in self.reports.values()
            if report.last_input_s is None or now_s - report.seen_s > self.stale_s
        )

    def readings(self, now_s: float) -> tuple[Report, ...]:
        """Every sensor's last word; one that has been silent for too long knows nothing any more."""
        found = []
        for report in sorted(self.reports.values(), key=lambda each: each.source):
            if report.last_input_s is not None and now_s - report.seen_s > self.stale_s:
                report = attrs.evolve(report, last_input_s=None, text="no word for too long")  # noqa: PLW2901
            found.append(report)
        return tuple(found)
