"""Circuits through gateways on the simulated network.

Theory: what a gateway decides and how it makes circuits is the production's (:mod:`condor_actors.daemons.gateway`);
here is what it makes them of.  A circuit is three connections of the network, from a process to its gateway, between
the two gateways, and from the second to the other process; each is cut, slow or reset for itself and ends with its
processes. The gateways pass frames on.  When there is a circuit, the two true ends shake hands over it as TLS does and
become the ends of a link: only they know what is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol
from twisted.python.failure import Failure

from condor_actors.daemons.gateway.circuit_edges import HOP_S, CircuitEdges
from condor_actors.messages.envelope import Identity
from condor_actors.simulation.world.network import End, end_of, pool_of, seen_at, seen_from
from condor_actors.wire.nodes import TlsNode
from condor_actors.wire.relays.dialing import CIRCUIT_S, CONNECT_S, GATEWAY_ROLE, first_circuit
from condor_actors.wire.relays.hop import NoCircuit
from condor_actors.wire.relays.lines import CIRCUIT_LINE, RELAYED_LINE, YES, answer_of, no, words
from condor_actors.wire.relays.socket_handover import READY

if TYPE_CHECKING:
    from condor_actors.simulation.world.post import SimulatedPost
    from condor_actors.simulation.world.process import Process

__all__ = ["AskedBarely", "simulated_edges", "through_gateways"]


@attrs.frozen
class Greeting:
    """What one true end shows to the other."""

    post: SimulatedPost


def _size(frame: Any) -> int:
    return len(frame) if isinstance(frame, bytes) else 1500  # a certificate


class BareEnd(End):
    """An end without a link: of a question for a circuit, or of a circuit that a gateway passes on.

    What comes before anybody takes it is kept.
    """

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._early: list[Any] = []
        self._taken: Callable[[Any], None] | None = None
        self._gone: Callable[[], None] = lambda: None
        self._heir: End | None = None

    def take(self, taken: Callable[[Any], None] | None, gone: Callable[[], None] = lambda: None) -> None:
        """Have what comes from now on, and the end of it."""
        self._taken, self._gone = taken, gone
        early, self._early = self._early, []
        for frame in early:
            self.receive(frame)
        if self.over and taken is not None:
            gone()

    def receive(self, frame: Any) -> None:
        """A frame, or the end."""
        if self._heir is not None:
            self._heir.receive(frame)
        elif frame is None:
            self.ended()
        elif self._taken is None:
            self._early.append(frame)
        else:
            self._taken(frame)

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        if self._heir is not None:
            self._heir.lost(reason)
        elif not self.over:
            self.over = True
            self._gone()

    def become(self, heir: End) -> None:
        """Something else is this end from now on."""
        assert self.wire is not None
        self.wire.replace(self, heir)
        self._heir = heir

    def sendall(self, data: bytes) -> None:
        """As a socket does."""
        self.send(data, len(data))

    def close(self) -> None:
        """As a socket does."""
        self.hang_up()


# ---- asking


class Asking:
    """One question for a bare connection: see :func:`condor_actors.wire.relays.hop.hop`.

    Attributes:
        found: fires with the end, or fails with ``NoCircuit``.
    """

    def __init__(self, post: SimulatedPost, node: str, said: bytes, role: str, patience_s: float) -> None:
        self._node = node
        self._said = said
        self._role = role
        self._end: BareEnd | None = None
        self._over = False
        self.found: Deferred[Any] = Deferred(lambda _: self._stop())
        self._clock = post.process.clock.callLater(patience_s, self._fail, "it does not answer")
        reaching = post.network.reach(post, node, _bare)
        reaching.addCallbacks(self._connected, lambda failure: self._fail(failure.getErrorMessage()))

    def _connected(self, made: tuple[BareEnd, Identity]) -> None:
        self._end, identity = made
        if self._over:
            self._end.close()
        elif self._role and self._role not in identity.roles:
            self._fail(f"its certificate does not allow it to be a {self._role}")
        else:
            self._end.take(self._answered, lambda: self._fail("it hung up"))
            self._end.sendall(self._said)

    def _answered(self, line: bytes) -> None:
        reason = answer_of(line)
        if reason:
            self._fail(reason)
        elif not self._over:
            self._over = True
            self._clock.cancel()
            assert self._end is not None
            self._end.take(None)
            self.found.callback(self._end)

    def _fail(self, reason: str) -> None:
        if not self._over:
            self._stop()
            self.found.errback(NoCircuit(f"{self._node}: {reason}"))

    def _stop(self) -> None:
        self._over = True
        if self._clock.active():
            self._clock.cancel()
        if self._end is not None:
            self._end.close()


def _bare(post: SimulatedPost, node: str, target: SimulatedPost, result: Deferred[Any]) -> None:
    """Two bare ends, the far one at who listens."""
    near, far = BareEnd(post.process), BareEnd(target.process)
    post.network.join(near, far)
    target.process.clock.callLater(0.0, AskedBarely, target, far, seen_at(target, post, local=False))
    result.callback((near, seen_from(target.own_identity(local=False), pool_of(target), pool_of(post))))


class AskedBarely:
    """The end that is asked: see :class:`condor_actors.wire.relays.hop.Asked`.

    Attributes:
        identity: who asks; gone: called when it hangs up before there is an answer.
    """

    def __init__(self, post: SimulatedPost, end: BareEnd, identity: Identity) -> None:
        self.identity = identity
        self.gone: Callable[[], None] = lambda: None
        self._post = post
        self._end = end
        self._answered = False
        end.take(self._said, self._lost)

    def _said(self, data: bytes) -> None:
        first, _, text = data.partition(b"\n")
        answer = self._post.asked_for.get(first + b"\n")
        if first + b"\n" == RELAYED_LINE:
            answer = self._relayed
        if answer is None:
            self._end.close()
        else:
            answer(self, text.decode().rstrip("\n"))

    @staticmethod
    def _relayed(asked: AskedBarely, realm: str) -> None:
        """A gateway brings a connection from another pool."""
        post = asked._post
        if asked.identity.realm or GATEWAY_ROLE not in asked.identity.roles:
            asked.refuse("only the gateway of this pool brings connections")
        elif all(each.name != realm for each in post.partners()):
            asked.refuse("that pool is no partner of this one")
        else:
            end = asked.accept()
            if end is not None:
                end.take(lambda greeting: _greeted(post, end, greeting))

    def accept(self) -> BareEnd | None:
        """Say yes; None: who asked is gone."""
        if self._answered or self._end.over:
            return None
        self._answered = True
        if self.identity.realm:
            self._post.accepted[self.identity.realm] += 1
        self._end.take(None)
        self._end.sendall(YES)
        return self._end

    def refuse(self, reason: str) -> None:
        """Say no."""
        if not self._answered:
            self._answered = True
            self._end.sendall(no(reason))
            self._end.close()

    def _lost(self) -> None:
        if not self._answered:
            self._answered = True
            self.gone()


# ---- between the true ends


def through_gateways(post: SimulatedPost, node: str) -> Deferred[IProtocol]:
    """Dial a machine of another pool: fires with the link's broker."""
    said = words(CIRCUIT_LINE, node)

    def through(gateway: TlsNode) -> Deferred[Any]:
        return Asking(post, str(gateway), said, GATEWAY_ROLE, CIRCUIT_S).found

    circuit: Deferred[Any] = first_circuit(post.gateways, through)
    return circuit.addCallback(lambda end: _greet(post, node, end))


