"""Who is logged in, whether the desktop calls itself idle, whether the screen is locked: logind, over D-Bus.

Theory: logind tells of sessions that come and go and of each change of their IdleHint and LockedHint as it happens, and
it is what a Wayland desktop tells when it has no other way.  ``IdleHint`` false means in use, true means idle since
``IdleSinceHint``; a graphical session that has never set it knows nothing, and says so.  Locking and unlocking a screen
is done by hand, so each is a sign of the owner at that moment.  Only sessions of people count (class ``user``).

Errors: a desktop calls itself idle only after its own delay (minutes), so the machine looks in use for longer than it
is.

Source: org.freedesktop.login1(5).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import attrs
from jeepney import DBusAddress, MatchRule, Message
from jeepney.low_level import HeaderFields
from twisted.python.failure import Failure

from condor_actors.machine.sensors.dbus_line import BadBus, DBusLine, dial_bus, system_bus_path
from condor_actors.machine.sensors.readings import IdleNow

__all__ = ["Logind", "Session"]

LOGIND = "org.freedesktop.login1"
MANAGER = DBusAddress("/org/freedesktop/login1", bus_name=LOGIND, interface=f"{LOGIND}.Manager")
SESSION = f"{LOGIND}.Session"
PROPERTIES = "org.freedesktop.DBus.Properties"
GRAPHICAL = ("x11", "wayland", "mir")
AGAIN_S = 30.0


@attrs.frozen(kw_only=True)
class Session:
    """One session as logind knows it; see org.freedesktop.login1(5) for the words."""

    name: str
    uid: int = -1
    user: str = ""
    kind: str = ""
    session_class: str = ""
    seat: str = ""
    tty: str = ""
    remote: bool = False
    remote_host: str = ""
    active: bool = False
    idle: bool = False
    idle_since_s: float = 0.0
    locked: bool = False

    @property
    def is_a_person(self) -> bool:
        """Not a greeter, a lock screen or a service."""
        return self.session_class == "user"

    @property
    def at_console(self) -> bool:
        """A person at this machine's own seat."""
        return self.is_a_person and bool(self.seat) and not self.remote

    def told(self, properties: dict[str, Any]) -> Session:
        """With properties as they come over the bus: name to (signature, value)."""
        values = {name: pair[1] for name, pair in properties.items()}
        changes: dict[str, Any] = {}
        for name, field in (("Name", "user"), ("Type", "kind"), ("Class", "session_class"), ("TTY", "tty"),
                            ("Remote", "remote"), ("RemoteHost", "remote_host"), ("Active", "active"),
                            ("IdleHint", "idle"), ("LockedHint", "locked")):
            if name in values:
                changes[field] = values[name]
        if "User" in values:
            changes["uid"] = int(values["User"][0])
        if "Seat" in values:
            changes["seat"] = values["Seat"][0]
        if "IdleSinceHint" in values:
            changes["idle_since_s"] = values["IdleSinceHint"] / 1e6
        return attrs.evolve(self, **changes)


