"""How a gateway makes and joins connections: over real sockets, or over those of a simulation."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail

from condor_actors.machine.native.splice import Splice
from condor_actors.messages.envelope import Identity
from condor_actors.wire.nodes import TlsNode, parse_node
from condor_actors.wire.post_office import PostOffice
from condor_actors.wire.relays.dialing import direct
from condor_actors.wire.relays.hop import NoCircuit, hop
from condor_actors.wire.relays.socket_handover import FirstByte

__all__ = ["CircuitEdges", "no_circuit", "real_edges"]

HOP_S = 10.0
Known = Callable[[Identity], None]
"""Hears whose certificate was shown at the other end of a connection."""


@attrs.frozen(kw_only=True)
class CircuitEdges:
    """The edges of a gateway's circuits.

    Attributes:
        hop: (node, the two lines, the role that who answers must have, known): fires with a bare connection after
            ``known`` has heard whose it is, or fails with :class:`~condor_actors.wire.relays.hop.NoCircuit`.
        first_byte: (connection, seconds, then): see :class:`~condor_actors.wire.relays.socket_handover.FirstByte`.
        splice: (first, second, ended): see :class:`~condor_actors.machine.native.splice.Splice`.
        new_number: of a circuit, which nobody guesses.
    """

    hop: Callable[[str, bytes, str, Known], Deferred[socket.socket]]
    first_byte: Callable[[socket.socket, float, Callable[[socket.socket | None], None]], Any]
    splice: Callable[[socket.socket, socket.socket, Callable[[], None]], Splice]
    new_number: Callable[[], str]


def real_edges(reactor: Any, office: PostOffice) -> CircuitEdges:
    """Over sockets.

    Args:
        reactor: Twisted's.
        office: knows what is shown, and who is trusted.
    """
    def over_tls(node: str, said: bytes, role: str, known: Known) -> Deferred[socket.socket]:
        parsed, tls = parse_node(node), office.tls
        assert isinstance(parsed, TlsNode)
        if tls is None:
            return no_circuit("this gateway has no certificate")
        return hop(reactor, tls, parsed, direct(reactor, parsed), said, role=role, patience_s=HOP_S, known=known)

    return CircuitEdges(
        hop=over_tls,
        first_byte=lambda sock, patience_s, then: FirstByte(reactor, sock, patience_s, then),
        splice=lambda first, second, ended: Splice(reactor, first, second, ended),
        new_number=lambda: secrets.token_hex(16))


def no_circuit(reason: str) -> Deferred[Any]:
    """There is none."""
    return fail(NoCircuit(reason))
