"""A small pool of production actors in simulated time: jobs complete, and every run of a seed is the same."""

from __future__ import annotations

import os
import subprocess
import sys

from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, Wish, run

SMALL = Scenario(
    seed=7,
    machines=(MachineSpec("m0", central=True, submits=True, executes=False),
              *(MachineSpec(f"m{number}") for number in range(1, 4))),
    submissions=(Submission(when_s=30.0, owner="alice", machine="m0", count=10, cpu_s=300.0),),
    span_s=7200.0)


def test_ten_jobs_complete_on_three_machines() -> None:
    result = run(SMALL)
    assert not result.violations
    assert result.completed == 10
    assert 4 * 300.0 < result.simulated_s < 5 * 300.0
    assert all(job.starts == 1 for job in result.jobs.values())


def test_jobs_of_one_number_from_two_schedds_run_beside_each_other() -> None:
    central, *_ = SMALL.machines
    result = run(Scenario(
        machines=(central, MachineSpec("m1", submits=True, executes=False), MachineSpec("m2", cpus=2)),
        submissions=tuple(Submission(when_s=60.0, owner="alice", machine=name, cpu_s=300.0) for name in ("m0", "m1")),
        span_s=7200.0))
    assert not result.violations
    assert sorted(result.jobs) == ["m0/1.0", "m1/1.0"]
    for job in result.jobs.values():
        assert (job.starts, job.completed_s is not None) == (1, True)
        assert job.first_start_s is not None
        assert job.first_start_s - job.submitted_s < 5.0


def test_a_seed_gives_the_same_trace_whatever_the_order_of_hashes_and_the_place() -> None:
    program = "from tests.simulation.test_small_pool import SMALL, run; print(run(SMALL).digest)"
    digests = set()
    for seed, zone, home in (("1", "UTC", "/"), ("2", "Asia/Tokyo", "/nonexistent"), ("3", "America/New_York", "/tmp")):
        place = {"PYTHONHASHSEED": seed, "TZ": zone, "HOME": home}
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **place},
                              capture_output=True, text=True, check=True, timeout=60)
        digests.add(done.stdout)
    assert len(digests) == 1


def test_a_job_that_writes_too_much_is_held_long_before_its_run_reports() -> None:
    central, *others = SMALL.machines
    result = run(Scenario(
        machines=(central, *others), config={"STARTD_ENFORCE_DISK_LIMITS": "True"}, span_s=1800.0, submissions=(
            Submission(when_s=30.0, owner="alice", machine="m0", cpu_s=300.0, program={"disk_mib": 20_000}),
            Submission(when_s=30.0, owner="bob", machine="m0", cpu_s=300.0, program={"disk_mib": 20},
                       ad={"RequestDisk": "100000"})),
        wishes=(Wish(when_s=600.0, owner="alice", machine="m0", action="remove"),)))
    assert not result.violations
    held, done = result.jobs["m0/1.0"], result.jobs["m0/2.0"]
    assert held.starts == 1
    assert 0.0 < held.cpu_s < 6.0
    assert (done.starts, done.completed_s is not None) == (1, True)


def test_jobs_begin_at_their_time_on_the_clock_of_their_machine() -> None:
    central, *others = SMALL.machines
    begins_s = 1500
    result = run(Scenario(
        machines=(central, *others), span_s=7200.0, submissions=(
            Submission(when_s=30.0, owner="alice", machine="m0", count=2, cpu_s=60.0,
                       ad={"DeferralTime": f"QDate + {begins_s}", "DeferralPrepTime": "120"}),
            Submission(when_s=30.0, owner="bob", machine="m0", cpu_s=60.0,
                       ad={"CronMinute": '"*/10"', "DeferralPrepTime": "120", "DeferralWindow": "60"}))))
    assert not result.violations
    assert result.completed == 3
    first, second, cron = (result.jobs[name] for name in ("m0/1.0", "m0/1.1", "m0/2.0"))
    for job in (first, second):
        assert job.first_start_s is not None
        assert -0.1 < job.first_start_s - job.submitted_s - begins_s < 3.0
    assert cron.first_start_s is not None
    assert cron.first_start_s - cron.submitted_s < 605.0
