"""Whether a token that a peer shows counts, and who its bearer is.

Theory: signing keys stay on the central manager, since who has one can be anybody.  A daemon that has the key judges
for itself; any other sends what it was shown (never a signature) to the collector and believes its answer.  What is
revoked is looked up in either case where the peer knocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, maybeDeferred

from condor_actors.messages.envelope import Evidence, Identity
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens, kept_revocations
from condor_actors.wire.idtokens.signed_token import BadToken, Claims, check, read_claims
from condor_actors.wire.idtokens.signing_keys import SigningKeys

TOKEN_METHOD = "token"
TOKEN_ROLES = frozenset({"user"})
MOST_ASKED = 64
"""So many questions may be under way to the collector: strangers cause them."""


@attrs.frozen(kw_only=True)
class Shown:
    """What the bearer of a token shows: its first two parts, and the proof that he has the third on this link."""

    token: str
    proof: bytes = attrs.field(repr=False)
    binding: bytes


@attrs.define(eq=False)
class TokenVerifier:
    """What a daemon goes by when it is shown a token.

    Attributes:
        issuer: of the tokens that count here (TRUST_DOMAIN).
        keys: that this process may have.
        revocations: the file of the list.
        own_expression: SEC_TOKEN_REVOCATION_EXPR.
        authority: asks the collector about a token whose key is not here; None: nobody can be asked.
        clock: seconds since 1970.
    """

    issuer: str
    keys: SigningKeys
    revocations: Path
    own_expression: str = ""
    authority: Callable[[Shown], Deferred[Claims]] | None = None
    clock: Callable[[], float] = time.time
    _asked: int = attrs.field(default=0, init=False)

    @classmethod
    def of(cls, config: Any) -> TokenVerifier:
        """As configured."""
        return cls(config.needed_text("TRUST_DOMAIN"), SigningKeys.of(config), config.path("SEC_TOKEN_REVOCATIONS"),
                   config.text("SEC_TOKEN_REVOCATION_EXPR") or "")

    def reconfigure(self, config: Any) -> None:
        """Take new settings."""
        fresh = TokenVerifier.of(config)
        self.issuer, self.keys, self.revocations = fresh.issuer, fresh.keys, fresh.revocations
        self.own_expression = fresh.own_expression

    def revoked(self) -> RevokedTokens:
        """What is revoked now.

        Raises:
            BadToken: nobody knows.
        """
        return kept_revocations(self.revocations, self.own_expression)

    def judge(self, shown: Shown) -> Claims:
        """The claims of a token whose key is here.

        Raises:
            BadToken: why it does not count.
        """
        secret = self.keys.secret(read_claims(shown.token).key_id)
        return check(shown.token, shown.proof, shown.binding, secret, self.issuer, self.clock())

    def identify(self, shown: Shown) -> Deferred[Identity]:
        """Who shows a token; fails with `BadToken`."""
        try:
            claims = read_claims(shown.token)
            is_here = claims.key_id in self.keys.names()
        except BadToken as error:
            return fail(error)
        if is_here:
            judged = maybeDeferred(self.judge, shown)
        elif claims.issuer != self.issuer:
            return fail(BadToken(f"it is of {claims.issuer!r}, and tokens of {self.issuer!r} count here"))
        elif self.authority is None:
            return fail(BadToken(f"this machine has no signing key {claims.key_id!r} and no collector to ask about it"))
        elif self._asked >= MOST_ASKED:
            return fail(BadToken("too many tokens are being judged; try again"))
        else:
            self._asked += 1
            judged = self.authority(shown).addBoth(self._answered)
        found: Deferred[Identity] = judged.addCallback(self._identity)
        return found

    def _answered(self, result: Any) -> Any:
        self._asked -= 1
        return result

    def _identity(self, claims: Claims) -> Identity:
        said = claims.attributes()
        reason = self.revoked().reason(said)
        if reason:
            raise BadToken(reason)
        return Identity(name=claims.subject, roles=TOKEN_ROLES, method=TOKEN_METHOD, levels=claims.levels,
                        evidence=Evidence(token=said, ends_s=float(claims.ends_s)))
