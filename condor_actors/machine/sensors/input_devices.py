"""The moment someone touches a keyboard, a mouse or a touch pad: the kernel's input devices.

Theory: /dev/input/event<n> becomes readable with each event, whatever desktop (X, Wayland, none) runs.  What is read is
thrown away at once, so nothing of what was typed is kept; then the device rests for a second.  Devices without keys or
buttons that a hand would press (lids, power buttons, sound jacks) do not count.  A device that has been silent since it
is watched cannot say since when: it is unknown, not idle.  A process that may not read them has its helper hold them:
it gets an epoll instance that becomes ready with each event, and nothing that could be read.  Errors: 1 s; without
either right the devices are unknown.

Source: the kernel's Documentation/input/input.rst and event-codes.rst.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

from condor_actors.machine.privilege.helper import process_helper
from condor_actors.machine.sensors.readings import IdleNow

__all__ = ["InputDevices", "is_for_hands"]

REST_S = 1.0
LEAST_KEYS = 3


def is_for_hands(capabilities: str) -> bool:
    """Whether a device's bitmap of keys (``capabilities/key`` in /sys, hexadecimal words) is a keyboard's or a
    pointer's."""
    try:
        return sum(int(word, 16).bit_count() for word in capabilities.split()) >= LEAST_KEYS
    except ValueError:
        return True


class InputDevices:
    """Watches all of them.

    Args:
        touched: called with ``input:event3`` as someone uses it, once a second at most.
        folder: where the devices are; facts: where the kernel describes them.
    """

    def __init__(self, touched: Callable[[str], None], folder: str = "/dev/input",
                 facts: str = "/sys/class/input") -> None:
        self._touched = touched
        self._folder = folder
        self._facts = facts
        self._reactor: Any = None
        self._open: dict[str, _Device] = {}
        self._refused: dict[str, str] = {}

    def start(self, reactor: Any) -> None:
        """Watch all there is, on ``reactor`` (which also gives the time)."""
        self._reactor = reactor
        self.refresh()

    def refresh(self) -> None:
        """Watch devices that were plugged in, forget those that were pulled."""
        try:
            names = {name for name in os.listdir(self._folder) if name.startswith("event")}
        except OSError:
            names = set()
        for name in names - self._open.keys():
            self._watch(name)
        for name in self._open.keys() - names:
            self._open.pop(name).close()
        self._refused = {name: why for name, why in self._refused.items() if name in names}

    def _watch(self, name: str) -> None:
        with contextlib.suppress(OSError), open(f"{self._facts}/{name}/device/capabilities/key",
                                                encoding="ascii") as file:
            if not is_for_hands(file.read()):
                return
        try:
            descriptor, drained = _opened(f"{self._folder}/{name}")
        except OSError as error:
            self._refused[name] = error.strerror or str(error)
            return
        self._refused.pop(name, None)
        self._open[name] = _Device(descriptor, drained, self._reactor, lambda: self._touched(f"input:{name}"))

    def unknown(self) -> tuple[IdleNow, ...]:
        """Those that cannot tell: not yet, or not to us."""
        silent = [IdleNow(f"input:{name}", None, "no event since it is watched")
                  for name, device in self._open.items() if not device.spoke]
        return tuple(silent) + tuple(IdleNow(f"input:{name}", None, why) for name, why in self._refused.items())

    def stop(self) -> None:
        """Watch nothing any more."""
        for device in self._open.values():
            device.close()
        self._open.clear()


def _opened(path: str) -> tuple[int, Callable[[int], bool]]:
    """What becomes ready when a device is used, and how to find out whether it was, and the device is still there.

    Raises:
        OSError: neither this process nor its helper may.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), _read_away
    except PermissionError:
        helper = process_helper()
        if helper is None:
            raise
    instance = select.epoll()
    try:
        helper.watch(instance.fileno(), path)
        return os.dup(instance.fileno()), _heard
    finally:
        instance.close()


def _read_away(device: int) -> bool:
    """Throw away what there is; False when the device is gone."""
    try:
        while os.read(device, 24 * 256):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _heard(instance: int) -> bool:
    """Take note of what the helper's device has told; False when it is gone."""
    said = select.epoll.fromfd(os.dup(instance))
    try:
        return not any(event & (select.EPOLLHUP | select.EPOLLERR) for _, event in said.poll(0))
    finally:
        said.close()


@implementer(IReadDescriptor)
class _Device:
    """One device, a reader of the reactor while it does not rest."""

    def __init__(self, descriptor: int, drained: Callable[[int], bool], reactor: Any,
                 touched: Callable[[], None]) -> None:
        self.spoke = False
        self._fd = descriptor
        self._drained = drained
        self._reactor = reactor
        self._touched = touched
        self._rest: Any = None
        reactor.addReader(self)

    def fileno(self) -> int:
        """The device."""
        return self._fd

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Someone touched it."""
        self._reactor.removeReader(self)
        if self._drained(self._fd):
            self.spoke = True
            self._rest = self._reactor.callLater(REST_S, self._rested)
            self._touched()

    def _rested(self) -> None:
        self._rest = None
        self._drained(self._fd)
        self._reactor.addReader(self)

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor stops."""
        self.close()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "input device"

    def close(self) -> None:
        """Let go of it."""
        if self._fd >= 0:
            if self._rest is not None:
                self._rest.cancel()
                self._rest = None
            self._reactor.removeReader(self)
            os.close(self._fd)
            self._fd = -1
