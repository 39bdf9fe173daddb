"""A standard-universe job that is moved, checkpointed and killed at random for a long time."""

from __future__ import annotations

import os
import random
import signal

import pytest

from tests.harness.standard_jobs import NEED_RUNTIME, Job, expected
from tests.pool_fixture import PersonalPool, fresh_folder, until

pytestmark = NEED_RUNTIME


@pytest.mark.soak
def test_many_moves_and_deaths_change_nothing() -> None:
    chance = random.Random(1988)
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=2, config="STARTER_INITIAL_UPDATE_INTERVAL = 1\n")
        try:
            steps = 1500
            job = Job(pool, "wild", str(steps))
            wanted = expected(steps)
            moves = 0
            while moves < 40 and pool.status_of(job.id):
                pool.until_status(job.id, 2, 0)
                lines = len(job.text("out").splitlines())
                aim = lines + chance.randrange(1, 40)
                until(lambda aim=aim: len(job.text("out").splitlines()) >= aim or not pool.status_of(job.id), "work")
                starts = job.text("job.log").count("001 (")
                event = chance.choice(("vacate", "vacate", "checkpoint", "fast", "starter", "shadow"))
                if event == "checkpoint":
                    pool.tool("condor_checkpoint", "job", job.id)
                    continue
                if event in ("vacate", "fast"):
                    pool.tool("condor_vacate_job", *(["-fast"] if event == "fast" else []), job.id)
                elif event == "starter":
                    pool.kill("starter-host")
                else:
                    for pid, command in pool.processes().items():
                        if "shadow-host" in command:
                            os.kill(pid, signal.SIGKILL)
                moves += 1
                until(lambda starts=starts: job.text("job.log").count("001 (") > starts
                      or not pool.status_of(job.id), f"a new start after {event}")
            job.wait()
            job.check(steps)
            assert job.text("out") == wanted
        finally:
            pool.stop()
