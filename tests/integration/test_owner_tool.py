"""A desktop's owner sees what the pool does, and pauses it; real pool, real jobs, a real terminal."""

from __future__ import annotations

import json
import os
import pty
import pwd
import sys
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
DESKTOP_OWNERS = daemon
"""
"""``daemon`` is an ordinary user that every machine has."""


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
    evicted = (pool.work / "job.log").read_text().count("004 (")
    pool.run("condor_owner", "pause", "1s", "-kill")
    until(lambda: (pool.work / "job.log").read_text().count("004 (") > evicted, "one more 004 in the log")
    pool.until_status(f"{cluster}.0", 2)
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)


def test_who_does_not_sit_there_may_look_but_not_pause(pool: PersonalPool) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be someone else")
    environment = {**pool.environment}
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    tool = os.path.join(os.path.dirname(sys.executable), "condor_owner")
    done = pool.tool(*command, sys.executable, tool, "pause", "1h",
                     environment=environment)
    assert done.returncode == 1, done
    assert "does not sit at this machine" in done.stderr, done.stderr
    done = pool.tool(*command, sys.executable, tool, "status", environment=environment)
    assert "you do not sit at it" in done.stdout, done


def test_an_ordinary_user_whose_desktop_it_is_pauses_it(pool: PersonalPool) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be someone else")
    uid, gid = pwd.getpwnam("daemon")[2:4]
    tool = os.path.join(os.path.dirname(sys.executable), "condor_owner")
    command = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", sys.executable, tool]
    assert "is paused on" in pool.run(*command, "pause", "1h")
    until(lambda: pool.run("condor_status", "-af", "State").split() == ["Owner"] or None, "the machine is its owner's")
    shown = pool.run(*command, "status")
    assert "paused until" in shown
    assert "daemon" in shown
    pool.run(*command, "resume")
    until(lambda: pool.run("condor_status", "-af", "State").split() == ["Unclaimed"] or None, "the pool's again")


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


def test_a_policy_is_tried_on_this_machine_and_on_a_day(pool: PersonalPool) -> None:
    shown = pool.run("condor_policy", "check")
    assert shown.startswith(pool.run("condor_status", "-af", "Name").strip())
    assert "START is true" in shown
    pool.run("condor_policy", "record", "today", "-for", "1s", "-every", "1")
    readings = [json.loads(line) for line in (pool.work / "today").read_text().splitlines()]
    assert readings
    assert all("OwnerLoad" in each for each in readings)
    assert "Jobs were suspended 0 times" in pool.run("condor_policy", "check", "-day", "today")

    began_s = 1_700_000_000
    quiet = [{"t": began_s + 60 * minute, "KeyboardIdle": 3600 + 60 * minute, "OwnerLoad": 0.0} for minute in range(10)]
    there = [{"t": began_s + 600 + 30 * half, "KeyboardIdle": 1, "OwnerLoad": 0.1} for half in range(60)]
    (pool.work / "day").write_text("".join(f"{json.dumps(each)}\n" for each in quiet + there))
    lines = pool.run("condor_policy", "check", "use POLICY : 1989", "-day", "day").splitlines()
    moves = [line for line in lines if " -> " in line]
    frozen = next(line for line in moves if line.split()[3:4] == ["Claimed/Suspended"])
    assert "SUSPEND is true" in frozen
    assert "KeyboardIdle = 1" in frozen
    gone = next(line for line in moves if "Preempting/" in line)
    assert "Preempting/Killing" in gone, "nothing is written while the owner is there"
    assert any("had to go 1 times" in line for line in lines)


@pytest.mark.parametrize(("words", "status", "said"), [
    (("check", "SUSPEND = KeyboardIdle <"), 1, "SUSPEND"),
    (("check", "no-such-file"), 1, "no-such-file"),
    (("check", "-day", "broken"), 1, "line 1 is no reading"),
    (("check", "-universe", "parallel-ish"), 2, "-universe is one of"),
    (("record",), 2, "Usage"),
    (("dream",), 2, "Usage"),
])
def test_policies_that_cannot_be_tried(pool: PersonalPool, words: tuple[str, ...], status: int, said: str) -> None:
    (pool.work / "broken").write_text("yesterday\n")
    done = pool.tool("condor_policy", *words)
    assert (done.returncode, said in done.stderr) == (status, True), done


@pytest.mark.parametrize("words", [("pause", "soon"), ("pause",), ("nap",), ("status", "now"), ("pause", "0h")])
def test_command_lines_that_make_no_sense(pool: PersonalPool, words: tuple[str, ...]) -> None:
    assert pool.tool("condor_owner", *words).returncode == (0 if words == ("pause",) else 2)
    pool.run("condor_owner", "resume")
