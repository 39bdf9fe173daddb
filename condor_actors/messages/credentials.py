"""Credentials: what users entrust to the credential daemon, and what their jobs are given of it."""

from __future__ import annotations

from condor_actors import records
from condor_actors.messages.codec import message

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import ClassVar

KRB = "krb"
"""The service that stands for Kerberos: a user has one ticket, without a handle."""


@message
@records.frozen(kw_only=True)
class StoreCredential:
    """condor_store_cred add-oauth, add-krb: keep this for who sends it; it replaces the one of the same name.

    Answer: Done.

    Attributes:
        service, handle: its name; the handle may be empty.
        secret: a token as text, or a JSON object with ``refresh_token`` or ``access_token``; of the service `KRB` a
            Kerberos credential cache; at most 64 KiB.
        is_access_token: it goes to jobs as it is.
        scopes, audience: what it was issued for, as its owner says; empty: unknown.
    """

    KIND: ClassVar[str] = "condor.credentials.StoreCredential"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    service: str
    handle: str = ""
    secret: bytes = records.field(repr=False)
    is_access_token: bool = False
    scopes: str = ""
    audience: str = ""


@message
@records.frozen(kw_only=True)
class DeleteCredential:
    """condor_store_cred delete-oauth: forget it.  Answer: Done, or Refused (``not-found``).

    Attributes:
        service, handle: its name; with ``everything`` they are not looked at.
        user: whose; empty: of who asks.  Others' may be deleted by administrators.
        everything: all of that user's.
    """

    KIND: ClassVar[str] = "condor.credentials.DeleteCredential"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    service: str = ""
    handle: str = ""
    user: str = ""
    everything: bool = False


@message
@records.frozen(kw_only=True)
class QueryCredentials:
    """condor_store_cred query: which are kept?  Answer: :class:`CredentialsPage`.

    Attributes:
        user: whose; empty: of who asks; ``*``: everybody's.  Others' are shown to administrators.
        cursor: of the page before.
    """

    KIND: ClassVar[str] = "condor.credentials.QueryCredentials"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    user: str = ""
    cursor: str = ""


@records.frozen(kw_only=True)
class CredentialFacts:
    """What may be said of one: owner and name, form, what it is for, when it was stored (seconds since 1970)."""

    user: str
    service: str
    handle: str
    form: str
    scopes: str
    audience: str
    stored_s: float


@message
@records.frozen(kw_only=True)
class CredentialsPage:
    """Answer to :class:`QueryCredentials`; ``cursor`` asks for the next page, empty: there is none."""

    KIND: ClassVar[str] = "condor.credentials.CredentialsPage"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    credentials: tuple[CredentialFacts, ...]
    cursor: str = ""


@records.frozen(kw_only=True)
class WantedToken:
    """A token that a job wants: of which credential, with which scopes and for which audience (empty: as stored)."""

    service: str
    handle: str = ""
    scopes: str = ""
    audience: str = ""

    def __str__(self) -> str:
        return f"{self.service}*{self.handle}" if self.handle else self.service


@message
@records.frozen(kw_only=True)
class CheckServices:
    """condor_submit: could a job of mine have these?  Answer: Done, or Refused with what is missing and the remedy."""

    KIND: ClassVar[str] = "condor.credentials.CheckServices"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    wanted: tuple[WantedToken, ...]


@message
@records.frozen(kw_only=True)
class FetchTokens:
    """An owner's shadow: the tokens for a job.  Answer: :class:`TokensFetched`, or Refused with the remedy.

    Only processes of the owner on the daemon's own machine get any.
    """

    KIND: ClassVar[str] = "condor.credentials.FetchTokens"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    wanted: tuple[WantedToken, ...]


@records.frozen(kw_only=True)
class ServiceToken:
    """An access token for a job; ``ends_s`` is in seconds since 1970, 0: not known."""

    service: str
    handle: str = ""
    token: bytes = records.field(repr=False)
    ends_s: float = 0.0


@message
@records.frozen(kw_only=True)
class TokensFetched:
    """Answer to :class:`FetchTokens`: the tokens in the order of the question.

    Attributes:
        tokens: access tokens.
        renew_after_s: in how many seconds there will be newer ones; 0: never.
    """

    KIND: ClassVar[str] = "condor.credentials.TokensFetched"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    tokens: tuple[ServiceToken, ...]
    renew_after_s: float = 0.0


@message
@records.frozen(kw_only=True)
class FetchRunTokens:
    """Starter to shadow: the tokens that the run's job wants, now.  Answer: :class:`RunTokens`, or Refused: ``busy``
    and ``internal`` mean later, anything else that the job cannot have them."""

    KIND: ClassVar[str] = "condor.credentials.FetchRunTokens"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str


@message
@records.frozen(kw_only=True)
class RunTokens:
    """Answer to :class:`FetchRunTokens`.

    Attributes:
        tokens: what the job's files hold.
        renew_after_s: in how many seconds there will be newer ones; 0: never.
    """

    KIND: ClassVar[str] = "condor.credentials.RunTokens"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    tokens: tuple[ServiceToken, ...]
    renew_after_s: float = 0.0


@message
@records.frozen(kw_only=True)
class FetchImageLogin:
    """Starter to shadow: what shows the registry of the job's image that its owner may fetch it, now.

    Answer: :class:`ImageLogin`, or Refused: ``busy`` and ``internal`` mean later, anything else that there is none.
    """

    KIND: ClassVar[str] = "condor.credentials.FetchImageLogin"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str


@message
@records.frozen(kw_only=True)
class ImageLogin:
    """Answer to :class:`FetchImageLogin`.

    ``authorization``: the value of that header of HTTP; empty: the registry asks for none.
    """

    KIND: ClassVar[str] = "condor.credentials.ImageLogin"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    authorization: str = records.field(default="", repr=False)
