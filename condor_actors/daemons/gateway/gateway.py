"""The gateway: carries what this pool and its partners have to say to each other.

Theory: machines of two pools that lend each other machines need not reach one another.  Each reaches its own gateway,
and one of the two gateways the other.  The actor keeps the links to the partners' gateways and knows the pool's
machines; the circuits themselves are made in :mod:`condor_actors.daemons.gateway.circuits`.  A gateway keeps nothing
on disk: one that was killed and started again relays at once what is requested, and clients that had a connection
through it dial again.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IProtocol

from condor_actors.actors import Actor, World
from condor_actors.addresses import BadAddress, split_address
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.gateway.client_limits import ClientLimits, GatewaySettings
from condor_actors.cores.gateway.routes import OwnHosts, Routes
from condor_actors.daemons.collector_query import query_ads
from condor_actors.daemons.gateway.circuit_edges import CircuitEdges, real_edges
from condor_actors.daemons.gateway.circuits import Circuits
from condor_actors.daemons.master_settings import collectors_of
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.messages.envelope import (
    Address,
    AskFailed,
    Delivery,
    Done,
    Identity,
    Level,
    PeerDown,
    PeerUp,
    Refused,
    TimerFired,
)
from condor_actors.messages.flock import AnnounceGateway, GatewayState, OpenCircuit, PartnerState, QueryGateway
from condor_actors.messages.pool import PartnersKnown
from condor_actors.wire.admission import RESERVED_DESCRIPTORS
from condor_actors.wire.relays.dialing import GATEWAY_ROLE
from condor_actors.wire.relays.hop import NoCircuit

__all__ = ["ACTOR", "GatewayDaemon", "make_daemon"]

ACTOR = "gateway"
ASK_S = 10.0
LOOK_S = 60.0
BRING_S = 15.0
KINDS = (AdKind.MASTER, AdKind.COLLECTOR, AdKind.NEGOTIATOR, AdKind.SCHEDD, AdKind.SLOT, AdKind.STARTD)
"""The ads from which the doors of the pool's daemons are known."""


def doors_of(ad: ClassAd) -> Iterator[tuple[str, int]]:
    """The hosts and ports that an ad names: of the daemon, and of a startd's starter host, on the same host only.

    A machine's certificate covers the host of ``MyAddress``, which the collector has checked.
    """
    own = ""
    for attribute in ("MyAddress", "StarterAddress"):
        try:
            host, port = split_address(ad.get_str(attribute))
        except BadAddress:
            continue
        if port and host.lower() == (own or host.lower()):
            yield host, port
            own = host.lower()
        if not own:
            return


