"""Tests of one run that take turns: some need the machine to themselves, or beside light work, all others share it.

Locks between the workers of pytest-xdist.  The machine's is held by a test that needs a quiet machine and shared by
all others; the entrance is passed on the way to it, so that a test that needs quiet is not overtaken without end; the
others are held by the two light tests that may run beside a test that only needs quiet, and by a test that is alone.

=========  ====================================  =====================================================
a test is  beside it run                         for example
=========  ====================================  =====================================================
ordinary   ordinary and light tests              a pool of processes
light      the same, or one that needs quiet     one of a single process
quiet      two light tests at a time             someone types at a terminal, and a job is suspended
alone      none                                  how long others wait is compared
=========  ====================================  =====================================================
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path

__all__ = ["Need", "Turns"]

BESIDE_QUIET = 2
"""So many light tests run beside one that needs quiet, which waits for events most of its time."""


class Need(Enum):
    """What a test needs of the machine; see the module."""

    ORDINARY = auto()
    LIGHT = auto()
    QUIET = auto()
    ALONE = auto()


class Turns:
    """The locks in ``folder``, which every worker of a run has."""

    def __init__(self, folder: Path) -> None:
        self._entrance, self._machine, *self._lights = (
            os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            for name in ("entrance", "machine", *(f"light{number}" for number in range(BESIDE_QUIET))))

    @contextmanager
    def turn(self, need: Need) -> Iterator[None]:
        """Wait until nothing disturbs; let nothing disturb meanwhile but what may."""
        if need is Need.LIGHT and not self._shared_at_once():
            with self._a_light():
                yield
            return
        if need is not Need.LIGHT:
            with _held(self._entrance, fcntl.LOCK_EX):
                if need is Need.ALONE:
                    for light in self._lights:
                        fcntl.flock(light, fcntl.LOCK_EX)
                fcntl.flock(self._machine, fcntl.LOCK_SH if need is Need.ORDINARY else fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._machine, fcntl.LOCK_UN)
            if need is Need.ALONE:
                for light in self._lights:
                    fcntl.flock(light, fcntl.LOCK_UN)

    @contextmanager
    def _a_light(self) -> Iterator[None]:
        """One of those that is free, else the last as soon as it is."""
        *others, last = self._lights
        for light in others:
            try:
                fcntl.flock(light, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            try:
                yield
            finally:
                fcntl.flock(light, fcntl.LOCK_UN)
            return
        with _held(last, fcntl.LOCK_EX):
            yield

    def _shared_at_once(self) -> bool:
        """Whether nobody has or wants the machine to himself; then it is shared from now on."""
        try:
            fcntl.flock(self._entrance, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._machine, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._entrance, fcntl.LOCK_UN)
        return True


@contextmanager
def _held(lock: int, how: int) -> Iterator[None]:
    fcntl.flock(lock, how)
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)
