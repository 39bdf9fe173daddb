"""The real Post: Perspective Broker links over UNIX sockets and TLS.

Theory: one link to each process that this one dialled, kept in ``_dialled`` under the node it was dialled by; one for
each process that dialled this one, kept in ``_inbound`` under a fresh ``in:N``.  The actor system above sees
only envelopes, nodes and identities.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredList, fail
from twisted.internet.endpoints import UNIXClientEndpoint, wrapClientTLS
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import IListeningPort, IProtocol, IReactorTime, IStreamClientEndpoint
from twisted.logger import Logger, LogLevel

from condor_actors.accounts import NotYet
from condor_actors.actors.post import PostReceiver
from condor_actors.messages.codec import kinds
from condor_actors.messages.envelope import SELF, TOOL, Address, Envelope, Identity
from condor_actors.messages.pool import KnownPartner
from condor_actors.wire import frames
from condor_actors.wire.acceptor import BACKLOG, DoorFactory, InboundConnection, TcpDoor, UnixDoor
from condor_actors.wire.admission import Admission
from condor_actors.wire.certificates.credentials import Credentials, TlsDoor, TlsFactory
from condor_actors.wire.certificates.strangers import Strangers
from condor_actors.wire.certificates.trust import BadCertificate
from condor_actors.wire.dialled import Dialled, LinkFactory
from condor_actors.wire.dialled_streams import DialledStreams
from condor_actors.wire.identity_map import BadMapping, IdentityMap
from condor_actors.wire.idtokens.verifier import TokenVerifier
from condor_actors.wire.link import Link
from condor_actors.wire.nodes import (
    BadNode,
    TlsNode,
    UnixNode,
    parse_node,
    short_socket_path,
    somebody_listens,
)
from condor_actors.wire.peers import local_identity, peer_uid
from condor_actors.wire.relays.dialing import CONNECT_S, ThroughGateway, direct, take_relayed
from condor_actors.wire.relays.lines import RELAYED_LINE

MAX_CONNECTIONS = 20_000
MAX_OF_ONE_SOURCE = 2_000
MAX_SILENT = 128
MAX_REMEMBERED = 20_000
"""Nodes whose last failure is remembered; beyond that, those that nobody wants are forgotten."""

Service = Callable[[Identity], IProtocol]
"""Makes the protocol of a connection that asked for bulk or enrolment, for who is at the other end."""


class PostOffice:
    """Carries envelopes between this process and others; a :class:`~condor_actors.actors.post.Post`.

    A ``Post`` of :mod:`condor_actors.actors.post`.

    Args:
        reactor: the real one.
        random: for jitter and the boot id.
        process: our name in the logs of others.
        uid_domain: what follows the ``@`` in the identity of local callers.
        credentials: for TLS; None: only UNIX sockets.
        guests: let in who has no certificate, to show a token or to ask for what the services offer to guests.

    Attributes:
        services: further protocols by their first line, ``{BULK_LINE: factory}``; added before listening.
        admission: who may come in; set before listening. strangers: who was refused there of late.
        public_node: ``<host:port>`` once :meth:`listen_tls` was called.
        trusted_user_hosts: machines whose users are the users of the same name here; small letters.
        tokens: judges the tokens that peers show; None: none counts here.
        identity_map: the names here of those who proved others; None: everybody keeps his.
        gateways: through which machines of other pools are reached; none: they are dialled.
    """

    def __init__(self, reactor: Any, *, random: Random, process: str, uid_domain: str,
                 credentials: Credentials | None = None, guests: bool = False, log: Logger | None = None) -> None:
        self.clock: IReactorTime = reactor
        self.random = random
        self.uid_domain = uid_domain
        self.log = log or Logger("condor.wire")
        self.tls = TlsDoor(credentials, guests=guests) if credentials is not None else None
        self.services: dict[bytes, Service] = {}
        self.public_node = ""
        self.stopped = False
        self.admission = Admission(MAX_CONNECTIONS, MAX_OF_ONE_SOURCE, MAX_SILENT)
        self.trusted_user_hosts: frozenset[str] = frozenset()
        self.tokens: TokenVerifier | None = None
        self.identity_map: IdentityMap | None = None
        self.gateways: tuple[TlsNode, ...] = ()
        self.inbound_connections: set[InboundConnection] = set()
        self.streams, self.strangers = DialledStreams(), Strangers()
        self.cutters: list[Callable[[Callable[[Identity], str]], None]] = []
        """End what is not a connection of this office's any more, as `cut` does."""
        self._reactor = reactor
        self._process = process
        self._boot_id = f"{random.getrandbits(64):016x}"
        self._receiver: PostReceiver | None = None
        self._said: frames.Hello | None = None
        self._dialled: dict[str, Dialled] = {}
        self._inbound: dict[str, Link] = {}
        self._last_inbound = 0
        self._ports: list[IListeningPort] = []
        self._descriptors: list[int] = []
        self._greeting: set[Link] = set()
        self._touched: dict[Link, None] = {}

    # ---- listening

    def listen_unix(self, path: str, *, mode: int = 0o666) -> None:
        """Take connections at a UNIX socket; a stale one of a dead process is replaced.

        Raises:
            OSError: another process listens there, or the directory cannot be written.
        """
        if os.path.exists(path):
            if somebody_listens(path):
                raise OSError(f"another process listens at {path}")
            os.unlink(path)
        spelling, descriptor = short_socket_path(path)
        if descriptor is not None:
            self._descriptors.append(descriptor)
        listening: Any = UnixDoor(spelling.encode(), DoorFactory(self, None), BACKLOG, mode, reactor=self._reactor)
        listening.startListening()
        self._ports.append(listening)

    def listen_tls(self, host: str, port: int, *, public_host: str = "") -> str:
        """Take connections by mutual TLS.

        Args:
            host: the address to bind.
            port: 0: any free one.
            public_host: under which others reach us; empty: ``host``.

        Returns:
            Our public node.

        Raises:
            twisted.internet.error.CannotListenError: the port is taken.
        """
        if self.tls is None:
            raise ValueError("TLS needs credentials")
        factory = TlsFactory(self.tls.listening(), False, DoorFactory(self, self.tls))
        listening: Any = TcpDoor(port, factory, BACKLOG, host, self._reactor)
        listening.startListening()
        self._ports.append(listening)
        self.public_node = str(TlsNode(public_host or host, listening.getHost().port))
        return self.public_node

    def known_here(self, identity: Identity) -> Identity | None:
        """The local identity of an authenticated peer; None: it has none, and the log says why."""
        try:
            name = self.identity_map.name_here(identity) if self.identity_map is not None else ""
        except BadMapping as error:
            self.log.warn("{who} refused: {error}", who=identity.name, error=error)  # noqa: G010 - Twisted's name
            return None
        return attrs.evolve(identity, name=name) if name else self._as_user_of_ours(identity)

    def cut(self, objection: Callable[[Identity], str]) -> frozenset[str]:
        """End every connection whose peer may not stay.

        Args:
            objection: why not; empty: it may.

        Returns:
            The host names of the machines that were cut off.
        """
        hosts = set()
        for connection in tuple(self.inbound_connections):
            reason = objection(connection.identity) if connection.identity is not None else ""
            if reason:
                assert connection.identity is not None
                hosts.add(connection.identity.host)
                connection.cut(reason)
        for link in self.links():
            reason = objection(link.identity)
            if reason:
                hosts.add(link.identity.host)
                link.abort(reason)
        if self.tls is not None:
            self.streams.cut(self.tls, objection, lambda peer, reason: self.log.warn(
                "a connection to {peer} is cut: {reason}", peer=peer, reason=reason))
        for cut_off in self.cutters:
            cut_off(objection)
        return frozenset(hosts - {""})

    def _as_user_of_ours(self, identity: Identity) -> Identity | None:
        """The identity with the name that its bearer has here, where the machine that signed is trusted about users.

        This machine is, and those of TRUSTED_USER_HOSTS are.  Any other machine's users keep its name behind the
        ``@``, and so are nobody's namesake; None where that name is the domain of the users here.
        """
        if identity.method != "tls" or identity.roles != {"user"} or identity.realm:
            return identity
        assert self.tls is not None
        if identity.host.lower() in self.trusted_user_hosts | self.tls.own_hosts:
            return attrs.evolve(identity, name=f"{identity.user}@{self.uid_domain}")
        if identity.host.lower() == self.uid_domain.lower():
            self.log.warn("{who} refused: a machine that is not in TRUSTED_USER_HOSTS is called as our UID_DOMAIN is",
                          who=identity.name)
            return None
        return identity

    def accept(self, line: bytes, identity: Identity | None) -> IProtocol | None:
        """The protocol for a connection that came in; None: refused."""
        if self.stopped or (identity is None and line not in frames.GUEST_LINES):
            return None
        if line == frames.ACTORS_LINE:
            assert identity is not None
            self._last_inbound += 1
            return self._new_link(f"in:{self._last_inbound}", identity, is_client=False).broker
        if line == RELAYED_LINE:
            return take_relayed(self, identity)
        service = self.services.get(line)
        return service(identity or Identity(name="guest@nowhere", method="tls")) if service is not None else None

    def _new_link(self, node: str, identity: Identity, *, is_client: bool) -> Link:
        link = Link(self, node, identity, self.clock, self._hello(), is_client=is_client)
        self._greeting.add(link)
        return link

    def _hello(self) -> frames.Hello:
        if self._said is None or self._said.public_node != self.public_node:
            self._said = frames.Hello(boot_id=self._boot_id, process=self._process, public_node=self.public_node,
                                      kinds=kinds())
        return self._said

    # ---- dialling

    def endpoint(self, node: str) -> IStreamClientEndpoint:
        """The endpoint of a node.

        Raises:
            BadNode: it is none, or needs credentials that we do not have.
        """
        parsed = parse_node(node)
        if isinstance(parsed, UnixNode):
            return UNIXClientEndpoint(self._reactor, parsed.path, timeout=CONNECT_S, checkPID=False)
        plain = self._plain_endpoint(parsed, node)
        assert self.tls is not None
        return self.streams.watched(wrapClientTLS(self.tls.dialling(parsed), plain))

    def _plain_endpoint(self, parsed: TlsNode, node: str) -> IStreamClientEndpoint:
        if self.tls is None:
            raise BadNode(f"{node} needs TLS, and this process has no certificate")
        if self.tls.revoked(parsed.realm) is None:
            raise BadNode(f"{node} is in the pool {parsed.realm}, which is no partner of this one (condor_flock list)")
        if parsed.realm and self.gateways:
            return ThroughGateway(self._reactor, self.tls, self.gateways, parsed, self._prefer)
        return direct(self._reactor, parsed)

    def connect(self, node: str) -> Deferred[IProtocol]:
        """Dial for a :class:`Dialled`."""
        try:
            parsed = parse_node(node)
            if isinstance(parsed, UnixNode):
                return self._connect_unix(node, parsed.path)
            plain = self._plain_endpoint(parsed, node)
            assert self.tls is not None
            factory = TlsFactory(self.tls.dialling(parsed), True, LinkFactory(lambda: self.dialled_link(node)))
            connecting: Deferred[IProtocol] = plain.connect(factory)
            return connecting
        except (BadNode, OSError) as error:
            return fail(ConnectError(string=str(error)))

    def _connect_unix(self, node: str, path: str) -> Deferred[IProtocol]:
        spelling, descriptor = short_socket_path(path)
        endpoint = UNIXClientEndpoint(self._reactor, spelling, timeout=CONNECT_S, checkPID=False)
        connecting: Deferred[IProtocol] = endpoint.connect(LinkFactory(lambda: self.dialled_link(node)))
        if descriptor is not None:
            def close(result: Any) -> Any:
                os.close(descriptor)
                return result

            connecting.addBoth(close)
        return connecting

    def dialled_link(self, node: str) -> Link:
        """A new link for the connection to ``node`` that is being made."""
        link = self._new_link(node, SELF, is_client=True)
        self._dialled[node].made(link)
        return link

    def identify(self, link: Link, transport: Any) -> bool:
        """Find out who answered where we dialled; False: nobody we trust."""
        if not link.is_client:
            return True
        if link.node.startswith("unix:"):
            try:
                link.identity = local_identity(transport.socket, self.uid_domain)
            except NotYet:  # we know by where we dialled who it is, and its uid
                uid = peer_uid(transport.socket)
                link.identity = Identity(name=f"uid{uid}@{self.uid_domain}", method="local", uid=uid)
            return True
        assert self.tls is not None
        try:
            identity = self.tls.identify(transport.getHandle())
        except BadCertificate as error:
            link.abort(str(error))
            return False
        assert identity is not None
        link.identity = attrs.evolve(identity, address=str(transport.getPeer().host))
        return True

    # ---- Post

    def attach(self, receiver: PostReceiver) -> None:
        """Deliver to ``receiver`` from now on."""
        self._receiver = receiver

    @property
    def receiver(self) -> PostReceiver:
        """Who is attached."""
        assert self._receiver is not None, "no actor system is attached to the post office"
        return self._receiver

    def send(self, to: Address, envelope: Envelope) -> None:
        """Send an envelope at the end of the iteration."""
        node = to.node
        inbound = self._inbound.get(node)
        if inbound is not None:
            self.send_over(inbound, envelope)
        elif node.startswith("in:"):
            self.undeliverable(node, envelope, "unreachable", f"{node} has hung up")
        elif self.stopped:
            self.undeliverable(node, envelope, "unreachable", "this process is stopping")
        else:
            self._to(node).send(envelope)

    def send_over(self, link: Link, envelope: Envelope) -> None:
        """Send an envelope over a link that is up."""
        if not link.understands(envelope):
            self.undeliverable(link.node, envelope, "unreachable", link.unknown(envelope))
        elif not link.send(envelope):
            self.undeliverable(link.node, envelope, "unreachable", f"too much waits for {link.node}")
        else:
            self._touched[link] = None

    def flush(self) -> None:
        """Send now what was queued since the last time."""
        if self._touched:
            touched, self._touched = self._touched, {}
            for link in touched:
                link.flush()

    def watch(self, node: str) -> None:
        """Keep a link to ``node`` and report when it comes and goes."""
        if node.startswith("in:"):
            if node not in self._inbound:
                self.clock.callLater(0.0, self.report_down, node, f"{node} has hung up")
        elif not self.stopped:
            self._to(node).watch()

    def unwatch(self, node: str) -> None:
        """Stop keeping a link for its own sake."""
        dialled = self._dialled.get(node)
        if dialled is not None:
            dialled.unwatch()

    def reidentify(self, node: str, name: str, uid: int) -> None:
        """Take the peer for another user from now on, which it has become since it connected; the rest stays known.

        Args:
            node: of an inbound link; nothing happens where it has hung up.
            name, uid: as in :class:`Identity`.
        """
        link = self._inbound.get(node)
        if link is not None:
            link.identity = attrs.evolve(link.identity, name=name, uid=uid)
            self.receiver.reidentified(node, link.identity)

    def hang_up(self, node: str, reason: str) -> None:
        """Close the link to a node, if there is one."""
        dialled = self._dialled.get(node)
        link = self._inbound.get(node) or (dialled.link if dialled is not None else None)
        if link is not None:
            link.close("closed", reason)

    def _to(self, node: str) -> Dialled:
        dialled = self._dialled.get(node)
        if dialled is None:
            if len(self._dialled) >= MAX_REMEMBERED:
                self._dialled = {name: each for name, each in self._dialled.items() if not each.idle}
            dialled = self._dialled[node] = Dialled(self, node)
        return dialled

    def forget(self, dialled: Dialled) -> None:
        """Drop the record of a node that is neither linked nor wanted."""
        if self._dialled.get(dialled.node) is dialled and dialled.link is None:
            del self._dialled[dialled.node]

    def undeliverable(self, node: str, envelope: Envelope, reason: str, text: str) -> None:
        """Report an envelope as not delivered, after the current turn."""
        self.clock.callLater(0.0, self.receiver.undeliverable, node, envelope, reason, text)

    def report_down(self, node: str, reason: str) -> None:
        """Report a link as lost."""
        self.receiver.link_down(node, reason)

    # ---- links

    def congested(self, link: Link) -> bool:
        """Whether so much of a peer's waits in our mailboxes that it should wait, too."""
        return self.receiver.congested(link.node)

    def link_ready(self, link: Link) -> None:
        """The greeting is over."""
        self._greeting.discard(link)
        if link.is_client:
            dialled = self._dialled.get(link.node)
            if dialled is None or dialled.link is not link:
                link.close("closed", "not needed any more")
                return
            dialled.ready(link)
        else:
            self._inbound[link.node] = link
        self.receiver.link_up(link.node, link.identity, link.peer.process if link.peer is not None else "")

    def link_received(self, link: Link, envelopes: list[Envelope]) -> None:
        """Envelopes came in."""
        arrived, node, identity = self.receiver.arrived, link.node, link.identity
        for envelope in envelopes:
            arrived(node, identity, envelope)

    def link_closed(self, link: Link, reason: str) -> None:
        """A link is gone."""
        self._greeting.discard(link)
        minor = link.peer is None or link.peer.process == TOOL
        self.log.emit(LogLevel.debug if minor else LogLevel.info, "link to {node} ({who}) closed: {reason}",
                      node=link.node, who=link.identity.name, reason=reason)
        self._touched.pop(link, None)
        if link.is_client:
            dialled = self._dialled.get(link.node)
            if dialled is not None and dialled.link is link:
                dialled.lost(link, reason)
        elif self._inbound.pop(link.node, None) is not None:
            for envelope in (*link.under_way, *link.unsent):
                if envelope.deadline_s > 0.0:
                    self.undeliverable(link.node, envelope, "link-lost", reason)
            self.report_down(link.node, reason)

    def links(self) -> list[Link]:
        """Every link that is up, for the manhole."""
        dialled = [each.link for each in self._dialled.values() if each.link is not None and each.link.up]
        return [*self._inbound.values(), *dialled]

    # ---- life

    def renew(self, credentials: Credentials) -> None:
        """Show new credentials from the next connection on.

        Raises:
            BadCredentials: they cannot be used; the old ones stay.
        """
        if self.tls is None:
            self.tls = TlsDoor(credentials)
        else:
            self.tls.renew(credentials)

    def _prefer(self, gateway: TlsNode) -> None:
        """A gateway had a way: it is asked first from now on, so that one that gives no answer costs its time once."""
        if gateway in self.gateways:
            self.gateways = (gateway, *(each for each in self.gateways if each != gateway))

    def partners(self) -> tuple[KnownPartner, ...]:
        """The pools that are trusted now."""
        return tuple(each.known() for each in (self.tls.credentials.partners if self.tls is not None else ()))

    def stop(self) -> Deferred[Any]:
        """Stop listening, say goodbye on every link after what is queued; fires when all is closed."""
        self.flush()
        self.stopped = True
        closing = [port.stopListening() for port in self._ports]
        self._ports = []
        for dialled in list(self._dialled.values()):
            dialled.stop()
        for link in self.links():
            link.flush()
            link.close("stopping", "the process is stopping")
        for greeting in list(self._greeting):
            greeting.abort("the process is stopping")
        for connection in list(self.inbound_connections):
            connection.hang_up()
        closed = DeferredList([each for each in closing if each is not None], consumeErrors=True)
        closed.addCallback(self._close_descriptors)
        return closed

    def _close_descriptors(self, result: Any) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []
