"""Credentials of users: their names, what may be stored, whose they are.

Theory: a credential belongs to one whole identity, which alone stores and uses it.  An administrator may see that it is
there and delete it, and never gets it.  Its secret is sealed before it comes here; nothing in this module can show it.

=========================  ===========================  =============================
action                     a user, on his own           an administrator, on others'
=========================  ===========================  =============================
store                      yes                          no
delete, list               yes                          yes
check, fetch for jobs      yes (fetch: on this machine) no
=========================  ===========================  =============================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

import attrs

from condor_actors.cores.rights import is_person
from condor_actors.messages.credentials import CredentialFacts
from condor_actors.messages.envelope import Identity

__all__ = [
    "ACCESS", "EVERYBODY", "MOST_SECRET_BYTES", "MOST_TOKEN_BYTES", "NO_PASSWORDS", "REFRESH", "TICKET",
    "TICKET_REMEDY", "Credential", "CredentialRefused", "CredentialTable", "DropCredentials", "Name", "SaveCredential",
    "Secret",
    "at_home", "checked_words", "name_of", "person", "read_secret", "token_object", "whose",
]  # fmt: skip

MOST_SECRET_BYTES = 64 * 1024
MOST_TOKEN_BYTES = 8 * 1024
"""The longest token: a job's are in one message, and in a header of a request."""
MOST_WORDS_CHARS = 2000
"""The longest list of scopes, and the longest audience."""
PAGE = 500
ACCESS, REFRESH, TICKET = "access", "refresh", "ticket"
"""The forms: a token that goes to jobs as it is, one that access tokens are had for, and a Kerberos ticket."""
TICKET_REMEDY = "kinit -f -r 7d, and then condor_store_cred add-krb"
EVERYBODY = "*"
NO_PASSWORDS = ("passwords of users are stored for Windows, and nothing here would use one; members of this pool know "
                "one another by certificates (condor_pool) and tokens (condor_token_create)")
_SERVICE = re.compile(r"[a-z][a-z0-9-]{0,63}")
_HANDLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TOKEN = re.compile(rb"[\x21-\x7e]+")
_WORDS = re.compile(r"[\x21\x23-\x5b\x5d-\x7e ,]*")


class CredentialRefused(Exception):
    """A request that is refused; ``code`` is one of those of `Refused`."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(text)


@attrs.frozen(order=True)
class Name:
    """Which one: whose, of which service, and which of several (``handle``, may be empty)."""

    user: str
    service: str
    handle: str

    def __str__(self) -> str:
        return f"{self.service}*{self.handle}" if self.handle else self.service

    @property
    def file(self) -> str:
        """The name of a job's file with its token."""
        return f"{self.service}_{self.handle}.use" if self.handle else f"{self.service}.use"

    @property
    def flags(self) -> str:
        """How condor_store_cred names it."""
        return f"-s {self.service} -H {self.handle}" if self.handle else f"-s {self.service}"


def name_of(user: str, service: str, handle: str) -> Name:
    """A name, checked; services are the same in capitals and small letters.

    Raises:
        CredentialRefused: it is none.
    """
    service = service.lower() if len(service) <= 64 and service.isascii() else service[:64] + "…"
    if not _SERVICE.fullmatch(service):
        raise CredentialRefused("invalid", f"{service!r} is no name of a service; expected a letter and up to 63 "
                                           "letters, digits and dashes")
    if handle and not _HANDLE.fullmatch(handle):
        raise CredentialRefused("invalid", f"{handle[:64]!r} is no handle; expected up to 64 letters, digits, dots, "
                                           "dashes and underscores")
    return Name(user, service, handle)


