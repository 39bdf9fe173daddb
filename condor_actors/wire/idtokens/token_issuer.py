"""The actor ``tokens`` of a daemon: gives, lists, approves and revokes tokens, and asks the collector about those whose
key is not here.

Theory: a person gets a token in his own name only, and none by showing another one: what a token limits would be lost.
Requests come from people who have nothing to show yet, over a connection of their own (:class:`TokenRequestDoor`) that
stays open until an administrator has decided; with it the request goes.  What the rules of an administrator approve
(:mod:`condor_actors.wire.idtokens.approval_rules`) waits for nobody.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors import Actor
from condor_actors.config import Config
from condor_actors.cores.rights import is_person
from condor_actors.messages.envelope import Address, Delivery, Done, Identity, Level, Refused
from condor_actors.messages.tokens import (
    ApproveTokenRequest,
    AutoApproveTokenRequests,
    FetchToken,
    QueryTokenRequests,
    RevokeTokens,
    TokenIssued,
    TokenRequest,
    TokenRequests,
    TokenVerified,
    VerifyToken,
)
from condor_actors.wire.idtokens.approval_rules import ApprovalRules
from condor_actors.wire.idtokens.revoked_tokens import keep_revocations, kept_revocations
from condor_actors.wire.idtokens.signed_token import LONGEST_LIFE_S, BadToken, Claims, levels_of, read_claims, sign
from condor_actors.wire.idtokens.verifier import TOKEN_METHOD, Shown, TokenVerifier
from condor_actors.wire.question_door import CLOSED, QuestionDoor

ACTOR = "tokens"
REQUEST_LIMIT_BYTES = 4096
REQUEST_LINE_S = 10.0
REQUEST_LIFE_S = 3600.0
MOST_REQUESTS = 256
MOST_REQUESTS_OF_ADDRESS = 8
ASK_S = 20.0

@attrs.define(eq=False)
class PendingRequest:
    """A request that waits for a decision; ``answer`` tells the requester, ``token`` is there when a rule has
    approved it."""

    request: TokenRequest
    answer: Callable[[dict[str, str]], None]
    token: str = attrs.field(default="", repr=False)


@attrs.define(eq=False)
class TokenIssuer:
    """What a daemon goes by when it gives tokens.

    Attributes:
        verifier: with the keys.
        longest_s: the longest life of a token that is given here; 0: any.
        allowed_keys: that people may have theirs signed with.
        pending: requests by number.
        rules: by which some need no person's approval.
    """

    verifier: TokenVerifier
    longest_s: float = 0.0
    allowed_keys: tuple[str, ...] = ()
    pending: dict[str, PendingRequest] = attrs.field(factory=dict)
    rules: ApprovalRules = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rules = ApprovalRules(self.verifier.issuer)

    @classmethod
    def of(cls, config: Config, verifier: TokenVerifier) -> TokenIssuer:
        """As configured."""
        issuer = cls(verifier)
        issuer.reconfigure(config)
        return issuer

    def reconfigure(self, config: Config) -> None:
        """Take new settings."""
        self.verifier.reconfigure(config)
        self.longest_s = max(0.0, config.seconds("SEC_ISSUED_TOKEN_EXPIRATION"))
        self.allowed_keys = tuple(config.list_of("SEC_TOKEN_FETCH_ALLOWED_SIGNING_KEYS"))
        self.rules = ApprovalRules(self.verifier.issuer, config.seconds("TOKEN_REQUEST_AUTO_APPROVE_MAX_LIFETIME"))

    def issue(self, subject: str, levels: Sequence[str], lifetime_s: float, key_id: str = "") -> str:
        """A token.

        Raises:
            BadToken: why there is none.
        """
        keys = self.verifier.keys
        key_id = key_id or keys.default
        if key_id not in self.allowed_keys:
            raise BadToken(f"tokens are not signed with {key_id!r} here (SEC_TOKEN_FETCH_ALLOWED_SIGNING_KEYS)")
        if not 0.0 <= lifetime_s <= LONGEST_LIFE_S:
            raise BadToken("a token cannot have run out when it is made, nor last forever by a number")
        life_s = min(lifetime_s or self.longest_s, self.longest_s) if self.longest_s else lifetime_s
        return sign(keys.secret(key_id), key_id, self.verifier.issuer, subject, now_s=self.verifier.clock(),
                    levels=levels_of(levels), life_s=life_s)

    def ask(self, identity: str, levels: Sequence[str], lifetime_s: float, address: str,
            answer: Callable[[dict[str, str]], None]) -> TokenRequest:
        """Take a request.

        Raises:
            BadToken: it can never be fulfilled, or too many wait.
        """
        self.issue(identity, levels, lifetime_s)  # what cannot be fulfilled is refused at once
        if len(self.pending) >= MOST_REQUESTS or sum(
                each.request.address == address for each in self.pending.values()) >= MOST_REQUESTS_OF_ADDRESS:
            raise BadToken("too many requests wait already")
        request_id = f"{secrets.randbelow(10**9):09d}"
        while request_id in self.pending:
            request_id = f"{secrets.randbelow(10**9):09d}"
        request = TokenRequest(request_id=request_id, identity=identity, levels=levels_of(levels),
                               lifetime_s=lifetime_s, address=address, asked_s=self.verifier.clock())
        self.pending[request_id] = PendingRequest(request, answer)
        return request

    def approved_by_rule(self, request_id: str) -> PendingRequest | None:
        """The request with its token, if it waits and a rule approves it; it waits no longer.

        Raises:
            BadToken: the token cannot be made.
        """
        pending = self.pending.get(request_id)
        if pending is None or self.rules.approving(pending.request, self.verifier.clock()) is None:
            return None
        pending.token = self.issue_asked(pending.request)
        del self.pending[request_id]
        return pending

    def issue_asked(self, request: TokenRequest) -> str:
        """The token that a request wants.

        Raises:
            BadToken: it cannot be made.
        """
        return self.issue(request.identity, request.levels, request.lifetime_s)


class TokenActor(Actor):
    """Answers people and daemons about tokens.

    Args:
        issuer: the process's.
        authority: the node of the collector; empty: nobody to ask.
        authorize: whether an identity has a level.
        revoked: called when more is revoked, to cut links.
    """

    def __init__(self, issuer: TokenIssuer, authority: str, authorize: Callable[[Identity, Level], bool],
                 revoked: Callable[[], None]) -> None:
        self._issuer = issuer
        self._authority = authority
        self._authorize = authorize
        self._revoked = revoked

    def started(self) -> None:
        """Be there for connections that show a token whose key is not here."""
        if self._authority:
            ask = self.context.as_turn(self._ask_authority)

            def judged(shown: Shown) -> Deferred[Claims]:
                answer: Deferred[Claims] = Deferred()
                ask(shown, answer)
                return answer

            self._issuer.verifier.authority = judged

    def _ask_authority(self, shown: Shown, answer: Deferred[Claims]) -> None:
        def told(delivery: Delivery) -> None:
            said = delivery.message
            if isinstance(said, TokenVerified) and "collector" in delivery.identity.roles:
                answer.callback(read_claims(shown.token))
            else:
                answer.errback(BadToken(getattr(said, "text", "") or "the collector could not be asked about it"))

        self.context.ask(Address(self._authority, ACTOR),
                         VerifyToken(token=shown.token, proof=shown.proof, binding=shown.binding),
                         timeout_s=ASK_S, then=told)

    def receive(self, delivery: Delivery) -> None:
        """A question of a person, an administrator or a daemon."""
        message = delivery.message
        try:
            answer = self._answer(message, delivery.identity)
        except BadToken as error:
            answer = Refused(code="denied", text=str(error))
        except OSError as error:
            answer = Refused(code="internal", text=f"{error.filename}: {error.strerror}")
        self.context.reply(delivery, answer)

    def _answer(self, message: Any, identity: Identity) -> Any:
        if isinstance(message, FetchToken):
            return self._fetch(message, identity)
        if isinstance(message, VerifyToken):
            self._issuer.verifier.judge(Shown(token=message.token, proof=message.proof, binding=message.binding))
            return TokenVerified()
        if isinstance(message, QueryTokenRequests):
            return TokenRequests(requests=tuple(each.request for each in self._issuer.pending.values()
                                                if self._decides(identity, each.request)))
        if isinstance(message, ApproveTokenRequest):
            return self._approve(message, identity)
        if isinstance(message, AutoApproveTokenRequests):
            return self._auto_approve(message, identity)
        if isinstance(message, RevokeTokens):
            return self._revoke(message, identity)
        return Refused(code="invalid", text="this actor does not take that")

    def _fetch(self, message: FetchToken, identity: Identity) -> TokenIssued:
        if identity.method == TOKEN_METHOD:
            raise BadToken("a token is not given for a token; ask for one (condor_token_request), or fetch it where you"
                           " are known without")
        if not is_person(identity):
            raise BadToken(f"tokens are for people; {identity.name} is a machine")
        token = self._issuer.issue(identity.name, message.levels, message.lifetime_s, message.key_id)
        self.context.log.info("{who} was given the token {token_id}", who=identity.name,
                              token_id=read_claims(token.rpartition(".")[0]).token_id)
        return TokenIssued(token=token)

    def _decides(self, identity: Identity, request: TokenRequest) -> bool:
        """Whether an identity may approve a request: an administrator, or the user whose name the token would carry."""
        if self._authorize(identity, Level.ADMINISTRATOR):
            return True
        return is_person(identity) and identity.method != TOKEN_METHOD and identity.name == request.identity

    def _approve(self, message: ApproveTokenRequest, identity: Identity) -> Done | Refused:
        pending = self._issuer.pending.get(message.request_id)
        if pending is None or not self._decides(identity, pending.request):
            return Refused(code="not-found", text=f"there is no request {message.request_id} for you to decide")
        request = pending.request
        token = self._issuer.issue_asked(request)
        del self._issuer.pending[message.request_id]
        self.context.log.info("{who} approved request {request}: {identity} at {address} is given a token",
                              who=identity.name, request=request.request_id, identity=request.identity,
                              address=request.address)
        self.context.after_commit(lambda: pending.answer({"token": token}))
        return Done(text=f"{request.identity} is given a token")

    def _auto_approve(self, message: AutoApproveTokenRequests, identity: Identity) -> Done:
        issuer = self._issuer
        now_s = issuer.verifier.clock()
        rule = issuer.rules.add(message.netblock, message.lifetime_s, now_s)
        life_s = rule.until_s - now_s
        self.context.log.info("{who} has requests of new daemons from {network} approved for {life:.0f} s",
                              who=identity.name, network=rule.network, life=life_s)
        for request_id in list(issuer.pending):
            approved = issuer.approved_by_rule(request_id)
            if approved is not None:
                self.context.log.info("request {request} of {address} is approved by that rule", request=request_id,
                                      address=approved.request.address)
                self.context.after_commit(partial(approved.answer, {"token": approved.token}))
        return Done(text=f"Successfully installed auto-approval rule for netblock {rule.network} with lifetime of "
                         f"{life_s / 3600.0:.2f} hours")

    def _revoke(self, message: RevokeTokens, identity: Identity) -> Done:
        path = self._issuer.verifier.revocations
        revoked = kept_revocations(path).also(message.ids, message.expressions)
        keep_revocations(path, revoked)
        self.context.log.info("{who} revoked the tokens {ids} {expressions}", who=identity.name,
                              ids=", ".join(message.ids), expressions=" || ".join(message.expressions))
        self.context.after_commit(self._revoked)
        return Done(text=f"{len(revoked.ids)} tokens and {len(revoked.expressions)} expressions are revoked now")


class TokenRequestDoor(QuestionDoor):
    """The connection of a client without credentials yet: a line with the request, a line with its number,
    and, once it is approved, a line with the token."""

    def __init__(self, issuer: TokenIssuer, clock: IReactorTime, log: Logger) -> None:
        super().__init__(clock, REQUEST_LIMIT_BYTES, REQUEST_LINE_S)
        self._issuer = issuer
        self._log = log
        self._request_id = ""

    def timeoutConnection(self) -> None:  # noqa: N802 - Twisted's
        """The line did not come, or nobody decided."""
        if self._request_id:
            self.say({"error": "nobody has decided within an hour; ask again"})
        self.hang_up()

    def asked(self, line: bytes) -> None:
        """Take the request."""
        try:
            asked = json.loads(line)
            levels = tuple(str(level) for level in asked["levels"])
            request = self._issuer.ask(str(asked["identity"]), levels, float(asked["lifetime_s"]), self.address,
                                       self._decided)
        except BadToken as error:
            self._decided({"error": str(error)})
            return
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            self._decided({"error": "a request that cannot be read"})
            return
        self._request_id = request.request_id
        self._log.info("{address} asks for a token of {identity}: request {request}", address=self.address,
                       identity=request.identity, request=request.request_id)
        self.allow(REQUEST_LIFE_S)
        self.say({"request_id": request.request_id})
        approved = self._issuer.approved_by_rule(request.request_id)
        if approved is not None:
            self._log.info("request {request} of {address} is approved by a rule of condor_token_request_auto_approve",
                           request=request.request_id, address=self.address)
            self._decided({"token": approved.token})

    def _decided(self, answer: dict[str, str]) -> None:
        self.say(answer)
        self.hang_up()

    def connectionLost(self, reason: Failure = CLOSED) -> None:  # noqa: N802 - Twisted's
        """The request goes with the connection."""
        super().connectionLost(reason)
        self._issuer.pending.pop(self._request_id, None)
