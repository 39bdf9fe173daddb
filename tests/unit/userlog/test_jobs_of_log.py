"""What an event log tells of its jobs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.jobs import q
from condor_actors.userlog.event_text import event_text, event_xml
from condor_actors.userlog.jobs_of_log import UnreadableLog, jobs_of_log

WHEN = 1_700_000_000
STORY: list[tuple[int, int, dict[str, object]]] = [
    (0, 0, {"SubmitHost": "<1.2.3.4:9618?x>"}),
    (0, 1, {"SubmitHost": "<1.2.3.4:9618?x>"}),
    (0, 2, {"SubmitHost": "<1.2.3.4:9618?x>"}),
    (1, 0, {"ExecuteHost": "<1.2.3.5:9618>", "SlotName": "slot1@far"}),
    (6, 0, {"ImageSize": 4096, "MemoryUsage": 4, "ResidentSetSize": 3000}),
    (1, 1, {"ExecuteHost": "<1.2.3.6:9618>", "SlotName": "slot2@far"}),
    (10, 1, {"NumPids": 1}),
    (11, 1, {}),
    (4, 1, {"EvictReason": "the owner is back"}),
    (12, 1, {"HoldReason": "no such file", "HoldReasonCode": 12, "HoldReasonSubCode": 2}),
    (9, 2, {"RemoveReason": "via condor_rm (by user bob)"}),
    (5, 0, {"ExitBySignal": False, "ExitCode": 3, "CumulativeRemoteUserCpu": 90.0, "CumulativeRemoteSysCpu": 5.0}),
]


def written(path: Path, form: Callable[..., str]) -> Path:
    path.write_text("".join(
        form(number, 7, proc, WHEN + 10 * step, ClassAd(facts)) for step, (number, proc, facts) in enumerate(STORY)
    ))
    return path


@pytest.mark.parametrize("form", [event_text, event_xml])
def test_each_job_is_what_its_last_event_left(tmp_path: Path, form: Callable[..., str]) -> None:
    ended, held, removed = jobs_of_log(str(written(tmp_path / "job.log", form)))
    assert [ad.get_int("ProcId") for ad in (ended, held, removed)] == [0, 1, 2]
    assert (ended.get_int("JobStatus"), ended.get_int("ExitCode"), ended.get_bool("ExitBySignal")) == (4, 3, False)
    assert (ended.get_int("QDate"), ended.get_int("CompletionDate")) == (WHEN, WHEN + 110)
    assert (ended.get_float("RemoteWallClockTime"), ended.get_str("LastRemoteHost")) == (80.0, "<1.2.3.5:9618>")
    assert (ended.get_int("MemoryUsage"), ended.get_int("ImageSize"), ended.get_int("NumJobStarts")) == (4, 4096, 1)
    assert (ended.get_float("RemoteUserCpu"), ended.get_float("RemoteSysCpu")) == (90.0, 5.0)
    assert (held.get_int("JobStatus"), held.get_str("HoldReason"), held.get_int("HoldReasonCode")) == (
        5, "no such file", 12)
    assert (held.get_int("HoldReasonSubCode"), held.get_str("LastVacateReason")) == (2, "the owner is back")
    assert (held.get_int("TotalSuspensions"), held.get_int("NumSystemHolds")) == (1, 1)
    assert (removed.get_int("JobStatus"), removed.get_str("RemoveReason")) == (3, "via condor_rm (by user bob)")


def test_a_signal_a_release_and_an_event_of_an_unknown_job(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        event_text(5, 9, 9, WHEN, ClassAd({"ExitCode": 1}))
        + event_text(0, 8, 0, WHEN, ClassAd({}))
        + event_text(12, 8, 0, WHEN, ClassAd({"HoldReason": "wait", "HoldReasonCode": 1}))
        + event_text(13, 8, 0, WHEN, ClassAd({"ReleaseReason": "go on"}))
        + event_text(1, 8, 0, WHEN, ClassAd({"ExecuteHost": "<1.1.1.1:1>"}))
        + event_text(5, 8, 0, WHEN, ClassAd({"ExitBySignal": True, "ExitSignal": 9}))
    )
    (ad,) = jobs_of_log(str(path))
    assert (ad.get_str("ReleaseReason"), ad.get_str("LastHoldReason"), ad.get_int("NumSystemHolds")) == (
        "go on", "wait", 0)
    assert "HoldReason" not in ad
    assert (ad.get_bool("ExitBySignal"), ad.get_int("ExitSignal")) == (True, 9)


def test_condor_q_shows_them_without_a_schedd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    path = written(tmp_path / "job.log", event_text)
    monkeypatch.setattr(sys, "argv", ["condor_q", "-userlog", str(path), "-nobatch", "-constraint", "JobStatus == 5"])
    assert q.main() == 0
    out = capsys.readouterr().out
    assert f"-- Userlog: {path}" in out
    assert [line.split()[5] for line in out.splitlines() if line.startswith("   7.")] == ["H"]
    assert "1 jobs; 0 completed, 0 removed, 0 idle, 0 running, 1 held, 0 suspended" in out
    monkeypatch.setattr(sys, "argv", ["condor_q", "-userlog", str(path), "7.0", "-af", "ExitCode"])
    assert (q.main(), capsys.readouterr().out) == (0, "3\n")


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLog, match=r"Can't open user log: .*none: No such file"):
        jobs_of_log(str(tmp_path / "none"))


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 5000])
@pytest.mark.parametrize("text", [
    "005 ({n}.000.000) 2026-01-02 03:04:07 Job terminated.\n...\n",
    "005 (007.000.000) 2026-01-02 03:04:07 Job terminated.\n\t(1) Normal termination (return value {n})\n"
    "\t\tUsr {n} 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n...\n",
    "006 (007.000.000) 2026-01-02 03:04:07 Image size of job updated: {n}\n...\n",
])
def test_numbers_without_end_are_no_error_of_ours(tmp_path: Path, text: str, digits: str) -> None:
    log = tmp_path / "log"
    log.write_text("000 (007.000.000) 2026-01-02 03:04:05 Job submitted from host: <127.0.0.1:9618>\n...\n"
                   + text.format(n=digits))
    with contextlib.suppress(UnreadableLog):
        jobs_of_log(str(log))
