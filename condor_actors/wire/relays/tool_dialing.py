"""A tool's circuit to a machine of another pool, by the standard library."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

from condor_actors.wire.errors import NotTrusted, Unreachable, WireError
from condor_actors.wire.nodes import TlsNode, parse_node
from condor_actors.wire.relays.lines import CIRCUIT_LINE, MOST_BYTES, answer_of, words

if TYPE_CHECKING:
    from condor_actors.wire.certificates.tool_credentials import ToolCredentials

__all__ = ["circuit_to"]


def circuit_to(node: TlsNode, credentials: ToolCredentials, timeout_s: float) -> socket.socket:
    """A bare connection to a machine of another pool, through the first gateway of this one that has a circuit.

    Raises:
        Unreachable, NotTrusted: why there is none.
    """
    problem: WireError = Unreachable(f"GATEWAY_HOST names no circuit to {node}")
    for gateway in credentials.gateways:
        parsed = parse_node(gateway)
        assert isinstance(parsed, TlsNode)
        try:
            return _through(parsed, node, credentials, timeout_s)
        except WireError as error:
            problem = error
    raise problem


def _through(gateway: TlsNode, node: TlsNode, credentials: ToolCredentials, timeout_s: float) -> socket.socket:
    from condor_actors.wire.blocking import connect_tls

    with connect_tls(gateway, credentials, timeout_s) as connected:
        try:
            connected.sendall(words(CIRCUIT_LINE, str(node)))
            reason = answer_of(_line(connected))
        except OSError as error:
            raise Unreachable(f"the gateway {gateway}: {error.strerror or error}") from None
        if reason:
            raise Unreachable(f"the gateway {gateway} has no circuit to {node}: {reason}")
        if not _is_gateway(connected):
            raise NotTrusted(f"the certificate of {gateway} does not allow it to be a gateway")
        return socket.socket(fileno=connected.detach())


def _is_gateway(connected: ssl.SSLSocket) -> bool:
    names = (connected.getpeercert() or {}).get("subjectAltName", ())
    return ("URI", "condor:role:gateway") in names


def _line(connected: ssl.SSLSocket) -> bytes:
    """The answer, byte by byte: what follows it is not for TLS."""
    data = b""
    while not data.endswith(b"\n"):
        more = connected.recv(1)
        if not more or len(data) > MOST_BYTES:
            raise Unreachable("the gateway hung up" if not more else "it is no gateway")
        data += more
    return data
