"""A terminal that shows what goes on, and what is typed there.

Theory: a program that shows things live waits for three kinds of news: keys, files and answers, and the clock.  They
are awaited together by one ``select``; signals end that wait too, by Python's wake-up descriptor.  What is shown goes
to the terminal's other screen, as with ``less``: who leaves finds what was there before.
Texts of others must have
come through `condor_actors.tools.printing.terminal.shown` before: what is shown here is written as it is.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import termios
import tty
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live

from condor_actors.tools.printing.terminal import untamed

__all__ = ["Keyboard", "Screen", "keys_of"]

_SEQUENCES = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x1b[C": "right", b"\x1bOC": "right",
    b"\x1b[D": "left", b"\x1bOD": "left", b"\x1b[5~": "pageup", b"\x1b[6~": "pagedown", b"\x1b[H": "home",
    b"\x1b[1~": "home", b"\x1bOH": "home", b"\x1b[F": "end", b"\x1b[4~": "end", b"\x1bOF": "end", b"\x1b[Z": "backtab",
}
_PLAIN = {b"\r": "enter", b"\n": "enter", b"\t": "tab", b"\x7f": "backspace", b"\x08": "backspace", b"\x1b": "escape",
          b"\x0c": "redraw"}
_TYPED_BYTES = 256


def keys_of(data: bytes) -> list[str]:
    """The keys that bytes from a terminal stand for: names for those that have one, else the letter itself."""
    found: list[str] = []
    while data:
        sequence = next((each for each in _SEQUENCES if data.startswith(each)), None)
        if sequence is not None:
            found.append(_SEQUENCES[sequence])
            data = data[len(sequence):]
        elif data[:1] in _PLAIN and not (data[:1] == b"\x1b" and len(data) > 1):
            found.append(_PLAIN[data[:1]])
            data = data[1:]
        elif data[0] < 0x20:  # an escape sequence that means nothing here, or a control character
            data = b""
        else:
            text = data.decode("utf-8", "ignore")
            if text:
                found.append(text[0])
            data = text[1:].encode() if text else b""
    return found


class Keyboard:
    """Keys as they are typed, without waiting for the end of a line; a context manager.

    Where standard input is no terminal there are no keys.
    """

    def __init__(self) -> None:
        self.descriptor: int | None = None
        self._saved: list[Any] | None = None

    def __enter__(self) -> Keyboard:
        try:
            descriptor = sys.stdin.fileno()
            if os.isatty(descriptor):
                self._saved = termios.tcgetattr(descriptor)
                tty.setcbreak(descriptor)
                self.descriptor = descriptor
        except (OSError, ValueError, AttributeError, termios.error):
            self.descriptor = None
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor is not None and self._saved is not None:
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._saved)
            self.descriptor = None

    def read(self) -> list[str]:
        """The keys that were typed; ``["closed"]`` when the terminal has gone."""
        if self.descriptor is None:
            return []
        try:
            data = os.read(self.descriptor, _TYPED_BYTES)
        except OSError:
            data = b""
        if not data:
            self.descriptor = None
            return ["closed"]
        return keys_of(data)


class Screen:
    """The terminal; a context manager.

    Args:
        is_whole: show on the other screen, in place; without it nothing is shown here, and only `wait` is of use.
        is_colored: with colours.

    Raises:
        KeyboardInterrupt: in whatever runs, when the process is told to end (SIGINT, SIGTERM, SIGHUP).
    """

    def __init__(self, *, is_whole: bool = True, is_colored: bool = True) -> None:
        self._console = Console(file=untamed(sys.stdout), highlight=False, markup=False, emoji=False,
                                color_system="auto" if is_colored else None)
        self._live = Live(console=self._console, screen=True, auto_refresh=False, redirect_stdout=False,
                          redirect_stderr=False, transient=True) if is_whole else None
        self._keyboard = Keyboard()
        self._woken, self._wakes = -1, -1
        self._signals: dict[int, Any] = {}
        self._wakeup = -1

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        return self._console.size.width, self._console.size.height

    def __enter__(self) -> Screen:
        self._woken, self._wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup = signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        self._signals = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
        self._signals[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, _resized)
        self._keyboard.__enter__()
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.leave()
        self._keyboard.__exit__()
        signal.set_wakeup_fd(self._wakeup)
        for number, before in self._signals.items():
            signal.signal(number, before)
        os.close(self._woken)
        os.close(self._wakes)

    def leave(self) -> None:
        """Back to the screen that was there before; what is printed from now on stays."""
        if self._live is not None:
            live, self._live = self._live, None
            live.__exit__(None, None, None)

    def show(self, what: RenderableType) -> None:
        """Show this in place of what is there."""
        if self._live is not None:
            self._live.update(what, refresh=True)

    def wait(self, descriptors: Iterable[int], timeout_s: float | None) -> list[str]:
        """Wait for a key, for one of the descriptors, for a change of the window's size or for the time.

        Args:
            descriptors: readable when there is something new.
            timeout_s: at most so long; None: without end.

        Returns:
            the keys that were typed.
        """
        with selectors.DefaultSelector() as selector:
            for descriptor in {*descriptors, self._woken}:
                selector.register(descriptor, selectors.EVENT_READ)
            keyboard = self._keyboard.descriptor
            if keyboard is not None:
                selector.register(keyboard, selectors.EVENT_READ)
            ready = {key.fd for key, _ in selector.select(timeout_s)}
        if self._woken in ready:
            os.read(self._woken, _TYPED_BYTES)
        return self._keyboard.read() if keyboard is not None and keyboard in ready else []


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _resized(number: int, frame: FrameType | None) -> None:
    """The wake-up descriptor has told."""
