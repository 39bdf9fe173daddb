"""An owner who comes and goes while standard and vanilla jobs run: nothing is lost, and nothing of a job remains.

What the papers promise, in scaled time.  A visit begins when the standard job has done a seeded amount of work, and a
long one ends when the owner has the machine to himself; so the test waits for events only.  One slot lets jobs leave in
an orderly way, the other kills them at once, which costs what came after the last periodic checkpoint.

The standard job tells each step to a FIFO at home: what it says there cannot be undone by a roll-back, so the test sees
which steps were done twice.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from condor_actors.machine.native_programs import runtime_is_there
from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, until

PYTHON = "/usr/bin/python3"
pytestmark = [
    pytest.mark.skipif(not runtime_is_there(), reason="the runtime is not built"),
    pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs a Python that every user can read"),
]

INTERVAL_S = 2
POLICY = """
POLLING_INTERVAL = 0.3
CONSOLE_DEVICES = ..{device}
SLOTS_CONNECTED_TO_CONSOLE = 2
SLOTS_CONNECTED_TO_KEYBOARD = 0
START = ConsoleIdle =?= undefined || ConsoleIdle > 2
WANT_SUSPEND = True
SUSPEND = ConsoleIdle < 2
CONTINUE = ConsoleIdle > 2
PREEMPT = Activity == "Suspended" && ConsoleIdle < 1 && (time() - EnteredCurrentActivity) >= 1
WANT_VACATE = SlotID == 1
MACHINEMAXVACATETIME = 60
KILLING_TIMEOUT = 2
PERIODIC_CHECKPOINT = (time() - LastPeriodicCheckpoint) >= {interval}
"""
STANDARD = """
import os, sys
log, witness = open("log", "a"), os.open("witness", os.O_WRONLY)
total = step = 0
while not os.path.exists("enough"):
    for i in range(30000):
        total += i * step % 7
    print(step, total, flush=True)
    log.write(f"{step}\\n"); log.flush()
    with open("state.new", "w") as state:
        state.write(str(total))
    os.rename("state.new", "state")
    os.write(witness, f"{step}\\n".encode())
    step += 1
print("done", total)
"""
STEPS = 5
VANILLA = f"""#!/bin/sh
step=$(($(cat step 2>/dev/null || echo 0) + 1))
n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done
echo "step $step"
echo $step > step
[ $step -ge {STEPS} ] && exit 0
exit 85
"""


def expected(steps: int) -> str:
    """What STANDARD prints when it is told to stop after so many steps."""
    total = 0
    lines = []
    for step in range(steps):
        total += sum(i * step % 7 for i in range(30000))
        lines.append(f"{step} {total}")
    return "\n".join([*lines, f"done {total}", ""])


class Owner:
    """Somebody at the console: a device whose times say when it was used last."""

    def __init__(self, device: Path) -> None:
        self._device = device
        device.touch()
        os.utime(device, (1, 1))

    def touch(self) -> None:
        """A key is pressed."""
        os.utime(self._device)

    def __enter__(self) -> None:
        self._over = threading.Event()
        self._typing = threading.Thread(target=self._type)
        self._typing.start()

    def _type(self) -> None:
        while not self._over.wait(0.1):
            self.touch()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._typing.join()


class Witness(threading.Thread):
    """Reads the FIFO: every step that was done, and when, the repeated ones too."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        os.mkfifo(path)
        path.chmod(0o666)
        self._descriptor = os.open(path, os.O_RDWR)  # so it never ends before it is told to
        self.steps: list[tuple[int, float]] = []
        self.start()

    def run(self) -> None:
        left = b""
        while b"over" not in left:
            *lines, left = (left + os.read(self._descriptor, 65536)).split(b"\n")
            self.steps += [(int(line), time.time()) for line in lines]

    def stop(self) -> None:
        os.write(self._descriptor, b"over")
        self.join()
        os.close(self._descriptor)

    def repetitions(self) -> list[tuple[int, int, float]]:
        """For each time it went back: from which step to which, and how many seconds of work were done again."""
        took: dict[int, float] = {}
        found = []
        before, last = -1, self.steps[0][1]
        for step, at in self.steps:
            if step <= before:
                found.append((before, step, sum(took[each] for each in range(step, before + 1))))
            took[step] = min(at - last, 0.5)  # the rest it was suspended, or on its way
            before, last = step, at
        return found


@pytest.fixture
def house() -> Iterator[tuple[PersonalPool, Owner]]:
    """A machine and its owner."""
    with fresh_folder() as folder:
        owner = Owner(folder / "console")
        pool = PersonalPool(folder, slots=2, config=POLICY.format(device=folder / "console", interval=INTERVAL_S))
        yield pool, owner
        pool.stop()


def members_of_control_groups(pool: PersonalPool) -> str:
    """The processes in the groups of this pool's jobs: with them goes the memory that they had."""
    name = str(pool.dir / "execute").strip("/").replace("/", "_")
    found = ""
    for path in (*glob.glob(f"/sys/fs/cgroup/condor/{name}/*/cgroup.procs"),
                 *glob.glob(f"/sys/fs/cgroup/*/condor/{name}/*/cgroup.procs")):
        with contextlib.suppress(OSError):  # a group may be taken away at any time
            found += Path(path).read_text()
    return found


def processes(pool: PersonalPool) -> list[str]:
    return [command for command in pool.processes().values() if re.search(r"steps\.sh|condor_exec|/program", command)]


