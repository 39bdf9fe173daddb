"""What tools print on a terminal does nothing there but stand in lines: names and reasons are other people's.

A job's name, a file's, a hold reason or a machine's attribute may have characters that move the cursor, colour, hide
or answer as if typed.  Where a person reads, they are shown as escapes (``\\x1b``); what goes to a file or a program is
left as it is.  Lines and columns of our own, and the underlining of heads, stay.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

__all__ = ["safe_terminal", "shown", "untamed"]

_ACTING = re.compile(
    "(?P<ours>\x1b\\[[04]m)|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    """A text as a terminal may have it."""
    return _ACTING.sub(lambda found: found["ours"] or found[0].encode("unicode_escape").decode(), text)


class _Terminal:
    """A stream to a terminal; everything but what it writes is the stream's."""

    def __init__(self, stream: TextIO) -> None:
        self.untamed = stream

    def write(self, text: str) -> int:
        """Write what may stand there."""
        self.untamed.write(shown(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.untamed, name)


def safe_terminal() -> None:
    """From now on this process writes nothing to a terminal that does anything there."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Terminal) and stream.isatty():
            setattr(sys, name, _Terminal(stream))


def untamed(stream: Any) -> Any:
    """The stream itself, for a line that is written over."""
    return getattr(stream, "untamed", stream)