class GatewayActor(Actor):
    """Keeps the links to partners' gateways, and asks the collector where the pool's daemons are."""

    def __init__(self, daemon: GatewayDaemon) -> None:
        self.daemon = daemon
        self._found: set[tuple[str, int]] = set()
        self._looking = False
        self._waiting: list[Deferred[None]] = []

    def started(self) -> None:
        """Look who is there; the links that are up are told of again."""
        self._learn()
        for partner in self.daemon.routes.partners.values():
            for node in partner.gateways:
                self.context.watch(node)
        self.context.set_timer("look", 0.0)

    def receive(self, delivery: Delivery) -> None:
        """A link, a partner's gateway, an administrator, the time."""
        match delivery.message:
            case PartnersKnown():
                self._learn()
            case PeerUp(node=node):
                self._announce(node)
            case PeerDown(node=node, reason=reason):
                self.daemon.routes.down(node, reason)
            case AnnounceGateway():
                self._announced(delivery)
            case OpenCircuit():
                self._open(delivery)
            case QueryGateway():
                self.context.reply(delivery, self.daemon.state())
            case TimerFired():
                self.context.set_timer("look", LOOK_S)
                self.look(None)

    # ---- partners

    def _learn(self) -> None:
        daemon = self.daemon
        new, gone = daemon.routes.learn(daemon.world.post.partners())
        for node in new:
            self.context.watch(node)
        for node in gone:
            self.context.unwatch(node)
            daemon.routes.down(node, "it is no partner's any more")
        daemon.circuits.cut(lambda realm: not daemon.routes.objection(realm))

    def _announce(self, node: str) -> None:
        realm = self.daemon.routes.realm_of(node)
        if realm:
            self.context.ask(Address(node, ACTOR), AnnounceGateway(), timeout_s=ASK_S,
                             then=lambda answer: self._welcomed(realm, node, answer))

    def _welcomed(self, realm: str, node: str, answer: Delivery) -> None:
        said = answer.message
        if isinstance(said, Done) and answer.identity.realm == realm and GATEWAY_ROLE in answer.identity.roles:
            self.context.log.info("the gateway of {realm} at {node} is reached", realm=realm, node=node)
            self.daemon.routes.up(realm, node)
            return
        reason = said.text if isinstance(said, (Refused, AskFailed)) else f"{node} is no gateway of {realm}"
        self.context.log.warn("the gateway of {realm} at {node}: {reason}", realm=realm, node=node, reason=reason)
        self.daemon.routes.down(node, reason)

    def _announced(self, delivery: Delivery) -> None:
        identity = delivery.identity
        if not self._is_gateway(identity):
            self.context.reply(delivery, Refused(code="denied", text="only a partner's gateway is asked for circuits"))
            return
        self.context.log.info("the gateway of {realm} has dialled", realm=identity.realm)
        self.daemon.routes.announced(identity.realm, delivery.sender.node)
        self.context.watch(delivery.sender.node)
        self.context.reply(delivery, Done())

    def _is_gateway(self, identity: Identity) -> bool:
        return identity.realm in self.daemon.routes.partners and GATEWAY_ROLE in identity.roles

    def _open(self, delivery: Delivery) -> None:
        wanted, identity, node = delivery.message, delivery.identity, delivery.sender.node
        if not self._is_gateway(identity) or self.daemon.routes.realm_of(node) != identity.realm:
            self.context.reply(delivery, Refused(code="denied", text="only a partner's gateway has circuits brought"))
            return
        bringing = self.daemon.circuits.bring(identity, node, wanted.circuit, wanted.node)
        bringing.addCallbacks(lambda _: Done(), lambda failure: Refused(code="not-found", text=str(failure.value)))
        self.context.defer_to_turn(bringing, lambda answer: self.context.reply(delivery, answer))

    def ask_back(self, link: str, number: str, node: str, refused: Callable[[NoCircuit], None]) -> None:
        """Have the gateway that dialled us bring a circuit."""
        def answered(answer: Delivery) -> None:
            if not isinstance(answer.message, Done):
                text = getattr(answer.message, "text", "") or "its gateway does not answer"
                refused(NoCircuit(text, is_answer=isinstance(answer.message, Refused)))

        self.context.ask(Address(link, ACTOR), OpenCircuit(circuit=number, node=node), timeout_s=BRING_S, then=answered)

    # ---- the pool's daemons

    def look(self, wanted: tuple[str, int] | None) -> None:
        """Ask the collector where daemons are, if that is due."""
        if not self._looking and self.daemon.hosts.is_due(self.daemon.world.reactor_time.seconds(), wanted):
            self._looking, self._found = True, set()
            self._ask(0)
        elif not self._looking:
            self._tell_waiting()

    def await_look(self, wanted: tuple[str, int], done: Deferred[None]) -> None:
        """Have it asked because of a door that is not known; fires ``done`` afterwards."""
        self._waiting.append(done)
        self.look(wanted)

    def _ask(self, kind: int) -> None:
        question = QueryAds(ad_kind=KINDS[kind], projection=("MyAddress", "StarterAddress"))
        query_ads(self.context, self.daemon.collectors, question, timeout_s=ASK_S,
                  then=lambda ads: self._came(kind, ads), failed=self._came_not)

    def _came_not(self, why: str) -> None:
        self.context.log.warn("the collector does not say where the pool's daemons are: {why}", why=why)
        self._looked()

    def _came(self, kind: int, ads: list[bytes]) -> None:
        for text in ads:
            self._found.update(doors_of(ClassAd.from_bytes(text)))
        if kind + 1 < len(KINDS):
            self._ask(kind + 1)
        else:
            self.daemon.hosts.learn(self._found)
            self._looked()

    def _looked(self) -> None:
        self._looking = False
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            if not done.called:
                done.callback(None)

    def dropped(self) -> None:
        """No caller waits for an answer from an actor that was rebuilt."""
        self._tell_waiting()


