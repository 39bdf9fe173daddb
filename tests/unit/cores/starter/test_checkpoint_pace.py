"""A program computes for as long as its checkpoints take, however often they are wanted."""

from __future__ import annotations

import pytest

from condor_actors.cores.starter.checkpoint_pace import LOST_S, CheckpointPace


@pytest.mark.parametrize(("period_s", "takes_s"), [(3, 8), (1, 60), (10, 1), (5, 5)])
def test_half_of_the_time_is_the_programs(period_s: int, takes_s: int) -> None:
    pace, ends_s, computed = CheckpointPace(), -1, 0
    for now_s in range(2_000):
        if now_s == ends_s:
            pace.over(now_s)
        stands = now_s < ends_s
        computed += not stands
        if now_s % period_s == 0 and pace.may_ask(now_s):
            assert not stands
            pace.asked(now_s)
            ends_s = now_s + takes_s
    assert computed >= 2_000 * 0.45


def test_a_checkpoint_is_asked_for_once() -> None:
    pace = CheckpointPace()
    assert pace.may_ask(0.0)
    pace.asked(0.0)
    assert not pace.may_ask(LOST_S - 1.0)
    assert pace.may_ask(LOST_S), "nothing was heard of it"


def test_one_that_was_refused_at_once_delays_nothing() -> None:
    pace = CheckpointPace()
    pace.asked(5.0)
    pace.over(5.0)
    assert pace.may_ask(5.0)


def test_a_program_that_saves_itself_owes_nothing() -> None:
    pace = CheckpointPace()
    pace.over(100.0)
    assert pace.may_ask(100.0)
