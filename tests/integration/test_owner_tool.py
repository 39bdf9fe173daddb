"""A desktop's owner sees what the pool does, and pauses it; real pool, real jobs, a real terminal."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from typing import Any

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

SLEEP = ("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nshould_transfer_files = yes\n"
         "log = job.log\nqueue\n")
POLICY = """
POLLING_INTERVAL = 0.5
START = True
WANT_VACATE = True
MACHINEMAXVACATETIME = 2
RunBenchmarks = LastBenchmark == 0
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1, config=POLICY)
        yield made
        made.stop()


def running(pool: PersonalPool) -> int:
    cluster = pool.submit(SLEEP)
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: "/bin/sleep" in pool.run("condor_owner", "status") or None, "the owner sees the job")
    return cluster


def shows(pool: PersonalPool, text: str) -> Any:
    return until(lambda: text in (pool.work / "job.log").read_text() or None, f"{text} in the log")


def test_a_short_pause_freezes_and_resume_lets_it_go_on(pool: PersonalPool) -> None:
    cluster = running(pool)
    assert "is paused on" in pool.run("condor_owner", "pause", "5m")
    shows(pool, "010 (")
    status = pool.run("condor_owner", "status")
    assert "The pool is paused until" in status
    assert "Suspended" in status
    until(lambda: "paused until" in pool.run("condor_status", "-owner") or None, "everybody can see it")

    old = pool.kill("startd")
    pool.until_restarted("startd", old)
    until(lambda: "The pool is paused until" in pool.tool("condor_owner", "status").stdout or None,
          "the pause outlives the startd")
    assert pool.status_of(f"{cluster}.0") == 7
    pool.run("condor_owner", "resume")
    shows(pool, "011 (")
    assert "was not paused" in pool.run("condor_owner", "resume")
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)


def test_a_long_pause_sends_jobs_away_and_starts_none(pool: PersonalPool) -> None:
    cluster = running(pool)
    pool.run("condor_owner", "pause", "1h")
    pool.until_status(f"{cluster}.0", 1)
    until(lambda: not pool.scratch() or None, "nothing of it is left")
    until(lambda: pool.run("condor_status", "-af", "State").split() == ["Owner"] or None, "the machine is its owner's")
    pool.run("condor_owner", "resume")
    pool.until_status(f"{cluster}.0", 2)
    pool.run("condor_owner", "pause", "1s", "-kill")
    shows(pool, "004 (")
    pool.until_status(f"{cluster}.0", 2)
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)


def test_who_does_not_sit_there_may_look_but_not_pause(pool: PersonalPool) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    environment = {**pool.environment}
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    tool = os.path.join(os.path.dirname(os.sys.executable), "condor_owner")  # type: ignore[attr-defined]
    done = pool.tool(*command, os.sys.executable, tool, "pause", "1h",
                     environment=environment)  # type: ignore[attr-defined]
    assert done.returncode == 1, done
    assert "does not sit at this machine" in done.stderr, done.stderr
    done = pool.tool(*command, os.sys.executable, tool, "status", environment=environment)  # type: ignore[attr-defined]
    assert "you do not sit at it" in done.stdout, done


def test_every_sensor_is_shown_with_its_accuracy(pool: PersonalPool) -> None:
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs).removeprefix("/dev/")
    os.write(ours, b"x\n")
    os.read(theirs, 10)
    for command in (("condor_owner", "status"), ("condor_who", "-owner"), ("condor_status", "-owner")):
        shown = until(lambda command=command: text if f"tty:{name}" in (text := pool.run(*command)) else None,
                      f"{name} in {command[0]}")
        line = next(each for each in shown.splitlines() if f"tty:{name} " in each)
        assert "1 s" in line, shown
        assert "unknown" not in line, shown
        assert "load" in shown
    os.close(ours)
    os.close(theirs)


def test_the_machine_has_measured_its_speed(pool: PersonalPool) -> None:
    mips, kflops, when = until(
        lambda: words if (words := pool.run("condor_status", "-af", "Mips", "KFlops", "LastBenchmark").split())
        and int(words[2]) > 0 else None, "the benchmarks are done")
    assert int(mips) > 100
    assert int(kflops) > 10_000
    assert int(when) > 0


@pytest.mark.parametrize("words", [("pause", "soon"), ("pause",), ("nap",), ("status", "now"), ("pause", "0h")])
def test_command_lines_that_make_no_sense(pool: PersonalPool, words: tuple[str, ...]) -> None:
    assert pool.tool("condor_owner", *words).returncode == (0 if words == ("pause",) else 2)
    pool.run("condor_owner", "resume")
