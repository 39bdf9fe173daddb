"""An ordinary job at the sockets of the daemons of its machine, which would take its account for a user there.

A job of someone who has no account on the machine, of another pool say, would be a user of it: it would submit a job
that is shut in by nothing and outlives its claim, or get a token that is good for more than its run.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.readable_python import python_for_all
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

JOB = """executable = tries.sh
output = {name}.out
error = {name}.err
log = {name}.log
run_as_owner = {owns}
should_transfer_files = yes
queue
"""
TRIES = """#!/bin/sh
unset _CONDOR_RUN_MARK
export CONDOR_CONFIG={config}
id -un
ls {folder}/run | grep -c '[.]sock$'
ls {folder}/spool {folder}/log | grep -c "[a-z]$"
printf 'universe = local\\nexecutable = /bin/true\\nqueue\\n' > local.sub
{python} -c 'from condor_actors.tools.jobs.submit import main; main()' local.sub | grep -c submitted
exit 0
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    with a_shared_pool(slots=1, drops_root=True) as made:
        yield made


def tried(pool: SharedPool, name: str, *, owns: bool) -> tuple[str, int, int, int]:
    """The account of a job of mallory's, and how many sockets and other files it sees and jobs it has submitted."""
    home = pool.mallory.home
    program = home / "tries.sh"
    program.write_text(TRIES.format(config=pool.environment["CONDOR_CONFIG"], folder=pool.dir,
                                    python=" ".join(python_for_all().words)))
    program.chmod(0o755)
    pool.submit_as(pool.mallory, JOB.format(name=name, owns=owns))
    pool.run_as(pool.mallory, "condor_wait", f"{name}.log")
    account, sockets, files, submitted = (home / f"{name}.out").read_text().split()
    return account, int(sockets), int(files), int(submitted)


def test_to_daemons_a_job_with_a_slots_account_is_nobody(pool: SharedPool) -> None:
    assert tried(pool, "slot", owns=False) == ("nobody", 0, 0, 0)


def test_with_its_owners_account_it_does_what_the_owner_may(pool: SharedPool) -> None:
    """What the other one tries works."""
    account, sockets, files, submitted = tried(pool, "owner", owns=True)
    assert (account, submitted) == (pool.mallory.name, 1)
    assert min(sockets, files) > 3
