"""A local user whose job names files that never answer: pipes, locked ones, dead file systems, devices.

Nothing of it may stop another job of the same shadow host, nor the daemons.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.dead_mount import dead_mount
from tests.pool_fixture import PersonalPool, fresh_folder, until

JOB = """
executable = /bin/sh
arguments = "-c 'echo done; cat in* 2>/dev/null; exit 0'"
{}
queue
"""
HELD, COMPLETED = 5, 4


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=6, config="USER_FILE_TIMEOUT = 3\n")
        yield made
        made.stop()


def _bystander_runs(pool: PersonalPool, name: str) -> None:
    """Another job of the same owner, through the same shadow host, comes and goes as ever."""
    pool.submit(JOB.format(f"log = {name}.by.log\noutput = {name}.by.out"))
    pool.wait(f"{name}.by.log", 30)
    assert (pool.work / f"{name}.by.out").read_text() == "done\n"


def _held_for(pool: PersonalPool, cluster: int) -> str:
    pool.until_status(f"{cluster}.0", HELD)
    ad = pool.jobs(f"{cluster}.0", "-attributes", "HoldReason")[0]
    pool.run("condor_rm", str(cluster))
    return str(ad["HoldReason"])


def _bad_place(pool: PersonalPool, kind: str) -> Path:
    place = pool.work / f"bad-{kind}"
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero")
    return place


@pytest.mark.parametrize("kind", ["pipe", "folder", "zero"])
def test_a_log_that_is_no_file(pool: PersonalPool, kind: str) -> None:
    cluster = pool.submit(JOB.format(f"log = bad-{kind}\nhold = true"))
    place = _bad_place(pool, kind)
    pool.run("condor_release", str(cluster))
    _bystander_runs(pool, kind)
    reason = _held_for(pool, cluster)
    assert "Failed to initialize user log" in reason
    assert str(place) in reason


def test_a_pipe_that_somebody_reads_is_no_log_either(pool: PersonalPool) -> None:
    place = pool.work / "read-pipe"
    os.mkfifo(place)
    reader = os.open(place, os.O_RDWR)
    try:
        assert "not a regular file" in pool.tool("condor_submit", stdin=JOB.format(f"log = {place}")).stderr
        cluster = pool.submit(JOB.format(f"log = {place}"), "-disable")  # as if it had become one later
        _bystander_runs(pool, "read-pipe")
        assert str(place) in _held_for(pool, cluster)
    finally:
        os.close(reader)


def test_a_log_that_somebody_else_has_locked(pool: PersonalPool) -> None:
    """Its job ends without it; its events come, in their order, when the lock is gone."""
    log = pool.work / "locked.log"
    log.touch(mode=0o666)
    with log.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        cluster = pool.submit(JOB.format("log = locked.log"))
        _bystander_runs(pool, "locked")
        until(lambda: pool.history(str(cluster)), "the job whose log is locked to end")
        assert log.read_text() == ""
    _bystander_runs(pool, "unlocked")
    until(lambda: "\n005 " in log.read_text(), "the events")
    assert [line[:3] for line in log.read_text().splitlines() if line[:3] in ("000", "001", "005")] == [
        "000", "001", "005"]


@pytest.mark.parametrize("line", ["transfer_input_files = {}", "input = {}"])
def test_an_input_that_becomes_a_pipe(pool: PersonalPool, line: str) -> None:
    name = f"in{len(line)}"
    place = pool.work / name
    place.write_text("")
    cluster = pool.submit(JOB.format(f"{line.format(name)}\nhold = true"))
    place.unlink()
    os.mkfifo(place)
    pool.run("condor_release", str(cluster))
    _bystander_runs(pool, name)
    assert str(place) in _held_for(pool, cluster)


def test_an_output_that_is_a_full_pipe(pool: PersonalPool) -> None:
    place = pool.work / "out-pipe"
    os.mkfifo(place)
    reader = os.open(place, os.O_RDWR | os.O_NONBLOCK)
    os.write(reader, bytes(fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)))
    try:
        cluster = pool.submit(JOB.format(f"output = {place}"))
        _bystander_runs(pool, "out-pipe")
        assert str(place) in _held_for(pool, cluster)
    finally:
        os.close(reader)


@pytest.mark.parametrize("line", ["log = {}/it", "transfer_input_files = {}/in", "output = {}/it",
                                  "transfer_input_files = {}/in\nuniverse = local\ninput = {}/in",
                                  "output = {}/it\nstream_output = true"])
def test_a_file_system_that_does_not_answer(pool: PersonalPool, line: str) -> None:
    """The path led to a living file system when the job was submitted."""
    name = f"mount-{abs(hash(line)) % 10**8}"
    folder = pool.work / name
    (folder / "living").mkdir(parents=True)
    (folder / "living").chmod(0o777)
    (folder / "living" / "in").write_text("in")
    link = folder / "link"
    link.symlink_to(folder / "living")
    with dead_mount(folder) as dead:
        cluster = pool.submit(JOB.format(f"{line.replace('{}', str(link))}\nhold = true"))
        link.unlink()
        link.symlink_to(dead)
        pool.run("condor_release", str(cluster))
        _bystander_runs(pool, name)
        if "stream" in line:  # the file is given up, the job is not
            until(lambda: pool.history(str(cluster)), "the job to end without its stream")
        else:
            assert str(link) in _held_for(pool, cluster)
        _bystander_runs(pool, f"{name}-2")
    _bystander_runs(pool, f"{name}-3")
