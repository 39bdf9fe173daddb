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

from condor_actors.messages.envelope import Envelope, Identity
from condor_actors.messages.realm import MARK, abroad
from condor_actors.simulation.world.clock import HeapClock
from condor_actors.wire.link import Link
from condor_actors.wire.relays.dialing import CONNECT_S

if TYPE_CHECKING:
    from condor_actors.simulation.world.post import SimulatedPost
    from condor_actors.simulation.world.process import Process

__all__ = ["Broker", "End", "Network", "Path", "end_of", "pool_of", "seen_at", "seen_from"]

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
        paths: what differs from ``far`` for a while, by (from, to); far: what always differs from ``usual``.
        listeners: who listens, by node.
        carried: told of each envelope that arrives: (from, to, envelope); joined: of each connection: (from, to).
        frames: how many frames were sent.
        wrongdoers: pools whose daemons do wrong now, by what they do: ``mute`` or ``greedy``.
        ambushes: ``kill``, ``reset`` or ``raise`` by (machine, daemon, kind of the message that is waited for).
    """

    def __init__(self, clock: HeapClock, random: Random) -> None:
        self.clock = clock
        self.random = random
        self.usual = Path()
        self.local = Path(delay_s=0.00005)
        self.paths: dict[tuple[str, str], Path] = {}
        self.far: dict[tuple[str, str], Path] = {}
        self.listeners: dict[str, SimulatedPost] = {}
        self.powered: set[str] = set()
        self.carried: Callable[[Process, Process, Envelope], None] | None = None
        self.joined: Callable[[Process, Process], None] | None = None
        self.frames = 0
        self.wrongdoers: dict[str, set[str]] = {"mute": set(), "greedy": set()}
        self.ambushes: dict[tuple[str, str, str], str] = {}
        self._wires: dict[Wire, None] = {}

    def path(self, start: str, end: str) -> Path:
        """The way from a machine to another."""
        if start == end:
            return self.local
        return self.paths.get((start, end)) or self.far.get((start, end), self.usual)

    def change(self, start: str, end: str) -> Path:
        """The way from a machine to another, to be changed."""
        return self.paths.setdefault((start, end), attrs.evolve(self.far.get((start, end), self.usual)))

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
        return self.reach(post, node, self._linked)

    def reach(self, post: SimulatedPost, node: str,
              made: Callable[[SimulatedPost, str, SimulatedPost, Deferred[Any]], None]) -> Deferred[Any]:
        """Reach who listens at a node, then have ``made`` make the connection and fire what is returned."""
        result: Deferred[Any] = Deferred()
        start = post.process.machine.name
        target = self.listeners.get(_plain(node))
        end = target.process.machine.name if target is not None else self._machine_of(_plain(node)) or start
        there, back = self.path(start, end), self.path(end, start)
        if there.cut or back.cut or end not in self.powered:
            post.process.clock.callLater(CONNECT_S, self._give_up, result)
        else:
            turn_s = self.latency_s(there, 60) + self.latency_s(back, 60)
            post.process.clock.callLater(turn_s, self._reached, post, node, made, result)
        return result

    @staticmethod
    def _machine_of(node: str) -> str:
        return node.strip("<>").partition(":")[0] if node.startswith("<") else ""

    @staticmethod
    def _give_up(result: Deferred[IProtocol]) -> None:
        if not result.called:
            result.errback(error.TimeoutError())

    def _reached(self, post: SimulatedPost, node: str,
                 made: Callable[[SimulatedPost, str, SimulatedPost, Deferred[Any]], None],
                 result: Deferred[Any]) -> None:
        if result.called:
            return
        target = self.listeners.get(_plain(node))
        if target is None or not target.process.alive:
            result.errback(error.ConnectionRefusedError())
        else:
            made(post, node, target, result)

    def _linked(self, post: SimulatedPost, node: str, target: SimulatedPost, result: Deferred[Any]) -> None:
        near = post.dialled_link(node)
        far = target.inbound_link(seen_at(target, post, local=node.startswith("unix:")))
        self.join(end_of(near), end_of(far))
        near.identity = seen_from(target.own_identity(local=node.startswith("unix:")), pool_of(target), pool_of(post))
        result.callback(near.broker)
        target.process.clock.callLater(0.0, far.broker_ready)
        near.broker_ready()

    def join(self, near: End, far: End) -> None:
        """Two processes have a connection."""
        self._wires[Wire(self, near, far)] = None
        if self.joined is not None:
            self.joined(near.process, far.process)

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


def pool_of(post: SimulatedPost) -> str:
    """The pool of its machine."""
    return post.process.machine.spec.pool


def seen_at(target: SimulatedPost, post: SimulatedPost, *, local: bool) -> Identity:
    """Who dials, as it is known where it dials."""
    return seen_from(post.identity_for(target, local=local), pool_of(post), pool_of(target))


def seen_from(identity: Identity, own: str, other: str) -> Identity:
    """A machine or user of the pool ``own`` as its certificate is read in the pool ``other``."""
    if own == other:
        return identity
    hosts = identity.hosts or {identity.host.lower()}
    name = abroad(identity.name, own) if "shadow" in identity.roles else identity.name
    return attrs.evolve(identity, name=name, host=abroad(identity.host, own), realm=own,
                        hosts=frozenset() if "shadow" in identity.roles else frozenset(abroad(h, own) for h in hosts))


class Wire:
    """One connection: two ends and what is under way between them."""

    def __init__(self, network: Network, near: End, far: End) -> None:
        self.network = network
        self.near, self.far = near, far
        self.machines = near.process.machine.name, far.process.machine.name
        near.join(self, far, (self.machines[1], self.machines[0]))
        far.join(self, near, self.machines)
        self._epoch = 0

    def replace(self, end: End, by: End) -> None:
        """Another takes the place of an end, with what is on its way there."""
        by.join(self, end.other, end.way)
        by.last_s, by.held = end.last_s, end.held
        end.other.other = by
        if self.near is end:
            self.near = by
        else:
            self.far = by

    def carry(self, target: End, frame: Any, size: int) -> None:
        """Bring a frame (or, None, the end of the stream) to an end, after what was sent there before."""
        network = self.network
        path = network.path(*target.way)
        if path.cut or target.held:
            target.held.append((frame, size))
        else:
            self._send(target, path, frame, size)

    def _send(self, target: End, path: Path, frame: Any, size: int) -> None:
        network = self.network
        clock = network.clock
        network.frames += 1
        arrives_s = clock.now_s + network.latency_s(path, size)
        arrives_s = max(arrives_s, target.last_s)
        target.last_s = arrives_s
        clock.callLater(arrives_s - clock.now_s, self._arrive, target, frame, self._epoch)

    def _arrive(self, target: End, frame: Any, epoch: int) -> None:
        if epoch == self._epoch and not target.silent:
            target.process.clock.run(target.receive, frame)

    def resume(self) -> None:
        """A way was mended: what it held goes on, a retransmission later."""
        for target in (self.near, self.far):
            if target.held and not self.network.path(*target.way).cut:
                self.network.clock.callLater(RETRANSMIT_S, self._go_on, target, self._epoch)

    def _go_on(self, target: End, epoch: int) -> None:
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

    def closed_by(self, end: End, abruptly: bool) -> None:
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

    def spoken_to(self, sender: End) -> bool:
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


class End:
    """One end of a connection.

    Attributes:
        other: the other end; way: (from, to) of what comes here.
        last_s: when the last frame under way arrives here; held: frames that a cut path keeps from here.
        silent: its process is dead.
    """

    other: End
    way: tuple[str, str]

    def __init__(self, process: Process) -> None:
        self.process = process
        self.wire: Wire | None = None
        self.last_s = 0.0
        self.held: list[tuple[Any, int]] = []
        self.silent = False
        self.over = False

    def join(self, wire: Wire, other: End, way: tuple[str, str]) -> None:
        """It is an end of a connection now."""
        self.wire, self.other, self.way = wire, other, way

    def send(self, frame: Any, size: int) -> None:
        """Send something, if the other end is there."""
        wire = self.wire
        if wire is not None and not self.over and (not self.other.silent or wire.spoken_to(self)):
            wire.carry(self.other, frame, size + FRAME_OVERHEAD_BYTES)

    def receive(self, frame: Any) -> None:
        """A frame has come, or (None) the end of the stream."""
        raise NotImplementedError

    def ended(self) -> None:
        """The other end has hung up."""
        if self.wire is not None:
            self.wire.network.forget(self.wire)
        self.lost("Connection was closed cleanly.")

    def hang_up(self) -> None:
        """Close, after what was sent."""
        if self.wire is not None and not self.over:
            self.wire.closed_by(self, abruptly=False)

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        raise NotImplementedError


class Broker(End):
    """The end of a link, in place of the Perspective Broker's.

    Attributes:
        peer: the process that speaks at the true other end, where gateways pass on what it says.
    """

    currentDialect = b"pb"

    def __init__(self, link: Link, process: Process) -> None:
        super().__init__(process)
        self.link = link
        self.peer: Process | None = None
        self.transport: Any = self
        self._violation = ""

    def deliver(self, frame: bytes) -> None:
        """Send a frame."""
        if not self._violation:
            self.send(frame, len(frame))

    def receive(self, frame: bytes | None) -> None:
        """A frame has come, or the end of the stream."""
        if self.over or self._violation:
            return
        if frame is None:
            self.ended()
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

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        if not self.over:
            self.over = True
            self.link.broker_lost(self._violation or reason)


def end_of(link: Link) -> Broker:
    """The end of the connection on which a link is."""
    broker: Any = link.broker
    assert isinstance(broker, Broker)
    return broker
