"""The master's decisions: total table, back-off, orderly and hurried ends."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.cores.master.supervisor import TABLE, Supervisor
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
from condor_actors.effects import Effect
from condor_actors.messages.envelope import TimerFired

EVENTS = ("TurnOn", "TurnOff", "ChildFound", "ChildSpawned", "SpawnFailed", "ChildReady", "ChildExited", "TimeToStart",
          "TimeIsUp")
LISTED = DaemonsListed(daemons=(DaemonSpec(name="COLLECTOR", last=True), DaemonSpec(name="SCHEDD")))


def kinds(effects: tuple[Effect, ...], *wanted: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, wanted)]


def running(now_s: float = 0.0) -> Supervisor:
    """Both daemons are up, as processes 1 and 2."""
    supervisor = Supervisor()
    supervisor.handle(LISTED, now_s)
    for pid, name in ((1, "COLLECTOR"), (2, "SCHEDD")):
        supervisor.handle(ChildSpawned(name=name, pid=pid), now_s)
        supervisor.handle(ChildReady(name=name, pid=pid, address="<127.0.0.1:1>"), now_s)
    return supervisor


def test_every_state_knows_every_event() -> None:
    assert set(TABLE) == {(state, event) for state in State for event in EVENTS}


def test_daemons_of_the_list_are_started() -> None:
    supervisor = Supervisor()
    effects = supervisor.handle(LISTED, 0.0)
    assert kinds(effects, StartProcess) == [StartProcess("COLLECTOR"), StartProcess("SCHEDD")]
    assert supervisor.daemons["SCHEDD"].state is State.STARTING


def test_a_daemon_found_alive_is_not_started_again() -> None:
    supervisor = Supervisor()
    supervisor.handle(ChildFound(name="SCHEDD", pid=7, started_s=-50.0), 0.0)
    effects = supervisor.handle(LISTED, 0.0)
    assert kinds(effects, StartProcess) == [StartProcess("COLLECTOR")]
    assert supervisor.daemons["SCHEDD"].pid == 7


def test_a_daemon_found_alive_that_is_not_wanted_is_stopped() -> None:
    supervisor = Supervisor()
    supervisor.handle(ChildFound(name="STARTD", pid=7, started_s=-50.0), 0.0)
    effects = supervisor.handle(LISTED, 0.0)
    assert kinds(effects, StopProcess) == [StopProcess("STARTD", 7, "graceful")]
    supervisor.handle(ChildExited(name="STARTD", pid=7, code=0), 1.0)
    assert "STARTD" not in supervisor.daemons


def test_the_first_death_is_answered_at_once_the_next_ones_later() -> None:
    supervisor = running()
    waits = []
    for pid in range(2, 16):
        effects = supervisor.handle(ChildExited(name="SCHEDD", pid=pid, signal=9), 1.0)
        (told,) = kinds(effects, Obituary)
        waits.append(told.again_in_s)
        if told.again_in_s:
            effects = supervisor.handle(TimerFired(key=("start", "SCHEDD")), 1.0)
        assert kinds(effects, StartProcess) == [StartProcess("SCHEDD")]
        supervisor.handle(ChildSpawned(name="SCHEDD", pid=pid + 1), 1.0)
    assert waits[:5] == [0.0, 11.0, 13.0, 17.0, 25.0]
    assert waits[-1] == 3600.0


def test_a_daemon_that_ends_for_good_stays_off() -> None:
    supervisor = running()
    effects = supervisor.handle(ChildExited(name="SCHEDD", pid=2, code=99), 1.0)
    assert not kinds(effects, StartProcess, Obituary)
    assert supervisor.daemons["SCHEDD"].state is State.OFF


def test_health_forgives() -> None:
    supervisor = running()
    supervisor.handle(ChildExited(name="SCHEDD", pid=2, signal=9), 10.0)
    supervisor.handle(ChildSpawned(name="SCHEDD", pid=3), 10.0)
    effects = supervisor.handle(ChildExited(name="SCHEDD", pid=3, signal=9), 10.0 + 300.0)
    assert kinds(effects, Obituary)[0].again_in_s == 0.0


def test_a_wish_to_end_that_is_not_heard_grows_louder() -> None:
    supervisor = running()
    effects = supervisor.handle(TurnOff(names=("SCHEDD",)), 0.0)
    assert kinds(effects, StopProcess) == [StopProcess("SCHEDD", 2, "graceful")]
    louder = [kinds(supervisor.handle(TimerFired(key=("harder", "SCHEDD")), 0.0), StopProcess)[0].how for _ in range(2)]
    assert louder == ["fast", "kill"]
    assert not supervisor.handle(ChildExited(name="COLLECTOR", pid=99), 0.0)


def test_a_daemon_turned_off_stays_off_until_it_is_turned_on() -> None:
    supervisor = running()
    supervisor.handle(TurnOff(names=("SCHEDD",)), 0.0)
    effects = supervisor.handle(ChildExited(name="SCHEDD", pid=2, code=0), 1.0)
    assert not kinds(effects, StartProcess, Obituary)
    assert kinds(supervisor.handle(TurnOn(names=("SCHEDD",)), 2.0), StartProcess) == [StartProcess("SCHEDD")]


def test_a_restart_starts_when_the_old_one_is_gone() -> None:
    supervisor = running()
    supervisor.handle(TurnOff(names=("SCHEDD",), again=True), 0.0)
    assert kinds(supervisor.handle(ChildExited(name="SCHEDD", pid=2, code=0), 1.0), StartProcess)


def test_the_collector_goes_last() -> None:
    supervisor = running()
    effects = supervisor.handle(Finish(), 0.0)
    assert kinds(effects, StopProcess) == [StopProcess("SCHEDD", 2, "graceful")]
    effects = supervisor.handle(ChildExited(name="SCHEDD", pid=2, code=0), 1.0)
    assert kinds(effects, StopProcess) == [StopProcess("COLLECTOR", 1, "graceful")]
    effects = supervisor.handle(ChildExited(name="COLLECTOR", pid=1, code=0), 2.0)
    assert kinds(effects, AllStopped) == [AllStopped("exit")]


def test_nothing_is_started_while_everything_stops() -> None:
    supervisor = running()
    supervisor.handle(Finish(how="fast", sequel="renew"), 0.0)
    effects = supervisor.handle(ChildExited(name="SCHEDD", pid=2, signal=9), 1.0)
    effects += supervisor.handle(ChildExited(name="COLLECTOR", pid=1, signal=9), 1.0)
    assert not kinds(effects, StartProcess)
    assert kinds(effects, AllStopped) == [AllStopped("renew")]


def test_what_cannot_be_started_is_tried_later() -> None:
    supervisor = Supervisor()
    supervisor.handle(LISTED, 0.0)
    supervisor.handle(SpawnFailed(name="SCHEDD", reason="no memory"), 0.0)
    assert supervisor.daemons["SCHEDD"].state is State.WAITING
    assert kinds(supervisor.handle(TurnOn(names=("SCHEDD",)), 1.0), StartProcess)


def test_a_new_list_retries_what_waits() -> None:
    supervisor = running()
    for pid in (2, 3):
        supervisor.handle(ChildExited(name="SCHEDD", pid=pid, code=44), 1.0)
        supervisor.handle(ChildSpawned(name="SCHEDD", pid=pid + 1), 1.0)
    assert supervisor.daemons["SCHEDD"].state is State.WAITING
    assert kinds(supervisor.handle(LISTED, 2.0), StartProcess) == [StartProcess("SCHEDD")]


@pytest.mark.parametrize("limits", [KeeperLimits(backoff_constant_s=0.0, backoff_ceiling_s=10.0)])
def test_the_ceiling_holds(limits: KeeperLimits) -> None:
    supervisor = Supervisor(limits)
    supervisor.handle(DaemonsListed(daemons=LISTED.daemons, limits=limits), 0.0)
    last = 0.0
    for pid in range(1, 100):
        supervisor.handle(ChildSpawned(name="SCHEDD", pid=pid), 0.0)
        effects = supervisor.handle(ChildExited(name="SCHEDD", pid=pid, signal=11), 0.0)
        last = kinds(effects, Obituary)[0].again_in_s
        supervisor.handle(TimerFired(key=("start", "SCHEDD")), 0.0)
    assert last == 10.0


def test_the_story_of_a_daemon_is_kept() -> None:
    supervisor = running()
    supervisor.handle(ChildExited(name="SCHEDD", pid=2, signal=9), 5.0)
    assert supervisor.story("SCHEDD")[-1] == (5.0, "ChildExited: up -> starting")
