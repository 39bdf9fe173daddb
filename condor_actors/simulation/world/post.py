"""The production's post office on the simulated network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol
from twisted.logger import Logger

from condor_actors.messages.claim import RequestClaim
from condor_actors.messages.envelope import Envelope, Identity
from condor_actors.messages.pool import KnownPartner
from condor_actors.simulation.world.network import Broker, Network, Wire, end_of
from condor_actors.simulation.world.relays import AskedBarely, through_gateways
from condor_actors.wire.link import Link
from condor_actors.wire.nodes import TlsNode, parse_node
from condor_actors.wire.post_office import PostOffice

if TYPE_CHECKING:
    from condor_actors.simulation.world.process import Process

__all__ = ["SimulatedPost"]


class SimulatedLink(Link):
    """A link whose broker is ours."""

    def make_broker(self, is_client: bool) -> Any:
        """An end of a simulated connection."""
        owner: Any = self._owner
        return Broker(self, owner.process)


class SimulatedPost(PostOffice):
    """The production's post office on the simulated network.

    Args:
        network: the wires.
        process: whose it is.
        machine_identity: what the machine's certificate says.

    Attributes:
        asked_for: who answers a bare connection, by its first line.
        accepted: how many of those from other pools it got, by pool.
    """

    def __init__(self, network: Network, process: Process, machine_identity: Identity, uid_domain: str,
                 log: Logger) -> None:
        self.network = network
        self.process = process
        self._machine_identity = machine_identity
        self.accepted: Counter[str] = Counter()
        self.asked_for: dict[bytes, Callable[[AskedBarely, str], None]] = {}
        super().__init__(process.clock, random=process.random, process=process.kind, uid_domain=uid_domain, log=log)

    def listen(self, node: str) -> None:
        """Take connections at a node, ``unix:/path`` or ``<host:port>``."""
        self.network.listeners[node] = self
        if node.startswith("<"):
            self.public_node = node

    def partners(self) -> tuple[KnownPartner, ...]:
        """The pools that its own trusts."""
        machine = self.process.machine
        return machine.pool.partners_of(machine.spec.pool)

    def connect(self, node: str) -> Deferred[IProtocol]:
        """Dial for a :class:`Dialled`."""
        parsed = parse_node(node)
        if isinstance(parsed, TlsNode) and parsed.realm and self.gateways:
            return through_gateways(self, node)
        return self.network.connect(self, node)

    def own_identity(self, local: bool) -> Identity:
        """Who we are for someone who dialled us."""
        return self.process.local_identity() if local else self._machine_identity

    def identity_for(self, target: SimulatedPost, local: bool) -> Identity:
        """Who we are for someone whom we dial."""
        return self.process.local_identity() if local else self.process.remote_identity(self._machine_identity)

    def inbound_link(self, identity: Identity) -> SimulatedLink:
        """A link for a connection that came in."""
        self._last_inbound += 1
        link = self._new_link(f"in:{self._last_inbound}", identity, is_client=False)
        assert isinstance(link, SimulatedLink)
        return link

    def _new_link(self, node: str, identity: Identity, *, is_client: bool) -> Link:
        link = SimulatedLink(self, node, identity, self.clock, self._hello(), is_client=is_client)
        self._greeting.add(link)
        return link

    def identify(self, link: Link, transport: Any) -> bool:
        """Certificates and credentials are in order here."""
        return True

    def link_received(self, link: Link, envelopes: list[Envelope]) -> None:
        """Envelopes came in; the trace sees them first."""
        network = self.network
        wire = end_of(link).wire
        assert wire is not None
        sender = end_of(link).peer or end_of(link).other.process
        if network.carried is not None:
            for envelope in envelopes:
                network.carried(sender, self.process, envelope)
        if self.process.kind == "startd":
            envelopes = self._wronged(sender, envelopes)
        if network.ambushes and self._ambushed(envelopes, wire):
            return
        super().link_received(link, envelopes)

    def _wronged(self, sender: Process, envelopes: list[Envelope]) -> list[Envelope]:
        """What a startd gets where a partner does wrong: its own answers nobody, or the asking one asks twice."""
        here, there = self.process.machine.spec.pool, sender.machine.spec.pool
        if here == there:
            return envelopes
        if here in self.network.wrongdoers["mute"]:
            return [each for each in envelopes if each.kind != RequestClaim.KIND]
        if there in self.network.wrongdoers["greedy"]:
            envelopes = envelopes + [attrs.evolve(each, message_id=f"{each.message_id}.{number}")
                                     for each in envelopes if each.kind == RequestClaim.KIND for number in range(3)]
        return envelopes

    def _ambushed(self, envelopes: list[Envelope], wire: Wire) -> bool:
        """Spring what waits for one of these; whether the process is dead now."""
        process = self.process
        for envelope in envelopes:
            how = self.network.ambushes.pop((process.machine.name, process.kind, envelope.kind), "")
            if how == "kill":
                process.machine.kill(process)
                return True
            if how == "reset":
                wire.reset()
            if how == "raise":
                process.machine.pool.trips.arm_message(process, envelope.kind)
        return False
