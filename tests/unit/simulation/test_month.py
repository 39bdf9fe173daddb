"""The pool of 1988 on the production's cores: nobody is drowned, owners come first, no work is lost."""

from __future__ import annotations

import re
from functools import cache

import pytest

from condor_actors.simulation.command import main
from condor_actors.simulation.cores.availability import owner_moves, with_and_without
from condor_actors.simulation.cores.month import (
    SETTLED_S,
    STATIONS,
    MonthResult,
    paper_config,
    pool_settings,
    run_month,
    run_pool,
    users_for,
)
from condor_actors.simulation.cores.months import months, users_of
from condor_actors.simulation.cores.owners import visits_of_all
from condor_actors.simulation.cores.workload import DAY_S, HOUR_S, PAPER_USERS, Batch, month_of_work
from condor_actors.simulation.report.measures import month_numbers
from condor_actors.simulation.report.recorder import Record
from condor_actors.simulation.report.report import Report, paper_report

HEAVY = frozenset({"A"})
LIGHT = frozenset(user.name for user in PAPER_USERS) - HEAVY
FAIR = ("UP_DOWN", "UPDATE_PRIO", "FAIR_SHARE")


@cache
def saturated(policy: str, seed: int = 1, days: float = 3.0) -> MonthResult:
    """The pool with a heavy user who wants more than it has."""
    return run_month(policy, seed, users_of("saturated"), length_s=days * DAY_S)


def test_light_users_hardly_wait_while_the_heavy_one_saturates_the_pool() -> None:
    record = saturated("UP_DOWN").record
    assert record.mean_wait_ratio(LIGHT) < 0.2
    assert record.open_wait_ratio(LIGHT) < 0.2
    waiting = [each for each in record.intervals if each.queue["A"] > 23]
    assert len(waiting) > 0.6 * len(record.intervals), "the heavy user has more jobs than there are stations"
    assert record.running_h > 0.6 * record.served_h


@cache
def crowded(policy: str, heavy_jobs: int) -> Record:
    """A day and a half in which the heavy user's jobs of four hours are all there from the first minute."""
    length_s = 1.5 * DAY_S
    crowd = Batch(when_s=60.0, user="A", demands_s=(4 * HOUR_S,) * heavy_jobs, calls=(0,) * heavy_jobs)
    return run_pool(pool_settings(paper_config(policy), settled_s=SETTLED_S), visits_of_all(STATIONS, 1, length_s),
                    [crowd, *month_of_work(PAPER_USERS[1:], 1, length_s)], [user.name for user in PAPER_USERS],
                    length_s, fifo=policy == "FIFO").record


def light_waits(record: Record) -> list[float]:
    """Of each job of a light user, in order of submission."""
    return [job.wait_s for job in record.completed if job.user in LIGHT]


@pytest.mark.parametrize(("policy", "heavy_jobs"), [
    ("UP_DOWN", 230), ("UP_DOWN", 1380),
    *(pytest.param(policy, 230, marks=pytest.mark.soak) for policy in ("UPDATE_PRIO", "FAIR_SHARE"))])
def test_light_users_hardly_wait_whatever_the_heavy_one_wants(policy: str, heavy_jobs: int) -> None:
    record = crowded(policy, heavy_jobs)
    assert min(each.queue["A"] for each in record.intervals) > STATIONS, "the heavy user wants every station"
    assert record.mean_wait_ratio(LIGHT) < 0.2
    assert record.open_wait_ratio(LIGHT) < 0.2
    assert len(light_waits(record)) >= 10


def test_six_times_the_heavy_users_load_changes_no_light_users_wait() -> None:
    assert light_waits(crowded("UP_DOWN", 1380)) == light_waits(crowded("UP_DOWN", 230))


def test_first_come_first_served_drowns_them() -> None:
    record = crowded("FIFO", 230)
    assert not light_waits(record), "every station is the heavy user's until its jobs are done"
    assert record.open_wait_ratio(LIGHT) > 10.0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("policy", FAIR)
