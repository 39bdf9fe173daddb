"""How a machine becomes a member: the side of the authority.

Theory: a newcomer has no certificate, so it cannot speak to any actor.  It dials the central manager, checks the CA's
fingerprint against its token, says ``condor enrol 1``, and sends one line of JSON with the token and a signing request;
the answer is one line with its certificate.  Members renew over their ordinary links
(:mod:`condor_actors.wire.membership`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from condor_actors.actors import Actor
from condor_actors.messages.envelope import Delivery, Identity, Refused, TimerFired
from condor_actors.messages.pool import EnrolMachine, MachineEnrolled, QueryRevocations, RenewMachine, Revocations
from condor_actors.wire.certificates.authority import MACHINE_LIFE, Authority, AuthorityError, PoolFiles
from condor_actors.wire.certificates.trust import BadCertificate, identity_of_machine, names_of
from condor_actors.wire.host_names import canonical_host, is_loopback
from condor_actors.wire.nodes import BadNode
from condor_actors.wire.question_door import QuestionDoor
from condor_actors.wire.tokens import BadToken, TokenStore

ENROL_LIMIT_BYTES = 64 * 1024
ENROL_S = 20.0
LOOK_S = 5.0
"""How often the authority checks for a new revocation while others wait for one."""
HOLD_S = 240.0
"""So long a question about what is revoked waits for news."""
ACTOR = "enrolment"


class Enrolment:
    """What the authority does for those who ask.

    Args:
        files: of the machine that has the CA's key.
        life: of the certificates it signs.
        revoked_tokens: the file of the tokens that are revoked.
    """

    def __init__(self, files: PoolFiles, life: timedelta = MACHINE_LIFE, revoked_tokens: Path | None = None) -> None:
        self._files = files
        self._life = life
        self._revoked_tokens = revoked_tokens

    def enrol(self, message: EnrolMachine, peer: str = "") -> MachineEnrolled | Refused:
        """Let a newcomer in, if its token is good.

        Args:
            message: what it asks for.
            peer: the address that it speaks from.
        """
        try:
            authority = Authority.load(self._files)
            _refuse_everybodys_names(message.hosts, peer)
            grant = TokenStore(self._files.tokens).redeem(message.token_id, message.secret)
            self._refuse_own_names(message.hosts)
            certificate = authority.sign_request(message.request, message.hosts, grant.roles, self._life,
                                                 stay_s=grant.stay_s, peer=peer)
        except (BadToken, BadNode, AuthorityError, ValueError) as error:
            return Refused(code="denied", text=str(error))
        return self._enrolled(authority, certificate, grant.roles)

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
        if not identity.is_local and (identity.hosts, identity.roles) != (machine.hosts, machine.roles):
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

    def lists(self) -> Revocations:
        """What is revoked, and who is trusted, now."""
        return Revocations(crl=self.revocations(), tokens=_content(self._revoked_tokens),
                           partners=_content(self._files.partners))


def _content(path: Path | None) -> bytes:
    return path.read_bytes() if path is not None and path.exists() else b""


def _refuse_everybodys_names(hosts: Sequence[str], peer: str) -> None:
    """A name such as ``localhost`` means each machine to itself: a certificate with it could speak for all.

    Raises:
        AuthorityError: one of ``hosts`` is such a name, and the newcomer at ``peer`` is not on this very machine.
        BadNode: one of them is no name.
    """
    for host in hosts:
        if is_loopback(canonical_host(host)) and not is_loopback(peer):
            raise AuthorityError(f"{host} means every machine to itself and cannot be the name of one in the pool;"
                                 " say condor_pool join --host NAME, or set FULL_HOSTNAME")


class EnrolmentActor(Actor):
    """The actor ``enrolment`` on the central manager; newcomers come through :class:`EnrolmentDoor` instead.

    Questions about what is revoked wait here until there is something new to say, so that it is known everywhere within
    seconds and nobody asks again and again.
    """

    def __init__(self, enrolment: Enrolment) -> None:
        self._enrolment = enrolment
        self._waiting: dict[Hashable, tuple[Delivery, float]] = {}

    def receive(self, delivery: Delivery) -> None:
        """Renewals and questions about revocations."""
        message = delivery.message
        if isinstance(message, TimerFired):
            self._tell_news()
        elif isinstance(message, RenewMachine):
            self.context.reply(delivery, self._enrolment.renew(message, delivery.identity))
        elif isinstance(message, QueryRevocations):
            self._queried(delivery, message)
        else:
            self.context.reply(delivery, Refused(code="invalid", text="enrolment does not take this"))

    def _queried(self, delivery: Delivery, message: QueryRevocations) -> None:
        now = _for(delivery.identity, self._enrolment.lists())
        if message.known != known_lists(now):
            self.context.reply(delivery, now)
            return
        before, _ = self._waiting.pop(delivery.identity.bearer, (None, 0.0))
        if before is not None:
            self.context.reply(before, now)
        if not self._waiting:
            self.context.set_timer("look", LOOK_S)
        self._waiting[delivery.identity.bearer] = delivery, self.context.now_s() + HOLD_S

    def _tell_news(self) -> None:
        """Answer those who know less than there is by now, or have waited long."""
        lists, now_s = self._enrolment.lists(), self.context.now_s()
        for who, (delivery, until_s) in tuple(self._waiting.items()):
            now = _for(delivery.identity, lists)
            if delivery.message.known != known_lists(now) or until_s <= now_s:
                del self._waiting[who]
                self.context.reply(delivery, now)
        if self._waiting:
            self.context.set_timer("look", LOOK_S)


def _for(identity: Identity, lists: Revocations) -> Revocations:
    """The part of the lists that a peer is told: a partner's machines hear of certificates alone."""
    return Revocations(crl=lists.crl) if identity.realm else lists


def known_lists(lists: Revocations) -> str:
    """What tells the lists from every other state of them."""
    return hashlib.sha256(b"\0".join((lists.crl, lists.tokens, lists.partners))).hexdigest()


class EnrolmentDoor(QuestionDoor):
    """One newcomer's connection: a line of JSON in, a line of JSON out."""

    def __init__(self, enrolment: Enrolment, clock: IReactorTime, log: Logger) -> None:
        super().__init__(clock, ENROL_LIMIT_BYTES, ENROL_S)
        self._enrolment = enrolment
        self._log = log

    def asked(self, line: bytes) -> None:
        """Let the newcomer in, or say why not."""
        self.say(self._answer(line))
        self.hang_up()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            hosts = tuple(str(host) for host in asked["hosts"])
            if not 0 < len(hosts) <= 64 or any(len(host) > 253 for host in hosts):
                raise ValueError("hosts")
            message = EnrolMachine(token_id=str(asked["token_id"]), secret=str(asked["secret"]),
                                   request=str(asked["request"]).encode(), hosts=hosts)
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"error": "a request that cannot be read"}
        answer = self._enrolment.enrol(message, self.address)
        if isinstance(answer, Refused):
            self._log.info("a machine that calls itself {host} was not let in: {text}", host=hosts[0],
                           text=answer.text)
            return {"error": answer.text}
        self._log.info("{host} joined the pool with the roles {roles}", host=hosts[0], roles=answer.roles)
        return {"certificate": answer.certificate.decode(), "ca": answer.ca.decode(), "crl": answer.crl.decode(),
                "pool": answer.pool, "roles": answer.roles}


def offers_enrolment(files: PoolFiles, name: str) -> bool:
    """Whether the daemon ``name`` lets newcomers in: the collector, where it can read the CA's key."""
    try:
        return name == "collector" and bool(files.ca_key.read_bytes())
    except OSError:
        return False