@attrs.frozen(kw_only=True)
class Secret:
    """What a user gives.

    Attributes:
        form: `ACCESS`, `REFRESH` or `TICKET`.
        token: itself, of printable characters; of a ticket the credential cache (base64).
        ends_s: until when an access token or a ticket counts, seconds since 1970; 0: unknown.
        is_json: whether it came as a JSON object, as which jobs get it then.
    """

    form: str
    token: str = attrs.field(repr=False)
    ends_s: float = 0.0
    is_json: bool = False

    def to_bytes(self) -> bytes:
        """For sealing."""
        return json.dumps([self.form, self.token, self.ends_s, self.is_json]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Secret:
        """What `to_bytes` made."""
        form, token, ends_s, is_json = json.loads(data)
        return cls(form=form, token=token, ends_s=ends_s, is_json=is_json)

    def content(self, now_s: float) -> bytes:
        """What a job's file of an access token holds."""
        return token_object(self.token, self.ends_s, now_s) if self.is_json else self.token.encode()


def token_object(token: str, ends_s: float, now_s: float) -> bytes:
    """An access token as a JSON object, with when it ends if that is known: in seconds, and since 1970."""
    fields: dict[str, object] = {"access_token": token, "token_type": "Bearer"}
    if ends_s:
        fields |= {"expires_in": max(int(ends_s - now_s), 0), "expires_at": int(ends_s)}
    return json.dumps(fields).encode()


def read_secret(data: bytes, *, is_access_token: bool, now_s: float) -> Secret:
    """What a user has sent as his secret.

    Args:
        data: a token, or a JSON object with ``refresh_token``, or ``access_token`` and perhaps ``expires_in`` (s).
        is_access_token: whether a token alone is one that jobs can use.
        now_s: seconds since 1970.

    Raises:
        CredentialRefused: it is neither, or too long; its text says nothing of what was sent.
    """
    if len(data) > MOST_SECRET_BYTES:
        raise CredentialRefused("invalid", f"a credential of more than {MOST_SECRET_BYTES} bytes is not kept")
    text, ends_s = data.strip(), 0.0
    is_json = text.startswith(b"{")
    if is_json:
        fields = _object(text)
        form = ACCESS if is_access_token or "refresh_token" not in fields else REFRESH
        given = fields.get("access_token" if form is ACCESS else "refresh_token", "")
        if form is ACCESS:
            ends_s = _end(fields, now_s)
        text = given.encode() if isinstance(given, str) and given.isascii() else b""
    else:
        form = ACCESS if is_access_token else REFRESH
    if len(text) > MOST_TOKEN_BYTES:
        raise CredentialRefused("invalid", f"a token of more than {MOST_TOKEN_BYTES} bytes is not kept")
    if not _TOKEN.fullmatch(text):
        raise CredentialRefused("invalid", "that is no credential: expected a token alone, of printable characters "
                                           "without blanks, or a JSON object with refresh_token or access_token")
    return Secret(form=form, token=text.decode("ascii"), ends_s=ends_s, is_json=is_json)


def _object(text: bytes) -> Mapping[str, object]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise CredentialRefused("invalid", "the credential begins like a JSON object and is none") from None
    if not isinstance(fields, dict):
        raise CredentialRefused("invalid", "the credential is no JSON object")
    return fields


def _end(fields: Mapping[str, object], now_s: float) -> float:
    """When an access token ends by its ``expires_at`` or ``expires_in``; 0 where it does not say."""
    at, within = fields.get("expires_at"), fields.get("expires_in")
    for value, begin_s in ((at, 0.0), (within, now_s)):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e11:
            return begin_s + float(value)
    return 0.0


def checked_words(text: str, what: str) -> str:
    """Scopes or an audience, in the form in which they are sent: words with single blanks between.

    Raises:
        CredentialRefused: it is too long, or has other characters.
    """
    if len(text) > MOST_WORDS_CHARS or not _WORDS.fullmatch(text):
        raise CredentialRefused("invalid", f"the {what} cannot be used: expected at most {MOST_WORDS_CHARS} printable "
                                           "characters without quotes and backslashes")
    return " ".join(text.replace(",", " ").split())


@attrs.frozen(kw_only=True)
class Credential:
    """One that is kept.

    Attributes:
        name: which.
        form: `ACCESS`, `REFRESH` or `TICKET`.
        scopes, audience: what it was issued for, as its owner said.
        stored_s: when it came, seconds since 1970.
        sealed: the secret, sealed.
    """

    name: Name
    form: str
    scopes: str
    audience: str
    stored_s: float
    sealed: bytes = attrs.field(repr=False)

    def facts(self) -> CredentialFacts:
        """What may be said of it."""
        return CredentialFacts(user=self.name.user, service=self.name.service, handle=self.name.handle, form=self.form,
                               scopes=self.scopes, audience=self.audience, stored_s=self.stored_s)


@attrs.frozen
class SaveCredential:
    """To be stored: one credential, in place of another of its name."""

    credential: Credential


@attrs.frozen
class DropCredentials:
    """To be forgotten."""

    names: tuple[Name, ...]


class CredentialTable:
    """All of them.

    Args:
        known: those on the disk.
        most: how many one user may have.
    """

    def __init__(self, known: Iterable[Credential], most: Callable[[], int]) -> None:
        self._all = {each.name: each for each in known}
        self._most = most

    def __len__(self) -> int:
        return len(self._all)

    def get(self, name: Name) -> Credential | None:
        """One of them, or None."""
        return self._all.get(name)

    def of(self, user: str) -> list[Credential]:
        """A user's."""
        return [each for name, each in sorted(self._all.items()) if name.user == user]

    def of_service(self, service: str) -> list[Name]:
        """The names of everybody's of a service."""
        return [name for name in sorted(self._all) if name.service == service]

    def check_room(self, name: Name) -> None:
        """Whether one more may be stored.

        Raises:
            CredentialRefused: its user has as many as he may.
        """
        if name not in self._all and len(self.of(name.user)) >= self._most():
            raise CredentialRefused("denied", f"you have {self._most()} credentials here already, and may have no more "
                                              "(CREDD_MAX_CREDENTIALS_PER_USER); delete one first")

    def save(self, credential: Credential) -> SaveCredential:
        """Take one in, in place of another of its name."""
        self._all[credential.name] = credential
        return SaveCredential(credential)

    def drop(self, names: Iterable[Name]) -> DropCredentials:
        """Forget some."""
        gone = tuple(name for name in names if self._all.pop(name, None) is not None)
        return DropCredentials(gone)

    def page(self, user: str, cursor: str) -> tuple[tuple[CredentialFacts, ...], str]:
        """A page of a user's, or everybody's, and the cursor of the next one.

        Args:
            user: whole identity, or `EVERYBODY`.
            cursor: of the page before.
        """
        rest = [each for name, each in sorted(self._all.items())
                if user in (EVERYBODY, name.user) and _cursor(name) > cursor]
        shown = rest[:PAGE]
        return tuple(each.facts() for each in shown), _cursor(shown[-1].name) if len(rest) > PAGE else ""


def _cursor(name: Name) -> str:
    return "\n".join((name.user, name.service, name.handle))


def whose(identity: Identity, user: str, is_administrator: Callable[[], bool]) -> str:
    """The user whose credentials a request is about.

    Args:
        identity: who asks.
        user: of whom; empty: of himself.
        is_administrator: whether he is one.

    Raises:
        CredentialRefused: he may not.
    """
    own = person(identity) if is_person(identity) else ""
    if user and user != own:
        if not is_administrator():
            raise CredentialRefused("denied", f"{identity.name} is no administrator here, and may list and delete his "
                                              "own credentials only")
        return user
    return person(identity)


def person(identity: Identity) -> str:
    """The user that a peer is.

    Raises:
        CredentialRefused: it is a machine, or another pool's.
    """
    if not is_person(identity):
        raise CredentialRefused("denied", f"{identity.name} is no user of this pool; credentials are kept for users")
    return identity.name


def at_home(identity: Identity) -> str:
    """The user that a process of this machine belongs to.

    Raises:
        CredentialRefused: the peer is on another machine.
    """
    if not identity.is_local:
        raise CredentialRefused("denied", "tokens go to processes of this machine only, over its UNIX socket")
    return person(identity)
