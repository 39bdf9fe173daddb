"""How a machine stays a member: each process's care for its certificate, for what is revoked, for local users' tools.

Theory: the master of a machine renews its certificate in good time, with a new key, and waits at the authority for news
of what is revoked; both land in files, which every process of the machine looks at.  What was revoked ends the links of
those who were let in with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
from cryptography import x509
from twisted.logger import Logger

from condor_actors.actors import Actor, ActorSystem
from condor_actors.config.collectors import collector_nodes
from condor_actors.durable import write_whole
from condor_actors.messages.envelope import Address, Delivery, Identity, Level, Refused, TimerFired
from condor_actors.messages.pool import (
    BorrowCertificate,
    CertificateLent,
    HostsRevoked,
    MachineEnrolled,
    PartnersKnown,
    QueryRevocations,
    RenewMachine,
    Revocations,
)
from condor_actors.wire.certificates.authority import (
    PoolFiles,
    key_pem,
    lend_proxy,
    make_key,
    make_request,
    renewal_due,
)
from condor_actors.wire.certificates.credentials import BadCredentials, Credentials
from condor_actors.wire.certificates.renewed_pair import install_renewed, keep_renewed, renewed_file
from condor_actors.wire.certificates.revocation import objection
from condor_actors.wire.certificates.trust import names_of
from condor_actors.wire.enrolment import (
    ACTOR,
    HOLD_S,
    Enrolment,
    EnrolmentActor,
    EnrolmentDoor,
    known_lists,
    offers_enrolment,
)
from condor_actors.wire.frames import ENROL_LINE, TOKEN_REQUEST_LINE
from condor_actors.wire.idtokens import token_issuer
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens
from condor_actors.wire.idtokens.signed_token import BadToken
from condor_actors.wire.idtokens.signing_keys import SigningKeys
from condor_actors.wire.partners.partner_store import read_partners
from condor_actors.wire.partners.partner_watch import PartnerWatch
from condor_actors.wire.post_office import PostOffice

CHECK_S = 600.0
LOOK_S = 10.0
"""So often a process looks at its files, and for links that have run out."""
AGAIN_S = 15.0
"""So long after a failure the authority is asked again."""
PAUSE_S = 1.0
USER_PROXY_LIFE = timedelta(hours=8)


class CertificateKeeper(Actor):
    """In every daemon: takes up new certificates, renews in time, and lends proxies to local users' tools.

    Args:
        files: this machine's.
        renewed: called with new credentials (``PostOffice.renew``).
        shown: what the process shows already.  It was read some time before this actor is made, and files may have
            changed in between, so the first look reads them all.
        authority: node of the central manager that renews; empty: this process does not renew, it only looks.
        tokens: the file of the tokens that are revoked; None: this process takes none.
        cut: ends the links of those who may stay no longer.
        tell_partners: tells the daemon which pools are trusted.
    """

    def __init__(self, files: PoolFiles, renewed: Callable[[Credentials], None], authority: str = "",
                 tokens: Path | None = None, cut: Callable[[], None] = lambda: None,
                 tell_partners: Callable[[], None] = lambda: None, shown: Credentials | None = None) -> None:
        self._files = files
        self._renewed = renewed
        self._shown = shown
        self._authority = authority
        self._tokens = tokens
        self._cut = cut
        self._tell_partners = tell_partners
        self._known = ""
        self._seen: tuple[tuple[int, int], ...] = ()

    def started(self) -> None:
        """Check at intervals."""
        self.context.set_timer("check", CHECK_S)
        self.context.set_timer("look", 0.0)
        if self._authority:
            self.context.set_timer("revocations", self.context.random.uniform(0.0, PAUSE_S))

    def receive(self, delivery: Delivery) -> None:
        """The timer, or a tool that wants a proxy."""
        message = delivery.message
        if isinstance(message, TimerFired) and message.key == "look":
            self._look()
            self.context.set_timer("look", LOOK_S)
        elif isinstance(message, TimerFired) and message.key == "revocations":
            self.context.ask(Address(self._authority, ACTOR), QueryRevocations(known=self._known),
                             timeout_s=HOLD_S + 60.0, then=self._revocations)
        elif isinstance(message, TimerFired):
            self.check()
            self.context.set_timer("check", CHECK_S * self.context.random.uniform(0.8, 1.2))
        elif isinstance(message, BorrowCertificate):
            self.context.reply(delivery, self._lend(delivery.identity))

    def check(self) -> None:
        """Take up what changed on disk; renew what is due."""
        self._look()
        if not self._authority:
            return
        install_renewed(self._files.host, self._files.host_key)
        certificate = x509.load_pem_x509_certificate(self._files.host.read_bytes())
        if renewal_due(certificate, self.context.now_s() + CHECK_S):  # at the next look it might be too late
            key = make_key()
            message = RenewMachine(request=make_request(key, names_of(certificate)[0]),
                                   certificate=self._files.host.read_bytes())
            self.context.ask(Address(self._authority, ACTOR), message, timeout_s=60.0,
                             then=lambda answer: self._answered(answer, key))

    def _look(self) -> None:
        stamp = _stamp(self._files)  # before they are read: what changes meanwhile is read at the next look
        if stamp != self._seen:
            self._seen = stamp
            self._take_up()
        self._cut()
        self._tell_partners()

    def _answered(self, delivery: Delivery, key: Any) -> None:
        answer = delivery.message
        if not isinstance(answer, MachineEnrolled):
            self.context.log.error("the machine's certificate was not renewed: {answer}", answer=answer)
            return
        keep_renewed(self._files.host, self._files.host_key, answer.certificate + key_pem(key))
        self._keep(self._files.crl, answer.crl)
        self._look()

    def _revocations(self, delivery: Delivery) -> None:
        lists = delivery.message
        if not isinstance(lists, Revocations):
            self.context.set_timer("revocations", AGAIN_S * self.context.random.uniform(0.8, 1.2))
            return
        self._known = known_lists(lists)
        self._keep(self._files.crl, lists.crl)
        self._keep(self._files.partners, lists.partners)
        if self._tokens is not None:
            self._keep(self._tokens, lists.tokens)
        self._look()
        self.context.set_timer("revocations", PAUSE_S)

    def _keep(self, path: Path, data: bytes) -> None:
        """Have a list on disk, for all processes of the machine, unless it is there or empty."""
        known = path.read_bytes() if path.exists() else b""
        if data and data != known:
            write_whole(path, data)

    def _take_up(self) -> None:
        try:
            credentials = self._files.credentials()
            if credentials is not None and credentials != self._shown:
                self._renewed(credentials)
                self._shown = credentials
                self.context.log.info("the machine's certificates and lists were taken up anew")
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
    for path in (files.ca, renewed_file(files.host), files.host, files.host_key, files.crl, files.partners):
        try:
            facts = os.stat(path)
        except FileNotFoundError:
            stamps.append((0, 0))
        else:
            stamps.append((facts.st_mtime_ns, facts.st_ino))
    return tuple(stamps)


def cut_the_revoked(office: PostOffice, log: Logger) -> frozenset[str]:
    """End the connections of those whose certificate or token counts no longer; the host names of such machines."""
    if office.tls is None:
        return frozenset()
    tls, tokens = office.tls, RevokedTokens()
    if office.tokens is not None:
        try:
            tokens = office.tokens.revoked()
        except BadToken as error:
            log.error("{error}: nobody with a token is let in, and who is in stays", error=error)
    return office.cut(lambda identity: objection(identity, tls.revoked(identity.realm), tokens, time.time()))


class RevocationWatch(Actor):
    """In a process of a user's, which has no part in the machine's membership: ends its links to revoked peers.

    Args:
        crl: the machine's list of revoked certificates.
        partners: its list of the pools that are trusted.
        office: of the process.
    """

    def __init__(self, crl: Path, partners: Path, office: PostOffice) -> None:
        self._crl = crl
        self._partners = partners
        self._office = office

    def started(self) -> None:
        """Look at intervals."""
        self.context.set_timer("look", 0.0)

    def receive(self, delivery: Delivery) -> None:
        """The timer: nobody else knows of this actor."""
        if isinstance(delivery.message, TimerFired):
            self._look()
            self.context.set_timer("look", LOOK_S)

    def _look(self) -> None:
        tls = self._office.tls
        if tls is None:
            return
        try:
            crl = self._crl.read_bytes() if self._crl.exists() else b""
            partners = read_partners(self._partners)
            if (crl, partners) != (tls.credentials.crl, tls.credentials.partners):
                tls.renew(attrs.evolve(tls.credentials, crl=crl, partners=partners))
        except (OSError, ValueError) as error:
            self.context.log.error("{crl} or {partners} cannot be used: {error}", crl=self._crl,
                                   partners=self._partners, error=error)
            return
        cut_the_revoked(self._office, self.context.log)


def _need_pool_key(keys: SigningKeys, log: Logger) -> None:
    try:
        keys.make_pool_key()
    except OSError as error:
        log.error("no tokens are given: {path} cannot be made: {error}", path=keys.pool_key, error=error.strerror)


def keep_membership(config: Any, name: str, office: PostOffice, system: ActorSystem,
                    authorize: Callable[[Identity, Level], bool]) -> token_issuer.TokenIssuer | None:
    """Give a daemon its part in all this: the actor ``certificates``, ``tokens`` where it takes them, and on the
    central manager ``enrolment``.

    Call it before the post office listens.

    Returns:
        What the daemon goes by when it gives tokens, for a new configuration; None: it gives none.
    """
    files = PoolFiles.of(config)
    if office.tls is None:
        return None
    authority = next(iter(collector_nodes(config)), "")

    def cut() -> None:
        hosts = cut_the_revoked(office, office.log)
        if hosts and name == "collector":
            system.tell(Address("", name), HostsRevoked(hosts=hosts))

    tokens = office.tokens.revocations if office.tokens is not None else None
    def tell_partners() -> None:
        if name in ("schedd", "startd", "gateway", "negotiator"):
            system.tell(Address("", name), PartnersKnown(partners=office.partners()))

    system.spawn("certificates", lambda: CertificateKeeper(files, office.renew, authority if name == "master" else "",
                                                           tokens, cut, tell_partners,
                                                           office.tls.credentials if office.tls is not None else None))
    if offers_enrolment(files, name):
        enrolment = Enrolment(files, timedelta(seconds=config.seconds("CERTIFICATE_LIFETIME")), tokens)
        system.spawn(ACTOR, lambda: EnrolmentActor(enrolment))
        system.spawn("partners", lambda: PartnerWatch(files.partners))
        office.services[ENROL_LINE] = lambda _: EnrolmentDoor(enrolment, office.clock, office.log)
        if office.tokens is not None:
            _need_pool_key(office.tokens.keys, office.log)
    if office.tokens is None:
        return None
    issuer = token_issuer.TokenIssuer.of(config, office.tokens)
    asked = authority if name != "collector" else ""
    system.spawn(token_issuer.ACTOR, lambda: token_issuer.TokenActor(issuer, asked, authorize, cut))
    if name == "collector":
        office.services[TOKEN_REQUEST_LINE] = lambda _: token_issuer.TokenRequestDoor(issuer, office.clock, office.log)
    return issuer
