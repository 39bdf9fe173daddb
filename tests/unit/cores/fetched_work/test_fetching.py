"""When a slot fetches work, and what its hooks are told."""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.fetched_work.fetching import (
    FETCH_S,
    MOST_TELLING,
    TABLE,
    BeginRun,
    FetchHooks,
    Fetching,
    FetchSettings,
    HookEnded,
    Offer,
    RunHook,
    RunIsOver,
    State,
    StopHook,
)
from condor_actors.effects import Answer, Ask, Note, SetTimer
from condor_actors.messages.claim import ClaimGranted, ClaimRefused, RequestClaim
from condor_actors.messages.envelope import AskFailed, TimerFired

HOOKS = FetchHooks(keyword="SITE", fetch="/fetch", reply="/reply", evict="/evict")
SETTINGS = FetchSettings(hooks={"SITE": HOOKS}, keyword="site", domain="dom", delay=parse_expression(
    'ifThenElse(State == "Claimed" && Activity == "Idle", 0, 120)'))
JOB = b'Cmd = "/bin/true"\n'
DUE = TimerFired(key=("due", "slot1@m"))
GRANTED = ClaimGranted(claim_id="c1", secret="s", slot_name="slot1_1@m", slot_ad=b"B = 2\n", starter_node="",
                       lease_s=600)


class Slots:
    """Slots that are what the test says."""

    def __init__(self) -> None:
        self.slot = Offer(name="slot1@m", number=1, ad=ClassAd({"State": "Unclaimed", "SlotID": 1}), capability="c",
                          is_free=True)
        self.core = Fetching(SETTINGS, lambda: {"slot1@m": self.slot})

    def busy(self, is_free: bool = False) -> None:
        self.slot = attrs.evolve(self.slot, is_free=is_free)


def of(kind: type, effects: tuple[Any, ...]) -> list[Any]:
    return [each for each in effects if isinstance(each, kind)]


def due_in(effects: tuple[Any, ...]) -> float:
    (timer,) = [each for each in of(SetTimer, effects) if each.key == ("due", "slot1@m")]
    return float(timer.delay_s)


def fetched(slots: Slots) -> RequestClaim:
    slots.core.start(0.0)
    (hook,) = of(RunHook, slots.core.handle(DUE, 10.0))
    (ask,) = of(Ask, slots.core.handle(HookEnded(run=hook.run, printed=JOB), 20.0))
    assert isinstance(ask.message, RequestClaim)
    return ask.message


def test_a_free_slot_fetches_and_asks_for_itself_as_nobody() -> None:
    slots = Slots()
    slots.core.start(0.0)
    effects = slots.core.handle(DUE, 10.0)
    (hook,) = of(RunHook, effects)
    assert (hook.program, hook.arguments, hook.title) == ("/fetch", (), "SITE_HOOK_FETCH_WORK")
    assert b"SlotID = 1" in hook.stdin
    assert SetTimer(("late", hook.run), FETCH_S) in effects
    assert slots.core.handle(DUE, 11.0) == (), "it fetches already"
    (ask,) = of(Ask, slots.core.handle(HookEnded(run=hook.run, printed=JOB), 20.0))
    assert (ask.message.slot_name, ask.message.capability, ask.message.owner) == ("slot1@m", "c", "fetched:SITE@dom")


def test_a_job_that_is_taken_is_told_and_run() -> None:
    slots = Slots()
    request = fetched(slots)
    effects = slots.core.handle(Answer("slot1@m", GRANTED), 21.0)
    (reply,), (begun,) = of(RunHook, effects), of(BeginRun, effects)
    assert (reply.program, reply.arguments, reply.stdin) == ("/reply", ("accept",), request.job_ad + b"-----\nB = 2\n")
    assert (begun.slot, begun.granted, begun.job) == ("slot1@m", GRANTED, request.job_ad)


