"""A shadow host that neither ends nor goes on: within two minutes its owner's jobs have another."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

pytestmark = pytest.mark.timeout(600)

BOUND_S = 400.0
"""90 s of silence on its link, 20 s in which it may come back, and what a machine under tests takes for the rest."""
SLEEP = ("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nshould_transfer_files = yes\n"
         "log = {log}\nqueue {count}\n")


@pytest.fixture
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        yield made
        made.stop()


def test_its_jobs_go_on_and_others_begin(pool: PersonalPool) -> None:
    """Every thread of it is stopped: nothing of it answers, and its end is nowhere to be seen."""
    cluster = pool.submit(SLEEP.format(log="job.log", count=1))
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: "001 (" in (pool.work / "job.log").read_text(), "the job's program runs")
    audit = pool.dir / "log" / "ScheddAuditLog"
    until(lambda: audit.read_text().count("act=shadow-host result=told") == 2, "the spare has said hello, too")
    hosts = [pid for pid, command in pool.processes().items() if "condor_actors.services shadow-host" in command]
    assert len(hosts) == 2
    for pid in hosts:  # the owner's, and the spare
        os.kill(pid, signal.SIGSTOP)
    pool.submit(SLEEP.format(log="late.log", count=1))
    late = pool.work / "late.log"
    until(lambda: late.exists() and "001 (" in late.read_text(), "a job that was submitted meanwhile runs", BOUND_S)
    until(lambda: not [pid for pid in hosts if Path(f"/proc/{pid}").exists()], "what was stopped is gone")
    pool.run("condor_suspend", f"{cluster}.0")
    until(lambda: "010 (" in (pool.work / "job.log").read_text(), "the job hears its new shadow")
    assert (pool.work / "job.log").read_text().count("001 (") == 1  # it is the same run
    pool.run("condor_rm", "-all")
    until(lambda: not pool.scratch(), "no scratch directory left")
