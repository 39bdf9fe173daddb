"""How long nobody has touched an X display, and the moment someone does.

Theory: the server itself counts idle time (MIT-SCREEN-SAVER); raw input events of XInput 2 tell of a key press or a
pointer's move as it happens, whichever window it goes to.  Error: none to speak of; a server without the screen-saver
extension cannot be read, one without XInput 2 is only asked now and then.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

__all__ = ["DisplayLost", "XDisplay", "local_displays"]

SOCKETS = "/tmp/.X11-unix"
RAW_EVENTS = ("RawKeyPressMask", "RawButtonPressMask", "RawMotionMask", "RawTouchBeginMask")


class DisplayLost(Exception):
    """The X server cannot be reached, or cannot tell; the text says why."""


def local_displays(folder: str = SOCKETS) -> tuple[str, ...]:
    """Every display of this machine, ``:0`` …"""
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    return tuple(sorted(f":{name[1:]}" for name in names if re.fullmatch(r"X\d+", name)))


def _knock(name: str) -> None:
    """See whether a local server answers; the library would leave sockets behind.

    Raises:
        DisplayLost: nobody does.
    """
    path = f"{SOCKETS}/X{name[1:].partition('.')[0]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError as problem:
            raise DisplayLost(f"{name}: {path}: {problem.strerror}") from None


@implementer(IReadDescriptor)
class XDisplay:
    """A connection to one display; a reader of the reactor while it is watched.

    Args:
        name: ``:0``.

    Raises:
        DisplayLost: nobody answers there, we are not let in, or it has no screen-saver extension.
    """

    def __init__(self, name: str) -> None:
        from Xlib import display, error
        from Xlib.ext import screensaver

        if name.startswith(":"):
            _knock(name)
        self.name = name
        self._reactor: Any = None
        self._touched: Callable[[], None] | None = None
        self._lost: Callable[[str], None] | None = None
        self._errors: tuple[type[Exception], ...] = (OSError, error.ConnectionClosedError, error.DisplayError)
        try:
            self._display = display.Display(name)
            self._root = self._display.screen().root
            if not self._display.has_extension("MIT-SCREEN-SAVER"):
                raise DisplayLost(f"{name} has no screen-saver extension")
            self._query = screensaver.query_info
            self.raw_events = self._select_raw()
        except (OSError, error.DisplayError, error.XauthError, error.ConnectionClosedError) as problem:
            raise DisplayLost(f"{name}: {problem}") from None

    def _select_raw(self) -> bool:
        from Xlib import error
        from Xlib.ext import xinput

        if not self._display.has_extension("XInputExtension"):
            return False
        try:
            mask = 0
            for each in RAW_EVENTS:
                mask |= getattr(xinput, each, 0)
            self._display.xinput_query_version()
            self._root.xinput_select_events([(xinput.AllMasterDevices, mask)])
            self._display.sync()
        except (error.XError, AttributeError):
            return False
        return True

    def idle_s(self) -> float:
        """Seconds since the last input.

        Raises:
            DisplayLost: the server is gone.
        """
        try:
            return float(self._query(self._root).idle) / 1000.0
        except self._errors as problem:
            raise DisplayLost(f"{self.name}: {problem}") from None

    def watch(self, reactor: Any, touched: Callable[[], None], lost: Callable[[str], None]) -> None:
        """Have ``touched`` called at each input, ``lost`` once when the server goes."""
        self._reactor, self._touched, self._lost = reactor, touched, lost
        reactor.addReader(self)

    def fileno(self) -> int:
        """The connection."""
        number: int = self._display.fileno()
        return number

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Events have come."""
        try:
            count = self._display.pending_events()
            for _ in range(count):
                self._display.next_event()
        except self._errors as problem:
            lost = self._lost
            self.close()
            if lost is not None:
                lost(f"{self.name}: {problem}")
            return
        if count and self._touched is not None:
            self._touched()

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor stops."""
        self.close()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return f"display {self.name}"

    def close(self) -> None:
        """Let go of the display."""
        if self._reactor is not None:
            self._reactor.removeReader(self)
            self._reactor = None
        self._touched = self._lost = None
        try:
            self._display.close()
        except self._errors:
            return