def test_every_fair_policy_protects_light_users_for_ten_days(policy: str, seed: int) -> None:
    record = saturated(policy, seed, 10.0).record
    assert record.open_wait_ratio(LIGHT) < 0.2
    assert saturated("FIFO", seed, 10.0).record.open_wait_ratio(LIGHT) > 5.0 * record.open_wait_ratio(LIGHT)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 4))
def test_the_history_of_availability_lowers_the_preemptions_of_long_jobs(seed: int) -> None:
    plain, ranked = with_and_without(seed, 14.0)
    assert owner_moves(ranked, 0.0, 1e9) < owner_moves(plain, 0.0, 1e9)


def test_the_availability_command_tells_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["availability", "--seeds", "1", "--days", "1.5"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"moves by owners per hour of demand +without +by history +change, %", head)
    assert [re.sub(r"  .*", "", row) for row in rows] == ["all jobs", "less than 8 h", "8 h and more"]
    for row in rows:
        assert re.search(r" 0\.\d{3} +0\.\d{3} +-?\d+\.\d$", row), row


def test_the_month_command_takes_any_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert len({user.name for user in users_for(500)}) == 110
    assert users_for(23) == PAPER_USERS
    assert main(["month", "--machines", "35", "--days", "0.2", "--policy", "fair_share"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("FAIR_SHARE, seed 1\nstations 35, users 10, days 0.2\n")
    assert re.search(r"^jobs: \d+ submitted, \d+ completed with \d+ h of work$", told, re.M)
    assert re.search(r"^processor time [\d,]+ s, memory [\d,]+ MiB$", told, re.M)
    assert main(["month", "--days", "0"]) == 2


def test_owners_come_first_and_no_work_is_lost() -> None:
    numbers = month_numbers(saturated("UP_DOWN").record, HEAVY)
    assert numbers["reaction_worst_s"] <= 31.0, "the sensors are read every half minute"
    assert numbers["lost_h"] == 0.0
    assert 0.2 < numbers["local"] < 0.36
    assert numbers["moves_priority"] > 0


def test_equal_arguments_give_equal_months() -> None:
    one, other = (run_month("UP_DOWN", 2, length_s=0.75 * DAY_S) for _ in range(2))
    assert one.events == other.events
    assert month_numbers(one.record, HEAVY) == month_numbers(other.record, HEAVY)
    assert [job.completed_s for job in one.record.jobs] == [job.completed_s for job in other.record.jobs]


def test_jobs_are_conserved() -> None:
    record = saturated("UP_DOWN").record
    assert len(record.jobs) == sum(record.intervals[-1].queue.values()) + len(record.completed)
    for job in record.completed:
        assert job.served_s - job.lost_s == pytest.approx(job.demand_s, abs=0.1)
        assert job.placements == 1 + sum(job.moves.values())


def test_the_configuration_is_the_papers() -> None:
    config = paper_config()
    assert config.seconds("NEGOTIATOR_INTERVAL") == 120
    assert config.seconds("POLLING_INTERVAL") == 30
    assert config.problems() == ()


def test_a_policy_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of UP_DOWN"):
        run_month("LOTTERY", 1)


def test_the_report_stands_alone(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("condor_actors.simulation.cores.months", fromlist=["LOADS"]).LOADS, "paper",
                        (1.0, 7.0 * 3600.0))
    made = list(months(("UP_DOWN", "FIFO"), "paper", (1, 2)))
    page = paper_report(Report(paper=made, saturated=made[:2]))
    assert page.count("<svg") == 8
    for figure in range(2, 10):
        assert f"Figure {figure}:" in page
    for outside in ("<script", "<link", "src=", "@import", "url("):
        assert outside not in page
    with pytest.raises(ValueError, match="at least one month"):
        paper_report(Report(paper=()))
