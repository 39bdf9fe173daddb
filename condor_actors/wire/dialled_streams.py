"""Connections that this process has dialled and that are no links: bulk data, the streams of standard programs.

Theory: each goes over TLS that the peer's certificate has opened, and lives for hours.  So they are kept in view: where
a certificate counts no longer, the connections that it has opened end, as links do.  What a stream has started (the
channel of a standard program, which has stopped being TLS) ends with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol, IProtocolFactory, IStreamClientEndpoint
from zope.interface import implementer

from condor_actors.messages.envelope import Identity
from condor_actors.wire.certificates.credentials import TlsDoor, peer_chain
from condor_actors.wire.certificates.trust import BadCertificate

__all__ = ["DialledStreams"]


class DialledStreams:
    """Those of one process, as long as they are open."""

    def __init__(self) -> None:
        self._open: WeakSet[Any] = WeakSet()

    def watched(self, endpoint: IStreamClientEndpoint) -> IStreamClientEndpoint:
        """An endpoint whose connections are kept in view."""
        return _Watched(endpoint, self._keep)

    def _keep(self, protocol: IProtocol) -> IProtocol:
        self._open.add(protocol)
        return protocol

    def cut(self, tls: TlsDoor, objection: Callable[[Identity], str], told: Callable[[str, str], None]) -> None:
        """End those whose peer may not stay.

        Args:
            tls: what counts now.
            objection: why a peer may not stay; empty: it may.
            told: hears where to a connection went that is ended, and why.
        """
        for protocol in tuple(self._open):
            transport = protocol.transport
            if transport is None or not getattr(transport, "connected", False):
                continue
            reason = _objection(tls, transport.getHandle(), objection)
            if reason:
                self._open.discard(protocol)
                told(str(transport.getPeer()), reason)
                transport.abortConnection()


def _objection(tls: TlsDoor, connection: Any, objection: Callable[[Identity], str]) -> str:
    """Why a connection may not stay; one that is still greeting shows its certificate later."""
    if not peer_chain(connection):
        return ""
    try:
        identity = tls.identify(connection)
    except BadCertificate as error:
        return str(error)
    return objection(identity) if identity is not None else ""


@implementer(IStreamClientEndpoint)
@attrs.frozen
class _Watched:
    """An endpoint that tells of its connections."""

    endpoint: IStreamClientEndpoint
    keep: Callable[[IProtocol], IProtocol]

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:  # noqa: N803 - Twisted's
        """Dial."""
        connecting: Deferred[IProtocol] = self.endpoint.connect(protocolFactory)
        return connecting.addCallback(self.keep)
