"""Which daemons of a machine run, and when one that died is started again: what the master decides.

Each daemon is in one state:

=============  ==================================================================================================
``OFF``        not running and not wanted
``STARTING``   a process exists and has not said yet that it listens
``UP``         it has said so (or was found running when the master itself came back)
``STOPPING``   it was asked to go; a timer asks again, harder
``WAITING``    it died too often in a row, or could not be started; a timer starts it
=============  ==================================================================================================

The first death in a row is answered at once. The n-th waits ``constant + factor ** (n - 1)`` seconds, at most the
ceiling; living longer than ``recover_s`` forgets the failures. A stop that takes longer than its time becomes a faster
one: peaceful (no limit), graceful, fast, kill.

**Source**: Condor Architecture 15.3.1; HTCondor manual, MASTER_BACKOFF_CONSTANT and the like.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from condor_actors.cores.master.supervisor_events import (
    AllStopped,
    ChildExited,
    ChildFound,
    ChildReady,
    ChildSpawned,
    DaemonsListed,
    DaemonSpec,
    Finish,
    KeeperLimits,
    Obituary,
    SpawnFailed,
    StartProcess,
    State,
    StopProcess,
    TurnOff,
    TurnOn,
)
from condor_actors.cores.state_table import ignore, total_table
from condor_actors.effects import CancelTimer, Effect, Note, SetTimer

__all__ = ["SupervisedProcess", "Supervisor"]

LONGEST_STORY: Final = 50
NOT_AGAIN: Final = 99
"""The exit status by which a daemon says that it is not to be started again."""


# ---- the core


@attrs.define(kw_only=True)
class SupervisedProcess:
    """What is known of one daemon.

    Attributes:
        wanted: whether it should run.
        stopping: how it was asked to go, while it is.
        listed: whether the configuration still has it.
        failures: deaths in a row.
    """

    spec: DaemonSpec
    state: State = State.OFF
    wanted: bool = True
    listed: bool = True
    pid: int = 0
    address: str = ""
    started_s: float = 0.0
    stopping: str = ""
    failures: int = 0
    starts: int = 0
    again_at_s: float = 0.0
    events: deque[tuple[float, str]] = attrs.field(factory=lambda: deque(maxlen=LONGEST_STORY))


_HARDER: Final = {"peaceful": "graceful", "graceful": "fast", "fast": "kill"}
_ORDER: Final = ("peaceful", "graceful", "fast", "kill")

Row = Callable[["Supervisor", SupervisedProcess, Any, float], tuple[Effect, ...]]


class Supervisor:
    """The core of the master; see the module.

    Attributes:
        daemons: what is known, by name, in the order of DAEMON_LIST.
        limits: the times in force.
        sequel: of `Finish`, once that was asked for.
    """

    def __init__(self, limits: KeeperLimits | None = None) -> None:
        self.daemons: dict[str, SupervisedProcess] = {}
        self.limits = limits or KeeperLimits()
        self.sequel = ""
        self._finish_how = "graceful"

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from ``event`` at ``now_s``."""
        if isinstance(event, DaemonsListed):
            return self._listed(event, now_s)
        if isinstance(event, Finish):
            return self._finish(event, now_s)
        if isinstance(event, (TurnOn, TurnOff)):
            chosen = [self.daemons[name] for name in event.names or tuple(self.daemons) if name in self.daemons]
            return tuple(effect for kept in chosen for effect in self._one(kept, event, now_s)) + self._end()
        name = event.key[1] if hasattr(event, "key") else event.name
        kept = self.daemons.get(name)
        if kept is None:
            if not isinstance(event, ChildFound):
                return ()
            kept = self.daemons[name] = SupervisedProcess(spec=DaemonSpec(name=name), wanted=False, listed=False)
        return self._one(kept, event, now_s) + self._end()

    def story(self, name: str) -> tuple[tuple[float, str], ...]:
        """What happened to the daemon ``name``, oldest first, as (when, what)."""
        kept = self.daemons.get(name)
        return tuple(kept.events) if kept is not None else ()

    def resume(self, now_s: float) -> tuple[Effect, ...]:
        """The timers that must run, for an actor that was built anew around this core."""
        effects: list[Effect] = []
        for name, kept in self.daemons.items():
            if kept.state is State.WAITING:
                effects.append(SetTimer(("start", name), max(kept.again_at_s - now_s, 0.0)))
            elif kept.state is State.STOPPING:
                effects += self._stop(kept, kept.stopping)
        return tuple(effects)

    def living(self) -> tuple[SupervisedProcess, ...]:
        """Daemons with a process."""
        return tuple(kept for kept in self.daemons.values() if kept.pid)

    def _one(self, kept: SupervisedProcess, event: Any, now_s: float) -> tuple[Effect, ...]:
        kind = _timer_kind(event) or type(event).__name__
        before = kept.state
        effects = TABLE[kept.state, kind](self, kept, event, now_s)
        if kept.state is not before or kind not in ("ChildReady",):
            kept.events.append((now_s, f"{kind}: {before.value} -> {kept.state.value}"))
        return effects

    # ---- all of them

    def _listed(self, event: DaemonsListed, now_s: float) -> tuple[Effect, ...]:
        self.limits = event.limits
        effects: list[Effect] = []
        named = {spec.name for spec in event.daemons}
        for spec in event.daemons:
            kept = self.daemons.get(spec.name)
            if kept is None:
                kept = self.daemons[spec.name] = SupervisedProcess(spec=spec, wanted=event.start)
                if event.start and not self.sequel:
                    effects += self._start(kept, now_s)
            else:
                if not kept.listed:
                    kept.wanted = event.start
                kept.spec, kept.listed = spec, True
                if kept.state in (State.STARTING, State.WAITING):
                    kept.failures = 0  # what failed may have been the configuration
                if kept.state is State.WAITING or (kept.state is State.OFF and kept.wanted):
                    effects += self._start(kept, now_s)
        for name, kept in list(self.daemons.items()):
            if name not in named:
                kept.listed = False
                effects += self._one(kept, TurnOff(), now_s)
                if not kept.pid:
                    del self.daemons[name]
        return tuple(effects)

    def _finish(self, event: Finish, now_s: float) -> tuple[Effect, ...]:
        self.sequel = event.sequel
        self._finish_how = event.how
        effects: list[Effect] = []
        for kept in list(self.daemons.values()):
            if not kept.spec.last or kept.state is State.WAITING or event.how == "fast":
                effects += self._one(kept, TurnOff(how=event.how), now_s)
        return tuple(effects) + self._end()

    def _end(self) -> tuple[Effect, ...]:
        """What is left to do once the others are gone, when everything is to stop."""
        if not self.sequel:
            return ()
        living = self.living()
        if not living:
            sequel, self.sequel = self.sequel, ""
            return (AllStopped(sequel),)
        if all(kept.spec.last for kept in living):
            asked = [kept for kept in living if kept.state is not State.STOPPING]
            return tuple(effect for kept in asked for effect in self._stop(kept, self._finish_how))
        return ()

    # ---- steps

    def _start(self, kept: SupervisedProcess, now_s: float) -> tuple[Effect, ...]:
        kept.state = State.STARTING
        kept.starts += 1
        kept.started_s = now_s
        kept.again_at_s = 0.0
        return (CancelTimer(("start", kept.spec.name)), StartProcess(kept.spec.name))

    def _stop(self, kept: SupervisedProcess, how: str) -> tuple[Effect, ...]:
        kept.state = State.STOPPING
        kept.stopping = how
        name = kept.spec.name
        limit_s = {"graceful": self.limits.graceful_s, "fast": self.limits.fast_s}.get(how, 0.0)
        timer = SetTimer(("harder", name), limit_s) if limit_s else CancelTimer(("harder", name))
        return (StopProcess(name, kept.pid, how), timer)

    def _gone(self, kept: SupervisedProcess) -> None:
        kept.pid = 0
        kept.address = ""
        kept.stopping = ""

    def _died(self, kept: SupervisedProcess, event: ChildExited, now_s: float) -> tuple[Effect, ...]:
        if event.pid != kept.pid:
            return ()
        if now_s - kept.started_s >= self.limits.recover_s:
            kept.failures = 0
        kept.failures += 1
        self._gone(kept)
        if event.code == NOT_AGAIN:
            kept.state, kept.wanted = State.OFF, False
            return (Note(f"{kept.spec.name} (pid {event.pid}) has ended and does not want to be started again"),)
        wait_s = self._wait_s(kept.failures)
        told: tuple[Effect, ...] = ()
        if event.code != 0:
            told = (Obituary(name=kept.spec.name, pid=event.pid, how=event.how, failures=kept.failures,
                             again_in_s=wait_s, code=event.code),)
        if not kept.wanted or not kept.listed or self.sequel:
            kept.state = State.OFF
            return told
        return told + self._again(kept, wait_s, now_s)

    def _again(self, kept: SupervisedProcess, wait_s: float, now_s: float) -> tuple[Effect, ...]:
        if wait_s <= 0:
            return self._start(kept, now_s)
        kept.state = State.WAITING
        kept.again_at_s = now_s + wait_s
        return (
            SetTimer(("start", kept.spec.name), wait_s),
            Note(f"{kept.spec.name} is started again in {wait_s:g} s"),
        )

    def _wait_s(self, failures: int) -> float:
        if failures <= 1:
            return 0.0
        limits = self.limits
        grown = limits.backoff_factor ** min(failures - 1, 64)
        return min(limits.backoff_constant_s + grown, limits.backoff_ceiling_s)


