"""The credential daemon: rights and names are decided by the core, tokens come from services by workers.

Theory: a secret is sealed before the core or the disk see it, and opened when a service is asked or a job gets it.
What waits for a token is a question (:class:`Fetch`) that is looked at again whenever one of its tokens has settled.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

import attrs
import jwt
from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor, World
from condor_actors.actors.workers import InWorker, Workers, at_once
from condor_actors.classads import ClassAd
from condor_actors.config import Config, ConfigError
from condor_actors.cores.credd.credentials import (
    REFRESH,
    TICKET,
    TICKET_REMEDY,
    Credential,
    CredentialRefused,
    CredentialTable,
    Name,
    Secret,
    at_home,
    checked_words,
    name_of,
    person,
    read_secret,
    token_object,
    whose,
)
from condor_actors.cores.credd.services import LocalIssuer
from condor_actors.cores.credd.tickets import read_cache, secret_of, stored_cache
from condor_actors.cores.credd.token_lives import (
    MOST_OF_CREDENTIAL,
    AskService,
    Effect,
    Failed,
    Received,
    Settled,
    State,
    TokenLives,
    Variant,
    WakeAt,
)
from condor_actors.daemons.credd.settings import CreddSettings, Services
from condor_actors.daemons.credd.ticket_renewal import renew_ticket
from condor_actors.daemons.credd.token_request import Answered, ask_for_token
from condor_actors.messages.credentials import (
    KRB,
    CheckServices,
    CredentialsPage,
    DeleteCredential,
    FetchTokens,
    QueryCredentials,
    ServiceToken,
    StoreCredential,
    TokensFetched,
    WantedToken,
)
from condor_actors.messages.envelope import Delivery, Done, Identity, Level, Refused, TimerFired
from condor_actors.store.credentials import CredentialStore
from condor_actors.store.sealing import BadSeal, Sealer, sealing_key

__all__ = ["ACTOR", "CreddDaemon", "make_daemon"]

ACTOR = "credd"
MOST_WANTED = 16
"""Tokens of one job."""
MOST_WAITING = 10_000
"""Questions that wait for services."""
MOST_WAITING_OF_USER = 1_000
LATER_S = 0.5
"""How long after a token is due to be renewed its users ask for the new one."""


@attrs.define(eq=False)
class Fetch:
    """A question for tokens: who asked, and for which, in order."""

    delivery: Delivery
    names: tuple[tuple[Name, WantedToken], ...]


class Waiting(Exception):
    """A token is not there yet."""


class CreddActor(Actor):
    """Keeps, gives, forgets."""

    def __init__(self, daemon: CreddDaemon) -> None:
        self._daemon = daemon
        self.table = CredentialTable(daemon.store.load(), lambda: daemon.settings.most)
        self.lives = TokenLives()
        self._waiting: list[Fetch] = []

    def started(self) -> None:
        """Tickets are renewed from now on, also where no job asks."""
        for name in self.table.of_service(KRB):
            self._perform(self.lives.want(Variant(name, "", ""), self.context.now_s()))

    def receive(self, delivery: Delivery) -> None:
        """Do what a user asks, or renew a token."""
        message = delivery.message
        if isinstance(message, TimerFired):
            self._perform(self.lives.due(message.key, self.context.now_s()))
            return
        step = _STEPS.get(type(message))
        if step is None:
            self.context.reply(delivery, Refused(code="invalid", text="the credential daemon does not take this"))
            return
        try:
            answer = step(self, delivery)
        except CredentialRefused as refused:
            answer = Refused(code=refused.code, text=refused.text)
        if answer is not None:
            self.context.reply(delivery, answer)

    # ---- what users do with their credentials

    def _store(self, delivery: Delivery) -> Any:
        message: StoreCredential = delivery.message
        now_s = self.context.now_s()
        name = name_of(person(delivery.identity), message.service, message.handle)
        if name.service == KRB:
            return self._store_ticket(name, message, now_s)
        secret = read_secret(message.secret, is_access_token=message.is_access_token, now_s=now_s)
        if self._daemon.services.issuer(name.service) is not None:
            raise CredentialRefused("invalid", f"tokens of {name.service} are issued by this pool; nothing has to be "
                                               "stored for them")
        if secret.form == REFRESH and self._daemon.services.oauth(name.service) is None:
            raise CredentialRefused("invalid", f"no server is known for a refresh token of {name.service}: an "
                                               f"administrator can set {name.service.upper()}_TOKEN_URL and "
                                               f"{name.service.upper()}_CLIENT_ID; an access token is stored with -P")
        self._save(name, secret, checked_words(message.scopes, "scopes"), checked_words(message.audience, "audience"))
        return Done(text=f"The {secret.form} token of {name} is stored.")

    def _store_ticket(self, name: Name, message: StoreCredential, now_s: float) -> Done:
        """Keep a Kerberos ticket, and see to its renewal."""
        if name.handle or message.scopes or message.audience or message.is_access_token:
            raise CredentialRefused("invalid", "a user has one Kerberos ticket, without a handle, scopes or audience")
        self._daemon.settings.renewer.check()
        ticket = read_cache(message.secret, now_s)
        self._save(name, secret_of(ticket))
        self._perform(self.lives.want(Variant(name, "", ""), now_s))
        until = (f"is renewed until {_moment(ticket.renew_until_s)}" if ticket.is_renewable else
                 f"counts until {_moment(ticket.ends_s)}, and cannot be renewed (kinit -r 7d asks for one that can)")
        return Done(text=f"The Kerberos ticket of {ticket.principal} is stored; it {until}.")

    def _save(self, name: Name, secret: Secret, scopes: str = "", audience: str = "") -> None:
        self.table.check_room(name)
        self.context.persist(self.table.save(Credential(
            name=name, form=secret.form, scopes=scopes, audience=audience, stored_s=self.context.now_s(),
            sealed=self._daemon.sealer.seal(secret.to_bytes(), _about(name)))))
        self._perform(self.lives.forget(name))

    def _delete(self, delivery: Delivery) -> Any:
        message: DeleteCredential = delivery.message
        user = whose(delivery.identity, message.user, lambda: self._is_administrator(delivery.identity))
        if message.everything:
            names = [each.name for each in self.table.of(user)]
        else:
            names = [name_of(user, message.service, message.handle)]
        dropped = self.table.drop(names)
        if not dropped.names:
            what = f"credential of {names[0]}" if not message.everything else "credential"
            raise CredentialRefused("not-found", f"{user} has no {what} here")
        self.context.persist(dropped)
        for name in dropped.names:
            self._perform(self.lives.forget(name))
        return Done(text=f"Deleted: {', '.join(map(str, dropped.names))}.")

    def _query(self, delivery: Delivery) -> Any:
        message: QueryCredentials = delivery.message
        user = whose(delivery.identity, message.user, lambda: self._is_administrator(delivery.identity))
        facts, cursor = self.table.page(user, message.cursor)
        return CredentialsPage(credentials=facts, cursor=cursor)

    def _is_administrator(self, identity: Identity) -> bool:
        return self._daemon.world.authorize(identity, Level.ADMINISTRATOR)

    # ---- what their jobs get

    def _check(self, delivery: Delivery) -> Any:
        message: CheckServices = delivery.message
        for name, wanted in self._wanted(person(delivery.identity), message.wanted):
            self._possible(name, wanted)
        return Done()

    def _fetch(self, delivery: Delivery) -> Any:
        message: FetchTokens = delivery.message
        fetch = Fetch(delivery, self._wanted(at_home(delivery.identity), message.wanted))
        user = at_home(delivery.identity)  # not the identity: that of each of his processes is another one
        own = sum(at_home(each.delivery.identity) == user for each in self._waiting)
        if len(self._waiting) >= MOST_WAITING or own >= MOST_WAITING_OF_USER:
            return Refused(code="busy", text="too many wait for tokens", retry_after_s=5.0)
        self._waiting.append(fetch)
        now_s = self.context.now_s()
        for name, wanted in fetch.names:
            try:
                variant = self._possible(name, wanted)
            except CredentialRefused:
                break  # `_look_at` says so
            if variant is not None:
                self._perform(self.lives.want(variant, now_s))
        if fetch in self._waiting:  # a token that is there settles at once
            self._look_at(fetch)
        return None

    def _wanted(self, user: str, wanted: tuple[WantedToken, ...]) -> tuple[tuple[Name, WantedToken], ...]:
        if len(wanted) > MOST_WANTED:
            raise CredentialRefused("invalid", f"{len(wanted)} tokens for one job are too many; it may have "
                                               f"{MOST_WANTED}")
        return tuple((name_of(user, each.service, each.handle), attrs.evolve(
            each, scopes=checked_words(each.scopes, "permissions"), audience=checked_words(each.audience, "resource")))
            for each in wanted)

    def _possible(self, name: Name, wanted: WantedToken) -> Variant | None:
        """The token of a service that is meant; None: it needs no service.

        Raises:
            CredentialRefused: there can be none, with the remedy.
        """
        now_s = self.context.now_s()
        issuer = self._daemon.services.issuer(name.service)
        if issuer is not None:
            issuer.claims(name.user, wanted.scopes, wanted.audience, "", now_s)
            return None
        kept = self.table.get(name)
        if name.service == KRB:
            return self._possible_ticket(name, kept, now_s)
        remedy = f"condor_store_cred add-oauth {name.flags} -i FILE"
        if kept is None:
            raise CredentialRefused("not-found", f"{name.user} has no credential of {name} here; store one: {remedy}")
        for what, flag, has, wants in (("permissions", "-S", kept.scopes, wanted.scopes),
                                       ("resource", "-A", kept.audience, wanted.audience)):
            if (kept.form != REFRESH or has) and set(wants.split()) - set(has.split()):
                known = f"for the {what} {has!r}" if has else f"without a word about its {what}"
                raise CredentialRefused("denied", f"the credential of {name} was stored {known}, not for {wants!r}; "
                                                  f"store one that has them, and say so: {remedy} {flag} {wants!r}")
        if kept.form != REFRESH:
            ends_s = self._open(kept).ends_s
            if ends_s and ends_s <= now_s:
                raise CredentialRefused("denied", f"the access token of {name} has run out; store another: {remedy} -P")
            return None
        if self._daemon.services.oauth(name.service) is None:
            raise CredentialRefused("denied", f"the credential daemon knows no server of {name.service} any more "
                                              f"({name.service.upper()}_TOKEN_URL)")
        variant = Variant(name, wanted.scopes or kept.scopes, wanted.audience or kept.audience)
        if not self.lives.has_room(variant):
            raise CredentialRefused("busy", f"jobs use {MOST_OF_CREDENTIAL} tokens of {name} with other permissions or "
                                            "resources; ask for the same ones in more jobs, or try later")
        return variant

    def _possible_ticket(self, name: Name, kept: Credential | None, now_s: float) -> Variant:
        """The ticket that is meant.

        Raises:
            CredentialRefused: it is not there, or has ended; with the remedy.
        """
        if kept is None:
            raise CredentialRefused("not-found", f"{name.user} has no Kerberos ticket here; store one: {TICKET_REMEDY}")
        if self._open(kept).ends_s <= now_s:
            raise CredentialRefused("denied", f"the Kerberos ticket of {name.user} has run out; store another: "
                                              f"{TICKET_REMEDY}")
        return Variant(name, "", "")

    def _look_at(self, fetch: Fetch) -> None:
        """Answer a question if all of its tokens have settled."""
        try:
            found = [self._token(name, wanted) for name, wanted in fetch.names]
        except Waiting:
            return
        except CredentialRefused as refused:
            self._waiting.remove(fetch)
            self.context.reply(fetch.delivery, Refused(code=refused.code, text=refused.text))
            return
        self._waiting.remove(fetch)
        again = [after_s for _, after_s in found if after_s]
        self.context.reply(fetch.delivery, TokensFetched(tokens=tuple(token for token, _ in found),
                                                         renew_after_s=min(again, default=0.0)))

    def _token(self, name: Name, wanted: WantedToken) -> tuple[ServiceToken, float]:
        """A token, and in how many seconds there is a newer one (0: never).

        Raises:
            Waiting: its service is being asked.
            CredentialRefused: there is none.
        """
        now_s = self.context.now_s()
        variant = self._possible(name, wanted)
        issuer = self._daemon.services.issuer(name.service)
        if issuer is not None:
            return self._issue(issuer, name, wanted, now_s)
        if variant is None:
            kept = self.table.get(name)
            assert kept is not None
            secret = self._open(kept)
            return _service_token(name, secret.content(now_s), secret.ends_s), 0.0
        life = self.lives.lives.get(variant)
        if life is None:  # it was stored anew meanwhile
            self._perform(self.lives.want(variant, now_s))
            raise Waiting
        if life.number:
            raise Waiting
        if life.state is not State.GOOD:
            another = TICKET_REMEDY if name.service == KRB else f"condor_store_cred add-oauth {name.flags} -i FILE"
            remedy = f"; store another: {another}" if life.is_final else ""
            raise CredentialRefused("denied" if life.is_final else "busy", f"no token of {name}: {life.why}{remedy}")
        is_ticket = name.service == KRB
        content = stored_cache(life.token) if is_ticket else token_object(life.token, life.ends_s, now_s)
        return _service_token(name, content, life.ends_s), max(life.due_s - now_s, 0.0) + LATER_S

    def _issue(self, issuer: LocalIssuer, name: Name, wanted: WantedToken, now_s: float) -> tuple[ServiceToken, float]:
        claims = issuer.claims(name.user, wanted.scopes, wanted.audience, secrets.token_hex(16), now_s)
        token = jwt.encode(claims, issuer.private_key.decode(), issuer.algorithm, {"kid": issuer.key_id})
        ends_s = now_s + issuer.life_s
        content = token_object(token, ends_s, now_s) if issuer.is_json else token.encode()
        return _service_token(name, content, ends_s), issuer.life_s / 2

    def _open(self, kept: Credential) -> Secret:
        try:
            return Secret.from_bytes(self._daemon.sealer.open(kept.sealed, _about(kept.name)))
        except BadSeal as error:
            raise CredentialRefused("internal", f"the credential of {kept.name} cannot be opened: {error}") from None

    # ---- services

    def _perform(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, WakeAt):
                self.context.set_timer(effect.variant, max(effect.at_s - self.context.now_s(), 0.0))
            elif isinstance(effect, Settled):
                self._settle(effect.variant.name)
            else:
                self._ask(effect)

    def _settle(self, settled: Name) -> None:
        for fetch in [each for each in self._waiting if any(name == settled for name, _ in each.names)]:
            if fetch in self._waiting:
                self._look_at(fetch)

    def _ask(self, effect: AskService) -> None:
        name = effect.variant.name
        kept, service = self.table.get(name), None
        try:
            service = self._daemon.services.oauth(name.service)
            secret = self._open(kept) if kept is not None else None
        except (ConfigError, CredentialRefused) as error:
            self._answered(effect, Answered(Failed(str(error), is_final=False)), kept)
            return
        if name.service == KRB and secret is not None:
            renewer = self._daemon.settings.renewer
            asked = self._daemon.in_worker(renew_ticket, renewer, secret.token, self.context.now_s())
            self.context.defer_to_turn(asked, lambda result: self._said(effect, result, kept))
            return
        if service is None or secret is None:
            self._answered(effect, Answered(Failed("its service or credential is gone", is_final=True)), kept)
            return
        asked = self._daemon.in_worker(ask_for_token, service, secret.token, effect.variant.scopes,
                                       effect.variant.audience)
        self.context.defer_to_turn(asked, lambda result: self._said(effect, result, kept))

    def _said(self, effect: AskService, result: Any, kept: Credential | None) -> None:
        if not isinstance(result, Answered):
            result = Answered(Failed("its service did not answer in time", is_final=False))
        self._answered(effect, result, kept)

    def _answered(self, effect: AskService, answer: Answered, kept: Credential | None) -> None:
        name, now_s = effect.variant.name, self.context.now_s()
        if answer.refresh_token and kept is not None and self.table.get(name) is kept:
            secret = attrs.evolve(self._open(kept), token=answer.refresh_token)
            if kept.form == TICKET and isinstance(answer.event, Received):
                secret = attrs.evolve(secret, ends_s=now_s + answer.event.life_s)
            sealed = self._daemon.sealer.seal(secret.to_bytes(), _about(name))
            self.context.persist(self.table.save(attrs.evolve(kept, sealed=sealed)))
        problem = answer.event.why if isinstance(answer.event, Failed) else answer.problem
        if problem:
            self.context.log.warn("no {newer}token of {name} for {user}: {why}", name=str(name), user=name.user,
                                  why=problem, newer="newer " if answer.problem else "")
        self._perform(self.lives.answered(effect.variant, effect.number, answer.event, now_s))


def _about(name: Name) -> bytes:
    return "\n".join((name.user, name.service, name.handle)).encode()


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))


def _service_token(name: Name, content: bytes, ends_s: float) -> ServiceToken:
    return ServiceToken(service=name.service, handle=name.handle, token=content, ends_s=ends_s)


_STEPS: dict[type, Callable[[CreddActor, Delivery], Any]] = {
    StoreCredential: CreddActor._store, DeleteCredential: CreddActor._delete, QueryCredentials: CreddActor._query,
    CheckServices: CreddActor._check, FetchTokens: CreddActor._fetch,
}


class CreddDaemon:
    """See ``docs/architecture.md``, "The edges of a daemon".

    Raises:
        ConfigError: a service cannot be used.
        StoreError, OSError: its database or its key cannot be used.
    """

    name = "credd"

    def __init__(self, config: Config, world: World) -> None:
        self.world = world
        self.settings = CreddSettings.of(config)
        self.services = Services(config)
        self.settings.renewer.clear()
        self.sealer = Sealer(sealing_key(self.settings.key_file))
        self.store = CredentialStore(self.settings.database, self.sealer, self.settings.key_file)
        clock: Any = world.reactor_time
        self.in_worker: InWorker = Workers(clock).run if hasattr(clock, "callFromThread") else at_once
        self.system = world.make_system(commit=self.store.commit)

    def start(self) -> None:
        """Spawn the actor."""
        self.system.spawn(ACTOR, lambda: CreddActor(self))

    def stop(self, graceful: bool) -> Deferred[None]:
        """What was stored is on the disk; tokens are had anew."""
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Take new services and limits; what cannot be used leaves the old ones in force."""
        try:
            self.services = Services(config)
        except ConfigError as error:
            self.world.log.error("the services of before stay in force: {error}", error=error)
        fresh = CreddSettings.of(config)
        self.settings = attrs.evolve(self.settings, most=fresh.most, renewer=fresh.renewer)

    def ad(self) -> ClassAd:
        """For ``condor_ping``."""
        return ClassAd({"MyType": "Credd", "Name": "credd", "MyAddress": self.world.post.public_node})


def make_daemon(config: Config, world: World) -> CreddDaemon:
    """The credential daemon, not started."""
    return CreddDaemon(config, world)
