"""The simulated network: connections between processes, over paths that are slow, cut, one-way or broken.

Theory: what is above TCP is the production's (:class:`PostOffice`, :class:`Dialled`, :class:`Link`: greeting, batches,
acknowledgements, silence, sending again); here is what TCP gives it.  A connection carries frames in order or breaks.
A lost packet shows as a delay (it is sent again); a cut path holds what was sent until it heals or one end gives up;
a reset loses what is under way, and nobody can tell how much of it had arrived; a machine without power says nothing
more, so that its peers' connections stay half open until someone speaks to it or 90 s of silence have passed.

===============  =====================================================================================
path             what a frame meets
===============  =====================================================================================
``delay_s``      at least this long one way, and up to ``jitter_s`` more
``loss``         the share of frames that are lost and sent again, 0.2 s later, 0.4 s, …
``bytes_per_s``  how fast they leave; 0: at once
``cut``          nothing passes this way until it heals
===============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol
from twisted.logger import Logger

from condor_actors.messages.envelope import Envelope, Identity
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import MARK, abroad
from condor_actors.simulation.world.clock import HeapClock
from condor_actors.wire.link import Link
from condor_actors.wire.post_office import PostOffice
from condor_actors.wire.relays.ways import CONNECT_S

if TYPE_CHECKING:
    from condor_actors.simulation.world.process import Process

__all__ = ["Network", "Path", "SimulatedPost"]

RETRANSMIT_S = 0.2
FRAME_OVERHEAD_BYTES = 80


@attrs.define
class Path:
    """One direction between two machines; see the module."""

    delay_s: float = 0.0005
    jitter_s: float = 0.0
    loss: float = 0.0
    bytes_per_s: float = 0.0
    cut: bool = False


class Network:
    """All machines' connections.

    Attributes:
        paths: what differs from ``usual``, by (from, to).
        listeners: who listens, by node.
        carried: told of each envelope that arrives: (from, to, envelope).
        frames: how many frames were sent.
        ambushes: ``kill``, ``reset`` or ``raise`` by (machine, daemon, kind of the message that is waited for).
    """

    def __init__(self, clock: HeapClock, random: Random) -> None:
        self.clock = clock
        self.random = random
        self.usual = Path()
        self.local = Path(delay_s=0.00005)
        self.paths: dict[tuple[str, str], Path] = {}
        self.listeners: dict[str, SimulatedPost] = {}
        self.powered: set[str] = set()
        self.carried: Callable[[Process, Process, Envelope], None] | None = None
        self.frames = 0
        self.ambushes: dict[tuple[str, str, str], str] = {}
        self._wires: dict[Wire, None] = {}

    def path(self, start: str, end: str) -> Path:
        """The way from a machine to another."""
        if start == end:
            return self.local
        return self.paths.get((start, end), self.usual)

    def change(self, start: str, end: str) -> Path:
        """The way from a machine to another, to be changed."""
        return self.paths.setdefault((start, end), attrs.evolve(self.usual))

    def mend(self, start: str, end: str) -> None:
        """The way is as usual again; what it held goes on."""
        self.paths.pop((start, end), None)
        for wire in tuple(self._wires):
            wire.resume()

    def latency_s(self, path: Path, size: int) -> float:
        """How long a frame of ``size`` bytes takes."""
        delay_s = path.delay_s
        if path is self.local:
            return delay_s
        if path.jitter_s:
            delay_s += path.jitter_s * self.random.random()
        if path.loss:
            again_s = RETRANSMIT_S
            while self.random.random() < path.loss and again_s < 60.0:
                delay_s += again_s
                again_s *= 2.0
        if path.bytes_per_s:
            delay_s += size / path.bytes_per_s
        return delay_s

    # ---- connections

    def connect(self, post: SimulatedPost, node: str) -> Deferred[IProtocol]:
        """Dial: fires with the link's broker, or fails as TCP would."""
        result: Deferred[IProtocol] = Deferred()
        start = post.process.machine.name
        target = self.listeners.get(_plain(node))
        end = target.process.machine.name if target is not None else self._machine_of(_plain(node)) or start
        there, back = self.path(start, end), self.path(end, start)
        if there.cut or back.cut or end not in self.powered:
            post.process.clock.callLater(CONNECT_S, self._give_up, result)
        else:
            turn_s = self.latency_s(there, 60) + self.latency_s(back, 60)
            post.process.clock.callLater(turn_s, self._connected, post, node, result)
        return result

    @staticmethod
    def _machine_of(node: str) -> str:
        return node.strip("<>").partition(":")[0] if node.startswith("<") else ""

    @staticmethod
    def _give_up(result: Deferred[IProtocol]) -> None:
        if not result.called:
            result.errback(error.TimeoutError())

    def _connected(self, post: SimulatedPost, node: str, result: Deferred[IProtocol]) -> None:
        if result.called:
            return
        target = self.listeners.get(_plain(node))
        if target is None or not target.process.alive:
            result.errback(error.ConnectionRefusedError())
            return
        near = post.dialled_link(node)
        here, there = post.process.machine.spec.pool, target.process.machine.spec.pool
        far = target.inbound_link(_seen_from(post.identity_for(target, local=node.startswith("unix:")), here, there))
        wire = Wire(self, _end_of(near), _end_of(far))
        near.identity = _seen_from(target.own_identity(local=node.startswith("unix:")), there, here)
        self._wires[wire] = None
        result.callback(near.broker)
        target.process.clock.callLater(0.0, far.broker_ready)
        near.broker_ready()

    def forget(self, wire: Wire) -> None:
        """A connection is no more."""
        self._wires.pop(wire, None)

    def reset(self, wanted: Callable[[str, str], bool], lossy: bool = True) -> int:
        """Break the connections between machines that ``wanted`` names; returns how many."""
        hit = [wire for wire in self._wires if wanted(*wire.machines)]
        for wire in hit:
            wire.reset(lossy)
        return len(hit)

    def died(self, process: Process, silent: bool) -> None:
        """A process ended: its machine closes its connections, unless it has no power."""
        for wire in [each for each in self._wires if process in (each.near.process, each.far.process)]:
            wire.end_died(process, silent)
        for node in [node for node, post in self.listeners.items() if post.process is process]:
            del self.listeners[node]


