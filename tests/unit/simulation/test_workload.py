"""The users of 1988: what they want adds up to what the paper says."""

from __future__ import annotations

from random import Random
from statistics import mean, median

import pytest

from condor_actors.simulation.cores.workload import (
    DAY_S,
    MONTH_S,
    PAPER_USERS,
    User,
    batches_of,
    demand_of,
    month_of_work,
)

MONTHS = [month_of_work(PAPER_USERS, seed) for seed in range(12)]


def demands_h(month: int, user: str = "") -> list[float]:
    return [each / 3600.0 for batch in MONTHS[month] for each in batch.demands_s if not user or batch.user == user]


def test_every_month_has_the_papers_jobs() -> None:
    for month in range(len(MONTHS)):
        assert len(demands_h(month)) == 918
        assert {user.name: len(demands_h(month, user.name)) for user in PAPER_USERS} == {
            user.name: user.jobs for user in PAPER_USERS}


def test_demand_is_that_of_figure_2() -> None:
    together = [each for month in range(len(MONTHS)) for each in demands_h(month)]
    assert mean(together) == pytest.approx(5.2, rel=0.06)
    assert 2.0 < median(together) < 3.0
    assert sum(together) / len(MONTHS) == pytest.approx(4771, rel=0.06)


@pytest.mark.parametrize("user", PAPER_USERS, ids=lambda user: user.name)
def test_each_user_has_its_own_mean(user: User) -> None:
    random = Random(1)
    assert mean(demand_of(user, random) for _ in range(40_000)) == pytest.approx(user.demand_s, rel=0.06)


def test_jobs_come_in_batches_at_working_hours() -> None:
    heavy = [batch for month in MONTHS for batch in month if batch.user == "A"]
    assert 15 < mean(len(batch.demands_s) for batch in heavy) < 30
    for month in MONTHS:
        assert [batch.when_s for batch in month] == sorted(batch.when_s for batch in month)
        assert all(0.0 <= batch.when_s < MONTH_S and 9 <= batch.when_s % DAY_S / 3600.0 <= 20 for batch in month)
        assert all(len(batch.calls) == len(batch.demands_s) for batch in month)


def test_equal_seeds_are_equal_and_users_do_not_mind_each_other() -> None:
    assert month_of_work(PAPER_USERS, 3) == MONTHS[3] != MONTHS[4]
    light = [batch for batch in MONTHS[3] if batch.user != "A"]
    assert month_of_work(PAPER_USERS[1:], 3) == light


def test_a_user_can_want_more_and_for_a_shorter_time() -> None:
    heavy = PAPER_USERS[0].times(3.0)
    found = batches_of(heavy, 10 * DAY_S, Random(1))
    assert sum(len(batch.demands_s) for batch in found) == 690
    assert all(batch.when_s < 10 * DAY_S for batch in found)
