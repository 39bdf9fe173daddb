"""What a program of the site passes on may be anyone's words: it prints without end, says what is the startd's to say,
leaves processes behind and hangs.  The machine is shown with what other programs say, and runs jobs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.proc_files import command_lines
from tests.pool_fixture import PersonalPool, fresh_folder, until

LEFT = f"4322.{os.getpid()}"
"""Seconds of a sleep that no other test has begun."""
PROGRAMS = {
    "flood": "exec cat /dev/zero",
    "lines": "exec yes 'A = 1'",
    "ads": 'i=0; while :; do i=$((i+1)); echo "B$i = $i"; echo "- tag$i update:true"; done',
    "errors": "exec cat /dev/zero >&2",
    "own": "printf '%s = \"theirs\"\\n' MyAddress ClaimId Activity State RemoteOwner Machine JobConfinement; "
           "printf '%s = 999\\n' Cpus TotalCpus Memory SlotWeight; echo 'Own = 1'; echo '- update:true'",
    "leaves": f"(setsid sleep {LEFT} >/dev/null 2>&1 &); echo 'Left = 1'",
    "hangs": f"for i in 1 2 3; do (exit 3) & done; echo 'Hangs = 1'; echo '- update:true'; exec sleep {LEFT}9"}
MOST_MIB = 400


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        place = folder / "site"
        place.mkdir()
        lines = [f"STARTD_CRON_JOBLIST = {' '.join(PROGRAMS)}", "STARTD_CRON_MAX_JOB_LOAD = 10"]
        for name, text in PROGRAMS.items():
            (place / name).write_text(f"#!/bin/sh\n{text}\n")
            (place / name).chmod(0o755)
            lines += [f"STARTD_CRON_{name.upper()}_EXECUTABLE = {place}/{name}",
                      f"STARTD_CRON_{name.upper()}_PERIOD = 2s"]
        made = PersonalPool(folder, slots=2, config="\n".join(lines) + "\n")
        yield made
        made.stop()


def said(pool: PersonalPool, *names: str) -> list[str]:
    return pool.run("condor_status", "-af:,", *names).splitlines()


def left(ending: str = "") -> int:
    wanted = f"sleep\0{LEFT}{ending}\0".encode()
    return sum(line == wanted for _, line in command_lines())


def test_others_are_heard_beside_those_that_print_without_end(pool: PersonalPool) -> None:
    until(lambda: said(pool, "Own", "Hangs") == ["1, 1"] * 2, lambda: str(said(pool, "Own", "Hangs", "Left")))


def test_none_says_what_is_the_startds_to_say(pool: PersonalPool) -> None:
    until(lambda: said(pool, "Own") == ["1"] * 2, "its ad")
    ads = "\n".join(said(pool, "MyAddress", "ClaimId", "Activity", "State", "RemoteOwner", "Machine", "JobConfinement",
                         "Cpus", "TotalCpus", "Memory"))
    assert "theirs" not in ads
    assert "999" not in ads


def test_no_run_leaves_a_process(pool: PersonalPool) -> None:
    """One more at each run would be, after a day, all that the machine may have."""
    until(lambda: said(pool, "Left") == ["1"] * 2, "a run that has ended")
    until(lambda: left() == 0, "the end of what it has left")


def test_the_startd_is_small_and_runs_jobs(pool: PersonalPool) -> None:
    pool.submit("executable = /bin/true\ntransfer_executable = false\nlog = job.log\nqueue\n")
    pool.wait("job.log", 60)
    pid = int((pool.dir / "run" / "startd.address").read_text().split()[-1])
    status = Path(f"/proc/{pid}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < MOST_MIB << 10
    zombies = [each for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
               if Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[0] == "Z"]
    assert zombies == []


def test_nothing_outlives_the_pool(pool: PersonalPool) -> None:
    until(lambda: left("9") > 0, "the one that hangs")
    pool.run("condor_off", "-startd")
    until(lambda: left("9") + left() == 0, "the end of all of them")