class Logind:
    """Follows the sessions that logind knows and their idle hints.

    Args:
        touched: called with a source (``logind:2``, ``lock:2``, ``login:3``) when the owner was there just now.
        bus: the socket; None: the machine's bus.
    """

    def __init__(self, touched: Callable[[str], None], bus: str | None = None) -> None:
        self._touched = touched
        self._bus = bus
        self._reactor: Any = None
        self._line: DBusLine | None = None
        self._dialled_s = -AGAIN_S
        self._stopped = False
        self._paths: dict[str, str] = {}
        self._lock_changed_s: dict[str, float] = {}
        self.sessions: dict[str, Session] = {}
        self.problem = "not asked yet"

    def start(self, reactor: Any) -> None:
        """Dial the bus on ``reactor`` (which also gives the time)."""
        self._reactor = reactor
        self.refresh()

    def refresh(self) -> None:
        """Dial again when the line is gone."""
        if self._line is None and not self._stopped and self._reactor.seconds() - self._dialled_s >= AGAIN_S:
            self._dialled_s = self._reactor.seconds()
            dial_bus(self._reactor, self._bus or system_bus_path()).addCallbacks(self._dialled, self._not_there)

    def _not_there(self, failure: Failure) -> None:
        self._line = None
        self.problem = failure.getErrorMessage()

    def _dialled(self, line: DBusLine) -> None:
        if self._stopped:
            line.close()
            return
        self._line = line
        line.signal, line.lost = self._signalled, self._lost
        for interface, member in ((MANAGER.interface, None), (PROPERTIES, "PropertiesChanged")):
            rule = MatchRule(type="signal", sender=LOGIND, interface=interface, member=member)
            line.listen(rule).addErrback(self._failed)
        line.call(MANAGER, "ListSessions").addCallbacks(self._listed, self._failed)

    def _failed(self, failure: Failure) -> None:
        """logind is not on this bus (yet); a later look dials again."""
        failure.trap(BadBus)
        self.problem = failure.getErrorMessage()
        if self._line is not None:
            self._line.close()

    def _lost(self, why: str) -> None:
        self._line = None
        self.sessions.clear()
        self._paths.clear()
        if self.problem == "":
            self.problem = f"the bus is gone: {why}"

    def _listed(self, body: Any) -> None:
        self.problem = ""
        for name, _, _, _, path in body[0]:
            self._ask(name, path, is_new=False)

    def _ask(self, name: str, path: str, *, is_new: bool) -> None:
        """All properties of a session."""
        if self._line is None:
            return
        self._paths[path] = name
        address = DBusAddress(path, bus_name=LOGIND, interface=PROPERTIES)

        def answered(body: Any) -> None:
            session = self.sessions[name] = Session(name=name).told(body[0])
            if is_new and session.is_a_person:
                self._touched(f"login:{name}")

        def gone(failure: Failure) -> None:
            failure.trap(BadBus)
            self.sessions.pop(name, None)

        self._line.call(address, "GetAll", "s", (SESSION,)).addCallbacks(answered, gone)

    def _signalled(self, message: Message) -> None:
        fields = message.header.fields
        member, path = fields.get(HeaderFields.member), fields.get(HeaderFields.path, "")
        if member == "SessionNew":
            self._ask(message.body[0], message.body[1], is_new=True)
        elif member == "SessionRemoved":
            self.sessions.pop(message.body[0], None)
            self._paths.pop(message.body[1], None)
        elif member == "PropertiesChanged" and message.body[0] == SESSION and path in self._paths:
            self._changed(self._paths[path], message.body[1], message.body[2], path)

    def _changed(self, name: str, properties: dict[str, Any], invalid: list[str], path: str) -> None:
        before = self.sessions.get(name)
        if before is None:
            return
        now = self.sessions[name] = before.told(properties)
        if invalid:
            self._ask(name, path, is_new=False)
        if not now.is_a_person:
            return
        if before.locked != now.locked:
            self._lock_changed_s[name] = time.time()
            self._touched(f"lock:{name}")
        if before.idle and not now.idle and now.kind in GRAPHICAL:
            self._touched(f"logind:{name}")

    # ---- what is known

    @property
    def is_there(self) -> bool:
        """Whether logind answers."""
        return self._line is not None and not self.problem

    def console_users(self) -> frozenset[int]:
        """Who sits at this machine."""
        return frozenset(session.uid for session in self.sessions.values() if session.at_console)

    def screen_locked(self) -> bool | None:
        """Whether every graphical session of a person is locked; None: there is none."""
        screens = [each.locked for each in self.sessions.values() if each.is_a_person and each.kind in GRAPHICAL]
        return all(screens) if screens else None

    def readings(self, now_s: float) -> tuple[IdleNow, ...]:
        """What the graphical sessions say of themselves."""
        found = []
        for name, session in self.sessions.items():
            if not session.is_a_person or session.kind not in GRAPHICAL:
                continue
            found.append(self._idle_of(session, now_s))
            changed_s = self._lock_changed_s.get(name)
            word = "locked" if session.locked else "not locked"
            if changed_s is None:
                found.append(IdleNow(f"lock:{name}", None, f"{word}; no change seen yet"))
            else:
                found.append(IdleNow(f"lock:{name}", max(0.0, now_s - changed_s), word))
        return tuple(found)

    @staticmethod
    def _idle_of(session: Session, now_s: float) -> IdleNow:
        source = f"logind:{session.name}"
        if session.idle:
            return IdleNow(source, max(0.0, now_s - session.idle_since_s), f"{session.kind} session, idle")
        if session.idle_since_s <= 0.0:
            return IdleNow(source, None, f"the {session.kind} desktop never says whether it is idle")
        return IdleNow(source, 0.0, f"{session.kind} session, in use")

    def stop(self) -> None:
        """Hang up."""
        self._stopped = True
        if self._line is not None:
            self._line.lost = lambda why: None
            self._line.close()
            self._line = None
