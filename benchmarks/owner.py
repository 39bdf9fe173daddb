"""What the owner of a machine notices: how soon a job stands still after a key press, and what jobs cost the owner.

A real personal pool, a real terminal, real jobs on every processor.

*Reaction.*  Each job writes the time into a file without pause, and when it finds that it stood still for half the
owner's absence, since when and until when: delay = the former less the moment of the key press, of the slowest job.
The presses come at random phases of the startd's own clock.

*Slowdown.*  The owner's program is a loop that counts, run for some seconds from the key press on, again and again in
three ways that follow each other: with all jobs held (``alone``), with jobs that ran until the key press and are frozen
by it, and with jobs that are only lowered (LOWER).  Each is compared with the ``alone`` beside it, so that slow changes
of the machine cancel out: the median of the pairs' losses, between two order statistics that hold it with the
probability shown.  Wall time is what the owner feels, but it is worth something only where the loop alone keeps its
pace (``spread``).  What the kernel says of the loop is exact: for how long it could have run and had to wait for a
processor (the second number of /proc/self/schedstat), as a share of the time; whatever runs on the machine counts, the
owner's own tools too.  Beside it stands what the jobs and the pool's daemons took of the processors meanwhile.

python benchmarks/owner.py [--presses 15] [--rounds 6] [--seconds 4]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import mmap
import os
import pty
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.pool_fixture import PersonalPool, fresh_folder, until  # noqa: E402

PYTHON = "/usr/bin/python3"
"""One that every user may execute; jobs run as nobody."""

CPUS = os.cpu_count() or 1
GROUPS = Path("/sys/fs/cgroup")
POLL_S = 0.5
AWAY_S = 2.0
GROUP = "condor-benchmark"
"""Apart from other pools of the machine: a group is idle only where all that runs in those above it is."""

POLICY = f"""
POLLING_INTERVAL = {POLL_S}
START = True
WANT_SUSPEND = True
SUSPEND = KeyboardIdle < {AWAY_S} && TARGET.Low =!= True
CONTINUE = KeyboardIdle >= {AWAY_S}
LOWER = KeyboardIdle < {AWAY_S} && TARGET.Low =?= True
MaxJobRetirementTime = 0
MachineMaxVacateTime = 1
SLOTS_CONNECTED_TO_KEYBOARD = {CPUS}
BASE_CGROUP = {GROUP}
"""
JOB = """#!{python}
import mmap, struct, sys, time
with open(sys.argv[1], "r+b") as file:
    page = mmap.mmap(file.fileno(), 24)
    before = time.monotonic()
    while True:
        now = time.monotonic()
        if now - before > {gap_s}:
            page[8:24] = struct.pack("dd", before, now)
        page[:8] = struct.pack("d", now)
        before = now
