"""Who gets what in a real pool: quotas of groups, ceilings, nice users, and the priority of 1989."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

SLEEP = "executable = /bin/sleep\narguments = 600\nrequest_memory = 16MB\nrequest_disk = 1MB\n"
GROUPS = """
GROUP_NAMES = physics, chemistry
GROUP_QUOTA_physics = 3
GROUP_QUOTA_chemistry = 1
GROUP_ACCEPT_SURPLUS = False
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that jobs of any user can reach."""
    with fresh_folder() as path:
        yield path


def running(pool: PersonalPool, cluster: int) -> int:
    return sum(job["JobStatus"] == 2 for job in pool.jobs(str(cluster)))


def test_groups_have_their_quotas_and_users_their_ceilings(folder: Path) -> None:
    pool = PersonalPool(folder, slots=4, config=GROUPS)
    try:
        ours = pool.submit(f"{SLEEP}accounting_group = physics\naccounting_group_user = ann\nqueue 4\n")
        theirs = pool.submit(f"{SLEEP}accounting_group = chemistry\naccounting_group_user = bob\nqueue 4\n")
        until(lambda: (running(pool, ours), running(pool, theirs)) == (3, 1) or None, "each group has its quota")
        shown = pool.run("condor_userprio", "-allusers", "-quotas")
        assert "physics" in shown
        assert "chemistry" in shown
        pool.run("condor_rm", str(ours), str(theirs))

        user = "carl"
        first = pool.submit(f"{SLEEP}accounting_group_user = {user}\nqueue 1\n")
        until(lambda: running(pool, first) or None, "a user of no group takes what is left")
        name = until(lambda: next((each for each in pool.run("condor_userprio", "-allusers", "-af", "Name").split()
                                   if each.startswith(f"{user}@")), None), "the accountant knows the user")
        assert "ceiling" in pool.run("condor_userprio", "-setceiling", name, "2").lower()
        more = pool.submit(f"{SLEEP}accounting_group_user = {user}\nqueue 3\n")
        until(lambda: running(pool, more) or None, "one more")
        other = pool.submit(f"{SLEEP}accounting_group_user = dora\nqueue 1\n")
        until(lambda: running(pool, other) or None, "a later cycle serves someone else")
        assert running(pool, first) + running(pool, more) == 2, "nobody holds more than the ceiling"
        pool.run("condor_rm", str(first), str(more), str(other))
    finally:
        pool.stop()


def test_nice_users_take_what_nobody_else_wants(folder: Path) -> None:
    pool = PersonalPool(folder, slots=1)
    try:
        full = pool.submit(f"{SLEEP}accounting_group_user = ann\nqueue 1\n")
        pool.until_status(f"{full}.0", 2)
        nice = pool.submit(f"{SLEEP}nice_user = true\nlog = nice.log\nqueue 1\n")
        other = pool.submit(f"{SLEEP}accounting_group_user = bob\nlog = other.log\nqueue 1\n")
        pool.run("condor_rm", str(full))
        pool.until_status(f"{other}.0", 2)
        assert pool.status_of(f"{nice}.0") == 1
        pool.run("condor_rm", str(other))
        pool.until_status(f"{nice}.0", 2)
        factors = dict(line.split() for line in pool.run(
            "condor_userprio", "-allusers", "-af", "Name", "PriorityFactor").splitlines())
        assert max(factors.values(), key=float) == next(
            value for name, value in factors.items() if name.startswith("nice-user."))
        pool.run("condor_rm", str(nice))
    finally:
        pool.stop()


def test_update_prio_takes_from_the_heavy_what_the_light_wants(folder: Path) -> None:
    config = "PRIORITY_POLICY = UPDATE_PRIO\nUP_DOWN_INTERVAL = 1\n"
    pool = PersonalPool(folder, slots=2, config=config)
    try:
        heavy = pool.submit(f"{SLEEP}accounting_group_user = heavy\nqueue 4\n")
        until(lambda: running(pool, heavy) == 2 or None, "the heavy user on every slot")
        light = pool.submit("executable = /bin/true\nrequest_memory = 16MB\naccounting_group_user = light\n"
                            "log = light.log\nqueue 1\n")
        pool.wait("light.log")
        assert pool.history(str(light))[0]["ExitCode"] == 0
        assert len(pool.jobs(str(heavy))) == 4, "what was displaced waits to run again"
        pool.run("condor_rm", str(heavy))
    finally:
        pool.stop()
