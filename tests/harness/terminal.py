"""A terminal with a program in it: a pseudo-terminal, and an emulator that says what is on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyte

__all__ = ["Terminal"]

DEADLINE_S = 60.0


class Terminal:
    """Runs a command in a window; a context manager, which ends the command.

    Args:
        command: the words.
        columns, lines: of the window.
        cwd: where it runs.
        environment: of the command.
    """

    def __init__(self, command: Sequence[str], *, columns: int = 80, lines: int = 24, cwd: Path,
                 environment: Mapping[str, str]) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.raw = b""
        self.status: int | None = None
        self._stream = pyte.ByteStream(self.screen)
        own = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                os.chdir(cwd)
                for number in (signal.SIGINT, signal.SIGQUIT):  # who runs the tests may ignore them
                    signal.signal(number, signal.SIG_DFL)
                os.execvpe(command[0], list(command), {**own, "TERM": "xterm-256color"})
            finally:
                os._exit(127)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.end()
        os.close(self._master)

    @property
    def text(self) -> str:
        """The lines of the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        self.screen.resize(lines, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, condition: Callable[[str], bool] | str, deadline_s: float = DEADLINE_S) -> str:
        """Until the screen is so (or has this text); what is on it then."""
        end_s = time.monotonic() + deadline_s
        wanted = condition if callable(condition) else lambda text: condition in text
        while not wanted(self.text):
            if time.monotonic() > end_s or not self._take(end_s - time.monotonic()):
                raise AssertionError(f"not seen: {condition}; on the screen:\n{self.text}")
        return self.text

    def end(self, deadline_s: float = DEADLINE_S) -> int:
        """Until the command has ended; its exit status."""
        end_s = time.monotonic() + deadline_s
        while self._take(end_s - time.monotonic()):
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def _take(self, timeout_s: float) -> bool:
        """What the command has written; False: nothing came, or it has gone."""
        ready, _, _ = select.select([self._master], [], [], max(timeout_s, 0.0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)
