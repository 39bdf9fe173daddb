"""What a process shows and whom it believes: certificate, key, and the pool's CA; and TLS made of them.

Theory: both sides of every TLS connection show a certificate.  OpenSSL verifies the chain up to the pool's CA (proxy
certificates allowed), :mod:`condor_actors.wire.certificates.trust` reads who that is, and the side that dialled also
checks that the certificate has the name it dialled.  All of this is over before the first byte of a broker is read.
Only TLS 1.3 is spoken.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import attrs
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID
from OpenSSL import SSL, crypto
from service_identity import VerificationError
from service_identity.hazmat import (
    DNS_ID,
    CertificatePattern,
    DNSPattern,
    IPAddress_ID,
    IPAddressPattern,
    verify_service_identity,
)
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IOpenSSLServerConnectionCreator
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from condor_actors.messages.envelope import Identity
from condor_actors.wire.certificates.strangers import refused_because
from condor_actors.wire.certificates.trust import BadCertificate, identity_of_chain, names_of
from condor_actors.wire.host_names import own_names
from condor_actors.wire.nodes import TlsNode, is_address
from condor_actors.wire.partners.partner_store import BadPartners, Partner, read_partners
from condor_actors.written_text import read_plain

PROXY_FLAG = crypto.X509StoreFlags.ALLOW_PROXY_CERTS


class BadCredentials(ValueError):
    """Certificate files that cannot be used: names the file and what is wrong."""


@attrs.frozen(kw_only=True)
class Credentials:
    """PEM texts.

    Attributes:
        chain: our certificate, then (for a proxy) its signer's.
        key: the private key of the first.
        ca: the pool's CA certificate.
        crl: the CA's revocation list; empty: none.
        partners: the pools whose machines may show themselves, too.
    """

    chain: bytes
    key: bytes = attrs.field(repr=False)
    ca: bytes
    crl: bytes = b""
    partners: tuple[Partner, ...] = ()

    @classmethod
    def load(cls, certificate: str | os.PathLike[str], key: str | os.PathLike[str], ca: str | os.PathLike[str],
             crl: str | os.PathLike[str] | None = None, partners: Path | None = None,
             renewed: tuple[bytes, bytes] = (b"", b"")) -> Credentials:
        """Read the files; those of ``crl`` and ``partners`` may be missing.

        Args:
            certificate, key, ca, crl, partners: their paths.
            renewed: certificates and key that are to take the place of the files' and are believed instead.

        Raises:
            BadCredentials: one is missing or is not what it should be.
        """
        def read(path: str | os.PathLike[str]) -> bytes:
            try:
                return read_plain(path)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", "") or error
                raise BadCredentials(f"{path}: {why}; condor_pool create or join makes it") from None

        revoked = read(crl) if crl is not None and os.path.exists(crl) else b""
        credentials = cls(chain=renewed[0] or read(certificate), key=renewed[1] or read(key), ca=read(ca), crl=revoked)
        try:
            credentials.context(is_client=True)
            credentials = attrs.evolve(credentials, partners=read_partners(partners) if partners is not None else ())
            credentials.realms()
        except BadPartners as error:
            raise BadCredentials(str(error)) from None
        except (ValueError, SSL.Error) as error:
            raise BadCredentials(f"{certificate}, {key}: {error}") from None
        return credentials

    @classmethod
    def from_bundle(cls, bundle: bytes, crl: bytes = b"") -> Credentials:
        """The credentials in one PEM text of certificates (leaf first, CA last) and one private key.

        Raises:
            BadCredentials: it is not such a text.
        """
        blocks, key = [], b""
        for part in bundle.split(b"-----BEGIN ")[1:]:
            text = b"-----BEGIN " + part
            if part.startswith(b"CERTIFICATE-----"):
                blocks.append(text)
            elif b"PRIVATE KEY-----" in part[:40]:
                key = text
        if len(blocks) < 2 or not key:
            raise BadCredentials("expected certificates (leaf first, CA last) and a private key")
        return cls(chain=b"".join(blocks[:-1]), key=key, ca=blocks[-1], crl=crl)

    def bundle(self) -> bytes:
        """The opposite of :meth:`from_bundle`."""
        return self.chain + self.ca + self.key

    def certificates(self) -> list[x509.Certificate]:
        """Our chain, leaf first."""
        return x509.load_pem_x509_certificates(self.chain)

    def authority(self) -> x509.Certificate:
        """The pool's CA."""
        return x509.load_pem_x509_certificate(self.ca)

    def identity(self) -> Identity:
        """Who we are to others."""
        return identity_of_chain([*self.certificates(), self.authority()])

    def revoked(self) -> frozenset[int]:
        """Serial numbers on the revocation list.

        Raises:
            BadCredentials: the list is not signed by the CA.
        """
        if not self.crl:
            return frozenset()
        crl = x509.load_pem_x509_crl(self.crl)
        if not crl.is_signature_valid(self.authority().public_key()):  # type: ignore[arg-type]  # ours are EC keys
            raise BadCredentials("the revocation list is not signed by the pool's CA")
        return frozenset(entry.serial_number for entry in crl)

    def realms(self) -> dict[bytes, Realm]:
        """What each authority signs that is trusted, by its fingerprint (SHA-256).

        Raises:
            BadCredentials: an authority or a revocation list cannot be used.
        """
        own = self.authority()
        found = {own.fingerprint(SHA256()): Realm("", own, self.revoked())}
        for partner in self.partners:
            try:
                theirs = x509.load_pem_x509_certificate(partner.ca)
                revoked = attrs.evolve(self, ca=partner.ca, crl=partner.crl).revoked()
            except ValueError as error:
                raise BadCredentials(f"the partner {partner.name}: {error}") from None
            if theirs.fingerprint(SHA256()) in found:
                raise BadCredentials(f"the partner {partner.name} has the authority of another pool")
            found[theirs.fingerprint(SHA256())] = Realm(partner.name, theirs, revoked)
        return found

    def context(self, *, is_client: bool, verify: Callable[..., bool] | None = None,
                guests: bool = False) -> SSL.Context:
        """An OpenSSL context.

        Args:
            is_client: for dialling.
            verify: OpenSSL's verification callback; None: OpenSSL's own verdict.
            guests: also let in (to enrol) who has no certificate.
        """
        context = SSL.Context(SSL.TLS_CLIENT_METHOD if is_client else SSL.TLS_SERVER_METHOD)
        context.set_min_proto_version(SSL.TLS1_3_VERSION)
        context.set_mode(SSL.MODE_RELEASE_BUFFERS)
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION)
        certificates = self.certificates()
        context.use_certificate(certificates[0])
        for certificate in (*certificates[1:], self.authority()):
            context.add_extra_chain_cert(certificate)
        context.use_privatekey(_private_key(self.key))
        context.check_privatekey()
        store = context.get_cert_store()
        assert store is not None
        for realm in self.realms().values():
            store.add_cert(crypto.X509.from_cryptography(realm.authority))
        store.set_flags(PROXY_FLAG)
        mode = SSL.VERIFY_PEER if guests else SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
        context.set_verify(mode, verify)
        return context


