"""The wall clock of a living pool is set, forwards and back: no job ends, none waits for the clock to come back.

As far as certificates go: a machine's is not good before a day ahead of its making, nor after its end.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest

from tests.harness.jumping_clock import JumpingClock
from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, until

DAY_S = 86_400
DURATIONS = ("WallClockTime", "WallClockCheckpoint", "CommittedTime", "SuspensionTime", "TotalTimeClaimedBusy",
             "TotalTimeUnclaimedIdle", "TotalTimeClaimedIdle", "KeyboardIdle", "JobDuration",
             "WeightedAccumulatedUsage")
"""How the attributes end that say how long something took."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[JumpingClock]:
    with fresh_folder() as folder:
        made = JumpingClock(folder)
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def pool(clock: JumpingClock) -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        try:
            yield made
        finally:
            clock.jump(0)
            made.stop()


@pytest.mark.parametrize("jumps", [(DAY_S, 0), (-DAY_S // 2, 7 * DAY_S), (3600, -3600, 0)])
def test_jobs_run_through_jumps_of_the_clock(pool: PersonalPool, clock: JumpingClock, jumps: tuple[int, ...]) -> None:
    pipe = pool.work / "go"
    os.mkfifo(pipe)
    open_to_jobs(pipe)
    (pool.work / "wait.sh").write_text(f"#!/bin/sh\nread line < {pipe}\nexit $line\n")
    (pool.work / "wait.sh").chmod(0o755)
    cluster = pool.submit("executable = wait.sh\nlog = wait.log\nqueue\n")
    until(lambda: "001 (" in (pool.work / "wait.log").read_text(), "the job's start")
    seen = float(pool.run("python", "-c", "import time; print(time.time())"))
    assert abs(seen - time.time()) < DAY_S / 2
    for number, seconds in enumerate(jumps):
        clock.jump(seconds)
        pool.submit(f"executable = /bin/true\nlog = short{number}.log\nqueue\n")
        pool.wait(f"short{number}.log")
        pool.run("condor_status", "-total")
        assert pool.status_of(f"{cluster}.0") == 2
    pipe.write_text("5\n")
    pool.wait("wait.log")
    (job,) = pool.history(str(cluster))
    assert (job["ExitCode"], job["NumJobStarts"]) == (5, 1)
    assert 0 <= job["RemoteWallClockTime"] < DAY_S
    assert "Traceback" not in pool.logs(10_000)
    ads = [*pool.history(), *json.loads(pool.run("condor_status", "-any", "-json"))]
    assert [(name, value) for ad in ads for name, value in ad.items() if name.endswith(DURATIONS) and value < 0] == []
