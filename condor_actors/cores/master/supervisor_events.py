"""The vocabulary of the master's core: its states, events and effects.

:mod:`condor_actors.cores.master.supervisor` decides with them.
"""

from __future__ import annotations

import enum

import attrs

from condor_actors.config.settings import setting
from condor_actors.effects import Effect

__all__ = [
    "AllStopped", "ChildExited", "ChildFound", "ChildReady", "ChildSpawned", "DaemonSpec", "DaemonsListed", "Finish",
    "KeeperLimits", "Obituary", "SpawnFailed", "StartProcess", "State", "StopProcess", "TurnOff", "TurnOn",
]


class State(enum.Enum):
    """Where a daemon stands; see :mod:`condor_actors.cores.master.supervisor`."""

    OFF = "off"
    STARTING = "starting"
    UP = "up"
    STOPPING = "stopping"
    WAITING = "waiting"


@attrs.frozen(kw_only=True)
class DaemonSpec:
    """A daemon to keep.

    Attributes:
        name: as in DAEMON_LIST, in capitals.
        last: stopped only after all others are gone (the collector, so that it hears them go).
    """

    name: str
    last: bool = False


@attrs.frozen(kw_only=True)
class KeeperLimits:
    """The times of the keeper's rules, in seconds; ``backoff_factor`` is a number."""

    backoff_constant_s: float = setting("MASTER_BACKOFF_CONSTANT")
    backoff_factor: float = setting("MASTER_BACKOFF_FACTOR")
    backoff_ceiling_s: float = setting("MASTER_BACKOFF_CEILING")
    recover_s: float = setting("MASTER_RECOVER_FACTOR")
    graceful_s: float = setting("SHUTDOWN_GRACEFUL_TIMEOUT")
    fast_s: float = setting("SHUTDOWN_FAST_TIMEOUT")


# ---- events


@attrs.frozen(kw_only=True)
class DaemonsListed:
    """The configuration says which daemons there are; those new to it are started, those gone from it are stopped."""

    daemons: tuple[DaemonSpec, ...]
    limits: KeeperLimits = attrs.field(factory=KeeperLimits)
    start: bool = True


@attrs.frozen(kw_only=True)
class ChildFound:
    """A daemon that an earlier master started is alive."""

    name: str
    pid: int
    started_s: float


@attrs.frozen(kw_only=True)
class ChildSpawned:
    """`StartProcess` was done."""

    name: str
    pid: int


@attrs.frozen(kw_only=True)
class SpawnFailed:
    """`StartProcess` could not be done."""

    name: str
    reason: str


@attrs.frozen(kw_only=True)
class ChildReady:
    """The daemon says that it listens."""

    name: str
    pid: int
    address: str


@attrs.frozen(kw_only=True)
class ChildExited:
    """A process ended.

    Attributes:
        code: its exit status, None when a signal ended it or when it was not our child.
        signal: that ended it, None when none did.
    """

    name: str
    pid: int
    code: int | None = None
    signal: int | None = None

    @property
    def how(self) -> str:
        """For people."""
        if self.signal is not None:
            return f"died of signal {self.signal}"
        return "ended" if self.code is None else f"exited with status {self.code}"


@attrs.frozen(kw_only=True)
class TurnOn:
    """Start these daemons (empty: all) if they do not run."""

    names: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class TurnOff:
    """Stop these daemons (empty: all); ``again`` starts them when they are gone."""

    names: tuple[str, ...] = ()
    how: str = "graceful"
    again: bool = False


@attrs.frozen(kw_only=True)
class Finish:
    """Stop everything, then report `AllStopped` with this ``sequel`` (``exit`` or ``renew``)."""

    how: str = "graceful"
    sequel: str = "exit"


# ---- effects


@attrs.frozen
class StartProcess(Effect):
    """Start the daemon; comes back as `ChildSpawned` or `SpawnFailed`."""

    name: str


@attrs.frozen
class StopProcess(Effect):
    """Ask the daemon to go: ``peaceful``, ``graceful``, ``fast``, or make it go: ``kill``."""

    name: str
    pid: int
    how: str


@attrs.frozen(kw_only=True)
class Obituary(Effect):
    """Tell the admin that a daemon died."""

    name: str
    pid: int
    how: str
    failures: int
    again_in_s: float
    code: int | None = None


@attrs.frozen
class AllStopped(Effect):
    """Every daemon is gone, as `Finish` asked."""

    sequel: str