def _plain(node: str) -> str:
    """A node as its own pool calls it: names are unique in the simulation."""
    host, colon, port = node.rpartition(":")
    return f"{host.partition(MARK)[0]}{colon}{port}" if node.startswith("<") else node


def _seen_from(identity: Identity, own: str, other: str) -> Identity:
    """A machine or user of the pool ``own`` as its certificate is read in the pool ``other``."""
    if own == other:
        return identity
    hosts = identity.hosts or {identity.host.lower()}
    name = abroad(identity.name, own) if "shadow" in identity.roles else identity.name
    return attrs.evolve(identity, name=name, host=abroad(identity.host, own), realm=own,
                        hosts=frozenset() if "shadow" in identity.roles else frozenset(abroad(h, own) for h in hosts))


class Wire:
    """One connection: two ends and what is under way between them."""

    def __init__(self, network: Network, near: Broker, far: Broker) -> None:
        self.network = network
        self.near, self.far = near, far
        self.machines = near.process.machine.name, far.process.machine.name
        near.join(self, far, (self.machines[1], self.machines[0]))
        far.join(self, near, self.machines)
        self._epoch = 0

    def carry(self, target: Broker, frame: Any, size: int) -> None:
        """Bring a frame (or, None, the end of the stream) to an end, after what was sent there before."""
        network = self.network
        path = network.path(*target.way)
        if path.cut or target.held:
            target.held.append((frame, size))
        else:
            self._send(target, path, frame, size)

    def _send(self, target: Broker, path: Path, frame: Any, size: int) -> None:
        network = self.network
        clock = network.clock
        network.frames += 1
        arrives_s = clock.now_s + network.latency_s(path, size)
        arrives_s = max(arrives_s, target.last_s)
        target.last_s = arrives_s
        clock.callLater(arrives_s - clock.now_s, self._arrive, target, frame, self._epoch)

    def _arrive(self, target: Broker, frame: Any, epoch: int) -> None:
        if epoch == self._epoch and not target.silent:
            target.process.clock.run(target.receive, frame)

    def resume(self) -> None:
        """A way was mended: what it held goes on, a retransmission later."""
        for target in (self.near, self.far):
            if target.held and not self.network.path(*target.way).cut:
                self.network.clock.callLater(RETRANSMIT_S, self._go_on, target, self._epoch)

    def _go_on(self, target: Broker, epoch: int) -> None:
        path = self.network.path(*target.way)
        if epoch == self._epoch and not path.cut:
            held, target.held = target.held, []
            for frame, size in held:
                self._send(target, path, frame, size)

    def reset(self, lossy: bool = True) -> None:
        """Both ends lose the connection now; what is under way is lost."""
        if lossy:
            self._epoch += 1
        self.network.forget(self)
        for end in (self.near, self.far):
            if not end.silent:
                end.process.clock.callLater(0.0, end.lost, "Connection was reset by peer.")

    def closed_by(self, end: Broker, abruptly: bool) -> None:
        """An end hangs up: the other one hears of it after what was sent before."""
        self.network.forget(self)
        end.process.clock.callLater(0.0, end.lost, "Connection was closed cleanly.")
        if not end.other.silent:
            self.network._wires[self] = None
            self.carry(end.other, None, 40)

    def end_died(self, process: Process, silent: bool) -> None:
        """The process at an end died; ``silent``: with its machine."""
        end = self.near if self.near.process is process else self.far
        end.silent = True
        if end.other.silent:
            self.network.forget(self)
        elif silent:
            end.other.held.clear()
            self._epoch += 1
        else:
            self.carry(end.other, None, 40)

    def spoken_to(self, sender: Broker) -> bool:
        """Whether someone hears what ``sender`` says: a machine that has come back resets what it does not know."""
        other = sender.other
        if not other.silent:
            return True
        machine = self.machines[1] if other is self.far else self.machines[0]
        path = self.network.path(*other.way)
        if machine in self.network.powered and not path.cut and not self.network.path(*sender.way).cut:
            self.network.forget(self)
            sender.process.clock.callLater(2.0 * path.delay_s, sender.lost, "Connection was reset by peer.")
        return False


