"""When programs of the site run: each mode, the limits, and what a change of the configuration does to them."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.site_programs.programs import Mode, Publish, SiteProgram, SiteSettings
from condor_actors.cores.site_programs.schedule import (
    MOST_BYTES,
    TABLE,
    Changed,
    Demanded,
    HangUp,
    ProgramEnded,
    ProgramWrote,
    SiteSchedule,
    StartProgram,
    State,
    StopProgram,
    TellAds,
    TellDemandOver,
)
from condor_actors.cores.state_table import InvariantBroken, ignore
from condor_actors.effects import Note, SetTimer
from condor_actors.messages.envelope import TimerFired

ONE = SiteProgram(name="one", executable="/bin/one", period_s=60.0)
TWO = attrs.evolve(ONE, name="two")
DUE, KILL = TimerFired(key=("due", "one")), TimerFired(key=("kill", "one"))


def schedule(*programs: SiteProgram, facts: dict[str, Any] | None = None, **settings: Any) -> SiteSchedule:
    return SiteSchedule(SiteSettings(programs=programs or (ONE,), **settings), lambda: ClassAd(facts or {}))


def begun(effects: tuple[Any, ...]) -> list[tuple[str, int]]:
    return [(each.program.name, each.run) for each in effects if isinstance(each, StartProgram)]


def timers(effects: tuple[Any, ...]) -> dict[Any, float]:
    return {each.key: each.delay_s for each in effects if isinstance(each, SetTimer)}


def notes(effects: tuple[Any, ...]) -> str:
    return "\n".join(each.text for each in effects if isinstance(each, Note))


def state_of(core: SiteSchedule, name: str) -> State | None:
    return core._courses[name].state if name in core._courses else None


def ended(name: str, run: int, **how: Any) -> ProgramEnded:
    return ProgramEnded(name=name, run=run, **how)


def test_a_periodic_program_runs_from_start_to_start() -> None:
    core = schedule()
    effects = core.start(0.0)
    assert begun(effects) == [("one", 1)]
    assert timers(effects) == {("due", "one"): 60.0}
    effects = core.handle(ended("one", 1), 5.0)
    assert timers(effects) == {}
    assert state_of(core, "one") is State.RESTING
    assert begun(core.handle(DUE, 60.0)) == [("one", 2)]
    core.validate()


def test_one_that_still_runs_is_let_alone_or_ended_as_it_is_said() -> None:
    core = schedule()
    core.start(0.0)
    effects = core.handle(DUE, 60.0)
    assert (begun(effects), timers(effects)) == ([], {("due", "one"): 60.0})
    core = schedule(attrs.evolve(ONE, kill=True))
    core.start(0.0)
    effects = core.handle(DUE, 60.0)
    assert StopProgram(name="one", run=1, fast=False) in effects
    assert timers(effects) == {("due", "one"): 60.0, ("kill", "one"): 10.0}
    assert core.handle(ProgramWrote(name="one", run=1, data=b"A = 1\n-\n"), 61.0) == ()
    assert StopProgram(name="one", run=1, fast=True) in core.handle(KILL, 70.0)
    assert begun(core.handle(ended("one", 1, status=-9), 70.1)) == [("one", 2)]
    core.validate()


def test_wait_for_exit_counts_from_the_end() -> None:
    core = schedule(attrs.evolve(ONE, mode=Mode.WAIT_FOR_EXIT, period_s=1.0))
    assert timers(core.start(0.0)) == {}
    assert timers(core.handle(ended("one", 1), 500.0)) == {("due", "one"): 1.0}
    assert begun(core.handle(DUE, 501.0)) == [("one", 2)]


def test_one_shot_runs_once_and_again_after_reconfig_where_that_is_wanted() -> None:
    once = attrs.evolve(ONE, mode=Mode.ONE_SHOT, period_s=0.0)
    core = schedule(once)
    assert timers(core.start(0.0)) == {}
    assert timers(core.handle(ended("one", 1), 5.0)) == {}
    assert begun(core.handle(Changed(SiteSettings(programs=(once,))), 6.0)) == []
    again = attrs.evolve(once, run_again=True)
    core = schedule(again)
    core.start(0.0)
    core.handle(ended("one", 1), 5.0)
    assert begun(core.handle(Changed(SiteSettings(programs=(again,))), 6.0)) == [("one", 2)]


def test_what_it_prints_is_told_and_stays_until_the_next_of_its_name() -> None:
    core = schedule()
    core.start(0.0)
    effects = core.handle(ProgramWrote(name="one", run=1, data=b"A = 1\n- x update:true\nB = 2\n"), 1.0)
    told = [each.told for each in effects if isinstance(each, TellAds)]
    assert [(len(each.ads), each.now) for each in told] == [(1, True)]
    told = [each.told for each in core.handle(ended("one", 1), 2.0) if isinstance(each, TellAds)]
    assert [({ad.tag for ad in each.ads}, each.now) for each in told] == [({"x", ""}, False)]
    core.handle(DUE, 60.0)
    core.handle(ProgramWrote(name="one", run=2, data=b"A = 3\n- x\n"), 61.0)
    assert sorted((ad.tag, str(ad.attributes.get("A"))) for ad in core.ads) == [("", "None"), ("x", "3")]


@pytest.mark.parametrize(("publish", "same", "other"), [
    (Publish.NEVER, False, False), (Publish.ALWAYS, True, True), (Publish.IF_CHANGED, False, True),
])  # fmt: skip
def test_when_the_collector_hears_of_it(publish: Publish, same: bool, other: bool) -> None:
    core = schedule(publish=publish)
    core.start(0.0)
    core.handle(ProgramWrote(name="one", run=1, data=b"A = 1\n-\n"), 1.0)
    for text, wanted in ((b"A = 1\n-\n", same), (b"A = 2\n-\n", other)):
        effects = core.handle(ProgramWrote(name="one", run=1, data=text), 2.0)
        assert [each.told.now for each in effects if isinstance(each, TellAds)] == [wanted]


def test_loads_are_a_limit_and_one_alone_always_runs() -> None:
    heavy = attrs.evolve(ONE, load=0.08)
    core = schedule(heavy, attrs.evolve(heavy, name="two"), attrs.evolve(heavy, name="three", load=0.02))
    assert begun(core.start(0.0)) == [("one", 1), ("three", 2)]
    assert state_of(core, "two") is State.WAITING
    assert begun(core.handle(ended("one", 1), 1.0)) == [("two", 3)]
    assert begun(schedule(attrs.evolve(ONE, load=5.0)).start(0.0)) == [("one", 1)]


def test_a_condition_is_looked_at_each_time() -> None:
    facts: dict[str, Any] = {}
    core = SiteSchedule(SiteSettings(programs=(attrs.evolve(ONE, condition=parse_expression("HasGpu")),)),
                        lambda: ClassAd(facts))
    effects = core.start(0.0)
    assert (begun(effects), timers(effects)) == ([], {("due", "one"): 60.0})
    facts["HasGpu"] = True
    assert begun(core.handle(DUE, 60.0)) == [("one", 1)]


def test_a_program_that_is_gone_from_the_configuration_ends_and_its_ads_with_it() -> None:
    core = schedule(ONE, TWO)
    core.start(0.0)
    core.handle(ProgramWrote(name="one", run=1, data=b"A = 1\n-\n"), 1.0)
    effects = core.handle(Changed(SiteSettings(programs=(TWO,))), 2.0)
    assert StopProgram(name="one", run=1, fast=False) in effects
    assert [each.told.ads for each in effects if isinstance(each, TellAds)] == [()]
    core.validate()
    core.handle(ended("one", 1, status=-15), 3.0)
    assert (state_of(core, "one"), state_of(core, "two")) == (None, State.RUNNING)
    effects = core.handle(Changed(SiteSettings(programs=(ONE, TWO))), 4.0)
    assert begun(effects) == [("one", 3)]


def test_one_that_comes_back_while_it_ends_begins_anew() -> None:
    core = schedule()
    core.start(0.0)
    core.handle(Changed(SiteSettings()), 1.0)
    assert begun(core.handle(Changed(SiteSettings(programs=(ONE,))), 2.0)) == []
    assert begun(core.handle(ended("one", 1, status=-15), 3.0)) == [("one", 2)]
    core.validate()


def test_one_that_is_described_otherwise_begins_anew_and_others_hang_up() -> None:
    core = schedule(ONE, attrs.evolve(TWO, hang_up=True))
    core.start(0.0)
    effects = core.handle(Changed(SiteSettings(programs=(attrs.evolve(ONE, arguments=("x",)),
                                                         attrs.evolve(TWO, hang_up=True)))), 1.0)
    assert StopProgram(name="one", run=1, fast=False) in effects
    assert HangUp(name="two", run=2) in effects
    started = [each for each in core.handle(ended("one", 1), 2.0) if isinstance(each, StartProgram)]
    assert [each.program.arguments for each in started] == [("x",)]


def test_what_went_wrong_is_noted() -> None:
    core = schedule(logs_failures=True)
    core.start(0.0)
    core.handle(ProgramWrote(name="one", run=1, data=b"nonsense\n"), 1.0)
    text = notes(core.handle(ended("one", 1, status=3, said="no sensor"), 2.0))
    assert "1 lines of its output are no attributes: 'nonsense'" in text
    assert "ended with status 3" in text
    assert "standard error: no sensor" in text
    core.handle(DUE, 60.0)
    assert "cannot be run: it is not there" in notes(core.handle(ended("one", 2, problem="it is not there"), 61.0))


def test_all_ads_together_have_a_limit() -> None:
    core = schedule()
    core.start(0.0)
    text = b"".join(b"A = \"" + b"x" * 7000 + b"\"\nB = \"" + b"x" * 7000 + b"\"\n- t%d\n" % tag for tag in range(9))
    assert "is dropped: all programs together" in notes(core.handle(ProgramWrote(name="one", run=1, data=text), 1.0))


@pytest.mark.parametrize("text", [
    b"".join(b"B%d = 1\n- tag%d\n" % (number, number) for number in range(1000)),
    b"".join(b"B = \"%s\"\n- tag%d\n" % (b"x" * 8000, number) for number in range(20))])
def test_a_program_that_prints_without_end_keeps_no_other_out(text: bytes) -> None:
    core = schedule(ONE, TWO, most_load=1.0)
    core.start(0.0)
    core.handle(ProgramWrote(name="one", run=1, data=text), 1.0)
    for number in range(3):
        core.handle(ProgramWrote(name="two", run=2, data=b"Own%d = 1\n- own%d\n" % (number, number)), 2.0)
    core.handle(ProgramWrote(name="one", run=1, data=text), 3.0)
    assert {ad.tag for ad in core.ads if ad.program == "two"} == {"own0", "own1", "own2"}
    assert sum(ad.size for ad in core.ads) <= MOST_BYTES
    assert len(core.ads) <= 200
    assert 0 < sum(ad.size for ad in core.ads) <= MOST_BYTES
    core.validate()


def test_words_of_a_run_that_is_over_mean_nothing() -> None:
    core = schedule()
    core.start(0.0)
    core.handle(ended("one", 1), 1.0)
    core.handle(DUE, 60.0)
    for late in (ProgramWrote(name="one", run=1, data=b"A = 1\n-\n"), ended("one", 1), ended("nobody", 1)):
        assert core.handle(late, 61.0) == ()
    assert state_of(core, "one") is State.RUNNING


def test_every_cell_is_filled_and_what_is_ignored_changes_nothing() -> None:
    keys = {key for _, key in TABLE}
    assert keys == {"timer due", "timer kill", "demanded", "demand over", ProgramWrote, ProgramEnded}
    assert len(TABLE) == len(keys) * len(State)
    for (state, key), step in TABLE.items():
        if not isinstance(step, ignore) or key in ("demanded", "demand over"):  # of programs with another mode
            continue
        core = schedule(attrs.evolve(ONE, load=1.0), attrs.evolve(TWO, load=1.0))
        core.start(0.0)
        if state is State.RESTING:
            core.handle(ended("one", 1), 1.0)
        elif state is State.ENDING:
            core.handle(Changed(SiteSettings(programs=(attrs.evolve(ONE, arguments=("x",)), TWO))), 1.0)
        name = "two" if state is State.WAITING and state_of(core, "two") is State.WAITING else "one"
        if state_of(core, name) is not state:
            continue
        run = {"one": 1, "two": 0}[name]
        event = {"timer due": TimerFired(key=("due", name)), "timer kill": TimerFired(key=("kill", name)),
                 ProgramWrote: ProgramWrote(name=name, run=run, data=b"A = 1\n-\n"),
                 ProgramEnded: ended(name, run)}[key]
        assert core.handle(event, 2.0) == (), (state, key, step.why)
        assert state_of(core, name) is state


def test_an_ad_of_nobody_is_noticed() -> None:
    core = schedule()
    core.start(0.0)
    core.handle(ProgramWrote(name="one", run=1, data=b"A = 1\n-\n"), 1.0)
    core._ads["other", ""] = core.ads[0]
    with pytest.raises(InvariantBroken, match="which are no programs"):
        core.validate()


FIRST = attrs.evolve(ONE, name="first", mode=Mode.ON_DEMAND, period_s=0.0, benchmark=True, load=1.0)
SECOND = attrs.evolve(FIRST, name="second")


def is_over(effects: tuple[Any, ...]) -> bool:
    return any(isinstance(each, TellDemandOver) for each in effects)


def test_programs_on_demand_run_when_they_are_wanted_one_after_the_other() -> None:
    core = schedule(ONE, FIRST, SECOND)
    assert begun(core.start(0.0)) == [("one", 1)]
    effects = core.handle(Demanded(True), 10.0)
    assert begun(effects) == [("first", 2)], "the limit of benchmarks is their own, and lets one run"
    assert timers(effects) == {}
    effects = core.handle(ended("first", 2), 11.0)
    assert (begun(effects), is_over(effects)) == ([("second", 3)], False)
    effects = core.handle(ended("second", 3, status=1), 12.0)
    assert (begun(effects), is_over(effects)) == ([], True)
    assert not is_over(core.handle(ended("one", 1), 13.0)), "it is told once"
    assert begun(core.handle(Demanded(True), 20.0)) == [("first", 4)]


def test_programs_on_demand_end_when_the_machine_is_wanted() -> None:
    core = schedule(FIRST, SECOND)
    assert not is_over(core.start(0.0))
    core.handle(Demanded(True), 1.0)
    effects = core.handle(Demanded(False), 2.0)
    assert [each for each in effects if isinstance(each, StopProgram)] == [StopProgram(name="first", run=1, fast=False)]
    assert (state_of(core, "first"), state_of(core, "second")) == (State.ENDING, State.RESTING)
    again = core.handle(Demanded(True), 3.0)
    assert begun(again) == []
    core.handle(Demanded(False), 4.0)
    assert begun(core.handle(ended("first", 1, status=-15), 5.0)) == [], "it was wanted, and is so no more"
    assert begun(core.handle(Demanded(True), 6.0)) == [("first", 2)]


def test_programs_on_demand_whose_condition_does_not_hold_keep_nobody_waiting() -> None:
    never = attrs.evolve(FIRST, condition=parse_expression("Cpus > 8"))
    core = schedule(never, facts={"Cpus": 2})
    core.start(0.0)
    effects = core.handle(Demanded(True), 1.0)
    assert (begun(effects), is_over(effects)) == ([], True)


def test_a_changed_program_on_demand_waits_until_it_is_wanted() -> None:
    core = schedule(FIRST)
    core.start(0.0)
    assert begun(core.handle(Changed(SiteSettings(programs=(attrs.evolve(FIRST, arguments=("x",)),))), 1.0)) == []
    core.handle(Demanded(True), 2.0)
    assert is_over(core.handle(Changed(SiteSettings(programs=())), 3.0)) is False
    assert is_over(core.handle(ended("first", 1), 4.0)), "nobody waits for what is there no more"


def test_what_was_demanded_of_a_core_before_this_one_is_done_again() -> None:
    core = schedule(ONE, FIRST)
    effects = core.start(0.0, demanded=True)
    assert (begun(effects), is_over(effects)) == ([("one", 1), ("first", 2)], False)
    assert is_over(core.handle(ended("first", 2), 1.0))
