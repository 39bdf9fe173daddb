"""Several actor systems in one test, joined by an in-memory network on a simulated clock.

Use::

    net = LocalNetwork()
    schedd = net.system("<schedd:1>", identity=Identity(name="condor@pool", roles=frozenset({"schedd"})))
    startd = net.system("<startd:1>")
    probe = net.probe(schedd, "probe")
    probe.ask(Address("<startd:1>", "startd"), Ping())
    net.run(1.0)                       # one simulated second, event by event
    assert isinstance(probe.answers[0], Pong)

Nodes are as in production: who is dialled keeps its name, who dialled appears as ``in:N``.  ``net.cut(a, b)`` and
``net.heal(a, b)`` break and mend the path, ``net.silence(a, b)`` loses what is said on it; ``net.crash(node)`` is
``kill -9``, ``net.system(node)`` again is a restart.
Everything that crosses is encoded and decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
from twisted.logger import Logger

from condor_actors.actors import Actor, ActorSystem, PostReceiver, World
from condor_actors.messages.envelope import SELF, Address, Delivery, Envelope, Identity, Level
from tests.harness.clock import SteppingClock


@attrs.define(eq=False)
class _Link:
    """A connection: ``dialler`` calls the other end by its name and is ``in:N`` there."""

    dialler: LocalPost
    listener: LocalPost
    inbound: str
    up: bool = True

    def other(self, end: LocalPost) -> LocalPost:
        return self.listener if end is self.dialler else self.dialler

    def name_at(self, end: LocalPost) -> str:
        """What ``end`` calls the other side."""
        return self.listener.public_node if end is self.dialler else self.inbound


class LocalPost:
    """One process's edge to the :class:`LocalNetwork`."""

    def __init__(self, network: LocalNetwork, node: str, identity: Identity) -> None:
        self.public_node = node
        self.identity = identity
        self.alive = True
        self.watched: set[str] = set()
        self.links: dict[str, _Link] = {}
        self.receiver: PostReceiver | None = None
        self._network = network
        self._inbound = 0

    def attach(self, receiver: PostReceiver) -> None:
        """Deliver to ``receiver``."""
        self.receiver = receiver

    def send(self, to: Address, envelope: Envelope) -> None:
        """Send over the link to ``to.node``, dialling when there is none."""
        self._network.clock.callLater(0.0, self._send, to, envelope)

    def _send(self, to: Address, envelope: Envelope) -> None:
        if not self.alive:
            return
        link = self.links.get(to.node) or self._network.dial(self, to.node)
        if link is None:
            assert self.receiver is not None
            self.receiver.undeliverable(to.node, envelope, "unreachable", f"nobody answers at {to.node}")
            return
        self._network.carry(link, self, envelope)

    def flush(self) -> None:
        """Nothing waits: every envelope is on its way at once."""

    def watch(self, node: str) -> None:
        """Keep a link and report its state."""
        self.watched.add(node)
        self._network.clock.callLater(0.0, self._keep, node)

    def unwatch(self, node: str) -> None:
        """Stop keeping a link."""
        self.watched.discard(node)

    def _keep(self, node: str) -> None:
        if self.alive and node in self.watched and node not in self.links and self._network.dial(self, node) is None:
            assert self.receiver is not None
            self.receiver.link_down(node, f"nobody answers at {node}")
            if not node.startswith("in:"):
                self._network.clock.callLater(self._network.redial_s, self._keep, node)

    def add_inbound(self) -> str:
        """A fresh ``in:N``."""
        self._inbound += 1
        return f"in:{self._inbound}"