def _timer_kind(event: Any) -> str:
    key = getattr(event, "key", None)
    return {"start": "TimeToStart", "harder": "TimeIsUp"}.get(key[0], "") if isinstance(key, tuple) else ""


# ---- the rows: what each event means in each state


def _turn_on(supervisor: Supervisor, kept: SupervisedProcess, event: TurnOn, now_s: float) -> tuple[Effect, ...]:
    kept.wanted = True
    kept.failures = 0
    return supervisor._start(kept, now_s)


def _want(supervisor: Supervisor, kept: SupervisedProcess, event: TurnOn, now_s: float) -> tuple[Effect, ...]:
    kept.wanted = True
    return ()


def _turn_off(supervisor: Supervisor, kept: SupervisedProcess, event: TurnOff, now_s: float) -> tuple[Effect, ...]:
    kept.wanted = event.again
    if not kept.pid:
        return ()
    return supervisor._stop(kept, event.how)


def _turn_off_idle(supervisor: Supervisor, kept: SupervisedProcess, event: TurnOff, now_s: float) -> tuple[Effect, ...]:
    kept.wanted = event.again
    if event.again:
        return supervisor._start(kept, now_s)
    kept.state = State.OFF
    return (CancelTimer(("start", kept.spec.name)),)


def _turn_off_more(supervisor: Supervisor, kept: SupervisedProcess, event: TurnOff, now_s: float) -> tuple[Effect, ...]:
    """A faster wish overtakes a slower one; never the other way round."""
    kept.wanted = event.again
    if _ORDER.index(event.how) <= _ORDER.index(kept.stopping):
        return ()
    return supervisor._stop(kept, event.how)


