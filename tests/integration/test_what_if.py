"""What-if on a real pool's files: its configuration, its slots' ads, its history, as an administrator takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder

SLOTS = 8
HEAVY, LIGHT = 40, 10
JOB = """
executable = /bin/sleep
arguments = 1
transfer_executable = false
should_transfer_files = yes
log = job.log
accounting_group_user = {user}
queue {count}
"""


@pytest.fixture(scope="module")
def files() -> Iterator[tuple[PersonalPool, Path]]:
    """A pool that has done the jobs of two users, and the folder with what it says of itself."""
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=SLOTS)
        pool.submit(JOB.format(user="heavy", count=HEAVY))
        pool.submit(JOB.format(user="light", count=LIGHT))
        pool.wait()
        (folder / "ads").write_text(pool.run("condor_status", "-long"))
        (folder / "history").write_text(pool.run("condor_history", "-long"))
        (folder / "tried").write_text(f"include : {pool.environment['CONDOR_CONFIG']}\nPRIORITY_POLICY = UP_DOWN\n")
        pool.stop()
        yield pool, folder


def test_the_command_answers(files: tuple[PersonalPool, Path]) -> None:
    pool, folder = files
    words = ["what-if", "--config", str(folder / "tried"), "--against", pool.environment["CONDOR_CONFIG"],
             "--ads", str(folder / "ads"), "--history", str(folder / "history")]
    told = json.loads(pool.run("condor_simulate", *words, "--json"))
    assert told["machines"] == SLOTS
    was, now, tried = told["columns"]
    for column in (was, now, tried):
        assert column["all"]["jobs"] == HEAVY + LIGHT
        assert {user: numbers["jobs"] for user, numbers in column["users"].items()} == {"heavy": HEAVY, "light": LIGHT}
    assert now["unfinished"] == tried["unfinished"] == 0
    assert now["lost_h"] == tried["lost_h"] == 0.0, "nobody is preempted by default"
    table = pool.run("condor_simulate", *words)
    assert f"{SLOTS} slots (0 with owners), {HEAVY + LIGHT} jobs of 2 users" in table
    assert "heavy" in table
    assert "light" in table
