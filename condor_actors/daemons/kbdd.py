"""The kbdd: tells the startd when someone uses the displays, or the desktop, of this session.

Theory: only a process with the session's rights may ask an X server or the session's bus, so this is a process of its
own.  A key press or a move of the pointer is told at once (at most once a second); otherwise each display is read every
``interval_s``, and the desktop asked for its own word (:mod:`condor_actors.machine.sensors.desktop_idle`).  What
cannot be read is told as that.  An idle time grows by itself at the startd: where nothing has happened since, it is
told again only every :data:`REPEAT_S` seconds, and to a startd that has come up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor, World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.machine.sensors.desktop_idle import DesktopIdle
from condor_actors.machine.sensors.readings import IdleNow
from condor_actors.machine.sensors.x_idle import DisplayLost, XDisplay, local_displays
from condor_actors.messages.admin import IdleReading
from condor_actors.messages.envelope import Address, Delivery, PeerUp, TimerFired

__all__ = ["Kbdd", "make_daemon"]

INTERVAL_S = 5.0
TELL_AGAIN_S = 1.0
REPEAT_S = 60.0
SAME_S = 0.5
"""Two readings of one input may differ by so much."""


@attrs.frozen
class Word:
    """What a sensor said: when, when its last input was (None: nobody knows), and its comment; by the boot clock."""

    when_s: float
    input_s: float | None
    text: str

    def is_news_after(self, before: Word) -> bool:
        """Whether the startd has to hear of it that has heard ``before``."""
        if self.text != before.text or self.when_s - before.when_s >= REPEAT_S:
            return True
        if self.input_s is None or before.input_s is None:
            return self.input_s is not before.input_s
        return self.input_s > before.input_s + SAME_S


class Screens:
    """The displays of this session; the simulation has its own."""

    def names(self) -> tuple[str, ...]:
        """Those that are there now."""
        return tuple(dict.fromkeys((*local_displays(), *filter(None, [os.environ.get("DISPLAY")]))))

    def open(self, name: str) -> XDisplay:
        """One of them.

        Raises:
            DisplayLost: it does not let us in.
        """
        return XDisplay(name)

    def desktop(self, told: Callable[[IdleNow], None]) -> DesktopIdle:
        """The session's desktop."""
        return DesktopIdle(told)


class KbddActor(Actor):
    """Watches every display it can get into."""

    def __init__(self, kbdd: Kbdd) -> None:
        self.kbdd = kbdd
        self.displays: dict[str, XDisplay] = {}
        self._touched_s: dict[str, float] = {}
        self._told: dict[str, Word] = {}
        self._screens = kbdd.screens
        self._desktop = kbdd.screens.desktop(self._desktop_says)

    def started(self) -> None:
        """Look for displays."""
        self.context.watch(self.kbdd.startd.node)
        self._poll()

    def receive(self, delivery: Delivery) -> None:
        """Time to look again, or a startd that knows nothing yet."""
        if isinstance(delivery.message, PeerUp):
            self._told.clear()
            self._read()
        elif isinstance(delivery.message, TimerFired):
            self._poll()

    def stopped(self) -> None:
        """Let go of the displays."""
        self._desktop.stop()
        for display in self.displays.values():
            display.close()

    def _poll(self) -> None:
        self._read()
        self.context.set_timer("look", self.kbdd.interval_s)

    def _read(self) -> None:
        for name in self._screens.names():
            if name not in self.displays:
                self._open(name)
        for name, display in tuple(self.displays.items()):
            try:
                self._tell(name, display.idle_s())
            except DisplayLost as problem:
                self._lost(name, str(problem))
        self._desktop.poll(self.context.system.clock)

    def _open(self, name: str) -> None:
        try:
            display = self.displays[name] = self._screens.open(name)
        except DisplayLost as problem:
            self._tell(name, None, str(problem))
            return
        self.context.log.info("watching display {name} (input events: {raw})", name=name, raw=display.raw_events)
        display.watch(self.context.system.clock, lambda: self._touched(name), lambda why: self._lost(name, why))

    def _touched(self, name: str) -> None:
        now_s = self.context.system.clock.seconds()
        if now_s - self._touched_s.get(name, -TELL_AGAIN_S) >= TELL_AGAIN_S:
            self._touched_s[name] = now_s
            self._tell(name, 0.0)

    def _lost(self, name: str, why: str) -> None:
        display = self.displays.pop(name, None)
        if display is not None:
            display.close()
            self.context.log.info("display {name} is gone: {why}", name=name, why=why)
        self._tell(name, None, why)

    def _desktop_says(self, word: IdleNow) -> None:
        self._say(word.source, word.idle_s, word.text)

    def _tell(self, name: str, idle_s: float | None, why: str = "") -> None:
        self._say(f"x11:{name}", idle_s, why)

    def _say(self, source: str, idle_s: float | None, text: str) -> None:
        """Tell of a sensor, unless the startd knows it already."""
        now_s = self.context.system.clock.seconds()
        word = Word(now_s, None if idle_s is None else now_s - idle_s, text)
        told = self._told.get(source)
        if told is None or word.is_news_after(told):
            self._told[source] = word
            reading = IdleReading(source=source, idle_s=idle_s or 0.0, known=idle_s is not None, text=text)
            self.context.tell(self.kbdd.startd, reading)


class Kbdd:
    """The daemon; see ``Daemon``."""

    name = "kbdd"

    def __init__(self, config: Config, world: World) -> None:
        self.startd = Address(f"unix:{config.path('RUN') / 'startd.sock'}", "startd")
        self.interval_s = INTERVAL_S
        self.screens: Screens = world.readings or Screens()
        self.system = world.make_system()

    def start(self) -> None:
        """Spawn the actor."""
        self.system.spawn("kbdd", lambda: KbddActor(self))

    def stop(self, graceful: bool) -> Deferred[None]:
        """Nothing is left to do."""
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Nothing of it is configured."""

    def ad(self) -> ClassAd:
        """For ``condor_ping``."""
        actor: Any = self.system.actor("kbdd")
        displays = " ".join(actor.displays) if isinstance(actor, KbddActor) else ""
        return ClassAd({"MyType": "Kbdd", "Name": "kbdd", "Displays": displays})


def make_daemon(config: Config, world: World) -> Kbdd:
    """The kbdd, not started."""
    return Kbdd(config, world)
