"""How a machine becomes and stays a member: the side of the authority, and each member's own care for its files.

Theory: a newcomer has no certificate, so it cannot speak to any actor.  It dials the central manager, checks the CA's
fingerprint against its token, says ``condor enrol 1``, and sends one line of JSON with the token and a signing request;
the answer is one line with its certificate.  Members renew over their ordinary links, in good time, with a new key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors import Actor, ActorSystem
from condor_actors.messages.envelope import Address, Delivery, Identity, Refused, TimerFired
from condor_actors.messages.pool import (
    BorrowCertificate,
    CertificateLent,
    EnrolMachine,
    MachineEnrolled,
    QueryRevocations,
    RenewMachine,
    Revocations,
)
from condor_actors.wire.authority import (
    MACHINE_LIFE,
    Authority,
    AuthorityError,
    PoolFiles,
    install_renewed,
    key_pem,
    lend_proxy,
    make_key,
    make_request,
    renewal_due,
    write_whole,
)
from condor_actors.wire.credentials import BadCredentials, Credentials
from condor_actors.wire.frames import ENROL_LINE
from condor_actors.wire.host_names import canonical_host, is_loopback
from condor_actors.wire.nodes import BadNode, tls_node
from condor_actors.wire.post_office import PostOffice
from condor_actors.wire.tokens import BadToken, TokenStore
from condor_actors.wire.trust import BadCertificate, identity_of_machine, names_of

ENROL_LIMIT_BYTES = 64 * 1024
ENROL_S = 20.0
CHECK_S = 600.0
USER_PROXY_LIFE = timedelta(hours=8)
ACTOR = "enrolment"
_DONE = Failure(ConnectionDone())


class Enrolment:
    """What the authority does for those who ask.

    Args:
        files: of the machine that has the CA's key.
        life: of the certificates it signs.
    """

    def __init__(self, files: PoolFiles, life: timedelta = MACHINE_LIFE) -> None:
        self._files = files
        self._life = life

    def enrol(self, message: EnrolMachine, peer: str = "") -> MachineEnrolled | Refused:
        """Let a newcomer in, if its token is good.

        Args:
            message: what it asks for.
            peer: the address that it speaks from.
        """
        try:
            authority = Authority.load(self._files)
            _refuse_everybodys_names(message.hosts, peer)
            roles = TokenStore(self._files.tokens).redeem(message.token_id, message.secret)
            self._refuse_own_names(message.hosts)
            certificate = authority.sign_request(message.request, message.hosts, roles, self._life)
        except (BadToken, BadNode, AuthorityError, ValueError) as error:
            return Refused(code="denied", text=str(error))
        return self._enrolled(authority, certificate, roles)

    def _refuse_own_names(self, hosts: Sequence[str]) -> None:
        """Nobody enrols under a name of the central manager, not even after a revocation.

        Raises:
            AuthorityError: one of ``hosts`` is its.
        """
        if not self._files.host.exists():
            return
        own = x509.load_pem_x509_certificate(self._files.host.read_bytes())
        taken = {canonical_host(host) for host in hosts} & {host.lower() for host in names_of(own)}
        taken = {host for host in taken if not is_loopback(host)}
        if taken:
            raise AuthorityError(f"{min(taken)} is the central manager's own name")

    def renew(self, message: RenewMachine, identity: Identity) -> MachineEnrolled | Refused:
        """A new certificate for the names and roles of the old one, for the machine that shows it on its link."""
        try:
            authority = Authority.load(self._files)
            old = x509.load_pem_x509_certificate(message.certificate)
            old.verify_directly_issued_by(authority.certificate)
            machine = identity_of_machine(old)
        except (AuthorityError, BadCertificate, ValueError, TypeError) as error:
            return Refused(code="denied", text=f"the certificate is not one of this pool: {error}")
        except Exception as error:  # noqa: BLE001 - the door: cryptography's InvalidSignature is a bare Exception
            return Refused(code="denied", text=f"the certificate was not signed here: {type(error).__name__}")
        if authority.issued().get(f"{old.serial_number:x}", {}).get("revoked"):
            return Refused(code="denied", text="the certificate was revoked")
        if identity.method == "tls" and (identity.hosts, identity.roles) != (machine.hosts, machine.roles):
            return Refused(code="denied", text=f"{identity.host} may not renew the certificate of {machine.host}")
        try:
            certificate = authority.sign_request(message.request, names_of(old), sorted(machine.roles), self._life,
                                                 renews=f"{old.serial_number:x}")
        except AuthorityError as error:
            return Refused(code="denied", text=str(error))
        return self._enrolled(authority, certificate, tuple(sorted(machine.roles)))

    def _enrolled(self, authority: Authority, certificate: bytes, roles: tuple[str, ...]) -> MachineEnrolled:
        return MachineEnrolled(certificate=certificate, ca=self._files.ca.read_bytes(), crl=self.revocations(),
                               pool=authority.pool, roles=roles)

    def revocations(self) -> bytes:
        """The revocation list; empty when there is none."""
        return self._files.crl.read_bytes() if self._files.crl.exists() else b""


def _refuse_everybodys_names(hosts: Sequence[str], peer: str) -> None:
    """A name such as ``localhost`` means each machine to itself: whoever had it in a certificate could speak for all.

    Raises:
        AuthorityError: one of ``hosts`` is such a name, and the newcomer at ``peer`` is not on this very machine.
        BadNode: one of them is no name.
    """
    for host in hosts:
        if is_loopback(canonical_host(host)) and not is_loopback(peer):
            raise AuthorityError(f"{host} means every machine to itself and cannot be the name of one in the pool;"
                                 " say condor_pool join --host NAME, or set FULL_HOSTNAME")


class EnrolmentActor(Actor):
    """The actor ``enrolment`` on the central manager; newcomers come through :class:`EnrolmentDoor` instead."""

    def __init__(self, enrolment: Enrolment) -> None:
        self._enrolment = enrolment

    def receive(self, delivery: Delivery) -> None:
        """Renewals and questions about revocations."""
        message = delivery.message
        if isinstance(message, RenewMachine):
            self.context.reply(delivery, self._enrolment.renew(message, delivery.identity))
        elif isinstance(message, QueryRevocations):
            self.context.reply(delivery, Revocations(crl=self._enrolment.revocations()))
        else:
            self.context.reply(delivery, Refused(code="invalid", text="enrolment does not take this"))


class EnrolmentDoor(Protocol):
    """One newcomer's connection: a line of JSON in, a line of JSON out."""

    def __init__(self, enrolment: Enrolment, clock: IReactorTime, log: Logger) -> None:
        self._enrolment = enrolment
        self._clock = clock
        self._log = log
        self._buffer = b""
        self._timeout: IDelayedCall | None = None

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Wait for the line, but not forever."""
        self._timeout = self._clock.callLater(ENROL_S, self._too_slow)

    def _too_slow(self) -> None:
        self._timeout = None
        self._hang_up()

    def _hang_up(self) -> None:
        if self.transport is not None:
            self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """Collect the line and answer it."""
        self._buffer += data
        line, newline, _ = self._buffer.partition(b"\n")
        if newline:
            self._buffer = b""
            answer = self._answer(line)
            assert self.transport is not None
            self.transport.write(json.dumps(answer).encode() + b"\n")
            self._hang_up()
        elif len(self._buffer) > ENROL_LIMIT_BYTES:
            self._hang_up()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            hosts = tuple(str(host) for host in asked["hosts"])
            if not 0 < len(hosts) <= 64 or any(len(host) > 253 for host in hosts):
                raise ValueError("hosts")
            message = EnrolMachine(token_id=str(asked["token_id"]), secret=str(asked["secret"]),
                                   request=str(asked["request"]).encode(), hosts=hosts)
        except (ValueError, KeyError, TypeError):
            return {"error": "a request that cannot be read"}
        assert self.transport is not None
        answer = self._enrolment.enrol(message, getattr(self.transport.getPeer(), "host", ""))
        if isinstance(answer, Refused):
            self._log.info("a machine that calls itself {host} was not let in: {text}", host=hosts[0],
                           text=answer.text)
            return {"error": answer.text}
        self._log.info("{host} joined the pool with the roles {roles}", host=hosts[0], roles=answer.roles)
        return {"certificate": answer.certificate.decode(), "ca": answer.ca.decode(), "crl": answer.crl.decode(),
                "pool": answer.pool, "roles": answer.roles}

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """Stop waiting."""
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


class CertificateKeeper(Actor):
    """In every daemon: takes up new certificates, renews in time, and lends proxies to local users' tools.

    Args:
        files: this machine's.
        renewed: called with new credentials (``PostOffice.renew``).
        authority: node of the central manager that renews; empty: this process does not renew, it only looks.
    """

    def __init__(self, files: PoolFiles, renewed: Callable[[Credentials], None], authority: str = "") -> None:
        self._files = files
        self._renewed = renewed
        self._authority = authority
        self._seen = _stamp(files)

    def started(self) -> None:
        """Check at intervals."""
        self.context.set_timer("check", CHECK_S)

    def receive(self, delivery: Delivery) -> None:
        """The timer, or a tool that wants a proxy."""
        if isinstance(delivery.message, TimerFired):
            self.check()
            self.context.set_timer("check", CHECK_S * self.context.random.uniform(0.8, 1.2))
        elif isinstance(delivery.message, BorrowCertificate):
            self.context.reply(delivery, self._lend(delivery.identity))

    def check(self) -> None:
        """Take up what changed on disk; ask for what is due."""
        stamp = _stamp(self._files)
        if stamp != self._seen:
            self._seen = stamp
            self._take_up()
        if not self._authority:
            return
        certificate = x509.load_pem_x509_certificate(self._files.host.read_bytes())
        enrolment = Address(self._authority, ACTOR)
        if renewal_due(certificate, self.context.now_s() + CHECK_S):  # at the next look it might be too late
            key = make_key()
            message = RenewMachine(request=make_request(key, names_of(certificate)[0]),
                                   certificate=self._files.host.read_bytes())
            self.context.ask(enrolment, message, timeout_s=60.0, then=lambda answer: self._answered(answer, key))
        else:
            self.context.ask(enrolment, QueryRevocations(), timeout_s=60.0, then=self._revocations)

    def _answered(self, delivery: Delivery, key: Any) -> None:
        answer = delivery.message
        if not isinstance(answer, MachineEnrolled):
            self.context.log.error("the machine's certificate was not renewed: {answer}", answer=answer)
            return
        write_whole(self._files.host_key.with_suffix(".key.next"), key_pem(key), 0o600)
        write_whole(self._files.host.with_suffix(".crt.next"), answer.certificate)
        install_renewed(self._files)
        self._keep_crl(answer.crl)
        self._seen = _stamp(self._files)
        self._take_up()

    def _revocations(self, delivery: Delivery) -> None:
        if isinstance(delivery.message, Revocations):
            self._keep_crl(delivery.message.crl)

    def _keep_crl(self, crl: bytes) -> None:
        known = self._files.crl.read_bytes() if self._files.crl.exists() else b""
        if crl and crl != known:
            write_whole(self._files.crl, crl)
            self._seen = _stamp(self._files)
            self._take_up()

    def _take_up(self) -> None:
        try:
            credentials = self._files.credentials()
            if credentials is not None:
                self._renewed(credentials)
                self.context.log.info("the machine's certificate was taken up anew")
        except (BadCredentials, ValueError) as error:
            self.context.log.error("the new certificate cannot be used: {error}", error=error)

    def _lend(self, identity: Identity) -> CertificateLent | Refused:
        if identity.method != "local":
            return Refused(code="denied", text="certificates are lent to users of this machine only")
        try:
            credentials = self._files.credentials()
        except BadCredentials as error:
            return Refused(code="internal", text=str(error))
        if credentials is None:
            return Refused(code="not-found", text="this machine belongs to no pool")
        host = names_of(credentials.certificates()[0])[0]
        lent = lend_proxy(credentials, f"user:{identity.user}@{host}", USER_PROXY_LIFE)
        return CertificateLent(bundle=lent.bundle())


def _stamp(files: PoolFiles) -> tuple[tuple[int, int], ...]:
    """Changes when one of the files does."""
    stamps = []
    for path in (files.ca, files.host, files.host_key, files.crl):
        facts = Path(path).stat() if path.exists() else None
        stamps.append((facts.st_mtime_ns, facts.st_ino) if facts is not None else (0, 0))
    return tuple(stamps)


def offers_enrolment(files: PoolFiles, name: str) -> bool:
    """Whether the daemon ``name`` lets newcomers in: the collector, where it can read the CA's key."""
    try:
        return name == "collector" and bool(files.ca_key.read_bytes())
    except OSError:
        return False


def keep_membership(config: Any, name: str, office: PostOffice, system: ActorSystem) -> None:
    """Give a daemon its part in all this: the actor ``certificates``, and on the central manager ``enrolment``.

    Call it before the post office listens.
    """
    files = PoolFiles.of(config)
    if office.tls is None:
        return
    authority = ""
    if name == "master":
        hosts = config.list_of("COLLECTOR_HOST")
        authority = str(tls_node(hosts[0])) if hosts else ""
    system.spawn("certificates", lambda: CertificateKeeper(files, office.renew, authority))
    if offers_enrolment(files, name):
        enrolment = Enrolment(files, timedelta(seconds=config.seconds("CERTIFICATE_LIFETIME")))
        system.spawn(ACTOR, lambda: EnrolmentActor(enrolment))
        office.services[ENROL_LINE] = lambda _: EnrolmentDoor(enrolment, office.clock, office.log)
