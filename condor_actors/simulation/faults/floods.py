"""A partner's gateway that asks for more circuits than it may have, and keeps those that it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condor_actors.simulation.world.relays import Asking
from condor_actors.wire.relays.dialing import CIRCUIT_S, GATEWAY_ROLE
from condor_actors.wire.relays.lines import CIRCUIT_LINE, words

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool

__all__ = ["flood"]

EACH_S = 0.025


def flood(pool: Pool, machine: SimulatedMachine, other: SimulatedMachine, until_s: float) -> None:
    """Have the gateway of a machine ask another's for circuits to the collector there, forty each second.

    Args:
        until_s: simulated; then it lets go of what it has.
    """
    process = machine.find("gateway")
    if process is None or process.post is None:
        return
    post, realm = process.post, other.spec.pool
    collector = f"<{pool.centrals[realm]}:9618>"
    gateway = next((node for each in pool.partners_of(machine.spec.pool) if each.name == realm
                    for node in each.gateways if other.name in node), "")
    got: list[Any] = []

    def ask() -> None:
        if pool.clock.now_s >= until_s:
            for end in got:
                end.close()
        else:
            asking = Asking(post, gateway, words(CIRCUIT_LINE, collector), GATEWAY_ROLE, CIRCUIT_S)
            asking.found.addCallbacks(got.append, lambda failure: None)
            process.clock.callLater(EACH_S, ask)

    if gateway:
        process.clock.run(ask)
