"""What happens in a simulated pool, as far as a report wants to know: the vocabulary between drivers and recorders.

The runner of a pool (:mod:`condor_actors.simulation.cores.pool`, a world of whole daemons, or a reader of a real pool's
history) says these; :class:`condor_actors.simulation.report.recorder.Recorder` takes them.  Times are seconds since the
beginning, jobs and stations are any hashable names.
"""

from __future__ import annotations

from collections.abc import Hashable

import attrs

__all__ = ["Began", "Completed", "Event", "Left", "OwnerCame", "OwnerLeft", "Placed", "Resumed", "Saved", "Served",
           "Submitted", "Suspended", "Unserved"]


@attrs.frozen
class Submitted:
    """A job is in a queue; ``calls``: remote system calls it will make."""

    when_s: float
    job: Hashable
    user: str
    demand_s: float
    calls: int = 0


@attrs.frozen
class Placed:
    """A job is being sent to a station."""

    when_s: float
    job: Hashable
    station: Hashable


@attrs.frozen
class Began:
    """It runs there."""

    when_s: float
    job: Hashable
    station: Hashable


@attrs.frozen
class Suspended:
    """It was stopped where it is."""

    when_s: float
    job: Hashable


@attrs.frozen
class Resumed:
    """It goes on where it was stopped."""

    when_s: float
    job: Hashable


@attrs.frozen
class Saved:
    """A checkpoint of it was written, and it runs on."""

    when_s: float
    job: Hashable


@attrs.frozen
class Left:
    """It left its station unfinished.

    Attributes:
        why: ``owner``, ``priority`` or another word.
        saved: whether a checkpoint was written on leaving; lost_s: work that will have to be done again.
    """

    when_s: float
    job: Hashable
    why: str
    saved: bool = True
    lost_s: float = 0.0


@attrs.frozen
class Completed:
    """It is done."""

    when_s: float
    job: Hashable


@attrs.frozen
class OwnerCame:
    """Someone uses a station."""

    when_s: float
    station: Hashable


@attrs.frozen
class OwnerLeft:
    """Nobody does any more."""

    when_s: float
    station: Hashable


@attrs.frozen
class Served:
    """A station's policy serves the pool from now on."""

    when_s: float
    station: Hashable


@attrs.frozen
class Unserved:
    """A station's policy serves its owner from now on."""

    when_s: float
    station: Hashable


Event = (Submitted | Placed | Began | Suspended | Resumed | Saved | Left | Completed | OwnerCame | OwnerLeft | Served
         | Unserved)