"""
ALONE, FROZEN, LOWERED = "alone", "frozen", "lowered"


def main() -> None:
    """Measure and print."""
    if sys.argv[1:] == ["--owner"]:
        return work()
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--presses", type=int, default=15, help="key presses of the reaction")
    words.add_argument("--rounds", type=int, default=6, help="pairs of the slowdown, six at least")
    words.add_argument("--seconds", type=float, default=4.0, help="of the owner's work at a time")
    asked = words.parse_args()
    print(f"{CPUS} processors, load {os.getloadavg()[0]:.2f} at the beginning")
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=CPUS, config=POLICY)
        try:
            core = Desk(pool)
            delays = core.delays(asked.presses)
            low, middle, high, certain = between(delays)
            print(f"key press to frozen, {len(delays)} times: median {middle:.1f} ms ({certain:.0%}: {low:.1f} to "
                  f"{high:.1f}), nine of ten within {sorted(delays)[math.ceil(0.9 * len(delays)) - 1]:.1f} ms, "
                  f"most {max(delays):.1f} ms")
            tell_slowdown(core.slowdown(asked.rounds, asked.seconds))
            core.close()
        finally:
            pool.stop()
            for path in (*GROUPS.glob(f"*/{GROUP}"), *GROUPS.glob(GROUP)):
                path.rmdir()
    return None


def tell_slowdown(rounds: list[dict[str, dict[str, float]]]) -> None:
    """Print what :meth:`Desk.slowdown` found."""
    alone = [each[ALONE]["rate"] for each in rounds]
    spread = statistics.pstdev(alone) / statistics.mean(alone)
    for way in (FROZEN, LOWERED):
        low, middle, high, certain = between([1.0 - each[way]["rate"] / each[ALONE]["rate"] for each in rounds])
        taken = statistics.median(each[way]["taken"] for each in rounds)
        print(f"jobs {way}: by wall time the owner's loop loses {middle:.2%} ({certain:.0%}: {low:.2%} to {high:.2%}), "
              f"{_verdict(low, high)}; jobs and daemons take {taken:.2%} of the machine meanwhile")
        low, middle, high, certain = between([each[way]["waited"] for each in rounds])
        print(f"jobs {way}: it waits for a processor {middle:.2%} of the time ({certain:.0%}: {low:.2%} to {high:.2%})"
              f", {_verdict(low, high)}")
    idle, waited = (statistics.median(each[ALONE][what] for each in rounds) for what in ("taken", "waited"))
    print(f"alone: spread {spread:.2%}, it waits {waited:.2%} of the time, daemons take {idle:.2%} of the machine "
          f"({len(rounds)} rounds)")


def _verdict(low: float, high: float) -> str:
    return "under 1 %" if high < 0.01 else "over 1 %" if low > 0.01 else "not decided"


def between(values: Sequence[float]) -> tuple[float, float, float, float]:
    """The median between two order statistics, and the probability with which they hold that of the population."""
    ordered, count = sorted(values), len(values)
    inner = 0
    while inner + 1 < count / 2 and _certainty(count, inner + 1) >= 0.95:
        inner += 1
    return ordered[inner], statistics.median(ordered), ordered[count - 1 - inner], _certainty(count, inner)


def _certainty(count: int, inner: int) -> float:
    """That the median lies between the values number ``inner`` from below and from above: binomial, one half."""
    outside = sum(math.comb(count, number) for number in range(inner + 1))
    return max(0.0, 1.0 - 2.0 * outside / 2.0**count)


class Desk:
    """The owner's desk: a terminal, a program in the foreground, and the pool's jobs beside it."""

    def __init__(self, pool: PersonalPool) -> None:
        self.pool = pool
        self._ours, self._theirs = pty.openpty()
        self._pressed_s = time.monotonic()
        self._program = pool.work / "busy.py"
        self._program.write_text(JOB.format(python=PYTHON, gap_s=AWAY_S / 2))
        self._program.chmod(0o755)
        self._owner = subprocess.Popen([sys.executable, __file__, "--owner"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self._stamps: dict[str, list[mmap.mmap]] = {}
        self.clusters = {FROZEN: self._submit(FROZEN, ""), LOWERED: self._submit(LOWERED, "+Low = True\n")}

    def _submit(self, way: str, more: str) -> int:
        """A job for each processor, held."""
        for number in range(CPUS):
            stamp = self.pool.work / f"{way}.{number}"
            stamp.write_bytes(b"\0" * 24)
            stamp.chmod(0o666)
            with open(stamp, "r+b") as file:
                self._stamps.setdefault(way, []).append(mmap.mmap(file.fileno(), 24))
        return self.pool.submit(f"executable = {self._program}\narguments = {self.pool.work}/{way}.$(Process)\n"
                                f"should_transfer_files = no\nhold = true\nlog = {way}.log\n{more}queue {CPUS}\n")

    def _stood_still_s(self) -> float | None:
        """When the last of the jobs stopped after the last key press; None: they have not gone on yet."""
        gaps = [struct.unpack("dd", page[8:24]) for page in self._stamps[FROZEN]]
        return max(since_s for since_s, _ in gaps) if all(until_s > self._pressed_s for _, until_s in gaps) else None

    def _running(self, way: str) -> bool:
        """Whether all of them run, and no word of an earlier key is on its way to them."""
        now_s = time.monotonic()
        if now_s - self._pressed_s < AWAY_S + 2 * POLL_S:
            return False
        return all(now_s - float(struct.unpack("d", page[:8])[0]) < POLL_S / 2 for page in self._stamps[way])

    def press(self) -> None:
        """A key."""
        self._pressed_s = time.monotonic()
        os.write(self._ours, b"x\n")
        os.read(self._theirs, 10)

    @contextlib.contextmanager
    def jobs(self, way: str) -> Iterator[None]:
        """With the jobs of one way running, until they are held again."""
        if way == ALONE:
            yield
            return
        cluster = str(self.clusters[way])
        self.pool.run("condor_release", cluster)
        until(lambda: self._running(way) or None, "the jobs run")
        yield
        self.pool.run("condor_hold", cluster)
        until(lambda: not self.pool.scratch() or None, "they have gone")

    def delays(self, presses: int) -> list[float]:
        """Milliseconds from a key press to the last sign of life of the jobs."""
        random, found = Random(1988), []
        with self.jobs(FROZEN):
            for _ in range(presses):
                until(lambda: self._running(FROZEN) or None, "the jobs run")
                phase_s = time.monotonic() + random.uniform(0.0, POLL_S)
                while time.monotonic() < phase_s:
                    time.sleep(0.001)
                self.press()
                stopped_s = until(self._stood_still_s, "they stood still, and go on")
                found.append(max(0.0, 1000.0 * (stopped_s - self._pressed_s)))
        return found

    def slowdown(self, rounds: int, seconds: float) -> list[dict[str, dict[str, float]]]:
        """For each round and way: ``rate`` of the owner's loop per second, the share of the time that it
        ``waited``, the share of the machine that was ``taken``."""
        found = []
        for number in range(max(6, rounds)):
            ways = [ALONE, FROZEN, LOWERED]
            ways = ways[number % 3:] + ways[:number % 3]
            round_: dict[str, dict[str, float]] = {}
            for way in ways:
                with self.jobs(way):
                    round_[way] = self._work(seconds)
            found.append(round_)
        return found

    def _work(self, seconds: float) -> dict[str, float]:
        """The owner comes and works, with a key press every half second."""
        assert self._owner.stdin is not None
        assert self._owner.stdout is not None
        over = threading.Event()

        def type_on() -> None:
            while not over.wait(0.5):
                self.press()

        typing = threading.Thread(target=type_on)
        before_s = self._pool_cpu_s()
        self.press()
        typing.start()
        self._owner.stdin.write(f"{seconds}\n")
        self._owner.stdin.flush()
        done: dict[str, float] = json.loads(self._owner.stdout.readline())
        taken_s = self._pool_cpu_s() - before_s
        over.set()
        typing.join()
        return {"rate": done["rounds"] / done["wall_s"], "waited": done["waited_s"] / done["wall_s"],
                "taken": taken_s / done["wall_s"] / CPUS}

    def _pool_cpu_s(self) -> float:
        """Processor time of all the pool's processes that live, jobs included."""
        total_s = 0.0
        for pid in self.pool.processes():
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total_s += times.user + times.system
        return total_s

    def close(self) -> None:
        """Go home."""
        for cluster in self.clusters.values():
            self.pool.run("condor_rm", str(cluster))
        assert self._owner.stdin is not None
        self._owner.stdin.close()
        self._owner.wait()
        os.close(self._ours)
        os.close(self._theirs)


def work() -> None:
    """The owner's program: for each number of seconds that is asked for, how often its loop went round."""
    for line in sys.stdin:
        rounds, value = 0, 0
        waited_s = _waited_s()
        began_s = time.monotonic()
        end_s = began_s + float(line)
        while time.monotonic() < end_s:
            for number in range(1000):
                value = (value * 31 + number) & 0xFFFF
            rounds += 1
        print(json.dumps({"rounds": rounds, "wall_s": time.monotonic() - began_s, "waited_s": _waited_s() - waited_s}),
              flush=True)


def _waited_s() -> float:
    """For how long this process could have run and did not, as the kernel counts."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


if __name__ == "__main__":
    main()