class Broker:
    """One end of a connection, in place of the Perspective Broker's.

    Attributes:
        other: the other end; way: (from, to) of what comes here.
        last_s: when the last frame under way arrives here; held: frames that a cut path keeps from here.
        silent: its process is dead.
    """

    currentDialect = b"pb"
    other: Broker
    way: tuple[str, str]

    def __init__(self, link: Link, process: Process) -> None:
        self.link = link
        self.process = process
        self.wire: Wire | None = None
        self.transport: Any = self
        self.last_s = 0.0
        self.held: list[tuple[Any, int]] = []
        self.silent = False
        self._violation = ""
        self._over = False

    def join(self, wire: Wire, other: Broker, way: tuple[str, str]) -> None:
        """It is an end of a connection now."""
        self.wire, self.other, self.way = wire, other, way

    def deliver(self, frame: bytes) -> None:
        """Send a frame."""
        wire = self.wire
        if wire is not None and not self._over and not self._violation and (
                not self.other.silent or wire.spoken_to(self)):
            wire.carry(self.other, frame, len(frame) + FRAME_OVERHEAD_BYTES)

    def receive(self, frame: bytes | None) -> None:
        """A frame has come, or the end of the stream."""
        if self._over or self._violation:
            return
        if frame is None:
            if self.wire is not None:
                self.wire.network.forget(self.wire)
            self.lost("Connection was closed cleanly.")
            return
        try:
            self.link.frame_received(frame)
        except ValueError as error:
            self.violated(str(error))

    def violated(self, why: str) -> None:
        """Hang up on a peer that does not keep to the protocol, or does not speak."""
        if not self._violation and self.wire is not None:
            self._violation = why
            self.wire.closed_by(self, abruptly=True)

    def hang_up(self) -> None:
        """Close, after what was sent."""
        if self.wire is not None and not self._over:
            self.wire.closed_by(self, abruptly=False)

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        if not self._over:
            self._over = True
            self.link.broker_lost(self._violation or reason)


def _end_of(link: Link) -> Broker:
    broker: Any = link.broker
    assert isinstance(broker, Broker)
    return broker


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
    """

    def __init__(self, network: Network, process: Process, machine_identity: Identity, uid_domain: str,
                 log: Logger) -> None:
        self.network = network
        self.process = process
        self._machine_identity = machine_identity
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
        wire = _end_of(link).wire
        assert wire is not None
        sender = _end_of(link).other.process
        if network.carried is not None:
            for envelope in envelopes:
                network.carried(sender, self.process, envelope)
        if network.ambushes and self._ambushed(envelopes, wire):
            return
        super().link_received(link, envelopes)

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
