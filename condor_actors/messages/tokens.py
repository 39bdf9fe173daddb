"""Tokens: how people get, and lose, what they prove with who they are where they have no certificate."""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import message


@message
@records.frozen(kw_only=True)
class FetchToken:
    """condor_token_fetch: a token in the name of who asks.  Answer: :class:`TokenIssued` or Refused.

    Attributes:
        levels: what it shall be good for; empty: all that its bearer may do.
        lifetime_s: how long; 0: as long as the daemon allows.
        key_id: the key to sign with; empty: the daemon's choice.
    """

    KIND: ClassVar[str] = "condor.tokens.FetchToken"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    levels: tuple[str, ...] = ()
    lifetime_s: float = 0.0
    key_id: str = ""


@message
@records.frozen(kw_only=True)
class TokenIssued:
    """A token, whole."""

    KIND: ClassVar[str] = "condor.tokens.TokenIssued"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    token: str = records.field(repr=False)


@message
@records.frozen(kw_only=True)
class VerifyToken:
    """A daemon that has no signing key to the collector: does this token count?  Answer: :class:`TokenVerified`.

    Attributes:
        token: its first two parts.
        proof, binding: what the bearer showed, for his link to the daemon that asks.
    """

    KIND: ClassVar[str] = "condor.tokens.VerifyToken"
    VERSION: ClassVar[int] = 1

    token: str
    proof: bytes = records.field(repr=False)
    binding: bytes


@message
@records.frozen(kw_only=True)
class TokenVerified:
    """The token counts now."""

    KIND: ClassVar[str] = "condor.tokens.TokenVerified"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"


@message
@records.frozen(kw_only=True)
class QueryTokenRequests:
    """condor_token_request_list: which requests for tokens may I decide?  Answer: :class:`TokenRequests`."""

    KIND: ClassVar[str] = "condor.tokens.QueryTokenRequests"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"


@records.frozen(kw_only=True)
class TokenRequest:
    """One request that waits: its number, for whom, for which levels and how long, from where and since when."""

    request_id: str
    identity: str
    levels: tuple[str, ...]
    lifetime_s: float
    address: str
    asked_s: float


@message
@records.frozen(kw_only=True)
class TokenRequests:
    """Answer to :class:`QueryTokenRequests`."""

    KIND: ClassVar[str] = "condor.tokens.TokenRequests"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    requests: tuple[TokenRequest, ...]


@message
@records.frozen(kw_only=True)
class ApproveTokenRequest:
    """condor_token_request_approve: give the token.  For administrators, and for whom the token is.  Answer: Done."""

    KIND: ClassVar[str] = "condor.tokens.ApproveTokenRequest"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    request_id: str


@message
@records.frozen(kw_only=True)
class AutoApproveTokenRequests:
    """condor_token_request_auto_approve: approve what new daemons ask for, from a network, for a time.  Answer: Done.

    Attributes:
        netblock: the network, ``10.1.0.0/16``.
        lifetime_s: for how long.
    """

    KIND: ClassVar[str] = "condor.tokens.AutoApproveTokenRequests"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    netblock: str
    lifetime_s: float


@message
@records.frozen(kw_only=True)
class RevokeTokens:
    """condor_token_revoke: these tokens, and those of which an expression is true, count no longer.  Answer: Done."""

    KIND: ClassVar[str] = "condor.tokens.RevokeTokens"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    ids: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
