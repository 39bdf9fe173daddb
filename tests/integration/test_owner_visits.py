"""Owners who come and go while standard and vanilla jobs run on their machines: nothing is lost, and nothing remains.

What the papers promise, in scaled time, on machines that share nothing but a wire: one where jobs are submitted, and
three with an owner each.  A visit begins when the standard jobs have done a seeded amount of work, and a long one ends
when the owner has the machine to himself; so the test waits for events only.

A standard job tells each step to a FIFO at home: what it says there cannot be undone by a roll-back, so the test sees
which steps were done twice, and what they had cost.
"""

from __future__ import annotations

import glob
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import attrs
import pytest

from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire
from tests.harness.proc_files import proc_file
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import open_to_jobs, until

pytestmark = [pytest.mark.quiet, *NEED_NAMESPACES, *NEED_RUNTIME]

INTERVAL_S, POLL_S = 2.0, 0.3
DOCTRINES = {
    "vacates": "use POLICY : 1988",  # suspends, then has the job leave with a checkpoint
    "reclaims": "use POLICY : 1989",  # suspends, then kills: the last periodic checkpoint is what the job keeps
    "kills": "use POLICY : 1989\nWANT_SUSPEND = False\nPREEMPT = $(KeyboardBusy)",
}
SCALED = f"""
DAEMON_LIST = MASTER STARTD
NUM_SLOTS = 2
POLLING_INTERVAL = {POLL_S}
RunBenchmarks = False
SLOTS_CONNECTED_TO_CONSOLE = 2
SLOTS_CONNECTED_TO_KEYBOARD = 0
KeyboardBusy = (ConsoleIdle < 1)
CPUBusy = False
START = (ConsoleIdle =?= undefined || ConsoleIdle > 1)
CONTINUE = (ConsoleIdle > 1)
MINUTE = 0.4
HOUR = {INTERVAL_S / 4}
MaxSuspendTime = 2
KILLING_TIMEOUT = 2
"""
"""The time of the policies: more than five minutes of suspension are three seconds, and more than three hours between
checkpoints are two (ads count whole ones).  Other work on the machine that all of this runs on is no owner's."""

STANDARD_JOBS = 2
VANILLA_JOBS = 6
STEPS = 5
VANILLA = f"""#!/bin/sh
sleep 600 &
echo memory > /dev/shm/$1.$$; echo file > /var/tmp/$1.$$
step=$(($(cat step 2>/dev/null || echo 0) + 1))
n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done
sleep 0.5
echo "step $step"
echo $step > step
[ $step -ge {STEPS} ] && exit 0
exit 85
"""
"""A job that saves what it has done after each step, and leaves a process, memory and a file behind if it is let."""


