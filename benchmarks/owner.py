"""What the owner of a machine notices: how soon a job stands still after a key press, and what jobs cost the owner.

A real personal pool, a real terminal.  The job writes the time into a file without pause, so the last time in it says
when it stopped: delay = that time less the moment of the key press.  The owner's own program is a loop that counts; its
lost time is what it counts less while jobs come and go (frozen and thawed again and again) than with the pool idle.

python benchmarks/owner.py [ROUNDS]
"""

from __future__ import annotations

import mmap
import os
import pty
import statistics
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.pool_fixture import PersonalPool, fresh_folder, until  # noqa: E402

PYTHON = "/usr/bin/python3"
"""One that every user may execute; jobs run as nobody."""

POLICY = """
POLLING_INTERVAL = 0.5
START = True
WANT_SUSPEND = True
SUSPEND = KeyboardIdle < 2
CONTINUE = KeyboardIdle > 2
MaxJobRetirementTime = 0
LOWER = TARGET.Low =?= True
"""
JOB = """#!{python}
import mmap, struct, time
with open({path!r}, "r+b") as file:
    page = mmap.mmap(file.fileno(), 8)
    while True:
        page[:8] = struct.pack("d", time.monotonic())
"""


def count_for(seconds: float) -> float:
    """How often a loop goes round in a second of the owner's processor."""
    rounds = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rounds += 1
    return rounds / seconds


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=os.cpu_count() or 1, config=POLICY)
        try:
            stamp = pool.work / "stamp"
            stamp.write_bytes(b"\0" * 8)
            stamp.chmod(0o666)
            program = pool.work / "busy.py"
            program.write_text(JOB.format(python=PYTHON, path=str(stamp)))
            program.chmod(0o755)
            delays = measure_delays(pool, program, stamp, rounds)
            print(f"key press to frozen, {rounds} times: median {statistics.median(delays):.1f} ms, "
                  f"most {max(delays):.1f} ms")
            print("the owner's loop, lost while a job comes and goes: {:.2%} (run to run: {:.2%})".format(
                *measure_loss(pool, program)))
        finally:
            pool.stop()


def measure_delays(pool: PersonalPool, program: Path, stamp: Path, rounds: int) -> list[float]:
    """Milliseconds from a key press to the last sign of life of the job."""
    cluster = pool.submit(f"executable = {program}\nshould_transfer_files = no\nqueue\n")
    ours, theirs = pty.openpty()
    delays = []
    with open(stamp, "r+b") as file:
        page = mmap.mmap(file.fileno(), 8)

        def last_s() -> float:
            return float(struct.unpack("d", page[:8])[0])

        for _ in range(rounds):
            until(lambda: time.monotonic() - last_s() < 0.2 or None, "the job runs")
            time.sleep(1.1)
            pressed_s = time.monotonic()
            os.write(ours, b"x\n")
            os.read(theirs, 10)
            until(lambda: time.monotonic() - last_s() > 0.9 or None, "the job stands still")
            delays.append(max(0.0, 1000.0 * (last_s() - pressed_s)))
        page.close()
    os.close(ours)
    os.close(theirs)
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)
    return delays


def measure_loss(pool: PersonalPool, program: Path) -> tuple[float, float]:
    """The share of its rounds that the owner's loop loses, and how much it differs by itself."""
    alone, beside = [], []
    for _ in range(5):
        alone.append(count_for(3.0))
        cluster = pool.submit(f"executable = {program}\nshould_transfer_files = no\n+Low = True\n"
                              f"queue {os.cpu_count()}\n")
        until(lambda cluster=cluster: pool.status_of(f"{cluster}.0") in (2, 7) or None, "it runs")
        beside.append(count_for(3.0))
        pool.run("condor_rm", str(cluster))
        until(lambda: not pool.scratch() or None, "it has gone")
    best = statistics.median(alone)
    return 1.0 - statistics.median(beside) / best, (max(alone) - min(alone)) / best


if __name__ == "__main__":
    main()
