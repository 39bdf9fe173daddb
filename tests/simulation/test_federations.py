"""Several pools in one world: no rule of lending is broken, and one that is would be seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from condor_actors.cores.negotiator.lending import Lending
from condor_actors.messages.flock_terms import FlockTerms
from condor_actors.simulation.faults.chance import QUICK
from condor_actors.simulation.faults.federations import random_federation
from condor_actors.simulation.world.scenario import MachineSpec, Result, Scenario, Submission, run
from tests.harness.seeds import some_of


@pytest.mark.parametrize("seed", some_of([5, 3]))
def test_pools_by_chance(seed: int) -> None:
    result = run(random_federation(seed))
    assert result.violations == ()
    assert result.completed == len(result.jobs)


def two_pools(quota: float, home_cpu_s: float) -> Result:
    """The guests' pool has work and no machine; the lender's has three, and work of its own later."""
    flocks = {"guests": {"FLOCK_TO": "lender"}, "lender": {"FLOCK_FROM": "guests"}}
    machines = (MachineSpec("g0", central=True, submits=True, executes=False, pool="guests", config=flocks["guests"]),
                MachineSpec("l0", central=True, submits=True, executes=False, pool="lender", config=flocks["lender"]),
                *(MachineSpec(f"l{n}", pool="lender", config=flocks["lender"]) for n in range(1, 4)))
    jobs = [Submission(when_s=30.0, owner="alice", machine="g0", count=6, cpu_s=2000.0)]
    if home_cpu_s:
        jobs.append(Submission(when_s=600.0, owner="bob", machine="l0", count=2, cpu_s=home_cpu_s))
    return run(Scenario(machines=machines, submissions=tuple(jobs), config=QUICK, span_s=30_000.0, terms={
        ("lender", "guests"): FlockTerms(quota=quota), ("guests", "lender"): FlockTerms(quota=0.0)}))


def test_local_jobs_take_back_what_they_need() -> None:
    result = two_pools(quota=-1.0, home_cpu_s=300.0)
    assert result.violations == ()
    assert result.completed == len(result.jobs) == 8
    for job in result.jobs.values():
        if job.owner == "bob":
            assert job.first_start_s is not None
            assert job.first_start_s - 600.0 < 120.0


def beyond_the_quota(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lending, "permits", lambda self, submitter, weight: True)
    patch.setattr(Lending, "_excess", lambda self, loan, slots, now_s: [])


def nothing_taken_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lending, "reclaim", lambda self, view, wanting, now_s: ())


@pytest.mark.parametrize(("bug", "home_cpu_s", "said"), [
    (beyond_the_quota, 0.0, "whose quota is 1"), (nothing_taken_back, 300.0, "local jobs of lender wait")])
def test_a_broken_rule_is_seen(monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None],
                               home_cpu_s: float, said: str) -> None:
    bug(monkeypatch)
    result = two_pools(quota=1.0 if bug is beyond_the_quota else -1.0, home_cpu_s=home_cpu_s)
    assert any(said in text for text in result.violations), result.violations