def _found(supervisor: Supervisor, kept: SupervisedProcess, event: ChildFound, now_s: float) -> tuple[Effect, ...]:
    kept.pid = event.pid
    kept.started_s = event.started_s
    kept.state = State.UP
    return (Note(f"{kept.spec.name} (pid {event.pid}) is alive and kept from now on"),)


def _spawned(supervisor: Supervisor, kept: SupervisedProcess, event: ChildSpawned, now_s: float) -> tuple[Effect, ...]:
    kept.pid = event.pid
    if kept.wanted and not supervisor.sequel:
        return (Note(f"{kept.spec.name} started, pid {event.pid}"),)
    return supervisor._stop(kept, "fast")


def _spawn_failed(
    supervisor: Supervisor, kept: SupervisedProcess, event: SpawnFailed, now_s: float
) -> tuple[Effect, ...]:
    kept.failures += 1
    wait_s = supervisor._wait_s(kept.failures + 1)
    note = Note(f"{kept.spec.name} cannot be started: {event.reason}", level="error")
    if not kept.wanted or supervisor.sequel:
        kept.state = State.OFF
        return (note,)
    return (note, *supervisor._again(kept, wait_s, now_s))


def _ready(supervisor: Supervisor, kept: SupervisedProcess, event: ChildReady, now_s: float) -> tuple[Effect, ...]:
    if event.pid != kept.pid:
        return ()
    kept.address = event.address
    if kept.state is State.STARTING:
        kept.state = State.UP
    return ()