@attrs.frozen
class Realm:
    """A pool: its name here (empty: this one), its authority, and the serial numbers that this has revoked."""

    name: str
    authority: x509.Certificate
    revoked: frozenset[int]


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadCredentials("the private key is not an elliptic one")
    return key


def name_matches(certificate: x509.Certificate, host: str) -> bool:
    """Whether a certificate may be shown by the peer that was dialled as ``host``."""
    patterns: list[CertificatePattern] = []
    for name in names_of(certificate):
        if is_address(name):
            patterns.append(IPAddressPattern(ip_address(name)))
        else:
            patterns.append(DNSPattern.from_bytes(name.encode("ascii", "replace")))
    try:
        wanted = IPAddress_ID(host) if is_address(host) else DNS_ID(host)
        verify_service_identity(patterns, obligatory_ids=[wanted], optional_ids=[])
    except (VerificationError, ValueError):
        return False
    return True


def peer_chain(connection: SSL.Connection) -> list[x509.Certificate]:
    """The verified chain of the other side, leaf first; empty when it showed none."""
    if connection.get_peer_certificate() is None:
        return []
    chain = connection.get_verified_chain() or []
    return [certificate.to_cryptography() for certificate in chain]


class _Connection(SSL.Connection):
    """A connection that remembers why its peer was refused (Twisted keeps the app data for itself).

    Attributes:
        refused: that, for people; empty: it was not.
    """

    refused = ""


