"""A job's choice among the groups of its owner (primary_unix_group): those alone, with a helper and without."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, Person, SharedPool, a_shared_pool

pytestmark = NEED_USERS
GROUP = "users"


@pytest.fixture(scope="module", params=[True, False], ids=["helper", "root"])
def pool(request: pytest.FixtureRequest) -> Iterator[SharedPool]:
    with a_shared_pool(drops_root=request.param) as made:
        subprocess.run(["usermod", "-a", "-G", GROUP, made.alice.name], check=True, capture_output=True)
        yield made


def submitted(pool: SharedPool, person: Person, group: str) -> int:
    return pool.submit_as(person, f"""
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'id -gn; touch made; stat -c %G made; id -un'"
        should_transfer_files = yes
        transfer_output_files = made
        output = {group}.out
        log = {group}.log
        primary_unix_group = {group}
        queue
    """)


def test_a_job_begins_with_a_group_of_its_owner(pool: SharedPool) -> None:
    submitted(pool, pool.alice, GROUP)
    pool.run_as(pool.alice, "condor_wait", "-wait", "120", f"{GROUP}.log")
    said = (pool.alice.home / f"{GROUP}.out").read_text()
    assert said == f"{GROUP}\n{GROUP}\n{pool.alice.name}\n"


@pytest.mark.parametrize("group", [GROUP, "root", "shadow", "0", "no-such-group"])
def test_no_job_gets_a_group_that_its_owner_is_not_in(pool: SharedPool, group: str) -> None:
    person = pool.mallory
    cluster = submitted(pool, person, group)
    (job,) = until(lambda: [job for job in pool.jobs(str(cluster)) if job["JobStatus"] == 5], "the job is held")
    assert f"{person.name} is in no group '{group}'" in job["HoldReason"]
    assert job["HoldReasonCode"] == 6
    assert not (person.home / f"{group}.out").exists() or (person.home / f"{group}.out").read_text() == ""
    pool.run_as(person, "condor_rm", str(cluster))
