"""A pool of five machines in trouble: its jobs, its users, and what must be so at the end.

Five machines, each a network namespace of its own: a central manager, one to submit from, three to execute; all of them
run jobs.  Jobs of every kind (:mod:`tests.harness.mixed_jobs`) flow through them and their users hold, release,
suspend, edit, remove and fetch them, while daemons are killed and stopped and machines are cut off
(:mod:`tests.harness.trouble`).  At the end each job has ended exactly once, in the history and in its log, with the
right bytes; nothing is left (:mod:`tests.harness.aftermath`), and no log has a traceback.
"""

from __future__ import annotations

import random
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.harness.aftermath import left_over, tracebacks, wrong_history
from tests.harness.mixed_jobs import KINDS, Batch, submitted
from tests.harness.namespaces import Machine, Wire, a_wire
from tests.harness.trouble import Trouble
from tests.pool_fixture import until

__all__ = ["in_trouble", "keep_folders", "say"]

CONFIG = """
NUM_CPUS = 4
MEMORY = 2048
PERIODIC_EXPR_INTERVAL = 20
NEGOTIATOR_INTERVAL = 20
UPDATE_INTERVAL = 60
JOB_DEFAULT_LEASE_DURATION = 240
MAX_DEFAULT_LOG = 200000000
"""
EXECUTE_MACHINES = 3
WAVE = 150
"""Jobs of one wave; the next one comes when no more than half of it are left of those before."""
ENDS_WITHIN_S = 1500.0
NOT_HELD_BY_USERS = "JobStatus == 5 && HoldReasonCode != 1 && HoldReasonCode != 3 && HoldReasonCode != 16"


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


class Chaos:
    """The jobs of one run, and those who look after them.

    Args:
        wire: with the whole pool; home: the machine that jobs are submitted from.
        jobs: how many in all; seed: of what the users do.
    """

    def __init__(self, wire: Wire, home: Machine, jobs: int, seed: int) -> None:
        self.wire, self.home, self.jobs = wire, home, jobs
        self.batches: list[Batch] = []
        self.wrong: list[str] = []
        self._random = random.Random(seed)
        self._over = threading.Event()

    def submit_all(self) -> None:
        """Wave after wave, each when most of the one before is done."""
        waves = max(1, self.jobs // WAVE)
        for wave in range(waves):
            if self._over.is_set():
                return
            for name, kind in KINDS.items():
                count = max(1, kind.share * self.jobs // waves // 100)
                self.batches.append(submitted(self.home, f"{name}-{wave}", name, count))
            say(f"{time.strftime('%H:%M:%S')} wave {wave + 1} of {waves}: {sum(b.jobs for b in self.batches)} jobs")
            while not self._over.is_set() and self.queued() > WAVE // 2:
                self._over.wait(2.0)

    def queued(self) -> int:
        """Jobs that have not ended; many where the schedd does not say."""
        done = self.home.tool("condor_q", "-all", "-af", "ClusterId")
        return len(done.stdout.split()) if done.returncode == 0 else sys.maxsize

    def attend(self) -> None:
        """What users do, in the order of chance, until it is over."""
        while not self._over.wait(0.5):
            if self.batches:
                self._random.choice(self.batches[-3 * len(KINDS):]).attend(self._random)

    def calm(self) -> bool:
        """One round of all users when the trouble is over; whether every job has ended."""
        for line in self.home.tool("condor_q", "-all", "-constraint", NOT_HELD_BY_USERS, "-af", "ClusterId", "ProcId",
                                   "ChaosBatch", "HoldReasonCode", "HoldReason").stdout.splitlines():
            if f"held: {line}" not in self.wrong:
                self.wrong.append(f"held: {line}")
        self.home.tool("condor_release", "-constraint", NOT_HELD_BY_USERS)
        self.home.tool("condor_continue", "-constraint", "JobStatus == 7")
        self.home.tool("condor_release", "-constraint", "JobStatus == 5 && HoldReasonCode == 1")
        waiting = set(self.home.tool("condor_q", "-all", "-af", "ChaosBatch").stdout.split())
        for batch in self.batches:
            if batch.name in waiting and batch.kind in ("held", "removed", "spooled"):
                batch.attend(self._random)
        return self.queued() == 0

    def run(self, minutes: float, seed: int) -> list[str]:
        """Trouble until all jobs have ended, or the time is over; then what is wrong."""
        trouble = Trouble(self.wire.machines, seed, say)
        users = [self._thread(self.submit_all), self._thread(self.attend)]
        trouble.start()
        end_s = time.monotonic() + minutes * 60.0
        while time.monotonic() < end_s and (users[0].is_alive() or self.queued()):
            self._over.wait(5.0)
        trouble.end()
        self._over.set()
        for user in users:
            user.join()
        say(f"{time.strftime('%H:%M:%S')} calm; {sum(trouble.faults.values())} faults: {dict(trouble.faults)}")
        try:
            until(self.calm, "every job to end", ENDS_WITHIN_S)
        except AssertionError as error:
            self.wrong.append(f"{error}\n{self.home.tool('condor_q', '-all', '-nobatch').stdout[-3000:]}")
        say(f"{time.strftime('%H:%M:%S')} {sum(batch.jobs for batch in self.batches)} jobs have ended")
        self.wrong += [text for batch in self.batches for text in batch.wrong()]
        self.wrong += wrong_history(self.home, self.batches)
        return [*self.wrong, *left_over(self.wire), *tracebacks(self.wire.machines)]

    def _thread(self, action: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                action()
            except Exception as error:  # noqa: BLE001 - it is a finding, and told with the others
                self.wrong.append(f"{action.__name__}: {error}")

        made = threading.Thread(target=guarded, name=action.__name__, daemon=True)
        made.start()
        return made


def in_trouble(jobs: int, minutes: float, seed: int, keep: Path | None = None) -> list[str]:
    """Run it; what is wrong afterwards.

    Args:
        jobs: how many in all; minutes: of trouble, at most; seed: of all chances.
        keep: where the machines' folders are copied to if anything is wrong; None: nowhere.
    """
    with a_wire(cgroups=True) as wire:
        manager = wire.manager(config=CONFIG)
        home = wire.member(manager, "home", "master,schedd,startd", CONFIG)
        members = [wire.member(manager, f"e{number}", "master,startd", CONFIG) for number in range(EXECUTE_MACHINES)]
        wanted = {f"{machine.name}.trio" for machine in (manager, home, *members)}
        until(lambda: wanted <= set(manager.tool("condor_status", "-af", "Machine").stdout.split()),
              "all machines in the collector")
        until((home.dir / "run" / "schedd.address").exists, "the schedd to listen")
        wrong = Chaos(wire, home, jobs, seed).run(minutes, seed)
        if wrong and keep is not None:
            keep_folders(wire.machines, keep)
    return wrong


def keep_folders(machines: Sequence[Machine], folder: Path) -> None:
    """Copy what the machines have written, but for what is large and known."""
    for machine in machines:
        for part in ("log", "spool", "work", "execute"):
            source = machine.dir / part
            if source.is_dir():
                shutil.copytree(source, folder / machine.name / part, symlinks=True, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("program.*", "copy.*", "starter_*"))