class GatewayDaemon:
    """The daemon; see ``Daemon``.

    Raises:
        ConfigError: COLLECTOR_HOST is no address.
    """

    name = "gateway"

    def __init__(self, config: Config, world: World, edges: CircuitEdges) -> None:
        self.world: Any = world
        self.system = world.make_system()
        self.collectors = collectors_of(config)
        self.routes, self.hosts = Routes(), OwnHosts()
        room = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_DESCRIPTORS) // 2
        self.limits = ClientLimits(config.settings(GatewaySettings), room)
        self.circuits = Circuits(world.reactor_time, edges, self.routes, self.hosts, self.limits, self._may_ask,
                         self._ask_back, self._look, world.log, self._denied)
        self.reconfigure(config)

    def circuit(self, identity: Identity) -> IProtocol:
        """The protocol of who wants a circuit."""
        return self.circuits.circuit(identity)

    def circuit_back(self, identity: Identity) -> IProtocol:
        """The protocol of a partner's gateway that brings one."""
        return self.circuits.circuit_back(identity)

    def _may_ask(self, identity: Identity) -> bool:
        return "shadow" in identity.roles or bool(self.world.authorize(identity, Level.READ))

    def _actor(self) -> GatewayActor | None:
        actor = self.system.actor(ACTOR)
        return actor if isinstance(actor, GatewayActor) else None

    def _ask_back(self, link: str, number: str, node: str, refused: Callable[[NoCircuit], None]) -> None:
        actor = self._actor()
        if actor is None:
            refused(NoCircuit("this gateway is starting"))
        else:
            actor.context.as_turn(actor.ask_back)(link, number, node, refused)

    def _denied(self, identity: Identity, text: str) -> None:
        """A partner's gateway wanted what it does not get: for the audit log."""
        witness = self.system.witness
        if witness is not None:
            witness.refused_at_door("", identity, OpenCircuit.KIND, Refused(code="denied", text=text))

    def _look(self, door: tuple[str, int]) -> Deferred[None]:
        actor = self._actor()
        if actor is None:
            return succeed(None)
        done: Deferred[None] = Deferred()
        done.addTimeout(ASK_S, self.world.reactor_time, lambda *_: None)
        actor.context.as_turn(actor.await_look)(door, done)
        return done

    def state(self) -> GatewayState:
        """The partners, for administrators."""
        return GatewayState(partners=tuple(self._partner(name) for name in sorted(self.routes.partners)))

    def _partner(self, name: str) -> PartnerState:
        is_reached, route = self.routes.described(name)
        if not is_reached:
            office = self.world.post
            route = "; ".join([route, *office.strangers.recent(office.clock.seconds())])
        traffic, (out, back) = self.limits.between(name), self.circuits.open_bytes(name)
        return PartnerState(
            name=name, route=route, is_reached=is_reached, streams=traffic.streams, opening=traffic.opening,
            carried=traffic.carried, refused=traffic.refused, bytes_out=traffic.bytes_out + out,
            bytes_in=traffic.bytes_in + back)

    # ---- Daemon

    def start(self) -> None:
        """Spawn the actor."""
        self.system.spawn(ACTOR, lambda: GatewayActor(self))

    def stop(self, graceful: bool) -> Deferred[None]:
        """The circuits end with the process; who had them dials again."""
        self.circuits.cut(lambda _: False)
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Limits, and whose circuits are carried."""
        self.limits.settings = config.settings(GatewaySettings)
        self.routes.configure(config.list_of("FLOCK_FROM"), config.list_of("FLOCK_TO"))
        self.circuits.cut(lambda realm: not self.routes.objection(realm))

    def ad(self) -> ClassAd:
        """For ``condor_ping`` and its like."""
        streams = sum(each.streams for each in self.limits.traffic.values())
        return ClassAd({"MyType": "Gateway", "Name": "gateway", "MyAddress": self.world.post.public_node,
                        "Streams": streams})


def make_daemon(config: Config, world: World, edges: CircuitEdges | None = None) -> GatewayDaemon:
    """The gateway, not started.

    Args:
        edges: None: over sockets.

    Raises:
        ConfigError: COLLECTOR_HOST is no address.
    """
    office: Any = world.post
    daemon = GatewayDaemon(config, world, edges or real_edges(world.reactor_time, office))
    if edges is None:
        office.cutters.append(daemon.circuits.cut_off)
    return daemon