def _greet(post: SimulatedPost, node: str, end: BareEnd) -> Deferred[IProtocol]:
    """The end that dials: show who it is, and make the link when the other has done so."""
    result: Deferred[IProtocol] = Deferred()

    def failed() -> None:
        if not result.called:
            end.close()
            result.errback(Failure(error.TimeoutError()))

    def answered(greeting: Greeting) -> None:
        clock.cancel()
        link = post.dialled_link(node)
        link.identity = seen_from(greeting.post.own_identity(local=False), pool_of(greeting.post), pool_of(post))
        end_of(link).peer = greeting.post.process
        end.become(end_of(link))
        broker: Any = link.broker
        result.callback(broker)
        link.broker_ready()

    def lost() -> None:
        if clock.active():
            clock.cancel()
            failed()

    clock = post.process.clock.callLater(CONNECT_S, failed)
    end.take(answered, lost)
    end.send(Greeting(post), 1500)
    return result


def _greeted(post: SimulatedPost, end: BareEnd, greeting: Greeting) -> None:
    """The end that was dialled."""
    link = post.inbound_link(seen_at(post, greeting.post, local=False))
    end_of(link).peer = greeting.post.process
    end.send(Greeting(post), 1500)
    end.become(end_of(link))
    link.broker_ready()


# ---- a gateway's


class BareSplice:
    """Passes on what comes: see :class:`condor_actors.machine.native.splice.Splice`."""

    def __init__(self, first: BareEnd, second: BareEnd, ended: Callable[[], None]) -> None:
        self.carried = [0, 0]
        self._ends = first, second
        self._open = {0, 1}
        self._ended = ended
        for number in (0, 1):
            self._join(number)

    def _join(self, number: int) -> None:
        def passed(frame: Any) -> None:
            self.carried[number] += _size(frame)
            self._ends[1 - number].send(frame, _size(frame))

        def lost() -> None:
            self._open.discard(number)
            if self._open:
                self._ends[1 - number].close()
            else:
                self._ended()

        self._ends[number].take(passed, lost)

    def cut(self) -> None:
        """End both."""
        for end in self._ends:
            end.close()


def simulated_edges(post: SimulatedPost) -> CircuitEdges:
    """The edges of a gateway's circuits on the simulated network."""
    clock = post.process.clock

    def first_byte(end: Any, patience_s: float, then: Callable[[Any], None]) -> None:
        def settled(came: bool) -> None:
            if waiting.active():
                waiting.cancel()
            end.take(None)
            if not came:
                end.close()
            then(end if came else None)

        waiting = clock.callLater(patience_s, settled, False)
        end.take(lambda frame: settled(frame == READY), lambda: settled(False))

    def splice(first: Any, second: Any, ended: Callable[[], None]) -> Any:
        return BareSplice(first, second, ended)

    return CircuitEdges(hop=lambda node, said, role, known: Asking(post, node, said, role, HOP_S).found,
                    first_byte=first_byte, splice=splice, new_number=post.process.new_secret)
