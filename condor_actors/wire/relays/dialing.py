"""The circuits of one process: where it dials, directly or through the pool's gateway, and what comes in through that.

Theory: an address in another pool (``<host%pool:port>``) is reached through the own pool's gateway where GATEWAY_HOST
names one.  The gateways pass bytes on; the TLS between the two true ends begins behind them, with the same certificates
and checks as without.  What comes out of a gateway at a daemon here says from which pool it came, and nobody of another
pool, and nobody without a certificate, gets in by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.interfaces import IProtocol, IStreamClientEndpoint
from zope.interface import implementer

from condor_actors.messages.envelope import THROUGH, Identity
from condor_actors.messages.realm import is_realm
from condor_actors.wire.acceptor import DoorFactory
from condor_actors.wire.certificates.credentials import TlsDoor, TlsFactory
from condor_actors.wire.nodes import TlsNode, is_address, parse_node
from condor_actors.wire.relays.hop import Asked, NoCircuit, adopt, hop
from condor_actors.wire.relays.lines import CIRCUIT_LINE, words

if TYPE_CHECKING:
    from condor_actors.wire.post_office import PostOffice

__all__ = ["GATEWAY_ROLE", "CIRCUIT_S", "ThroughGateway", "direct", "first_circuit", "is_relayed", "take_relayed"]

CONNECT_S = 15.0
CIRCUIT_S = 20.0
"""So long may it take until there is a circuit: two gateways and the far machine have answered by then."""

GATEWAY_ROLE = "gateway"


def is_relayed(gateways: Sequence[TlsNode], node: str) -> bool:
    """Whether gateways of this pool pass on what is said to a node."""
    parsed = parse_node(node)
    return bool(gateways and isinstance(parsed, TlsNode) and parsed.realm)


def direct(reactor: Any, node: TlsNode) -> IStreamClientEndpoint:
    """Connects to a machine, without TLS yet."""
    if not is_address(node.name):
        return HostnameEndpoint(reactor, node.name.encode("idna"), node.port, timeout=CONNECT_S)
    if ":" in node.name:
        return TCP6ClientEndpoint(reactor, node.name, node.port, timeout=CONNECT_S)
    return TCP4ClientEndpoint(reactor, node.name, node.port, timeout=CONNECT_S)


@implementer(IStreamClientEndpoint)
class ThroughGateway:
    """Connects to a machine of another pool, without TLS yet, through the first gateway that has a circuit.

    Args:
        reactor: Twisted's.
        tls: what we show to the gateway.
        gateways: of this pool, in the order in which they are asked.
        node: the machine.
        used: is told which gateway had a circuit.
    """

    def __init__(self, reactor: Any, tls: TlsDoor, gateways: Sequence[TlsNode], node: TlsNode,
                 used: Callable[[TlsNode], None] = lambda gateway: None) -> None:
        self._reactor = reactor
        self._tls = tls
        self._gateways = tuple(gateways)
        self._node = node
        self._used = used

    def connect(self, protocolFactory: Any) -> Deferred[IProtocol]:  # noqa: N803 - Twisted's
        """Ask, and connect."""
        said = words(CIRCUIT_LINE, str(self._node))

        def through(gateway: TlsNode) -> Deferred[IProtocol]:
            asking: Deferred[Any] = hop(self._reactor, self._tls, gateway, direct(self._reactor, gateway), said,
                                        role=GATEWAY_ROLE, patience_s=CIRCUIT_S)

            def adopted(sock: Any) -> IProtocol:
                self._used(gateway)
                protocol: IProtocol = adopt(self._reactor, sock, protocolFactory).protocol
                return protocol

            return asking.addCallback(adopted)

        found: Deferred[IProtocol] = first_circuit(self._gateways, through)
        return found


@inlineCallbacks
def first_circuit(gateways: Sequence[TlsNode], through: Callable[[TlsNode], Deferred[Any]]) -> Any:
    """What the first gateway that has a circuit gives.

    Args:
        gateways: in the order in which they are asked.
        through: asks one.

    Raises:
        NoCircuit: none of them has one.
    """
    reasons = []
    for gateway in gateways:
        try:
            return (yield through(gateway))
        except (NoCircuit, OSError) as error:
            reasons.append(f"{THROUGH} {error}")
    raise NoCircuit("; ".join(reasons))


def take_relayed(office: PostOffice, identity: Identity | None) -> IProtocol | None:
    """The request of a peer that brings a connection from another pool; None: it is not a gateway of ours."""
    if identity is None or identity.realm or GATEWAY_ROLE not in identity.roles or office.tls is None:
        return None
    return Asked(office.clock, identity, lambda asked, realm: _relayed(office, asked, realm))


def _relayed(office: PostOffice, asked: Asked, realm: str) -> None:
    tls = office.tls
    if not is_realm(realm) or tls is None or tls.revoked(realm) is None:
        asked.refuse("that pool is no partner of this one")
        return
    sock = asked.accept()
    if sock is not None:
        adopt(office.clock, sock, TlsFactory(tls.listening(), False, DoorFactory(office, tls, realm)))
