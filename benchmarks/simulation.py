"""What simulated time costs when nothing is decided in it: ``python benchmarks/simulation.py [--events N]``.

====================  =============================================================================================
clock                 timers that set themselves again, a tenth of them cancelled and set anew
clock and mesh        messages between nodes of the pool of cores
clock and network     frames over connections of the world of whole daemons, between machines
... that is bad       the same over paths that are slow, jitter, and lose a packet in a hundred
====================  =============================================================================================

Events are calls that the clock ran; seconds are processor seconds of this process, the best of three rounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from condor_actors.messages.envelope import Address, Delivery
from condor_actors.simulation.cores.nodes import LATENCY_S, Mesh
from condor_actors.simulation.world.clock import HeapClock
from condor_actors.simulation.world.memory import unhurried_collector
from condor_actors.simulation.world.network import Broker, Network, Wire
from condor_actors.simulation.world.network import Path as Way
from condor_actors.simulation.world.process import ProcessClock

TIMERS = 2000
PAIRS = 200
ROUNDS = 3
FRAME = bytes(200)


def with_timers(events: int) -> HeapClock:
    """Timers alone."""
    clock, random = HeapClock(), Random(1)
    others = [clock.callLater(1000.0, int) for _ in range(TIMERS // 10)]

    def fired(number: int) -> None:
        clock.callLater(0.5 + random.random(), fired, number)
        if number < len(others):
            others[number].cancel()
            others[number] = clock.callLater(1000.0, int)
        if clock.events >= events:
            clock.stop()

    for number in range(TIMERS):
        clock.callLater(random.random(), fired, number)
    return clock


def with_mesh(events: int) -> HeapClock:
    """Nodes that send each other messages."""
    clock = HeapClock(soon_s=LATENCY_S)
    mesh = Mesh(clock)

    class Echo:
        def __init__(self, other: str) -> None:
            self.other = other
            self.address = Address(other, "echo")

        def take(self, delivery: Delivery) -> None:
            mesh.carry(self.other, Delivery(message=delivery.message, sender=self.address))
            if clock.events >= events:
                clock.stop()

    for number in range(PAIRS):
        here, there = f"<here{number}:1>", f"<there{number}:1>"
        mesh.nodes[here], mesh.nodes[there] = Echo(there), Echo(here)
        mesh.carry(here, Delivery(message=number, sender=Address(there, "echo")))
    return clock


def with_network(events: int, way: Way | None = None) -> HeapClock:
    """Machines that send each other frames."""
    clock = HeapClock()
    network = Network(clock, Random(2))
    network.usual = way or network.usual

    def end(name: str) -> Any:
        process = SimpleNamespace(machine=SimpleNamespace(name=name), alive=True, frozen=False)
        process.clock = ProcessClock(clock, process, 1.0)  # type: ignore[arg-type]
        link = SimpleNamespace()
        broker = link.broker = Broker(link, process)  # type: ignore[arg-type]

        def received(frame: bytes) -> None:
            broker.deliver(frame)
            if clock.events >= events:
                clock.stop()

        link.frame_received = received
        return broker

    for number in range(PAIRS):
        near, far = end(f"here{number}"), end(f"there{number}")
        Wire(network, near, far)
        near.deliver(FRAME)
    return clock


def rate(make: Callable[[int], HeapClock], events: int) -> float:
    """Events per processor second, the best of some rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        clock = make(events)
        began_s = time.process_time()
        clock.run_until(float("inf"))
        best = max(best, clock.events / (time.process_time() - began_s))
    return best


def main() -> None:
    """Entry."""
    parser = argparse.ArgumentParser(description="What simulated time costs when nothing is decided in it.")
    parser.add_argument("--events", type=int, default=300_000, metavar="N", help="of each round (default 300000)")
    events = parser.parse_args().events
    bad = Way(delay_s=0.02, jitter_s=0.05, loss=0.01, bytes_per_s=1e6)
    with unhurried_collector():
        for name, make in (("clock", with_timers), ("clock and mesh", with_mesh), ("clock and network", with_network),
                           ("... that is bad", lambda count: with_network(count, bad))):
            print(f"{name:<18} {rate(make, events):10,.0f} events/s", flush=True)


if __name__ == "__main__":
    main()
