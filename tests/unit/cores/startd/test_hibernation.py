"""When the machine goes to sleep, what the collector is told before, and what calls it off."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from condor_actors.classads import parse_expression
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.draining import Draining
from condor_actors.cores.startd.hibernation import (
    TABLE,
    UPTIME_S,
    AskPower,
    ClaimWanted,
    FallAsleep,
    Hibernation,
    HibernationDue,
    PowerKnown,
    SleepOver,
    SleepState,
    SleepTold,
    TellSleep,
    level_of,
)
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.startd_events import Observed, Show
from condor_actors.cores.state_table import InvariantBroken, ignore
from condor_actors.cores.turn import Turn
from condor_actors.effects import CancelTimer, Note, SetTimer
from condor_actors.messages.admin import Drain
from condor_actors.messages.claim import ClaimRefused
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.negotiate import MatchNotice
from tests.unit.cores.startd.startd_bench import JOB, Startd

CHECK_S = 300.0


def sleepy(hibernate: str = '"RAM"', *, wakeable: bool = True, override: bool = False,
           plan: dict[str, Any] | None = None) -> Startd:
    """A startd that looks regularly whether its machine may sleep."""
    startd = Startd(**(plan or {}))
    startd.core.slots.machine_ad["IsWakeAble"] = wakeable
    settings = attrs.evolve(
        startd.core.slots.settings, hibernate=parse_expression(hibernate), hibernate_check_s=CHECK_S,
        unhibernate=parse_expression("MachineLastMatchTime =!= undefined"), sleeps_unwakeable=override)
    startd.core.slots.reconfigure(settings)
    startd.out = list(startd.core.refresh(startd.now_s))
    assert AskPower() in startd.out
    assert SetTimer("hibernate", CHECK_S) in startd.out
    startd.tell(PowerKnown(levels=frozenset({3, 4}), method="/sys"))
    return startd


def look(startd: Startd) -> list[Any]:
    return startd.tell(TimerFired(key="hibernate"), CHECK_S)


def told(startd: Startd) -> int:
    """The number of the sleep that the collector is to confirm; 0: none."""
    return next((each.number for each in startd.out if isinstance(each, TellSleep)), 0)


def is_awake(startd: Startd) -> bool:
    return startd.core.is_awake


def notes(startd: Startd) -> str:
    return "; ".join(each.text for each in startd.out if isinstance(each, Note))


def shown(startd: Startd, name: str) -> Any:
    return startd.slot().ad.evaluate(name) if name in startd.slot().ad else None


def test_an_idle_machine_sleeps_when_the_collector_knows_and_wakes_as_it_was() -> None:
    startd = sleepy()
    look(startd)
    number = told(startd)
    assert number == 1
    assert [each.slot.name for each in startd.out if isinstance(each, Show)] == ["slot1@h"]
    assert not is_awake(startd)
    assert (shown(startd, "Offline"), shown(startd, "HibernationState"), shown(startd, "HibernationLevel")) == (
        True, "S3", 3)
    startd.tell(SleepTold(number))
    assert FallAsleep(number, 3) in startd.out
    before = startd.slot().capability
    startd.tell(SleepOver(number), 8 * 3600.0)
    assert is_awake(startd)
    assert startd.slot().capability != before, "matches of the time before are void"
    assert (shown(startd, "Offline"), shown(startd, "HibernationState")) == (None, "NONE")
    assert SetTimer("hibernate", UPTIME_S) in startd.out, "it does not go to and fro"
    startd.tell(TimerFired(key="publish"), 0.0)
    assert [each.slot.name for each in startd.out if isinstance(each, Show)] == ["slot1@h"]
    assert told(startd) == 0
    assert look(startd)
    assert told(startd) == 2


def test_one_slot_that_says_none_keeps_it_awake_and_the_deepest_of_all_counts() -> None:
    two: dict[str, Any] = {"types": {1: "cpus=1", 2: "cpus=1"}, "counts": {1: 1, 2: 1}}
    startd = sleepy('SlotID == 1 ? "NONE" : "S4"', plan=two)
    look(startd)
    assert told(startd) == 0
    startd = sleepy('SlotID == 1 ? "S3" : "S4"', plan=two)
    look(startd)
    assert shown(startd, "HibernationState") == "S4"
    assert len([each for each in startd.out if isinstance(each, Show)]) == 2


@pytest.mark.parametrize(("value", "level"), [
    ("NONE", 0), ("ram", 3), (" Shutdown ", 5), ("S1", 1), (4, 4), (0, 0), (True, 0), (6, 0), (-1, 0), ("sleepy", 0),
    (3.0, 0), (None, 0)])
def test_what_hibernate_may_say(value: Any, level: int) -> None:
    assert level_of(value) == level


def test_what_is_claimed_matched_or_drained_stays_awake_and_nobody_is_evicted() -> None:
    startd = sleepy()
    claim = startd.claim()
    look(startd)
    assert (told(startd), startd.core.is_awake) == (0, True)
    assert startd.core.claims[0].claim.record.claim_id == claim.claim_id  # type: ignore[union-attr]
    startd = sleepy()
    startd.hear(Drain(how="graceful", on_completion="nothing"))
    look(startd)
    assert told(startd) == 0
    startd = sleepy(plan={"types": {1: "cpus=1"}, "counts": {1: 1}, "partitionable": {1: False}})
    startd.hear(MatchNotice(slot_name="slot1@h", submitter="alice@x", schedd_address="<s:1>"))
    assert startd.place() == op.MATCHED
    startd.tell(TimerFired(key="hibernate"), 1.0)
    assert told(startd) == 0


def test_a_claim_calls_it_off_until_the_machine_is_on_its_way() -> None:
    startd = sleepy()
    look(startd)
    number = told(startd)
    startd.claim()
    assert is_awake(startd)
    assert shown(startd, "Offline") is None
    startd.tell(SleepTold(number))
    assert not [each for each in startd.out if isinstance(each, FallAsleep)]
    startd = sleepy()
    look(startd)
    startd.tell(SleepTold(told(startd)))
    startd.request()
    (refused,) = startd.replies()
    assert isinstance(refused, ClaimRefused)
    assert "goes to sleep" in refused.reason
    startd.request(capability="a wrong one")
    assert not is_awake(startd)


def test_who_cannot_claim_calls_nothing_off() -> None:
    startd = sleepy()
    look(startd)
    startd.request(capability="a wrong one")
    startd.request(job=JOB.replace("Cpus >= 1", "Cpus >= 100"))
    assert isinstance(startd.replies()[0], ClaimRefused)


def test_an_owner_who_comes_back_while_it_is_told_keeps_it_awake() -> None:
    startd = sleepy("KeyboardIdle > 600 ? \"RAM\" : \"NONE\"")
    idle = ("tty:console", 900.0, "")
    startd.tell(Observed(total_load=0.0, own_load=0.0, idle=(idle,)))
    startd.tell(TimerFired(key="hibernate"), 0.0)
    number = told(startd)
    assert number
    startd.tell(Observed(total_load=0.0, own_load=0.0, idle=(("tty:console", 0.0, ""),)))
    startd.tell(SleepTold(number))
    assert is_awake(startd)
    assert "it is wanted" in notes(startd)


def test_a_machine_that_the_collector_does_not_know_asleep_stays_awake() -> None:
    startd = sleepy()
    look(startd)
    startd.tell(SleepTold(told(startd), "<cm:9618>: no answer"))
    assert is_awake(startd)
    assert "no answer" in notes(startd)
    assert SetTimer("hibernate", UPTIME_S) not in startd.out, "it is tried again at the next look"


def test_a_program_that_fails_leaves_it_awake_and_says_why() -> None:
    startd = sleepy()
    look(startd)
    number = told(startd)
    startd.tell(SleepTold(number))
    startd.tell(SleepOver(number + 1))
    assert not is_awake(startd), "another sleep's"
    startd.tell(SleepOver(number, "denied"))
    assert is_awake(startd)
    assert "could not be put into S3: denied" in notes(startd)


@pytest.mark.parametrize(("wakeable", "override", "sleeps"), [(True, False, True), (False, False, False),
                                                              (False, True, True)])
def test_only_a_machine_that_can_be_woken_sleeps_unless_that_is_overruled(
        wakeable: bool, override: bool, sleeps: bool) -> None:
    startd = sleepy(wakeable=wakeable, override=override)
    assert shown(startd, "CanHibernate") is sleeps
    look(startd)
    assert bool(told(startd)) is sleeps
    assert ("no network card could wake it" in notes(startd)) is not sleeps


def test_a_state_that_the_machine_has_not_is_named() -> None:
    startd = sleepy('"S5"')
    look(startd)
    assert told(startd) == 0
    assert "HIBERNATE wants S5; the machine can be put into S3, S4" in notes(startd)
    startd = sleepy()
    startd.tell(PowerKnown(problem="no such program"))
    assert "no such program" in notes(startd)
    look(startd)
    assert "into no state" in notes(startd)
    assert shown(startd, "CanHibernate") is False


def test_the_ads_say_nothing_of_it_where_it_is_off_and_a_reconfiguration_turns_it_on_and_off() -> None:
    startd = Startd()
    names = ("CanHibernate", "HibernationLevel", "HibernationState", "HibernationSupportedStates", "Unhibernate",
             "Offline", "HibernationMethod")
    assert [shown(startd, name) for name in names] == [None] * 7
    assert not [each for each in startd.begun if isinstance(each, AskPower)]
    startd = sleepy()
    assert [shown(startd, name) for name in names] == [True, 0, "NONE", "S3,S4", False, None, "/sys"]
    startd.core.slots.reconfigure(attrs.evolve(startd.core.slots.settings, hibernate_check_s=0.0))
    startd.out = list(startd.core.refresh(startd.now_s))
    assert CancelTimer("hibernate") in startd.out
    assert [shown(startd, name) for name in names] == [None] * 7


# ---- the table

EVENTS = (HibernationDue(), SleepTold(1), SleepTold(1, "no"), SleepOver(1), SleepOver(1, "no"), ClaimWanted())


def in_state(state: SleepState) -> Hibernation:
    startd = sleepy()
    slots = startd.core.slots
    turn = Turn(startd.now_s)
    made = Hibernation(turn, slots, ClaimIndex(), SlotPublisher(turn, slots, 1.0), Draining())
    made.begin()
    made.known(None, PowerKnown(levels=frozenset({3})))
    for event in {SleepState.AWAKE: (), SleepState.TELLING: EVENTS[:1], SleepState.ASLEEP: EVENTS[:2]}[state]:
        made.handle(event)
    assert made.state is state
    return made


@pytest.mark.parametrize("state", SleepState)
@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_every_cell(state: SleepState, event: Any) -> None:
    made = in_state(state)
    made.handle(event)
    made.validate()
    if isinstance(TABLE[state, type(event)], ignore):
        assert made.state is state
        assert made.level == (0 if state is SleepState.AWAKE else 3)
    assert (made.level > 0) is (made.state is not SleepState.AWAKE)


def test_claims_on_a_machine_that_sleeps_are_a_defect() -> None:
    made = in_state(SleepState.ASLEEP)
    made._claims.opening["c"] = None  # type: ignore[assignment]
    with pytest.raises(InvariantBroken, match="asleep, and has claims"):
        made.validate()