def _died(supervisor: Supervisor, kept: SupervisedProcess, event: ChildExited, now_s: float) -> tuple[Effect, ...]:
    return supervisor._died(kept, event, now_s)


def _stopped(supervisor: Supervisor, kept: SupervisedProcess, event: ChildExited, now_s: float) -> tuple[Effect, ...]:
    if event.pid != kept.pid:
        return ()
    supervisor._gone(kept)
    kept.state = State.OFF
    name = kept.spec.name
    done: tuple[Effect, ...] = (CancelTimer(("harder", name)), Note(f"{name} (pid {event.pid}) {event.how}"))
    if not kept.listed:
        del supervisor.daemons[name]
        return done
    if not kept.wanted or supervisor.sequel:
        return done
    kept.failures = 0
    return done + supervisor._start(kept, now_s)


def _harder(supervisor: Supervisor, kept: SupervisedProcess, event: Any, now_s: float) -> tuple[Effect, ...]:
    how = _HARDER.get(kept.stopping, "kill")
    note = Note(f"{kept.spec.name} takes too long to stop; now {how}", level="warn")
    return (note, *supervisor._stop(kept, how))


def _time_to_start(supervisor: Supervisor, kept: SupervisedProcess, event: Any, now_s: float) -> tuple[Effect, ...]:
    return supervisor._start(kept, now_s)


_ROWS: Final[dict[str, Sequence[Row | ignore]]] = {
    # off, starting, up, stopping, waiting
    "TurnOn": (_turn_on, _want, _want, _want, _turn_on),
    "TurnOff": (_turn_off_idle, _turn_off, _turn_off, _turn_off_more, _turn_off_idle),
    "ChildFound": (_found, _found, ignore("known already"), ignore("known already"), _found),
    "ChildSpawned": (
        ignore("no start was asked for"), _spawned, ignore("known already"), ignore("known already"),
        ignore("no start was asked for"),
    ),
    "SpawnFailed": (
        ignore("no start was asked for"), _spawn_failed, ignore("it runs"), ignore("it runs"),
        ignore("no start was asked for"),
    ),
    "ChildReady": (
        ignore("a process that is being forgotten"), _ready, _ready, _ready, ignore("a process that is gone"),
    ),
    "ChildExited": (ignore("it is gone already"), _died, _died, _stopped, ignore("it is gone already")),
    "TimeToStart": (
        ignore("turned off meanwhile"), ignore("it is being started"), ignore("it runs"),
        ignore("it is started once it is gone"), _time_to_start,
    ),
    "TimeIsUp": (
        ignore("it is gone already"), ignore("a timer of an earlier stop"), ignore("a timer of an earlier stop"),
        _harder, ignore("a timer of an earlier stop"),
    ),
}

TABLE: Final[dict[tuple[State, str], Row | ignore]] = total_table("a daemon under its master", State, _ROWS)
