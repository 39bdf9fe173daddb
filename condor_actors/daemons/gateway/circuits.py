"""The circuits that a gateway makes: who asks for them, what they are made of, and their end.

Theory: a circuit is asked for on one connection and leads over another; when both are bare, they are spliced.
Everything before that is *opening*, counted for who asked, with a time limit; a side that hangs up ends the rest.

=====================  ==================================  ====================================================
asked for by           leads to                            made by
=====================  ==================================  ====================================================
a member of the pool   a partner's machine                 dialling the partner's gateway; or asking it over its
                                                           link to dial us, and waiting for that (``circuit_back``);
                                                           when one gives no answer, by the partner's next
a partner's gateway    a daemon of this pool               dialling that (``relayed``)
a partner's gateway,   a daemon of this pool               dialling that, and the partner's gateway
over a link of ours
=====================  ==================================  ====================================================

The circuits belong to the process, not to its actor: when that is built anew they stay.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks
from twisted.internet.interfaces import IProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.cores.gateway.client_limits import ClientLimits
from condor_actors.cores.gateway.routes import AskBack, Dial, OwnHosts, Route, Routes
from condor_actors.daemons.gateway.circuit_edges import CircuitEdges, no_circuit
from condor_actors.machine.native.splice import Splice
from condor_actors.messages.envelope import Identity
from condor_actors.wire.nodes import BadNode
from condor_actors.wire.relays.dialing import GATEWAY_ROLE
from condor_actors.wire.relays.hop import Asked, NoCircuit
from condor_actors.wire.relays.lines import (
    BACK_LINE,
    CIRCUIT_LINE,
    NOBODY_THERE,
    RELAYED_LINE,
    partner_of,
    target_here,
    words,
)
from condor_actors.wire.relays.socket_handover import READY

__all__ = ["Circuits"]

BACK_S = 15.0


@attrs.define(eq=False)
class _Circuit:
    """One circuit: for whom it is counted, to which pool it leads or from which it comes, whose certificates opened its
    two connections, and what it is by now."""

    client: str
    realm: str
    opened_by: list[Identity] = attrs.field(factory=list)
    making: Deferred[Any] | None = None
    splice: Splice | None = None

    def to_and_from(self) -> tuple[int, int]:
        """The bytes to the partner and from it."""
        first, second = self.splice.carried if self.splice is not None else (0, 0)
        return (first, second) if self.client != self.realm else (second, first)


class Circuits:
    """The circuits of one gateway.

    Args:
        reactor: Twisted's.
        edges: make and join connections.
        routes, hosts, limits: what decides.
        may_ask: whether a user or host of this pool may have relayed connections.
        ask_back: asks the gateway at a link to bring a circuit: (link, number, node, refused(why)).
        look: has the collector asked where the pool's daemons are, one of which may be at a door that was asked for.
        denied: is told of a partner's gateway that wants what it does not get.
    """

    def __init__(self, reactor: Any, edges: CircuitEdges, routes: Routes, hosts: OwnHosts, limits: ClientLimits,
                 may_ask: Callable[[Identity], bool],
                 ask_back: Callable[[str, str, str, Callable[[NoCircuit], None]], None],
                 look: Callable[[tuple[str, int]], Deferred[None]], log: Logger,
                 denied: Callable[[Identity, str], None] = lambda identity, text: None) -> None:
        self._reactor = reactor
        self._edges = edges
        self._routes = routes
        self._hosts = hosts
        self._limits = limits
        self._may_ask = may_ask
        self._ask_back = ask_back
        self._look = look
        self._log = log
        self._denied = denied
        self._circuits: set[_Circuit] = set()
        self._awaited: dict[str, tuple[_Circuit, Deferred[socket.socket]]] = {}

    # ---- doors

    def circuit(self, identity: Identity) -> IProtocol:
        """The protocol of who wants a circuit."""
        return Asked(self._reactor, identity, self.wanted)

    def circuit_back(self, identity: Identity) -> IProtocol:
        """The protocol of a partner's gateway that brings a circuit."""
        return Asked(self._reactor, identity, self.brought)

    def wanted(self, asked: Asked, text: str) -> None:
        """A peer requests a relayed connection; ``text`` says where to."""
        (self._of_partner if asked.identity.realm else self._of_member)(asked, text)

    def _of_member(self, asked: Asked, text: str) -> None:
        identity = asked.identity
        client = f"{identity.name} at {identity.host}"
        try:
            realm, node = partner_of(text)
        except BadNode as error:
            asked.refuse(str(error))
            return
        if not self._may_ask(identity):
            asked.refuse(f"{identity.name} may not reach other pools (READ at the gateway)")
            return
        circuit = _Circuit(client, realm)
        self._make(asked, circuit, lambda: self._outward(circuit, node))

    def _of_partner(self, asked: Asked, text: str) -> None:
        realm = asked.identity.realm
        if GATEWAY_ROLE not in asked.identity.roles:
            asked.refuse("only the gateway of a pool may ask for circuits here")
            return
        circuit = _Circuit(realm, realm)
        self._make(asked, circuit, lambda: self._inward(circuit, asked.identity, text))

    def _make(self, asked: Asked, circuit: _Circuit, second: Callable[[], Deferred[socket.socket]]) -> None:
        """Make the second half of a circuit, then join it to the first, if that may be."""
        reason = self._admitted(circuit)
        if reason:
            asked.refuse(reason)
            return
        circuit.opened_by.append(asked.identity)
        making = circuit.making = second()
        asked.gone = making.cancel

        def made(sock: socket.socket) -> None:
            first = asked.accept()
            if first is None:
                sock.close()
                self._over(circuit)
            else:
                self._join(circuit, first, sock)

        def failed(failure: Failure) -> None:
            self._over(circuit)
            if not failure.check(CancelledError):
                asked.refuse(_reason(failure))

        making.addCallbacks(made, failed)

    def _admitted(self, circuit: _Circuit) -> str:
        """Why there is no such circuit; empty: it is being made."""
        now_s = self._reactor.seconds()
        reason = self._routes.objection(circuit.realm) or self._limits.ask(circuit.client, circuit.realm, now_s)
        count = self._limits.to_tell(circuit.client, now_s)
        if count:
            self._log.warn("{count} circuits of {client} refused: {reason}",
                           count=count, client=circuit.client, reason=reason)
        if not reason:
            self._circuits.add(circuit)
        return reason

    # ---- second halves

    @inlineCallbacks
    def _outward(self, circuit: _Circuit, node: str) -> Any:
        """A connection that ends at a partner's machine, through the first of its gateways that answers."""
        realm, reasons = circuit.realm, []
        for route in self._routes.routes(realm):
            try:
                sock = yield self._along(circuit, route, node)
            except NoCircuit as error:
                reasons.append(str(error))
                self._routes.tried(realm, route, is_answered=error.is_answer)
                if error.is_answer:
                    break
            else:
                self._routes.tried(realm, route, is_answered=True)
                return sock
        raise NoCircuit("; ".join(reasons))

    def _along(self, circuit: _Circuit, route: Route, node: str) -> Deferred[socket.socket]:
        if isinstance(route, Dial):
            return self._hop(circuit, route.node, words(CIRCUIT_LINE, node), GATEWAY_ROLE)
        if isinstance(route, AskBack):
            return self._awaited_from(circuit, route.link, node)
        return no_circuit(route.reason)

    def _awaited_from(self, circuit: _Circuit, link: str, node: str) -> Deferred[socket.socket]:
        number = self._edges.new_number()
        found: Deferred[socket.socket] = Deferred(lambda _: None)
        self._awaited[number] = circuit, found

        def settled(result: Any) -> Any:
            self._awaited.pop(number, None)
            return result

        def refused(why: NoCircuit) -> None:
            if number in self._awaited:
                found.errback(why)

        found.addBoth(settled)
        found.addTimeout(BACK_S, self._reactor, lambda result, _: _late(result, circuit.realm))
        self._ask_back(link, number, node, refused)
        return found

    def brought(self, asked: Asked, number: str) -> None:
        """A partner's gateway brings the circuit that has this number."""
        circuit, found = self._awaited.get(number, (_NONE, None))
        realm = circuit.realm
        if found is None or asked.identity.realm != realm or GATEWAY_ROLE not in asked.identity.roles:
            asked.refuse("nobody waits for that circuit")
            return
        sock = asked.accept()
        if sock is None:
            return
        del self._awaited[number]
        circuit.opened_by.append(asked.identity)

        def ready(sock: socket.socket | None) -> None:
            if found.called:  # who wanted it has not waited
                if sock is not None:
                    sock.close()
            elif sock is None:
                found.errback(NoCircuit(f"the gateway of {realm} hung up"))
            else:
                found.callback(sock)

        self._edges.first_byte(sock, BACK_S, ready)

    @inlineCallbacks
    def _inward(self, circuit: _Circuit, who: Identity, text: str) -> Any:
        """A connection that ends at a daemon of this pool: at a door that an ad names."""
        realm = who.realm
        try:
            node = target_here(text)
        except BadNode as error:
            self._denied(who, str(error))
            raise NoCircuit(str(error)) from None
        door = node.host, node.port
        if not self._hosts.has(*door):
            yield self._look(door)
        if not self._hosts.has(*door):
            self._denied(who, f"a circuit to {node}, where no daemon of this pool is by its ads")
            raise NoCircuit(NOBODY_THERE)
        try:
            return (yield self._hop(circuit, str(node), words(RELAYED_LINE, realm), ""))
        except NoCircuit as error:
            self._log.info("a circuit of {realm} to {node} failed: {error}", realm=realm, node=node, error=error)
            raise NoCircuit(NOBODY_THERE) from None

    def _hop(self, circuit: _Circuit, node: str, said: bytes, role: str) -> Deferred[socket.socket]:
        return self._edges.hop(node, said, role, circuit.opened_by.append)

    # ---- brought by us

    def bring(self, who: Identity, gateway: str, number: str, text: str) -> Deferred[None]:
        """Bring a circuit to one of our daemons to the partner's gateway that has asked for it over our link to it.

        Args:
            who: the partner's gateway.
            gateway: the node at which we dialled it.
            number: of the circuit.
            text: the daemon's node.
        """
        circuit = _Circuit(who.realm, who.realm)
        reason = self._admitted(circuit)
        if reason:
            return no_circuit(reason)
        making: Deferred[Any] = self._bring(circuit, who, gateway, number, text)
        circuit.making = making
        return making

    @inlineCallbacks
    def _bring(self, circuit: _Circuit, who: Identity, gateway: str, number: str, text: str) -> Any:
        target = None
        try:
            target = yield self._inward(circuit, who, text)
            first = yield self._hop(circuit, gateway, words(BACK_LINE, number), GATEWAY_ROLE)
            first.sendall(READY)  # from here who wanted the circuit speaks first
        except BaseException:
            if target is not None:
                target.close()
            self._over(circuit)
            raise
        self._join(circuit, first, target)

    # ---- joined

    def _join(self, circuit: _Circuit, first: socket.socket, second: socket.socket) -> None:
        """Splice what asked with where it leads."""
        self._limits.opened(circuit.client, circuit.realm)
        circuit.making = None
        circuit.splice = self._edges.splice(first, second, lambda: self._over(circuit))

    def _over(self, circuit: _Circuit) -> None:
        if circuit in self._circuits:
            self._circuits.discard(circuit)
            out, back = circuit.to_and_from()
            was_open = circuit.splice is not None
            self._limits.ended(circuit.client, circuit.realm, was_open=was_open, bytes_out=out, bytes_in=back)

    def open_bytes(self, realm: str) -> tuple[int, int]:
        """The bytes to a partner and from it on the circuits that are open now."""
        both = [circuit.to_and_from() for circuit in self._circuits if circuit.realm == realm]
        return sum(out for out, _ in both), sum(back for _, back in both)

    def cut(self, keeps: Callable[[str], bool]) -> None:
        """End the circuits of partners for which nothing is carried any more."""
        for circuit in tuple(self._circuits):
            if not keeps(circuit.realm):
                _cut(circuit)

    def cut_off(self, objection: Callable[[Identity], str]) -> None:
        """End the circuits of which a connection was opened with a certificate or a token that counts no longer.

        Args:
            objection: why a peer may not stay; empty: it may.
        """
        for circuit in tuple(self._circuits):
            reason = next(filter(None, map(objection, circuit.opened_by)), "")
            if reason:
                self._log.warn("a circuit of {client} with the pool {realm} is cut: {reason}", client=circuit.client,
                               realm=circuit.realm, reason=reason)
                _cut(circuit)


_NONE = _Circuit("", "")


def _cut(circuit: _Circuit) -> None:
    if circuit.splice is not None:
        circuit.splice.cut()
    elif circuit.making is not None:
        circuit.making.cancel()


def _reason(failure: Failure) -> str:
    """Why there is no circuit, for who asked."""
    return str(failure.value) if failure.check(NoCircuit) else "this gateway has failed"


def _late(result: Any, realm: str) -> Any:
    raise NoCircuit(f"the gateway of {realm} has brought no circuit in time")
