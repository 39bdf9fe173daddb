"""When a job begins: estimates hold in eight of ten cases, in queues that really were."""

from __future__ import annotations

import heapq
from pathlib import Path
from random import Random

import pytest

from benchmarks.estimates import measure, of_month, of_swf
from condor_actors.classads import ClassAd
from condor_actors.cores.answers.estimate import Case, case_of, estimate, estimate_of
from condor_actors.simulation.cores.month import POLICIES


def queue_of(chance: Random, load: float, machines: int, jobs: int, is_fair: bool) -> list[tuple[float, float]]:
    """When jobs came and began in a queue; fair: those that wait are served in any order."""
    free = [0.0] * machines
    heapq.heapify(free)
    now_s, waiting, came, found = 0.0, [], [], []
    for _ in range(jobs):
        now_s += chance.expovariate(load * machines / 100.0)
        came.append(now_s)
    came.reverse()
    while came or waiting:
        at_s = heapq.heappop(free)
        while came and (came[-1] <= at_s or not waiting):
            waiting.append(came.pop())
            at_s = max(at_s, waiting[-1] if len(waiting) == 1 else at_s)
        began = waiting.pop(chance.randrange(len(waiting)) if is_fair else 0)
        found.append((began, max(at_s, began)))
        heapq.heappush(free, max(at_s, began) + chance.expovariate(1 / 100.0))
    return found


@pytest.mark.parametrize("is_fair", [True, False])
def test_eight_of_ten_begin_within_the_bounds(is_fair: bool) -> None:
    """Asked at random moments of long queues, at many loads: 75 to 85 % begin in the time that was told."""
    chance = Random(f"estimate {is_fair}")
    hits = asked = 0
    for _ in range(80):
        runs = queue_of(chance, chance.uniform(0.5, 0.95), chance.randrange(2, 20), 1500, is_fair)
        for _ in range(25):
            now_s = chance.uniform(runs[400][1], runs[-1][0])
            waiting = [run for run in runs if run[0] <= now_s < run[1]]
            if not waiting:
                continue
            done = sorted((run for run in runs if run[1] <= now_s), key=lambda run: -run[1])
            cases = [Case(came_s, began_s) for came_s, began_s in done]
            found = estimate_of([*cases, *[Case(came_s, None) for came_s, _ in waiting]], now_s)
            if found is None:
                continue
            asked += 1
            rest_s = chance.choice(waiting)[1] - now_s
            hits += found.soonest_s <= rest_s and (found.latest_s is None or rest_s <= found.latest_s)
    assert asked > 300
    assert 0.75 <= hits / asked <= 0.85, (hits, asked)


def test_too_few_say_nothing() -> None:
    assert estimate_of([Case(number, number + 5.0) for number in range(19)], 100.0) is None


def ad(queued_s: int, began_s: int = 0, user: str = "ann@dom", memory: int = 100) -> ClassAd:
    """A job."""
    made = ClassAd({"QDate": queued_s, "User": user, "JobUniverse": 5, "RequestCpus": 1, "RequestMemory": memory})
    if began_s:
        made["JobStartDate"] = began_s
    return made


def test_the_most_alike_of_which_there_are_enough() -> None:
    """Ann's small jobs begin within a minute, everybody's large ones after an hour."""
    small = [ad(1000 + 100 * number, 1060 + 100 * number) for number in range(100)]
    large = [ad(1000 + 100 * number, 4600 + 100 * number, "bob@dom", 64_000) for number in range(60)]
    others = [*reversed(small), *reversed(large)]
    now_s = 11_010
    own = estimate(ad(11_000), [*others, ad(11_000)], now_s)
    assert own is not None
    assert own.cases == 100
    assert own.latest_s is not None
    assert own.latest_s <= 120
    eves = ad(11_000, user="eve@dom", memory=60_000)
    hour = estimate(eves, [*others, eves], now_s)
    assert hour is not None
    assert hour.cases == 60


def test_jobs_that_were_held_or_have_a_time_tell_nothing() -> None:
    held = ad(1000, 1060)
    held["NumHolds"] = 1
    timed = ad(1000, 1060)
    timed["DeferralTime"] = 1060
    assert case_of(held) is None
    assert case_of(timed) is None
    assert estimate(held, [ad(1000, 1060)] * 20, 2000.0) is None


@pytest.mark.soak
@pytest.mark.parametrize("policy", POLICIES)
def test_eight_of_ten_begin_within_the_bounds_in_the_pool_of_1988(policy: str) -> None:
    """Owners who return and users with priorities are no simple queue; see ``python -m benchmarks.estimates``."""
    found = [measure(of_month(policy, seed), 300, Random(f"{policy} {seed}")) for seed in (1, 2, 3)]
    share = sum(each.held for each in found) / sum(each.made for each in found)
    assert 0.75 <= share <= 0.85, share


def test_recorded_days_are_asked_about(tmp_path: Path) -> None:
    """A log of another system: one processor, a job of a hundred seconds each minute, first come, first served."""
    lines, free_s = ["; Computer: none", ""], 0
    for number in range(300):
        came_s = 60 * number + 31 * (number % 7)
        began_s = max(came_s, free_s)
        free_s = began_s + (40 if number % 3 else 100)
        lines.append(f"{number} {came_s} {began_s - came_s} {free_s - began_s} 1 -1 -1 1 600 -1 1 7 1 -1 1 -1 -1 -1")
    lines += ["301 5000 -1 10 1 -1 -1 1 600 -1 5 7 1 -1 1 -1 -1 -1", "no job"]
    log = tmp_path / "log.swf"
    log.write_text("\n".join(lines))
    jobs = of_swf(log)
    assert len(jobs) == 300, "the one whose wait is not known is none of them"
    assert (jobs[1].came_s, jobs[1].began_s, jobs[1].ended_s) == (91.0, 100.0, 140.0)
    found = measure(jobs, 50, Random("recorded"))
    assert (found.asked, found.made) == (50, 50)
    assert found.held >= 35
