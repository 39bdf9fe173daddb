"""Machines that fetch work in a simulated pool, whatever dies: a job runs in one place, and the policy holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from condor_actors.cores.rights import is_fetched
from condor_actors.daemons.fetched_work.fetcher import Fetcher
from condor_actors.daemons.starter.run_resources import RunResources
from condor_actors.simulation.faults.chance import DESKTOP, QUICK
from condor_actors.simulation.world.scenario import MachineSpec, Result, Scenario, Submission, run

JOBS = 6
HOOKS = {"STARTD_JOB_HOOK_KEYWORD": "SITE", "SITE_HOOK_FETCH_WORK": f"/site/jobs={JOBS},cpu_s=90",
         "SITE_HOOK_REPLY_FETCH": "/site/reply", "SITE_HOOK_EVICT_CLAIM": "/site/evict",
         "FETCHWORKDELAY": 'ifThenElse(State == "Claimed", 0, 20)'}
MACHINES = (MachineSpec("m0", central=True, submits=True, executes=False),
            *(MachineSpec(f"m{number}", kbdd=number == 2, config={**HOOKS, **(DESKTOP if number == 2 else {})})
              for number in range(1, 4)))


def pool_with(faults: str, prepare: Any = None) -> Result:
    return run(Scenario(
        seed=5, machines=MACHINES, config=QUICK, span_s=4000.0, quiet_s=3500.0, faults=faults, prepare=prepare,
        submissions=(Submission(when_s=200.0, owner="alice", machine="m0", count=4, cpu_s=100.0),)))


def hooks(result: Result, name: str) -> Counter[tuple[str, tuple[str, ...]]]:
    return Counter(result.pool.machines[name].told)


def nothing_is_left(result: Result) -> None:
    assert not result.violations
    assert result.completed == 4, "the pool's own jobs run beside"
    for name in ("m1", "m2", "m3"):
        process = result.pool.machines[name].find("startd")
        assert process is not None
        claims = process.daemon.claims.records
        assert [record.owner for record in claims if is_fetched(record.owner)] == []


def test_each_machine_runs_what_it_fetches() -> None:
    result = pool_with("")
    nothing_is_left(result)
    for name in ("m1", "m2", "m3"):
        told = hooks(result, name)
        assert told["SITE_HOOK_REPLY_FETCH", ("accept",)] + told["SITE_HOOK_REPLY_FETCH", ("reject",)] == JOBS
        assert told["SITE_HOOK_EVICT_CLAIM", ()] == 0


FAULTS = """\
at 60s owner m2 for 5m
at 70s crash m1/startd
at 90s crash m3/starter-host
at 130s raise m1/startd after 3
at 180s power m3 for 60s
at 230s freeze m1/startd for 40s
at 300s crash m1/startd
at 301s crash m1/starter-host
at 420s crash m2/startd
at 500s raise m3/startd before 5
"""


def test_whatever_dies_nothing_runs_twice_and_what_was_driven_out_is_told() -> None:
    result = pool_with(FAULTS)
    nothing_is_left(result)
    evicted = sum(hooks(result, name)["SITE_HOOK_EVICT_CLAIM", ()] for name in ("m1", "m2", "m3"))
    assert evicted >= 2, "an owner returned, and a starter host died"


def accepted_by_900_s() -> int:
    result = run(Scenario(seed=5, machines=MACHINES, config=QUICK, span_s=900.0, drain=False,
                          faults="at 70s crash m1/startd\nat 200s raise m1/startd before 1\n"))
    assert not result.violations
    return hooks(result, "m1")["SITE_HOOK_REPLY_FETCH", ("accept",)]


def test_a_startd_that_does_not_look_for_its_runs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim of the startd before it would be kept until its lease ends, with nothing on it."""
    assert accepted_by_900_s() == JOBS
    monkeypatch.setattr(Fetcher, "kept", lambda self: [])
    assert accepted_by_900_s() < JOBS


def test_nobody_but_the_startd_speaks_for_a_fetched_job(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    may = RunResources.may_be_told_by

    def noted(self: RunResources, identity: Any, node: str) -> bool:
        asked.append(is_fetched(self.owner) and may(self, identity, "<elsewhere:1>") and identity.method != "self")
        return may(self, identity, node)

    monkeypatch.setattr(RunResources, "may_be_told_by", noted)
    nothing_is_left(pool_with(""))
    assert asked
    assert not any(asked)