class Owner:
    """Someone with a machine: its console is a device whose times say when it was used last."""

    def __init__(self, wire: Wire, manager: Machine, doctrine: str) -> None:
        self._device = wire.folder / f"console-{doctrine}"
        self._mark = manager.namespace
        self._device.touch()
        os.utime(self._device, (1, 1))
        self.machine = wire.member(manager, doctrine, "master,startd",
                                   f"{DOCTRINES[doctrine]}\n{SCALED}CONSOLE_DEVICES = ..{self._device}\n")

    def touches(self) -> None:
        """A key is pressed."""
        os.utime(self._device)

    @contextmanager
    def types(self) -> Iterator[None]:
        """One key after the other."""
        over = threading.Event()

        def type_on() -> None:
            while not over.wait(0.1):
                self.touches()

        self.touches()
        typing = threading.Thread(target=type_on)
        typing.start()
        try:
            yield
        finally:
            over.set()
            typing.join()

    def remains(self) -> list[str]:
        """What of jobs is on the machine: processes, files, control groups (which hold their memory)."""
        processes = []
        for pid in self.machine.pids():
            command = proc_file(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")
            if command and "condor_actors.services" not in command:
                processes.append(command)
        name = str(self.machine.dir / "execute").strip("/").replace("/", "_")
        groups = [*glob.glob(f"/sys/fs/cgroup/condor/{name}/*/"), *glob.glob(f"/sys/fs/cgroup/*/condor/{name}/*/")]
        shared = [*glob.glob(f"/dev/shm/{self._mark}.*"), *glob.glob(f"/var/tmp/{self._mark}.*")]
        return [*processes, *self.machine.scratch(), *groups, *shared]


@attrs.frozen
class Repetition:
    """A standard job went back.

    Attributes:
        to: the first step that it did again.
        worked_s: processor seconds that the repeated steps had taken.
        took_s: how long they had taken, seconds; not while the program stood still.
    """

    to: int
    worked_s: float
    took_s: float


class Witness(threading.Thread):
    """Reads a FIFO: every step that was done, when, and what it cost in processor seconds."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        os.mkfifo(path)
        path.chmod(0o666)
        self._descriptor = os.open(path, os.O_RDWR)  # so it never ends before it is told to
        self.steps: list[tuple[int, float, float]] = []
        self.start()

    def run(self) -> None:
        left = b""
        while b"over" not in left:
            *lines, left = (left + os.read(self._descriptor, 65536)).split(b"\n")
            for step, worked_s in map(bytes.split, lines):
                self.steps.append((int(step), float(worked_s), time.monotonic()))

    def stop(self) -> None:
        os.write(self._descriptor, b"over")
        self.join()
        os.close(self._descriptor)

    def repetitions(self) -> list[Repetition]:
        """Each time it went back."""
        cost: dict[int, tuple[float, float]] = {}
        found = []
        before, last = -1, self.steps[0][2] if self.steps else 0.0
        for step, worked_s, at in self.steps:
            if step <= before:
                again = [cost[each] for each in range(step, before + 1)]
                found.append(Repetition(step, sum(worked for worked, _ in again), sum(took for _, took in again)))
            took = min(at - last, 0.5)  # the rest it was suspended, or on its way
            cost[step] = (max(0.0, min(worked_s, took)), took)  # a program that moves in a step has another's clock
            before, last = step, at
        return found


class Home:
    """The machine where the jobs are submitted, and the jobs."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.standard: list[tuple[Job, Witness]] = []
        for number in range(STANDARD_JOBS):
            folder = machine.work / f"standard-{number}"
            folder.mkdir()
            open_to_jobs(folder)
            witness = Witness(folder / "witness")
            self.standard.append((Job(machine, folder.name, "1000000", priority="10"), witness))
        self.clusters: list[int] = []
        (machine.work / "steps.sh").write_text(VANILLA)
        (machine.work / "steps.sh").chmod(0o755)
        self.more_vanilla()

    def worked(self) -> int:
        """How many steps standard jobs have done."""
        return sum(len(witness.steps) for _, witness in self.standard)

    def vanilla_jobs(self) -> int:
        """How many were submitted."""
        return len(self.clusters) * VANILLA_JOBS

    def vanilla_ended(self) -> int:
        """How many have completed, by their log."""
        return len(re.findall(r"^005 \(", (self.machine.work / "vanilla.log").read_text(), re.MULTILINE))

    def more_vanilla(self) -> None:
        """Submit new ones when the others will end soon."""
        if self.clusters and self.vanilla_jobs() - self.vanilla_ended() > VANILLA_JOBS / 2:
            return
        self.clusters.append(self.machine.submit(f"""
            executable = steps.sh
            arguments = {self.machine.namespace}
            checkpoint_exit_code = 85
            transfer_checkpoint_files = step
            should_transfer_files = yes
            output = out.$(Cluster).$(Process)
            transfer_output_remaps = "step=step.$(Cluster).$(Process)"
            log = vanilla.log
            queue {VANILLA_JOBS}
        """))

    def finish(self) -> None:
        """Have the standard jobs end, and wait for all."""
        for job, _ in self.standard:
            (job.folder / "enough").touch()
        for job, _ in self.standard:
            job.wait()
        self.machine.wait("vanilla.log", 180.0)

    def check(self) -> None:
        """Output and files are those of undisturbed runs."""
        for job, _ in self.standard:
            job.check(len(job.text("out").splitlines()) - 1)  # it may have gone back and been told to stop earlier
        for cluster in self.clusters:
            for name in (f"{cluster}.{process}" for process in range(VANILLA_JOBS)):
                lines = (self.machine.work / f"out.{name}").read_text().splitlines()
                assert sorted(set(lines), key=lines.index) == [f"step {n + 1}" for n in range(STEPS)], (name, lines)
                assert (self.machine.work / f"step.{name}").read_text() == f"{STEPS}\n"
        assert self.vanilla_ended() == self.vanilla_jobs(), "each ends once"
        assert len(self.machine.history()) == self.vanilla_jobs() + STANDARD_JOBS

    def losses(self) -> list[Repetition]:
        """What the standard jobs did twice: only who is killed does, and no more than since a checkpoint was due."""
        found = []
        for job, witness in self.standard:
            log = job.text("job.log")
            evicted = re.findall(r"^004 \(.*?^\.\.\.", log, re.MULTILINE | re.DOTALL)
            orderly = sum("(1) Job was checkpointed." in event for event in evicted)
            repeated = witness.repetitions()
            assert len(repeated) <= len(evicted) - orderly, "only who is killed repeats anything"
            found += repeated
        assert max((each.worked_s for each in found), default=0.0) <= INTERVAL_S + POLL_S, found
        return found

    def count(self, number: str) -> int:
        """How many events of this number (``010``: suspended) there are in the logs of the standard jobs."""
        return sum(len(re.findall(rf"^{number} \(", job.text("job.log"), re.MULTILINE)) for job, _ in self.standard)


def visit(home: Home, owner: Owner, random: Random) -> None:
    """One visit at a random moment of the standard jobs' work."""
    aim = home.worked() + random.randrange(1, 60)
    until(lambda: home.worked() >= aim, "the standard jobs to work")
    if random.random() < 0.3:
        owner.touches()  # and goes away: jobs are suspended, and go on where they are
        return
    name = f'Machine == "{owner.machine.name}.trio"'
    with owner.types():
        until(lambda: not owner.remains(), lambda: f"the jobs to leave {owner.machine.name}: {owner.remains()}")
        until(lambda: home.machine.run("condor_status", "-constraint", name, "-af", "State").split() == ["Owner"] * 2,
              "the owner to have the machine")
        assert owner.remains() == []


def come_and_go(wire: Wire, seed: int, visits: int) -> None:
    """Visits to the three owners in turn, in a random order, while jobs of both kinds run."""
    print(f"\nseed {seed}")
    random = Random(seed)
    manager = wire.manager(config="DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD\n")
    owners = [Owner(wire, manager, doctrine) for doctrine in DOCTRINES]
    began = time.monotonic()
    home = Home(manager)
    try:
        turn: list[Owner] = []
        for _ in range(visits):
            turn = turn or random.sample(owners, len(owners))
            visit(home, turn.pop(), random)
            home.more_vanilla()
        lasted_s = time.monotonic() - began
        home.finish()
    finally:
        for _, witness in home.standard:
            witness.stop()
    home.check()
    until(lambda: not any(owner.remains() for owner in owners),
          lambda: f"the last jobs to leave: {[owner.remains() for owner in owners]}")
    lost = home.losses()
    assert home.count("004"), "an owner got a machine back"
    worked_s, took_s = (max((getattr(each, what) for each in lost), default=0.0) for what in ("worked_s", "took_s"))
    suspensions, evictions, checkpoints = (home.count(number) for number in ("010", "004", "003"))
    print(f"{visits} visits in {lasted_s:.0f} s; {home.vanilla_jobs()} vanilla jobs; standard jobs: "
          f"{suspensions} suspensions, {evictions} evictions, {checkpoints} checkpoints, work repeated {len(lost)} "
          f"times (at most {worked_s:.2f} s of the processor's, {took_s:.2f} s by the clock)")


def test_owners_who_come_and_go(wire: Wire) -> None:
    come_and_go(wire, seed=1988, visits=4)


@pytest.mark.soak
def test_two_hundred_visits(wire: Wire) -> None:
    come_and_go(wire, seed=2004, visits=200)
