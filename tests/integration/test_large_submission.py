"""A hundred thousand jobs of a cluster: their submission keeps nobody waiting, and a killed schedd has all or none."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

MANY = 100_000
LONGEST_MS = 200
SLOW = re.compile(r"the reactor was kept (\d+) ms by (.*)")
CONFIG = "MAX_JOBS_PER_OWNER = 1000000\nMAX_JOBS_PER_SUBMISSION = 1000000\n"
JOBS = f"executable = /bin/true\ntransfer_executable = false\nrequirements = false\nqueue {MANY}\n"


@pytest.fixture
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1, config=CONFIG)
        try:
            yield made
        finally:
            made.stop()


def queued(pool: PersonalPool) -> int:
    """How many jobs the schedd says that it has, as soon as it answers."""
    text = until(lambda: done.stdout if (done := pool.tool("condor_q", "-all", "-totals")).returncode == 0 else "",
                 "an answer of the schedd")
    return int(str(text).split("Total for all users: ")[1].split()[0])


@pytest.mark.alone
def test_no_turn_of_the_schedd_is_long(pool: PersonalPool) -> None:
    pool.submit(JOBS)
    assert queued(pool) == MANY
    pool.submit(f"arguments = $(Process)\nlog = many.log\n{JOBS.replace(str(MANY), '10000')}")
    text = (pool.dir / "log" / "ScheddLog").read_text(errors="replace")
    slow = [found[0] for found in SLOW.finditer(text) if int(found[1]) > LONGEST_MS and "timed calls" not in found[2]]
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_schedd_that_is_killed_meanwhile_has_all_of_them_or_none(pool: PersonalPool, share: float) -> None:
    path = pool.dir / "spool" / "job_queue.sqlite"

    def stored() -> bool:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as rows:
            return bool(rows.execute("SELECT count(*) FROM jobs").fetchone()[0] >= share * MANY)
        return False

    with subprocess.Popen(pool.command("condor_submit"), stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, text=True, env=pool.environment, cwd=pool.work) as submitting:
        assert submitting.stdin is not None
        submitting.stdin.write(JOBS)
        submitting.stdin.close()
        submitting.stdin = None
        until(stored, "so many rows", 30)
        old = pool.kill("schedd")
        _, said = submitting.communicate(timeout=90)
    pool.until_restarted("schedd", old)
    count = queued(pool)
    assert count == (MANY if submitting.returncode == 0 else 0), said
    if count == 0:
        assert "nothing was queued" in said
        pool.submit(JOBS)
        assert queued(pool) == MANY
    old = pool.kill("schedd")
    pool.until_restarted("schedd", old)
    assert queued(pool) == MANY
