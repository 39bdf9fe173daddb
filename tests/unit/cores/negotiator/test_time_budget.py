"""One user's expensive expressions, or very many autoclusters, cost others of a cycle a slice of time and no more."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.classads.evaluation.budget import spent
from condor_actors.cores.negotiator.matchmaking import NOT_LOOKED_AT, PUT_OFF
from condor_actors.cores.negotiator.pool_view import HARD
from condor_actors.cores.negotiator.time_budget import STEPS_PER_S, TimeBudget
from condor_actors.effects import Answer, Ask, Effect, SetTimer
from condor_actors.messages.negotiate import ResourceRequest, ResourceRequests
from tests.unit.cores.negotiator.test_negotiation_cycle import ALICE, BOB, JOB, Pool, asks, gained, reasons

EXPENSIVE = " && ".join(['strcat(TARGET.Name, TARGET.Name) != "x"'] * 50)
"""A thousand steps for each slot, below what one evaluation may take, and true."""
REFUSED = f'{EXPENSIVE} && strcat(TARGET.Name, "x") == "nobody"'
SLICE_S = 0.02
SLICE_STEPS = SLICE_S * STEPS_PER_S
FURTHER = SetTimer("further", 0.0)


class Unequal(Pool):
    """Alice asks by the expensive expression, for so many autoclusters; Bob as ever."""

    def __init__(self, slots: int, wants: dict[str, int], expensive: str = EXPENSIVE, autoclusters: int = 1,
                 **settings: Any) -> None:
        super().__init__(slots, wants, **{"slice_s": SLICE_S, **settings})
        rest = "RequestCpus = 1; Rank = 0.0; RequestMemory = 1; RequestDisk = 1"
        self.expensive = [
            ClassAd.from_new(f"[Requirements = ({expensive}) && {number} < 1000000000; {rest}]").to_bytes()
            for number in range(autoclusters)]

    def answer(self, ask: Ask, now_s: float) -> tuple[Effect, ...]:
        name = ask.message.submitter
        if name != ALICE:
            return super().answer(ask, now_s)
        requests = tuple(ResourceRequest(autocluster=number, job_id=f"{number}.0", count=self.wants[name], job_ad=ad)
                         for number, ad in enumerate(self.expensive, 1))
        return self.cycle.answered(Answer(ask.tag, ResourceRequests(submitter=name, requests=requests)), now_s)

    def turns(self, now_s: float = 0.0) -> list[tuple[tuple[Effect, ...], float]]:
        """The effects of each turn that decides, with the steps it took."""
        effects = self.cycle.begin(now_s)
        waiting = asks(effects)
        found = []
        while waiting or FURTHER in effects:
            before = spent()[0]
            effects = self.answer(waiting.pop(0), now_s) if waiting else self.cycle.go_on(now_s)
            if not waiting:
                found.append((effects, spent()[0] - before))
        return found


def steps_of_one_look(slots: int) -> float:
    pool = Unequal(slots, {ALICE: 1})
    ((_, steps),) = pool.turns()
    return steps


def test_expensive_requirements_cost_others_one_slice() -> None:
    slots = int(3.0 * SLICE_STEPS / steps_of_one_look(10) * 10)  # three slices for a look at all of them
    turns = Unequal(slots, {ALICE: 2, BOB: 3}).turns()
    assert gained(turns[0][0])[BOB] == 3, "told in the first turn"
    assert all(steps < 1.2 * SLICE_STEPS for _, steps in turns)
    assert sum(gained(effects).get(ALICE, 0) for effects, _ in turns) == 2, "she gets hers as well"


def test_many_autoclusters_cost_others_one_slice() -> None:
    count = int(4.5 * SLICE_STEPS / steps_of_one_look(100))
    turns = Unequal(100, {ALICE: 1, BOB: 3}, REFUSED, autoclusters=count).turns()
    assert gained(turns[0][0]) == {BOB: 3}
    assert len(turns) >= 5
    assert all(steps < 1.2 * SLICE_STEPS for _, steps in turns)
    assert sum(len(reasons(effects)) for effects, _ in turns) == count


def test_a_submitter_has_so_much_of_a_cycle() -> None:
    count = int(9.5 * SLICE_STEPS / steps_of_one_look(100))
    turns = Unequal(100, {ALICE: 1}, REFUSED, autoclusters=count, submitter_s=2 * SLICE_S).turns()
    assert len(turns) == 2
    assert reasons(turns[-1][0]).count(PUT_OFF) >= count // 2
    assert Unequal(100, {ALICE: 1}, REFUSED, autoclusters=2, submitter_s=2 * SLICE_S).turns()[-1][0]


def test_less_than_a_slice_may_be_all_there_is() -> None:
    count = int(2.0 * SLICE_STEPS / steps_of_one_look(100))
    ((effects, steps),) = Unequal(100, {ALICE: 1}, REFUSED, autoclusters=count, submitter_s=SLICE_S / 4).turns()
    assert steps < 0.5 * SLICE_STEPS
    assert PUT_OFF in reasons(effects)


def test_who_waits_for_the_next_cycle_does_not_wait_for_the_slow() -> None:
    count = int(9.5 * SLICE_STEPS / steps_of_one_look(100))
    pool = Unequal(100, {ALICE: 1}, REFUSED, autoclusters=count)
    (ask,) = asks(pool.cycle.begin(0.0))
    assert FURTHER in pool.answer(ask, 0.0)
    assert pool.cycle.wish(HARD, 0.1) == ()
    ended = pool.cycle.go_on(0.1)
    assert FURTHER not in ended
    assert PUT_OFF in reasons(ended)
    assert any(isinstance(each, SetTimer) and each.key == "cycle" for each in ended)


def test_the_slow_are_served_last_in_the_next_cycle() -> None:
    slots = int(3.0 * SLICE_STEPS / steps_of_one_look(10) * 10)
    pool = Unequal(slots, {ALICE: 2, BOB: 3})
    order: list[str] = []
    choose = pool.cycle._matchmaker.choose

    def noted(request: Any, *arguments: Any) -> Any:
        order.append(request.submitter)
        return choose(request, *arguments)

    pool.cycle._matchmaker.choose = noted  # type: ignore[method-assign]
    pool.turns()
    assert order[0] == ALICE
    order.clear()
    pool.turns(100.0)
    assert order[0] == BOB


def test_a_look_that_no_slice_does_for_says_so() -> None:
    slots = int(3.0 * SLICE_STEPS / steps_of_one_look(10) * 10)
    turns = Unequal(slots, {ALICE: 1}, REFUSED).turns()
    assert NOT_LOOKED_AT in reasons(turns[-1][0])[0]


def test_the_stopwatch_counts_too() -> None:
    now_s = [0.0]
    budget = TimeBudget(1.0, lambda: now_s[0])
    with budget:
        assert budget.is_fresh()
        now_s[0] = 0.6
        assert not budget.is_fresh()
        assert budget.has_more()
        now_s[0] = 1.0
        assert not budget.has_more()
    now_s[0] = 50.0
    with budget:
        assert not budget.has_more()
    assert budget.used_s == pytest.approx(1.0)


def test_an_ordinary_cycle_is_one_turn() -> None:
    pool = Pool(50, {ALICE: 100, BOB: 100})
    assert pool.run() == {ALICE: 25, BOB: 25}
    assert JOB
