"""Programs of the site on a simulated machine.

Theory: the arguments say what a program does, as with jobs: ``run_s`` seconds after its start it has printed its lines
and ends, with the status ``exit``; ``stubborn=1``: SIGTERM does not impress it; ``noise=1``: what it prints is broken
at random.  A hook that fetches work prints a job while there are any left of the ``jobs`` that its path says
(``/site/jobs=3,cpu_s=60``), each of which has a number of its own.  A program dies with the process that has started
it, as the launcher of a real one sees to.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condor_actors.cores.site_programs.programs import SiteProgram
from condor_actors.simulation.world.jobs import DIES_IN_S, program_of

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.process import Process

__all__ = ["SimulatedSitePrograms"]

KILLED, TERMINATED = -9, -15
FETCHED_FROM = 1_000_000
"""The first number of a fetched job's cluster."""


class SimulatedSitePrograms:
    """``World.programs`` of a startd or schedd; see the module.

    Attributes:
        living: the runs that live, by number.
    """

    def __init__(self, machine: SimulatedMachine, process: Process) -> None:
        self._machine = machine
        self._process = process
        self.living: dict[int, _Run] = {}

    def start(self, program: SiteProgram, run: int, wrote: Callable[[bytes], None],
              over: Callable[[int, str, str], None]) -> None:
        """Start one."""
        pool, does = self._machine.pool, program_of(program.arguments)
        twice = [each for each in self.living.values() if each.name == program.name]
        if twice:
            pool.violations.append(f"{self._process.title} runs the program {program.name} twice at once")
        begun = self.living[run] = _Run(program.name, stubborn=bool(does.get("stubborn")))
        if "_HOOK_" in program.name:
            text = self._fetched(program) if "HOOK_FETCH_WORK" in program.name else b""
            self._machine.told.append((program.name.partition(" ")[0], program.arguments))
        else:
            text = f"Run = {run}\nSaid = \"{program.name}\"\n- update:true\n".encode()
        if does.get("noise"):
            random = self._process.random
            text = bytes(byte if random.random() < 0.9 else random.randrange(256) for byte in text)

        def ended(status: int) -> None:
            if self.living.pop(run, None) is not None:
                over(status, "", "")

        def finished() -> None:
            half = len(text) // 2
            wrote(text[:half])
            wrote(text[half:])
            ended(int(does.get("exit", 0)))

        begun.end = ended
        begun.call = self._process.clock.callLater(does.get("run_s", 1.0), finished)

    def _fetched(self, program: SiteProgram) -> bytes:
        """A job, or nothing."""
        does, machine = program_of(posixpath.basename(program.executable).split(",")), self._machine
        if machine.fetched >= does.get("jobs", 0):
            return b""
        machine.fetched += 1
        cluster = FETCHED_FROM + 1000 * list(machine.pool.machines.values()).index(machine) + machine.fetched
        words = f"cpu_s={does.get('cpu_s', 60.0):g}"
        return f'Cmd = "/site/job"\nArguments = "{words}"\nClusterId = {cluster}\n'.encode()

    def stop(self, run: int, *, fast: bool) -> None:
        """SIGTERM or SIGKILL."""
        found = self.living.get(run)
        if found is not None and (fast or not found.stubborn):
            found.quiet()
            self._process.clock.callLater(DIES_IN_S, found.end, KILLED if fast else TERMINATED)

    def hang_up(self, run: int) -> None:
        """It reads its configuration again, and nobody sees it."""

    def close(self) -> None:
        """Kill all."""
        for run in self.living.values():
            run.quiet()
        self.living.clear()


class _Run:
    """One that lives."""

    def __init__(self, name: str, *, stubborn: bool) -> None:
        self.name = name
        self.stubborn = stubborn
        self.end: Callable[[int], None] = lambda status: None
        self.call: Any = None

    def quiet(self) -> None:
        """It prints nothing more."""
        if self.call is not None and self.call.active():
            self.call.cancel()