def nothing_remains(pool: PersonalPool) -> None:
    until(lambda: not pool.scratch(), "no file of a job remains")
    until(lambda: not processes(pool), "no process of a job remains")
    until(lambda: not members_of_control_groups(pool), "no control group of a job has a process")


def submit_standard(pool: PersonalPool) -> tuple[str, Witness]:
    home = pool.work / "standard"
    home.mkdir()
    open_to_jobs(home)
    (home / "program.py").write_text(STANDARD)
    witness = Witness(home / "witness")
    cluster = pool.submit(f"universe = standard\nexecutable = {PYTHON}\narguments = program.py\n"
                          "initialdir = standard\noutput = out\nerror = err\nlog = job.log\npriority = 10\n"
                          "rank = MY.NumJobStarts % 2 == 0 ? SlotID : -SlotID\nqueue\n")
    return f"{cluster}.0", witness


def submit_vanilla(pool: PersonalPool, jobs: int) -> int:
    program = pool.work / "steps.sh"
    program.write_text(VANILLA)
    program.chmod(0o755)
    return pool.submit("executable = steps.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = step\n"
                       "should_transfer_files = yes\noutput = out.$(Process)\ntransfer_output_remaps = "
                       f"\"step=step.$(Process)\"\nlog = vanilla.log\nqueue {jobs}\n")


def visit(pool: PersonalPool, owner: Owner, job: str, witness: Witness, random: Random) -> None:
    """One visit at a random moment of the standard job's work."""
    aim = len(witness.steps) + random.randrange(1, 40)
    until(lambda: len(witness.steps) >= aim, f"the standard job to work (it is {pool.status_of(job)})")
    if random.random() < 0.3:
        owner.touch()  # and goes away: jobs are suspended, and go on where they are
        return
    with owner:
        until(lambda: pool.run("condor_status", "-af", "State").split() == ["Owner", "Owner"], "the owner's machine")
        nothing_remains(pool)


def come_and_go(pool: PersonalPool, owner: Owner, seed: int, visits: int) -> list[tuple[int, int, float]]:
    """Visits while jobs of both kinds run; returns what the standard job did twice."""
    random = Random(seed)
    job, witness = submit_standard(pool)
    vanilla_jobs = max(3, visits // 4)
    vanilla = submit_vanilla(pool, vanilla_jobs)
    home = pool.work / "standard"
    try:
        for _ in range(visits):
            visit(pool, owner, job, witness, random)
        (home / "enough").touch()
        pool.wait(str(home / "job.log"))
        pool.wait("vanilla.log", 90.0 + 10.0 * vanilla_jobs)
    finally:
        witness.stop()
    assert (home / "err").read_text() == ""
    steps = len((home / "out").read_text().splitlines()) - 1  # it may have gone back and been told to stop earlier
    assert steps > 0
    assert (home / "out").read_text() == expected(steps), f"seed {seed}"
    assert (home / "log").read_text() == "".join(f"{step}\n" for step in range(steps))
    assert (home / "state").read_text() == (home / "out").read_text().split()[-1]
    wanted = [f"step {number}" for number in range(1, STEPS + 1)]
    for number in range(vanilla_jobs):
        lines = (pool.work / f"out.{number}").read_text().splitlines()
        assert [line for n, line in enumerate(lines) if line not in lines[:n]] == wanted, (seed, number, lines)
        assert (pool.work / f"step.{number}").read_text() == f"{STEPS}\n"
    for log, count in ((home / "job.log", 1), (pool.work / "vanilla.log", vanilla_jobs)):
        assert len(re.findall(r"^005 \(", log.read_text(), re.MULTILINE)) == count, "each completion once"
    assert len(pool.history(str(vanilla))) == vanilla_jobs
    nothing_remains(pool)
    return witness.repetitions()


def check_losses(pool: PersonalPool, repeated: list[tuple[int, int, float]]) -> None:
    """It never went back beyond its last checkpoint, and an orderly departure cost nothing."""
    log = (pool.work / "standard" / "job.log").read_text()
    evicted = re.findall(r"^004 \(.*?^\.\.\.", log, re.MULTILINE | re.DOTALL)
    orderly = sum("(1) Job was checkpointed." in event for event in evicted)
    assert evicted, "the owner got the machine"
    assert len(repeated) <= len(evicted) - orderly, "only who is killed repeats anything"
    first = re.search(r"^003 \(", log, re.MULTILINE)
    for _, to, _ in repeated:
        assert to > 0 or first is None or log.index("004 (") < first.start(), "it went back to the very beginning"


def test_an_owner_who_comes_and_goes(house: tuple[PersonalPool, Owner]) -> None:
    pool, owner = house
    check_losses(pool, come_and_go(pool, owner, seed=1988, visits=4))


@pytest.mark.soak
def test_two_hundred_visits(house: tuple[PersonalPool, Owner]) -> None:
    pool, owner = house
    repeated = come_and_go(pool, owner, seed=2004, visits=200)
    check_losses(pool, repeated)
    log = (pool.work / "standard" / "job.log").read_text()
    began = [datetime.fromisoformat(found) for found in re.findall(r"^00[13] \(.*?\) (\S+ \S+)", log, re.MULTILINE)]
    worst = max((lost for _, _, lost in repeated), default=0.0)
    assert worst <= 2 * INTERVAL_S, "no more than an interval's work was lost, and what a checkpoint takes"
    print(f"\n{log.count('004 (')} evictions, {len(repeated)} of them repeated work, at most {worst:.1f} s; "
          f"{log.count('003 (')} checkpoints, {log.count('010 (')} suspensions in {began[-1] - began[0]}")
