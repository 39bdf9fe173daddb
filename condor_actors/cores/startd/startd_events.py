"""What the core of the startd is told by its host, and what it wants of it beside messages."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from condor_actors.config.settings import setting
from condor_actors.cores.startd.slots import Slot
from condor_actors.effects import Effect

__all__ = [
    "Benchmarked", "DiskGrew", "StartdSettings", "EndStartd", "Hide", "NeedStarter", "Observed", "Probed",
    "RunBenchmarks", "SensorSpoke", "Show", "StarterDied", "StopBenchmarks",
]


@attrs.frozen(kw_only=True)
class StartdSettings:
    """Times and the startd's name.

    Attributes:
        address: the startd's own public address.
        update_interval_s: every slot's ad is made anew this often; spacing_s: at least this between ads that are not
            urgent.
        successor_wait_s: how long a request that displaces a claim waits for it to end.
        starter_wait_s: how long requests wait for a starter host that is starting.
        open_timeout_s: how long the starter host may take to open a claim.
        own_uid: whose process this is; owners: users who may pause the machine wherever they sit (DESKTOP_OWNERS).
    """

    address: str
    update_interval_s: float = setting("UPDATE_INTERVAL")
    spacing_s: float = 1.0
    successor_wait_s: float = 30.0
    starter_wait_s: float = 20.0
    open_timeout_s: float = 10.0
    own_uid: int = 0
    owners: frozenset[str] = frozenset()


# ---- local events and effects


@attrs.frozen(kw_only=True)
class Observed:
    """Readings of the host: loads (of everything, and of the pool's jobs), idle reports (source, idle_s, why not), who
    sits at it, whether its screen is locked (None: nobody knows), how far local time is ahead of UTC."""

    total_load: float
    own_load: float
    idle: tuple[tuple[str, float | None, str], ...] = ()
    disk_free_kib: int | None = None
    console_uids: frozenset[int] = frozenset()
    screen_locked: bool | None = None
    utc_offset_s: int = 0


@attrs.frozen
class SensorSpoke:
    """A sensor of this machine saw the owner just now."""

    source: str


@attrs.frozen(kw_only=True)
class Benchmarked:
    """The machine has measured its speed: attributes and their values; none: it could not, and ``text`` says why."""

    found: tuple[tuple[str, int], ...] = ()
    text: str = ""


@attrs.frozen
class DiskGrew:
    """There is more room on the disk than when the slots were made: what they have of it now, by their numbers, and
    the machine's, in KiB."""

    disk_kib: Mapping[int, int]
    total_kib: int


@attrs.frozen
class Probed:
    """What this machine can do was tried out: attributes and their values; None: it does not say that any more."""

    found: tuple[tuple[str, bool | None], ...]


@attrs.frozen
class RunBenchmarks(Effect):
    """Measure the machine's speed; :class:`Benchmarked` follows."""


@attrs.frozen
class StopBenchmarks(Effect):
    """The machine is wanted: stop measuring."""


@attrs.frozen
class StarterDied:
    """The starter host with this pid is gone, and its jobs with it."""

    pid: int


@attrs.frozen
class NeedStarter(Effect):
    """Start a starter host, or wait for the living one to say hello."""


@attrs.frozen
class Show(Effect):
    """The slot's ad has changed (and its capability perhaps): advertise it."""

    slot: Slot


@attrs.frozen
class Hide(Effect):
    """The slot exists no longer."""

    name: str


@attrs.frozen
class EndStartd(Effect):
    """A drain is over and wants the startd to ``exit`` or ``restart``."""

    how: str
