"""How long a desktop session has been idle, by its own word on the session's D-Bus.

Theory: under Wayland no client may watch the input of others, so the desktop is asked.  GNOME's compositor counts idle
time (``org.gnome.Mutter.IdleMonitor``) and tells once of the next activity when it was asked to: that watch is set
whenever the session is idle, so the owner's return is an event.  Other desktops answer ``GetSessionIdleTime`` of
``org.freedesktop.ScreenSaver`` and signal when their screen saver ends.  Only services that run are asked; none is
started for that.

Errors: a second.  Desktops disagree whether GetSessionIdleTime is in seconds or milliseconds; which it is shows in how
fast it grows, and until then it is taken for milliseconds, the shorter time.

Source: the freedesktop.org idle inhibition draft; Mutter's org.gnome.Mutter.IdleMonitor.xml.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jeepney import DBusAddress, MatchRule, Message, message_bus
from jeepney.low_level import HeaderFields
from twisted.python.failure import Failure

from condor_actors.machine.sensors.dbus_line import BadBus, DBusLine, dial_bus, session_bus_path
from condor_actors.machine.sensors.readings import IdleNow

__all__ = ["DesktopIdle"]

MUTTER = DBusAddress("/org/gnome/Mutter/IdleMonitor/Core", bus_name="org.gnome.Mutter.IdleMonitor",
                     interface="org.gnome.Mutter.IdleMonitor")
SAVER = DBusAddress("/org/freedesktop/ScreenSaver", bus_name="org.freedesktop.ScreenSaver",
                    interface="org.freedesktop.ScreenSaver")
GNOME_SAVER = "org.gnome.ScreenSaver"
BY_MUTTER, BY_SAVER = "screensaver:gnome", "screensaver:freedesktop"
SIGNALS = ((MUTTER.interface, "WatchFired"), (SAVER.interface, "ActiveChanged"), (GNOME_SAVER, "ActiveChanged"))
WATCH_FROM_S = 1.0
PER_MS = 100.0
"""What grows faster than this in a second counts milliseconds."""


class DesktopIdle:
    """Reads a desktop session's own idle time.

    Args:
        told: called with each reading.
        bus: the socket; None: the session's bus, empty: there is none.
    """

    def __init__(self, told: Callable[[IdleNow], None], bus: str | None = None) -> None:
        self._told = told
        self._bus = session_bus_path() if bus is None else bus
        self._reactor: Any = None
        self._line: DBusLine | None = None
        self._dialling = False
        self._watch: int | None = None
        self._watching = False
        self._saver_before: tuple[float, float] | None = None
        self._saver_unit_s: float | None = None
        self._known: set[str] = set()

    def poll(self, reactor: Any) -> None:
        """Ask now; the answers come as readings.  Without a bus nothing is told."""
        self._reactor = reactor
        if not self._bus or self._dialling:
            return
        if self._line is None:
            self._dialling = True
            dial_bus(reactor, self._bus).addCallbacks(self._dialled, self._unreachable)
            return
        self._line.call(message_bus, "ListNames").addCallbacks(self._listed, self._failed)

    def stop(self) -> None:
        """Hang up."""
        self._bus = ""
        if self._line is not None:
            self._line.lost = lambda why: None
            self._line.close()
            self._line = None

    # ---- the line

    def _dialled(self, line: DBusLine) -> None:
        self._dialling = False
        if not self._bus:
            line.close()
            return
        self._line = line
        line.signal, line.lost = self._signalled, self._lost
        for interface, member in SIGNALS:
            line.listen(MatchRule(type="signal", interface=interface, member=member)).addErrback(self._failed)
        self.poll(self._reactor)

    def _unreachable(self, failure: Failure) -> None:
        self._dialling = False
        self._told(IdleNow("screensaver:", None, f"the session's bus: {failure.getErrorMessage()}"))

    def _failed(self, failure: Failure) -> None:
        failure.trap(BadBus)

    def _lost(self, why: str) -> None:
        self._line, self._watch, self._watching = None, None, False
        for source in self._known:
            self._told(IdleNow(source, None, f"the session's bus is gone: {why}"))
        self._known.clear()

    # ---- who is there, and what it says

    def _listed(self, body: Any) -> None:
        names = set(body[0])
        line = self._line
        if line is None:
            return
        for address, source, method, heard in ((MUTTER, BY_MUTTER, "GetIdletime", self._mutter_says),
                                               (SAVER, BY_SAVER, "GetSessionIdleTime", self._saver_says)):
            if address.bus_name in names:
                self._known.add(source)
                line.call(address, method).addCallbacks(heard, self._silent, errbackArgs=(source,))
            elif source in self._known:
                self._known.discard(source)
                self._told(IdleNow(source, None, "the desktop's service is gone"))
                if source == BY_MUTTER:
                    self._watch, self._watching = None, False

    def _silent(self, failure: Failure, source: str) -> None:
        failure.trap(BadBus)
        self._told(IdleNow(source, None, failure.getErrorMessage()))

    def _mutter_says(self, body: Any) -> None:
        idle_s = body[0] / 1000.0
        self._told(IdleNow(BY_MUTTER, idle_s))
        if idle_s >= WATCH_FROM_S and not self._watching and self._line is not None:
            self._watching = True
            self._line.call(MUTTER, "AddUserActiveWatch").addCallbacks(self._watched, self._unwatched)

    def _watched(self, body: Any) -> None:
        self._watch = body[0]

    def _unwatched(self, failure: Failure) -> None:
        failure.trap(BadBus)
        self._watching = False

    def _saver_says(self, body: Any) -> None:
        value, now_s = float(body[0]), self._reactor.seconds()
        before, self._saver_before = self._saver_before, (value, now_s)
        if self._saver_unit_s is None and before is not None and value > before[0] and now_s > before[1]:
            self._saver_unit_s = 0.001 if (value - before[0]) / (now_s - before[1]) > PER_MS else 1.0
        self._told(IdleNow(BY_SAVER, value * (self._saver_unit_s or 0.001)))

    def _signalled(self, message: Message) -> None:
        fields = message.header.fields
        member = fields.get(HeaderFields.member)
        if member == "WatchFired" and message.body[0] == self._watch:
            self._watch, self._watching = None, False
            self._told(IdleNow(BY_MUTTER, 0.0))
        elif member == "ActiveChanged" and not message.body[0]:
            gnome = fields.get(HeaderFields.interface) == GNOME_SAVER
            self._told(IdleNow(BY_MUTTER if gnome else BY_SAVER, 0.0))
