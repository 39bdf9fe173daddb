"""Trouble for a pool of several machines: daemons that die or hang, links that are cut."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.harness.namespaces import Machine
from tests.harness.proc_files import proc_file

__all__ = ["Trouble", "daemons_of"]

GAP_S = (1.0, 4.0)
STOPPED_S, STOPPED_LONG_S = (0.5, 8.0), (20.0, 45.0)
CUT_S, CUT_LONG_S = (1.0, 12.0), (30.0, 120.0)
LONG_ONES = 0.05
"""How many of the stops and cuts are long ones; a link that is silent for a minute and a half counts as lost."""
HOW = ("kill", "kill", "kill", "stop", "stop", "cut")
DIRECTIONS = {"both": (False, False), "deaf": (False, True), "mute": (True, False)}


def daemons_of(machine: Machine) -> list[tuple[str, int]]:
    """Name and process id of every daemon that runs there, shadow and starter hosts included."""
    found = []
    for pid in machine.pids():
        words = proc_file(pid, "cmdline").decode(errors="replace").split("\0")
        if "condor_actors.services" in words:
            found.append((words[words.index("condor_actors.services") + 1], pid))
    return found


class Trouble(threading.Thread):
    """A random daemon is killed or stopped, or a machine is cut off, every one to four seconds until :meth:`end`.

    Args:
        machines: of the pool.
        seed: of the chance.
        say: takes a line for each fault.
    """

    def __init__(self, machines: Sequence[Machine], seed: int, say: Callable[[str], None] = lambda line: None) -> None:
        super().__init__(name="trouble", daemon=True)
        self.faults: Counter[str] = Counter()
        self._machines = machines
        self._random = random.Random(seed)
        self._say = say
        self._over = threading.Event()
        self._undo: list[tuple[float, Callable[[], object]]] = []
        self._cut: set[str] = set()

    def run(self) -> None:
        """Until the end; then everything that was stopped or cut goes on."""
        while not self._over.wait(self._random.uniform(*GAP_S)):
            self._undo_due(time.monotonic())
            self._fault()
        self._undo_due(float("inf"))

    def end(self) -> None:
        """No more of it."""
        self._over.set()
        self.join()

    def _undo_due(self, now_s: float) -> None:
        due = [undo for when_s, undo in self._undo if when_s <= now_s]
        self._undo = [each for each in self._undo if each[0] > now_s]
        for undo in due:
            undo()

    def _fault(self) -> None:
        machine, how = self._random.choice(self._machines), self._random.choice(HOW)
        if how == "cut":
            self._cut_off(machine)
            return
        daemons = daemons_of(machine)
        if not daemons:
            return
        name, pid = self._random.choice(daemons)
        self._note(f"{how} {name}", machine, f"process {pid}")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        if how == "stop":
            self._later(self._span(STOPPED_S, STOPPED_LONG_S), lambda: _go_on(pid))
        elif name == "master":
            self._start_again(machine)

    def _start_again(self, machine: Machine) -> None:
        assert machine.master is not None
        with suppress(subprocess.TimeoutExpired):
            machine.master.wait(10.0)
        machine.start()

    def _cut_off(self, machine: Machine) -> None:
        if machine.name in self._cut:
            return
        self._cut.add(machine.name)
        direction = self._random.choice(list(DIRECTIONS))
        span_s = self._span(CUT_S, CUT_LONG_S)
        self._note(f"cut {direction}", machine, f"{span_s:.1f} s")
        hears, speaks = DIRECTIONS[direction]
        machine.cut(hears=hears, speaks=speaks)
        self._later(span_s, lambda: self._mend(machine))

    def _mend(self, machine: Machine) -> None:
        machine.cut(hears=True, speaks=True)
        self._cut.discard(machine.name)

    def _later(self, delay_s: float, undo: Callable[[], object]) -> None:
        self._undo.append((time.monotonic() + delay_s, undo))

    def _span(self, usual: tuple[float, float], long: tuple[float, float]) -> float:
        return self._random.uniform(*(long if self._random.random() < LONG_ONES else usual))

    def _note(self, fault: str, machine: Machine, details: str) -> None:
        self.faults[fault] += 1
        self._say(f"{time.strftime('%H:%M:%S')} {machine.name}: {fault}, {details}")


def _go_on(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
