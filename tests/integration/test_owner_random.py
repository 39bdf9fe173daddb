"""An owner who comes and goes at random moments: every job ends with the right output, and nothing of it remains.

Real processes, a console of the test's own, a seed that a failure names.  Jobs save their work after each step, so an
eviction costs one step at most; each step leaves a process behind that nobody waits for.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

POLICY = """
POLLING_INTERVAL = 0.3
OWNER_SENSORS =
SLOTS_CONNECTED_TO_CONSOLE = 1
START = (ConsoleIdle =?= undefined || ConsoleIdle > 0)
WANT_SUSPEND = True
SUSPEND = ConsoleIdle < 1
CONTINUE = ConsoleIdle >= 1
PREEMPT = Activity == "Suspended" && (time() - EnteredCurrentActivity) > 2
WANT_VACATE = (JobId ?: "") != "" && SlotID == 1
MACHINEMAXVACATETIME = 2
KILLING_TIMEOUT = 2
"""
EVENT = re.compile(r"\d{3} \(")
STEPS = 6
JOB = f"""#!/bin/sh
step=$(($(cat step 2>/dev/null || echo 0) + 1))
sleep 0.4
echo "step $step"
echo $step > step
setsid sleep 4321 &
[ $step -ge {STEPS} ] && exit 0
exit 85
"""


@pytest.fixture
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        console = folder / "console"
        console.touch()
        os.utime(console, (1, 1))
        made = PersonalPool(folder, slots=2, config=f"{POLICY}CONSOLE_DEVICES = ..{console}\n")
        yield made
        made.stop()


def press_a_key(pool: PersonalPool) -> None:
    """At the console: a device whose times say when it was used last."""
    os.utime(pool.folder / "console")


def come_and_go(pool: PersonalPool, seed: int, visits: int) -> None:
    """Type at random moments, now and then for so long that jobs have to go, while jobs run."""
    random = Random(seed)
    program = pool.work / "steps.sh"
    program.write_text(JOB)
    program.chmod(0o755)
    jobs = max(4, visits // 4)
    cluster = pool.submit("executable = steps.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = step\n"
                          "should_transfer_files = yes\noutput = out.$(Process)\ntransfer_output_remaps = "
                          f"\"step=step.$(Process)\"\nlog = random.log\nqueue {jobs}\n")
    for _ in range(visits):
        time.sleep(random.uniform(0.0, 2.5))
        stays_s = random.choice((0.0, 0.0, 1.0, 4.0))
        end = time.monotonic() + stays_s
        while True:
            press_a_key(pool)
            if time.monotonic() >= end:
                break
            time.sleep(0.4)
    pool.wait("random.log", 600.0 if visits > 50 else 150.0)
    expected = [f"step {number}" for number in range(1, STEPS + 1)]
    for number in range(jobs):
        lines = (pool.work / f"out.{number}").read_text().splitlines()
        assert [line for n, line in enumerate(lines) if line not in lines[:n]] == expected, (seed, number, lines)
        assert (pool.work / f"step.{number}").read_text() == f"{STEPS}\n"
    assert len(pool.history(str(cluster))) == jobs
    log = (pool.work / "random.log").read_text()
    assert log.count("\n005 (") + log.startswith("005 (") == jobs, "each completion is recorded once"
    until(lambda: not pool.scratch() or None, "no file of a job remains")
    until(lambda: not any(word in command for command in pool.processes().values() for word in (
        "steps.sh", "condor_exec", "sleep 4321")) or None, "no process of a job remains")
    until(lambda: not groups(pool) or None, "no control group remains")


def pause_and_go_on(pool: PersonalPool) -> None:
    """Type while a job runs in the slot that the console counts for, until it was suspended and went on."""
    cluster = pool.submit("executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = yes\n"
                          "arguments = \"-c 'exec sleep 1000'\"\nrequirements = SlotID == 1\nlog = paused.log\nqueue\n")
    log = pool.work / "paused.log"

    def went_on() -> bool:
        events = [line[:3] for line in log.read_text().splitlines() if EVENT.match(line)]
        if events[-1] == "001":  # it runs; one that was evicted meanwhile starts again
            press_a_key(pool)
        return "011" in events

    until(went_on, lambda: f"the job goes on: {log.read_text()}")
    assert "\n010 (" in log.read_text()
    pool.run("condor_rm", str(cluster))
    pool.wait("paused.log")


def groups(pool: PersonalPool) -> list[Path]:
    """The control groups of this pool's claims, in whatever hierarchy."""
    name = str(pool.dir / "execute").strip("/").replace("/", "_")
    return [path for base in Path("/sys/fs/cgroup").glob(f"**/{name}") for path in base.iterdir() if path.is_dir()]


def test_an_owner_at_random_moments(pool: PersonalPool) -> None:
    pause_and_go_on(pool)
    come_and_go(pool, seed=1988, visits=8)


@pytest.mark.soak
def test_an_owner_two_hundred_times(pool: PersonalPool) -> None:
    come_and_go(pool, seed=int(time.time()), visits=200)
