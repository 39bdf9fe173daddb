"""condor_wait at a terminal: what the jobs asked for and did not use."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.userlog.allocations import cpu_s_of

END = """005 (001.{proc:03}.000) 2026-11-21 09:10:00 Job terminated.
\t(1) Normal termination (return value {status})
\t\tUsr 0 00:09:50, Sys 0 00:00:05  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\tPartitionable Resources :    Usage  Request Allocated
\t   Cpus                 :     0.97        4         4
\t   Memory (MB)          :      900     8192      8192
...
"""


def said(log: Path) -> tuple[str, str]:
    """Standard output, and what the terminal shows."""
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "condor_actors.tools.jobs.wait", "-wait", "60", str(log)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=120, check=True)
        os.close(theirs)
        theirs = -1
        try:
            shown = os.read(ours, 65536).decode()
        except OSError:  # nothing was written
            shown = ""
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)
    return done.stdout, shown.replace("\r\n", "\n")


@pytest.mark.parametrize(("jobs", "status", "expected"), [
    (1, 0, "It asked for 8 GB and used 900 MB, for 4 processors and kept 1.0 busy; request_memory = 1.2GB and "
           "request_cpus = 1 would have let up to 4 times as many run at a time.\n"),
    (2, 0, "They asked for 8 GB and used 900 MB, for 4 processors and kept 1.0 busy at most; request_memory = 1.2GB "
           "and request_cpus = 1 would have let up to 4 times as many run at a time.\n"),
    (1, 1, ""),
])
def test_it_is_said_to_a_person(tmp_path: Path, jobs: int, status: int, expected: str) -> None:
    log = tmp_path / "a.log"
    begun = "".join(f"000 (001.{proc:03}.000) 2026-11-21 09:00:00 Job submitted\n...\n" for proc in range(jobs))
    log.write_text(begun + "".join(END.format(proc=proc, status=status) for proc in range(jobs)))
    assert said(log) == ("All jobs done.\n", expected)


@pytest.mark.parametrize(("usage", "seconds"), [
    ("Usr 0 00:09:50, Sys 0 00:00:05", 595.0), ("Usr 1 01:01:01, Sys 0 00:00:00", 90061.0), ("", 0.0), ("Usr x", 0.0),
    ("Usr 99999999999999999999 00:00:00, Sys 0 00:00:00", 0.0),
])
def test_processor_time_is_read(usage: str, seconds: float) -> None:
    assert cpu_s_of(usage) == seconds
