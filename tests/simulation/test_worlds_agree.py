"""The pool of cores and the world of whole daemons tell the same of one scenario.

The same configuration, owners' visits and jobs, each for one station (what breaks a tie between stations is the order
of their ads).  One has actors, a network, disks, shadows and starters, the other only the cores that decide.  Their
moments differ by polls and messages, so waits agree, not instants.
"""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.simulation.cores.month import paper_config, pool_settings
from condor_actors.simulation.cores.pool import CorePool
from condor_actors.simulation.report.recorder import Recorder
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, run

HOUR_S = 3600.0
SPAN_S = 14 * HOUR_S
VISITS = (
    ((2.0, 2.5), (6.0, 6.05)), ((0.5, 1.0), (4.0, 4.5), (7.0, 7.3)), ((3.0, 3.03), (5.0, 6.5)), (),
)
"""From which hour until which each station's owner is there."""
JOBS = ((60.0, 0, 1.5), (60.0, 1, 0.7), (60.0, 2, 2.2), (60.0, 3, 1.0), (60.0, 0, 0.5), (60.0, 1, 1.2),
        (10860.0, 2, 1.3), (10860.0, 3, 0.4), (10860.0, 1, 0.8), (10860.0, 3, 1.6))
"""When, on which station, hours of work."""
POLICY = ("START", "WANT_SUSPEND", "SUSPEND", "CONTINUE", "PREEMPT", "WANT_VACATE", "KILL", "IS_OWNER",
          "MAXJOBRETIREMENTTIME", "PERIODIC_CHECKPOINT", "NEGOTIATOR_INTERVAL", "NEGOTIATOR_MIN_INTERVAL",
          "POLLING_INTERVAL", "PRIORITY_POLICY", "UP_DOWN_INTERVAL")


def wants(station: int) -> str:
    """Requirements."""
    return f'TARGET.Machine == "station{station}"'


def in_order(waits: list[tuple[float, float]]) -> list[float]:
    """By demand, which no two jobs share."""
    return [wait_s for _, wait_s in sorted(waits)]


def waits_of_cores() -> list[float]:
    """By demand."""
    recorder = Recorder(len(VISITS), ["alice"])
    settings = pool_settings(paper_config(overrides={"JOB_START_DELAY": "0"}), settled_s=150.0, saves=False)
    visits = [[(came * HOUR_S, left * HOUR_S) for came, left in each] for each in VISITS]
    pool = CorePool(settings, visits, ["alice"], recorder)
    for when_s, station, hours in JOBS:
        pool.submit_at(when_s, "alice", (hours * HOUR_S,), ad=f"Requirements = {wants(station)}\n")
    pool.run_until(SPAN_S)
    jobs = recorder.finish(SPAN_S).jobs
    return in_order([(job.demand_s, job.wait_s) for job in jobs])


def plays_owners(pool: Any) -> None:
    """Keys and load while someone is there."""
    def there(machine: Any, until_s: float) -> None:
        machine.owner_load = 1.0
        machine.touch()
        if pool.clock.now_s + 10.0 < until_s:
            pool.clock.callLater(10.0, there, machine, until_s)
        else:
            pool.clock.callLater(until_s - pool.clock.now_s, gone, machine)

    def gone(machine: Any) -> None:
        machine.touch()
        machine.owner_load = 0.0

    for number, visits in enumerate(VISITS):
        for came, left in visits:
            pool.clock.callLater(came * HOUR_S, there, pool.machines[f"station{number}"], left * HOUR_S)


def waits_of_daemons() -> list[float]:
    """By demand."""
    config = paper_config()
    result = run(Scenario(
        seed=3, prepare=plays_owners, span_s=SPAN_S, checks=False,
        machines=(MachineSpec("m0", central=True, submits=True, executes=False),
                  *(MachineSpec(f"station{number}") for number in range(len(VISITS)))),
        config={name: text for name in POLICY if (text := config.text(name)) is not None},
        submissions=tuple(Submission(when_s=when_s, owner="alice", machine="m0", cpu_s=hours * HOUR_S,
                                     ad={"Requirements": wants(station)}) for when_s, station, hours in JOBS)))
    assert not result.violations, result.violations
    jobs = list(result.jobs.values())
    assert all(job.completed_s is not None for job in jobs)
    return in_order([(job.demand_s, job.completed_s - job.submitted_s - job.demand_s) for job in jobs
                     if job.completed_s is not None])


def test_waits_agree() -> None:
    cores, daemons = waits_of_cores(), waits_of_daemons()
    assert len(cores) == len(daemons) == len(JOBS)
    assert sum(cores) == pytest.approx(sum(daemons), rel=0.05)
    for one, other in zip(cores, daemons, strict=True):
        assert one == pytest.approx(other, rel=0.05, abs=180.0)
