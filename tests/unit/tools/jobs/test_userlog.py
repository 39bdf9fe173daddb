"""condor_userlog: the times for which machines were given to jobs, and what of them counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def event(number: int, job: str, clock: str, first: str, *rows: str) -> str:
    cluster, proc = map(int, job.split("."))
    return "\n".join((f"{number:03} ({cluster:03}.{proc:03}.000) 2026-11-21 {clock}:00 {first}", *rows, "...\n"))


def begins(job: str, clock: str, host: str = "<10.0.0.1:9618?addrs=x>", slot: str = "slot1@west") -> str:
    return event(1, job, clock, f"Job executing on host: {host}", f"\tSlotName: {slot}")


def usage(hours: int, minutes: int) -> str:
    return f"\t\tUsr 0 {hours:02}:{minutes:02}:00, Sys 0 00:00:00  -  Run Remote Usage"


def ends(job: str, clock: str, hours: int, minutes: int) -> str:
    return event(5, job, clock, "Job terminated.", "\t(1) Normal termination (return value 0)", usage(hours, minutes))


def evicted(job: str, clock: str, *, saved: bool = False) -> str:
    return event(4, job, clock, "Job was evicted.",
                 "\t(1) Job was checkpointed." if saved else "\t(0) Job was not checkpointed.", usage(0, 30))


LOG = (
    begins("1.0", "08:00") + ends("1.0", "10:00", 1, 30)
    + begins("2.0", "08:00") + event(3, "2.0", "09:00", "Job was checkpointed.", usage(0, 45)) + evicted("2.0", "10:00")
    + begins("2.0", "11:00", "<[fd00::7]:9618>", "slot1@east")
    + begins("2.0", "11:30", "<[fd00::7]:9618>", "slot1@east")
    + evicted("2.0", "12:00", saved=True)
    + begins("2.1", "08:00") + event(7, "2.1", "08:20", "Shadow exception!")
    + begins("2.2", "08:00") + event(12, "2.2", "08:10", "Job was held.")
    + begins("2.3", "08:00") + event(9, "2.3", "08:05", "Job was aborted.")
    + begins("2.4", "08:00")
)


def userlog(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "condor_actors.tools.jobs.userlog", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "a.log"
    path.write_text(LOG)
    return str(path)


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def test_each_allocation_has_its_wall_good_and_processor_time(log: str) -> None:
    done = userlog("-raw", log)
    assert (done.returncode, done.stderr) == (0, "")
    assert lines(done.stdout) == [
        ["1.0", "10.0.0.1", "11/21", "08:00", "11/21", "10:00", "0+02:00", "0+02:00", "0+01:30"],
        ["2.0", "10.0.0.1", "11/21", "08:00", "11/21", "10:00", "0+02:00", "0+01:00", "0+00:45"],
        ["2.0", "fd00::7", "11/21", "11:00", "11/21", "12:00", "0+01:00", "0+01:00", "0+00:30"],
        ["2.1", "10.0.0.1", "11/21", "08:00", "11/21", "08:20", "0+00:20", "0+00:00", "0+00:00"],
        ["2.2", "10.0.0.1", "11/21", "08:00", "11/21", "08:10", "0+00:10", "0+00:00", "0+00:00"],
        ["2.3", "10.0.0.1", "11/21", "08:00", "11/21", "08:05", "0+00:05", "0+00:00", "0+00:00"],
    ]


def test_the_sums_are_by_machine_and_by_job(log: str) -> None:
    rows = {row[0]: row[1:] for row in lines(userlog("-total", "-hostname", log).stdout)}
    assert set(rows) == {"Host/Job", "west", "east", "1.0", "2.0", "2.1", "2.2", "2.3", "Total"}
    assert rows["2.0"] == ["0+03:00", "0+02:00", "0+01:15", "0+01:30", "0+01:00", "66.7%", "62.5%"]
    assert rows["east"] == ["0+01:00", "0+01:00", "0+00:30", "0+01:00", "0+00:00", "100.0%", "50.0%"]
    assert rows["2.1"][-2:] == ["0.0%", "0.0%"]
    assert rows["Total"] == ["0+05:35", "0+04:00", "0+02:45", "0+00:55", "0+00:23", "71.6%", "68.8%"]


@pytest.mark.parametrize(("options", "jobs"), [
    (("-j", "1"), ["1.0"]), (("-j", "2.0"), ["2.0", "2.0"]), (("-evict",), ["2.0", "2.0"]),
    (("-j", "1", "-evict"), []), (("-j", "1", "-evict", "-all"), ["1.0", "2.0", "2.0", "2.1", "2.2", "2.3"])])
def test_some_of_them_may_be_chosen(log: str, options: tuple[str, ...], jobs: list[str]) -> None:
    assert [row[0] for row in lines(userlog("-raw", *options, log).stdout)] == jobs


def test_what_is_no_event_log_is_said_and_the_others_are_read(log: str, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello\n")
    done = userlog("-raw", str(tmp_path / "notes"), str(tmp_path / "gone"), log)
    assert done.returncode == 1
    assert "no event log" in done.stderr
    assert "gone: No such file or directory" in done.stderr
    assert len(lines(done.stdout)) == 6


@pytest.mark.parametrize("words", [(), ("-j", "x", "a.log"), ("-total", "-raw", "a.log")])
def test_a_command_line_that_makes_no_sense_is_refused(words: tuple[str, ...]) -> None:
    done = userlog(*words)
    assert done.returncode == 1
    assert done.stderr


def test_dates_that_are_none_and_clocks_that_were_set_back_count_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    set_back = begins("1.0", "08:00") + ends("1.0", "07:00", 0, 1)
    path.write_text(set_back + begins("1.1", "88:00") + ends("1.1", "09:00", 0, 1))
    done = userlog("-raw", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
