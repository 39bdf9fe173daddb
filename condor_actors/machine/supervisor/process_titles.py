"""What ``/proc`` says of a process that was forked and never executed: its own command line and environment.

The kernel shows the memory in which it once put both. A forked process has its parent's there, and writes its own over
it: room for a longer command line is what its ancestor was executed with, as empty words (`ROOM`). What does not fit of
an environment is left out at its end, so what others look for comes first. Imports little: commands use it.

**Source**: proc(5), ``/proc/pid/cmdline``, ``/proc/pid/environ``, fields 48 to 51 of ``/proc/pid/stat``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["FIRST", "ROOM", "fits", "room", "show", "size"]

ROOM: Final = ("",) * 1000
"""Last words of a command line that is to have room: one byte each."""
FIRST: Final = ("CONDOR_KEPT", "CONDOR_CONFIG", "_CONDOR_SHADOW_HOST_ID")
"""Variables that say whose process it is."""
ARGUMENTS: Final = 45
"""Where the four addresses begin among the fields after the name."""


def _places() -> tuple[int, int, int, int]:
    """Begin and end of the command line and of the environment in memory; zeros when the kernel does not say."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    first, second, third, fourth = (int(field) for field in fields[ARGUMENTS : ARGUMENTS + 4])
    return first, second, third, fourth


def room() -> int:
    """Bytes that a command line of this process may have, the zeros after each word included."""
    begin, end, _, _ = _places()
    return end - begin


def size(command: Sequence[str]) -> int:
    """Bytes that a command line takes."""
    return sum(len(os.fsencode(word)) + 1 for word in command)


def fits(environment: Mapping[str, str]) -> bool:
    """Whether there is room for the variables by which others know a process."""
    _, _, variables, last = _places()
    return sum(len(os.fsencode(f"{name}={environment[name]}")) + 1 for name in FIRST if name in environment) \
        <= last - variables


def show(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Have this process shown with these words and variables, and make the variables its environment.

    Raises:
        ValueError: there is no room for the words.
    """
    begin, end, variables, last = _places()
    words = b"".join(os.fsencode(word) + b"\0" for word in command)
    if len(words) > end - begin:
        raise ValueError("no room for the command line")
    names = [*(name for name in FIRST if name in environment), *(name for name in environment if name not in FIRST)]
    shown = b"".join(os.fsencode(f"{name}={environment[name]}") + b"\0" for name in names)
    if len(shown) > last - variables:
        shown = shown[: shown.rfind(b"\0", 0, last - variables) + 1]
    os.environ.clear()  # the C library's copies are in that memory until they are set anew
    os.environ.update(environment)
    ctypes.memmove(begin, words.ljust(end - begin, b"\0"), end - begin)
    ctypes.memmove(variables, shown.ljust(last - variables, b"\0"), last - variables)
