"""Simulated machines that sleep: what puts them to sleep, and the packets that wake them.

Theory: a machine that sleeps (S3) has all its processes stand still, so its peers hear nothing and close their lines;
its clocks go on.  It wakes by a packet, or when its owner touches it; then all that has come due happens at once.  A
packet is sent by a program of the rooster's; one in ten is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condor_actors.classads import ClassAd
from condor_actors.cores.site_programs.programs import SiteProgram

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.process import Process

__all__ = ["SimulatedPower", "WakePackets"]

FALLS_S, WAKES_S = 3.0, 8.0
"""How long a machine takes to sleep, and to wake."""
LOST = 0.1


class SimulatedPower:
    """``World.power`` of a startd."""

    def __init__(self, machine: SimulatedMachine, startd: Process) -> None:
        self._machine = machine
        self._startd = startd
        self._call: Any = None

    def ask(self, known: Callable[[tuple[str, ...], str, str], None]) -> None:
        """It can be put into S3."""
        self._call = self._startd.clock.callLater(0.1, known, ("S3",), "simulated", "")

    def sleep(self, state: str, over: Callable[[str], None]) -> None:
        """A moment later it sleeps."""
        self._call = self._startd.clock.callLater(FALLS_S, self._machine.fall_asleep, lambda: self._awake(over))

    def _awake(self, over: Callable[[str], None]) -> None:
        self._call = self._startd.clock.callLater(0.1, over, "")

    def close(self) -> None:
        """What would come is not told."""
        if self._call is not None and self._call.active():
            self._call.cancel()


class WakePackets:
    """``World.programs`` of a rooster."""

    def __init__(self, rooster: Process) -> None:
        self._rooster = rooster

    def start(self, program: SiteProgram, run: int, wrote: Callable[[bytes], None],
              over: Callable[[int, str, str], None]) -> None:
        """Send the packet for the machine whose ad the program reads."""
        pool = self._rooster.machine.pool
        machine = pool.machines[ClassAd.from_bytes(program.stdin).get_str("Machine")]
        if self._rooster.random.random() >= LOST:
            pool.clock.callLater(WAKES_S, machine.wake)
        self._rooster.clock.callLater(0.1, over, 0, "", "")

    def stop(self, run: int, *, fast: bool) -> None:
        """It has ended."""

    def hang_up(self, run: int) -> None:
        """It has ended."""

    def close(self) -> None:
        """They have ended."""
