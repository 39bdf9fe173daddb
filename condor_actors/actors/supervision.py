"""Supervision as data.

Theory (Erlang/OTP's, narrowed): an actor that raises is dropped with the unsent messages of that turn and built anew
by its factory, which reads the store.  A fault that a fresh start does not cure shows as restarts in quick
succession; past the intensity the process itself ends, and its parent (the master, the schedd) restarts that.  A
store that takes nothing (:class:`StoreUnavailable`) is no such fault.

=============  =======================================  ========================================
restart        after a crash                            after ``stop_actor``
=============  =======================================  ========================================
``permanent``  built anew, counted                      gone
``temporary``  gone; its parent gets :class:`ChildDown`  gone
=============  =======================================  ========================================
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from condor_actors.actors.actor import Actor

EXIT_STATUS = 70
"""``EX_SOFTWARE``: the exit status of a process whose actors crashed too often."""

MAX_RESTARTS = 5
PERIOD_S = 60.0
FIRST_DELAY_S = 0.1

LONGEST_DELAY_S = 30.0

PERMANENT = "permanent"
TEMPORARY = "temporary"


@attrs.frozen(kw_only=True)
class ChildDown:
    """Local event to the parent: its temporary child crashed and is gone."""

    name: str
    reason: str


@attrs.frozen(kw_only=True)
class ChildSpec:
    """How to make an actor and what to do when it crashes.

    Attributes:
        name: its name, unique in the process.
        factory: makes the actor, from the store where it has state.
        restart: ``permanent`` or ``temporary``.
        inbox_limit: questions from other processes are refused as ``busy`` while so many messages wait.
        parent: name of the actor that spawned it; empty for one of the system's own.
        survives: it goes on when its parent crashes, as a child of the rebuilt one; stopping the parent stops it.
    """

    name: str
    factory: Callable[[], Actor]
    restart: str = attrs.field(default=PERMANENT, validator=attrs.validators.in_((PERMANENT, TEMPORARY, "transient")))
    inbox_limit: int = 1000
    parent: str = ""
    survives: bool = False


class StoreUnavailable(Exception):
    """A commit that failed because the store takes nothing now (a full disk, say), through no fault of the actor.

    Its actors are built anew from the store, at first at once and then later and later, and that is not counted as
    a crash: ending the process would mend nothing.
    """


class Intensity:
    """Counts the restarts of one actor within :data:`PERIOD_S`."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()
        self._outages = 0
        self._outage_s = 0.0
        self.total = 0

    def restart(self, now_s: float) -> float | None:
        """Count a crash at ``now_s``.

        Returns:
            Seconds to wait before the restart: none for the first, then doubling; None when it crashed too often.
        """
        self.total += 1
        times = self._times
        while times and times[0] <= now_s - PERIOD_S:
            times.popleft()
        times.append(now_s)
        if len(times) > MAX_RESTARTS:
            return None
        return 0.0 if len(times) == 1 else FIRST_DELAY_S * 2.0 ** (len(times) - 2)


    def outage(self, now_s: float) -> float:
        """Note a failure of the store at ``now_s``; seconds to wait before the restart."""
        self.total += 1
        self._outages = self._outages + 1 if now_s - self._outage_s < PERIOD_S else 0
        self._outage_s = now_s
        return min(FIRST_DELAY_S * 2.0 ** (self._outages - 1), LONGEST_DELAY_S) if self._outages else 0.0


def exit_process(name: str) -> None:
    """End this process at once with :data:`EXIT_STATUS`; state is in the store, as after ``kill -9``."""
    sys.stderr.write(f"actor {name} crashed more than {MAX_RESTARTS} times in {PERIOD_S:g} s; exiting\n")
    sys.stderr.flush()
    os._exit(EXIT_STATUS)
