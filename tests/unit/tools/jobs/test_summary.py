"""condor_summary: sums by user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

JOBS = """Owner = "ann"
JobStatus = 4
NumShadowStarts = 3
NumCkpts = 2
RemoteUserCpu = 1000.0
RemoteSysCpu = 10.0
RemoteWallClockTime = 2000.0
Leverage = 100.0

Owner = "ann"
JobStatus = 3
RemoteUserCpu = real("NaN")
RemoteWallClockTime = real("INF")
NumCkpts = -5

Owner = "bob"
JobStatus = 4
RemoteUserCpu = 5.0
RemoteWallClockTime = 60.0

"""


def summary(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "condor_actors.tools.jobs.summary", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_users_are_summed_up_the_largest_first(tmp_path: Path) -> None:
    file = tmp_path / "jobs"
    file.write_text(JOBS)
    done = summary("-file", str(file))
    assert done.returncode == 0, done.stderr
    _, ann, bob, total = (line.split() for line in done.stdout.splitlines())
    assert ann == ["ann", "1", "1", "2", "2", "0+00:33:20", "0+00:16:50", "100"]
    assert bob == ["bob", "1", "0", "0", "0", "0+00:01:00", "0+00:00:05", "-"]
    assert total == ["TOTAL", "2", "1", "2", "2", "0+00:34:20", "0+00:16:55", "100"]
    assert "bob" not in summary("-file", str(file), "ann").stdout
    assert "ann" not in summary("-file", str(file), "-constraint", "JobStatus == 4 && NumCkpts is undefined").stdout


def test_what_makes_no_sense_is_said(tmp_path: Path) -> None:
    done = summary("-file", str(tmp_path / "gone"))
    assert (done.returncode, "gone" in done.stderr) == (1, True)
    assert summary("-file", "a", "-since", "3.0").returncode == 1
    assert summary("-constraint", "(((").returncode == 1
