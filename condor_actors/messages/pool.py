"""Pool: how a machine gets, and keeps, the certificate that makes it a member."""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import message
from condor_actors.messages.flock_terms import FlockTerms


@message
@records.frozen(kw_only=True)
class EnrolMachine:
    """A machine without a certificate, by a join token: sign my key.  Answer: :class:`MachineEnrolled` or Refused.

    Attributes:
        token_id, secret: of the token; it is used up by this.
        request: the signing request (PEM).
        hosts: names and addresses under which the machine is dialled, its own name first.
    """

    KIND: ClassVar[str] = "condor.pool.EnrolMachine"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    token_id: str
    secret: str = records.field(repr=False)
    request: bytes
    hosts: tuple[str, ...]


@message
@records.frozen(kw_only=True)
class RenewMachine:
    """A machine of the pool, over TLS with its old certificate: sign my (new) key for the same names.

    Answer: :class:`MachineEnrolled` or Refused.
    """

    KIND: ClassVar[str] = "condor.pool.RenewMachine"
    VERSION: ClassVar[int] = 1

    request: bytes
    certificate: bytes


@message
@records.frozen(kw_only=True)
class MachineEnrolled:
    """The machine's certificate, the pool's authority and revocation list (PEM), and what the pool is called."""

    KIND: ClassVar[str] = "condor.pool.MachineEnrolled"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    certificate: bytes
    ca: bytes
    crl: bytes
    pool: str
    roles: tuple[str, ...] = ()


@message
@records.frozen(kw_only=True)
class QueryRevocations:
    """Which certificates and tokens are revoked?  Answer: :class:`Revocations`, once it is no longer what is known.

    Attributes:
        known: SHA-256 (hex) of the lists that the asker has; empty: none, and the answer comes at once.
    """

    KIND: ClassVar[str] = "condor.pool.QueryRevocations"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    known: str = ""


@message
@records.frozen(kw_only=True)
class Revocations:
    """The authority's lists; an empty one never had anything in it.

    Attributes:
        crl: certificates that are revoked (PEM).
        tokens: tokens that are revoked (JSON).
        partners: the pools that are trusted (JSON).
    """

    KIND: ClassVar[str] = "condor.pool.Revocations"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    crl: bytes
    tokens: bytes = b""
    partners: bytes = b""


@records.frozen(kw_only=True)
class HostsRevoked:
    """Local event: the links of machines with these host names were cut, since they belong to the pool no longer."""

    hosts: frozenset[str]


@records.frozen(kw_only=True)
class KnownPartner:
    """Another pool that this one trusts.

    Attributes:
        name: what it is called.
        central: the node of its central manager, as this pool dials it.
        gateways: the nodes of its gateways, likewise; none: it has none that could be dialled.
        terms: on which it has machines here, and jobs from here.
    """

    name: str
    central: str
    gateways: tuple[str, ...] = ()
    terms: FlockTerms = records.field(factory=FlockTerms)

    def is_called(self, word: str) -> bool:
        """Whether FLOCK_TO or FLOCK_FROM means it: by its name, or by its central manager's host or address."""
        host = self.central.strip("<>").rpartition(":")[0].rpartition("%")[0].strip("[]")
        wanted = word.lower().strip("<>").partition("?")[0]
        return wanted in (self.name, host) or wanted.rpartition(":")[0].strip("[]") == host


@records.frozen(kw_only=True)
class PartnersKnown:
    """Local event: the pools that this one trusts, now."""

    partners: tuple[KnownPartner, ...]


@message
@records.frozen(kw_only=True)
class BorrowCertificate:
    """A local user's tool to a daemon of the same machine (UNIX socket): lend me a certificate in my name.

    Answer: :class:`CertificateLent`, good for some hours; or Refused.
    """

    KIND: ClassVar[str] = "condor.pool.BorrowCertificate"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"


@message
@records.frozen(kw_only=True)
class CertificateLent:
    """A proxy certificate with its key and chain (PEM)."""

    KIND: ClassVar[str] = "condor.pool.CertificateLent"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    bundle: bytes = records.field(repr=False)
