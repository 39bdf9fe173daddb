"""The central manager with real machines: partitionable slots, limits, priorities, and what the tools say of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

CONFIG = """
NUM_CPUS = 4
NUM_SLOTS =
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = true
LICENCE_LIMIT = 1
"""
SLEEP = """
    executable = /bin/sleep
    arguments = 600
    request_memory = 16MB
    request_disk = 1MB
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that jobs of any user can reach."""
    with fresh_folder() as path:
        yield path


def claimed(pool: PersonalPool, *fields: str) -> list[str]:
    """A line of these attributes for each claimed slot."""
    return pool.run("condor_status", "-claimed", "-af", *(fields or ("RemoteUser",))).splitlines()


def test_one_partitionable_slot_is_shared_out_by_cpus_and_limits(folder: Path) -> None:
    pool = PersonalPool(folder, slots=1, config=CONFIG)
    try:
        two = pool.submit(f"{SLEEP}\nrequest_cpus = 2\nqueue 1\n")
        ones = pool.submit(f"{SLEEP}\nrequest_cpus = 1\nconcurrency_limits = licence\nqueue 3\n")
        until(lambda: len(claimed(pool)) == 2, "a job of two cpus and one that holds the licence")
        assert sorted(claimed(pool, "Cpus")) == ["1", "2"]
        assert pool.run("condor_status", "-af", "Name", "Cpus", "-constraint", "PartitionableSlot").split()[1] == "1"
        assert pool.status_of(f"{ones}.1") == 1
        pool.run("condor_rm", f"{ones}.0")
        until(lambda: pool.status_of(f"{ones}.1") == 2, "the next in line for the licence")
        pool.run("condor_rm", str(two), str(ones))
        until(lambda: not claimed(pool), "all slots given back")
        until(lambda: pool.run("condor_status", "-af", "Cpus").split() == ["4"], "the slot to be whole again")
        users = pool.run("condor_userprio", "-allusers", "-af", "Name", "WeightedAccumulatedUsage").splitlines()
        assert len(users) == 1
        assert float(users[0].split()[1]) > 0.0
    finally:
        pool.stop()


def test_up_down_takes_from_the_heavy_what_the_light_wants(folder: Path) -> None:
    pool = PersonalPool(folder, slots=2, config="PRIORITY_POLICY = UP_DOWN\nUP_DOWN_INTERVAL = 1\n")
    try:
        heavy = pool.submit(f"{SLEEP}\naccounting_group_user = heavy\nqueue 4\n")
        until(lambda: len(claimed(pool)) == 2, "the heavy user on every slot")
        until(lambda: index_of(pool, "heavy") >= 4.0, "the index of the heavy user to rise")
        light = pool.submit("executable = /bin/true\nrequest_memory = 16MB\naccounting_group_user = light\n"
                            "log = light.log\nqueue 1\n")
        pool.wait("light.log")
        assert len(pool.jobs(str(heavy))) == 4, "what was displaced waits to run again"
        assert pool.history(str(light))[0]["ExitCode"] == 0
        assert "light" in pool.run("condor_userprio", "-allusers")
        pool.run("condor_rm", str(heavy))
    finally:
        pool.stop()


def index_of(pool: PersonalPool, user: str) -> float:
    """The Up-Down index of a user."""
    lines = pool.run("condor_userprio", "-allusers", "-af", "Name", "RealPriority").splitlines()
    return max((float(line.split()[1]) for line in lines if line.startswith(f"{user}@")), default=0.0)


def test_the_negotiator_that_is_killed_knows_users_and_places_jobs_again(folder: Path) -> None:
    pool = PersonalPool(folder, slots=2)
    try:
        pool.run("condor_userprio", "-setfactor", "someone@else", "7")
        old = pool.kill("negotiator")
        pool.until_restarted("negotiator", old)
        pool.submit("executable = /bin/true\nrequest_memory = 16MB\nlog = job.log\nqueue 2\n")
        pool.wait("job.log")
        shown = until(lambda: pool.tool("condor_userprio", "-allusers", "-af", "Name", "PriorityFactor").stdout,
                      "the negotiator to answer")
        assert "someone@else 7.0" in shown
    finally:
        pool.stop()
