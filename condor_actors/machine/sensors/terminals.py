"""The moment someone types at a terminal: inotify on pseudo terminals and virtual consoles.

Theory: whatever is typed at a terminal is read by some program, and the kernel tells of each read of a device whose
watch it holds (IN_ACCESS); output is a write and says nothing.  A watch is good for one event and laid again a second
later, so a busy typist costs one wake-up a second and an idle machine none.  What was typed is never seen.  Terminals
that come are noticed in /dev/pts itself.  Errors: input within the second after an event is dated by that event; a
terminal that this user may not read cannot be watched, then its access time counts, which moves in steps of 8 s.

Source: inotify(7); the kernel's drivers/tty (tty_update_time).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from inotify_simple import INotify, flags
from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

from condor_actors.machine.privilege.helper import process_helper

__all__ = ["TerminalWatch"]

REST_S = 1.0


@implementer(IReadDescriptor)
class TerminalWatch:
    """Watches terminals for input.

    Args:
        touched: called with ``tty:pts/3`` or ``console:tty1`` as someone types there.
        dev: where devices are.

    Raises:
        OSError: the kernel has no inotify to give.
    """

    def __init__(self, touched: Callable[[str], None], dev: str = "/dev") -> None:
        self._notify = INotify(nonblocking=True)
        self._touched = touched
        self._dev = dev
        self._reactor: Any = None
        self._sources: dict[int, tuple[str, str]] = {}
        self._watched: dict[str, int] = {}
        self._resting: dict[str, Any] = {}
        self._folder = -1
        self.refused: dict[str, str] = {}

    def start(self, reactor: Any) -> None:
        """Watch all there is, on ``reactor`` (which also gives the time)."""
        self._reactor = reactor
        with contextlib.suppress(OSError):  # no pseudo terminals here
            self._folder = self._notify.add_watch(f"{self._dev}/pts", flags.CREATE)
        reactor.addReader(self)
        self.refresh()

    def refresh(self) -> None:
        """Watch terminals that are new."""
        for source, path in self._terminals():
            if source not in self._watched and source not in self._resting:
                self._arm(source, path)

    def watches(self, source: str) -> bool:
        """Whether input there is told as it happens."""
        return source in self._watched or source in self._resting

    def _terminals(self) -> list[tuple[str, str]]:
        found = []
        with contextlib.suppress(OSError):
            found += [(f"tty:pts/{name}", f"{self._dev}/pts/{name}") for name in os.listdir(f"{self._dev}/pts")
                      if name.isdecimal()]
        with contextlib.suppress(OSError):
            found += [(f"console:{name}", f"{self._dev}/{name}") for name in os.listdir(self._dev)
                      if name.startswith("tty") and name[3:].isdecimal() and name != "tty0"]
        return found

    def _arm(self, source: str, path: str) -> None:
        try:
            number = self._add_watch(path)
        except OSError as error:
            self.refused[source] = error.strerror or str(error)
            return
        self.refused.pop(source, None)
        self._sources[number] = (source, path)
        self._watched[source] = number

    def _add_watch(self, path: str) -> int:
        """For the next read; by the helper's rights where a terminal is another user's.

        Raises:
            OSError: this process may not watch it.
        """
        try:
            return int(self._notify.add_watch(path, flags.ACCESS | flags.ONESHOT))
        except PermissionError:
            helper = process_helper()
            if helper is None:
                raise
            return helper.watch(self._notify.fileno(), path)

    # ---- a reader of the reactor

    def fileno(self) -> int:
        """The inotify instance."""
        return -1 if self._notify.closed else int(self._notify.fileno())

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Events have come."""
        for number, mask, _, name in self._notify.read(timeout=0):
            self._heard(number, mask, name)

    def _heard(self, number: int, mask: int, name: str) -> None:
        if number == self._folder and mask & flags.CREATE:
            if name.isdecimal():
                self._arm(f"tty:pts/{name}", f"{self._dev}/pts/{name}")
            return
        if mask & flags.ACCESS and number in self._sources:
            source, path = self._sources[number]
            earlier = self._resting.pop(source, None)
            if earlier is not None:  # a new terminal has got the number of one that has just gone
                earlier.cancel()
            self._resting[source] = self._reactor.callLater(REST_S, self._rested, source, path)
            self._touched(source)
        if mask & flags.IGNORED and number in self._sources:
            source, _ = self._sources.pop(number)
            if self._watched.get(source) == number:
                del self._watched[source]

    def _rested(self, source: str, path: str) -> None:
        del self._resting[source]
        if os.path.exists(path):
            self._arm(source, path)

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor stops."""
        self.stop()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "terminals"

    def stop(self) -> None:
        """Watch nothing any more."""
        for timer in self._resting.values():
            timer.cancel()
        self._resting.clear()
        if not self._notify.closed:
            if self._reactor is not None:
                self._reactor.removeReader(self)
            self._notify.close()