class LocalNetwork:
    """The wires, the clock and the systems on them.

    Attributes:
        clock: drives everything.
        latency_s: one way.
        redial_s: between attempts to reach a watched node.
        carried: every envelope that arrived, as (from, to, envelope), for assertions.
    """

    def __init__(self, *, seed: int = 1, latency_s: float = 0.0, redial_s: float = 5.0) -> None:
        self.clock = SteppingClock()
        self.random = Random(seed)
        self.latency_s = latency_s
        self.redial_s = redial_s
        self.posts: dict[str, LocalPost] = {}
        self.systems: dict[str, ActorSystem] = {}
        self.carried: list[tuple[str, str, Envelope]] = []
        self.exhausted: list[str] = []
        self._cuts: set[frozenset[str]] = set()
        self._silent: set[frozenset[str]] = set()
        self._links: list[_Link] = []

    def world(self, node: str, *, identity: Identity = SELF,
              authorize: Callable[[Identity, Level], bool] | None = None, **edges: Any) -> World:
        """A ``World`` at ``node`` whose post is this network; ``edges`` are further fields of ``World``."""
        assert node not in self.posts or not self.posts[node].alive, f"{node} runs already"
        post = self.posts[node] = LocalPost(self, node, identity)
        if authorize is not None:
            edges["authorize"] = authorize
        edges.setdefault("log", Logger("condor.test"))
        return World(reactor_time=self.clock, wall_clock=self.clock.wall, random=Random(self.random.getrandbits(64)),
                     post=post, exhausted=self.exhausted.append, **edges)

    def system(self, node: str, *, identity: Identity = SELF, commit: Callable[[Sequence[Any]], None] | None = None,
               authorize: Callable[[Identity, Level], bool] | None = None, encode_every: int = 1) -> ActorSystem:
        """An actor system at ``node``; one already there is adopted when its post is this network's."""
        world = self.world(node, identity=identity, authorize=authorize)
        return self.adopt(node, world.make_system(commit=commit, encode_every=encode_every))

    def adopt(self, node: str, system: ActorSystem) -> ActorSystem:
        """Remember the system that a daemon made from :meth:`world`, so that :meth:`crash` finds it."""
        self.systems[node] = system
        return system

    def probe(self, system: ActorSystem, name: str = "probe") -> Probe:
        """Spawn a :class:`Probe` on a system."""
        probe = Probe()
        system.spawn(name, lambda: probe)
        self.run()
        return probe

    def run(self, span_s: float = 0.0) -> None:
        """Let time pass, event by event."""
        self.clock.run(span_s)

    # ---- links

    def dial(self, post: LocalPost, node: str) -> _Link | None:
        """Make a link from ``post`` to ``node``; None when nobody is there."""
        other = self.posts.get(node)
        if other is None or not other.alive or frozenset((post.public_node, node)) in self._cuts:
            return None
        link = _Link(post, other, other.add_inbound())
        post.links[node] = link
        other.links[link.inbound] = link
        self._links.append(link)
        assert post.receiver is not None
        assert other.receiver is not None
        other.receiver.link_up(link.inbound, post.identity)
        post.receiver.link_up(node, other.identity)
        return link

    def carry(self, link: _Link, sender: LocalPost, envelope: Envelope) -> None:
        """Bring an envelope to the other end of its link."""
        self.clock.callLater(self.latency_s, self._arrive, link, sender, envelope)

    def _arrive(self, link: _Link, sender: LocalPost, envelope: Envelope) -> None:
        target = link.other(sender)
        if not link.up or not target.alive or frozenset((sender.public_node, target.public_node)) in self._silent:
            return
        self.carried.append((sender.public_node, target.public_node, envelope))
        assert target.receiver is not None
        target.receiver.arrived(link.name_at(target), sender.identity, envelope)

    def cut(self, one: str, other: str) -> None:
        """Break the path between two nodes."""
        self._cuts.add(frozenset((one, other)))
        self._drop(lambda link: {link.dialler.public_node, link.listener.public_node} == {one, other})

    def silence(self, one: str, other: str) -> None:
        """Lose everything on the path between two nodes; neither notices."""
        self._silent.add(frozenset((one, other)))

    def heal(self, one: str, other: str) -> None:
        """Mend the path."""
        self._cuts.discard(frozenset((one, other)))
        self._silent.discard(frozenset((one, other)))

    def crash(self, node: str) -> None:
        """``kill -9`` the process at ``node``."""
        self.posts[node].alive = False
        self.systems[node].abandon()
        self._drop(lambda link: node in (link.dialler.public_node, link.listener.public_node))

    def _drop(self, wanted: Callable[[_Link], bool]) -> None:
        for link in [each for each in self._links if wanted(each)]:
            self._links.remove(link)
            link.up = False
            for end in (link.dialler, link.listener):
                name = link.name_at(end)
                if end.links.get(name) is link:
                    del end.links[name]
                if end.alive and end.receiver is not None:
                    end.receiver.link_down(name, "the link was lost")
                    if name in end.watched and not name.startswith("in:"):
                        self.clock.callLater(self.redial_s, end._keep, name)

    def stop(self) -> None:
        """Stop every system that still runs."""
        for node, system in self.systems.items():
            if self.posts[node].alive:
                system.stop()
                self.posts[node].alive = False


class Probe(Actor):
    """An actor that a test speaks through.

    Attributes:
        deliveries: what it received.
        answers: messages that answered its questions, in order of arrival.
        on_message: called with each delivery, when set; may use ``probe.context``.
    """

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.answers: list[Any] = []
        self.on_message: Callable[[Delivery], None] | None = None

    @property
    def messages(self) -> list[Any]:
        """The messages of :attr:`deliveries`."""
        return [delivery.message for delivery in self.deliveries]

    def receive(self, delivery: Delivery) -> None:
        """Keep it."""
        self.deliveries.append(delivery)
        if self.on_message is not None:
            self.on_message(delivery)

    def tell(self, to: Address, message: Any) -> None:
        """Send one way."""
        self.context.tell(to, message)

    def ask(self, to: Address, message: Any, timeout_s: float = 20.0) -> None:
        """Ask; the answer joins :attr:`answers`."""
        self.context.ask(to, message, timeout_s=timeout_s, then=lambda answer: self.answers.append(answer.message))