class _ConnectionTo(_Connection):
    """A connection that knows whom we dialled.

    Attributes:
        dialled: the machine.
        is_theirs: whether the pool that this belongs to has signed what the peer shows.
    """

    dialled = TlsNode("", 0)
    is_theirs = False


@implementer(IOpenSSLClientConnectionCreator)
class Dialling:
    """Makes the client side of TLS for a connection to a machine."""

    def __init__(self, tls: TlsDoor, node: TlsNode) -> None:
        self._tls = tls
        self._node = node

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:  # noqa: N802, N803
        """Twisted's call for a connection."""
        connection = _ConnectionTo(self._tls.client_context, None)
        connection.dialled = self._node
        if not is_address(self._node.name):
            connection.set_tlsext_host_name(self._node.name.encode("idna"))
        return connection


@implementer(IOpenSSLServerConnectionCreator)
class Listening:
    """Makes the server side of TLS."""

    def __init__(self, tls: TlsDoor) -> None:
        self._tls = tls

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:  # noqa: N802, N803
        """Twisted's call for a connection."""
        return _Connection(self._tls.server_context, None)


class TlsFactory(TLSMemoryBIOFactory):
    """Wraps a factory's protocols in TLS that passes every write on at once: a link writes once an iteration."""

    protocol = TLSMemoryBIOProtocol
    noisy = False


class TlsDoor:
    """The TLS of one process; new credentials take effect with the next connection.

    Args:
        credentials: what we show.
        guests: let in, to enrol, who has no certificate yet (the central manager).
    """

    def __init__(self, credentials: Credentials, *, guests: bool = False) -> None:
        self._guests = guests
        self.renew(credentials)

    def renew(self, credentials: Credentials) -> None:
        """Use these from now on.

        Raises:
            BadCredentials: they cannot be used; the old ones stay.
        """
        realms = credentials.realms()
        client = credentials.context(is_client=True, verify=self._verify)
        server = credentials.context(is_client=False, verify=self._verify, guests=self._guests)
        self.credentials, self.realms = credentials, realms
        self.own_hosts = own_names(names_of(credentials.certificates()[0]))
        self.client_context, self.server_context = client, server

    def _verify(self, connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, ok: int) -> bool:
        """OpenSSL asks for each certificate of the peer's chain: the authority comes first, the leaf last."""
        if not ok:
            if isinstance(connection, _Connection):
                connection.refused = self._refused_because(certificate, error)
            return False
        if not isinstance(connection, _ConnectionTo):
            return True
        shown = certificate.to_cryptography()
        realm = self.realms.get(shown.fingerprint(SHA256()))
        if realm is not None:
            connection.is_theirs = realm.name == connection.dialled.realm
        return depth != 0 or (connection.is_theirs and name_matches(shown, connection.dialled.name))

    def _refused_because(self, certificate: crypto.X509, error: int) -> str:
        own = self.credentials.authority().subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        try:
            return refused_because(certificate.to_cryptography(), error, [each.name for each in self.realms.values()],
                                   str(own[0].value) if own else "")
        except (ValueError, x509.InvalidVersion):  # what a stranger shows may be anything
            return "its certificate cannot be read"

    def identify(self, connection: SSL.Connection) -> Identity | None:
        """Who is at the other end of a finished handshake; None: a guest.

        Raises:
            BadCertificate: it is nobody of this pool or a partner.
        """
        chain = peer_chain(connection)
        if not chain:
            if self._guests:
                return None
            raise BadCertificate("it showed no certificate")
        realm = self.realms.get(chain[-1].fingerprint(SHA256()))
        if realm is None:
            raise BadCertificate("its authority is trusted no longer")
        return identity_of_chain(chain, realm.revoked, realm.name)

    def revoked(self, realm: str) -> frozenset[int] | None:
        """The serial numbers that the authority of a pool has revoked; None: the pool is not trusted (any more)."""
        return next((each.revoked for each in self.realms.values() if each.name == realm), None)

    def dialling(self, node: TlsNode) -> Dialling:
        """TLS for a connection to a machine."""
        return Dialling(self, node)

    def listening(self) -> Listening:
        """TLS for connections that come in."""
        return Listening(self)
