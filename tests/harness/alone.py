"""Tests of one run that take turns: those marked ``alone`` have the machine to themselves, all others share it.

A lock between the workers of pytest-xdist: whoever is alone holds it, the others share it.  A second lock is passed on
the way to the first, so that who waits for being alone is not overtaken for ever.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Turns"]


class Turns:
    """The two locks in ``folder``, which every worker of a run has."""

    def __init__(self, folder: Path) -> None:
        self._entrance = os.open(folder / "entrance.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._machine = os.open(folder / "machine.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def turn(self, alone: bool) -> Iterator[None]:
        """Wait until nothing disturbs; let nothing disturb meanwhile, or only what shares the machine too."""
        fcntl.flock(self._entrance, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._entrance, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._machine, fcntl.LOCK_UN)