def test_a_job_that_is_not_taken_is_told_and_the_next_is_fetched_after_the_delay() -> None:
    for answer in (ClaimRefused(slot_name="slot1@m", reason="no"), AskFailed(reason="timeout")):
        slots = Slots()
        fetched(slots)
        effects = slots.core.handle(Answer("slot1@m", answer), 30.0)
        (reply,) = of(RunHook, effects)
        assert reply.arguments == ("reject",)
        assert due_in(effects) == 100.0, "from one fetching to the next"


def test_no_work_and_what_is_no_job_are_followed_by_the_delay() -> None:
    for how in ({"printed": b""}, {"printed": b"x"}, {"printed": JOB, "status": 1}, {"printed": JOB, "is_cut": True},
                {"problem": "there is no such file"}):
        slots = Slots()
        slots.core.start(0.0)
        (hook,) = of(RunHook, slots.core.handle(DUE, 10.0))
        effects = slots.core.handle(HookEnded(run=hook.run, **how), 11.0)  # type: ignore[arg-type]
        assert due_in(effects) == 119.0
        assert of(Ask, effects) == []
        assert bool(of(Note, effects)) is (how != {"printed": b""})


def test_a_slot_that_is_not_free_fetches_nothing() -> None:
    slots = Slots()
    slots.core.start(0.0)
    slots.busy()
    effects = slots.core.handle(DUE, 10.0)
    assert (of(RunHook, effects), due_in(effects)) == ([], SETTINGS.poll_s)


def test_the_end_of_a_run_lets_the_next_be_fetched_at_once_and_one_driven_out_is_told_of() -> None:
    slots = Slots()
    fetched(slots)
    slots.core.handle(Answer("slot1@m", GRANTED), 21.0)
    over = RunIsOver(slot="slot1@m", job=JOB, slot_ad=b"B = 2\n", driven_out=True, is_last=False, reason="owner")
    (hook,) = of(RunHook, slots.core.handle(over, 25.0))
    assert (hook.program, hook.arguments, hook.stdin) == ("/evict", (), JOB + b"-----\nB = 2\n")
    effects = slots.core.handle(attrs.evolve(over, driven_out=False, is_last=True), 26.0)
    assert (of(RunHook, effects), due_in(effects)) == ([], 0.5)


def test_a_hook_that_takes_too_long_is_ended() -> None:
    slots = Slots()
    slots.core.start(0.0)
    (hook,) = of(RunHook, slots.core.handle(DUE, 10.0))
    assert slots.core.handle(TimerFired(key=("late", hook.run)), 700.0) == (StopHook(hook.run),)
    assert due_in(slots.core.handle(HookEnded(run=hook.run, status=-9), 700.0)) == 0.5


def test_hooks_that_are_told_are_not_without_number() -> None:
    slots = Slots()
    fetched(slots)
    slots.core.handle(Answer("slot1@m", GRANTED), 21.0)
    over = RunIsOver(slot="slot1@m", job=JOB, slot_ad=b"", driven_out=True, is_last=False)
    began = sum(len(of(RunHook, slots.core.handle(over, 30.0))) for _ in range(2 * MOST_TELLING))
    assert began == MOST_TELLING - 1, "one was told that it was taken"


def test_keywords_are_of_slots_and_a_delay_that_is_no_number_is_the_usual_one() -> None:
    other = FetchHooks(keyword="OTHER", fetch="/other")
    settings = FetchSettings(hooks={"SITE": HOOKS, "OTHER": other}, keyword="site", keywords={2: "other"},
                             delay=parse_expression("Nothing"))
    assert (settings.of_slot(1), settings.of_slot(2)) == (HOOKS, other)
    assert FetchSettings().of_slot(1) is None
    slots = Slots()
    slots.core.reconfigure(settings, 0.0)
    (hook,) = of(RunHook, slots.core.handle(DUE, 10.0))
    assert due_in(slots.core.handle(HookEnded(run=hook.run), 10.0)) == 300.0


def test_the_table_is_total() -> None:
    assert len(TABLE) == 3 * len(State)
