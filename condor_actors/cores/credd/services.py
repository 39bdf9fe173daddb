"""The services that tokens are had of: OAuth2 servers, and the pool's own issuer."""

from __future__ import annotations

import re
from collections.abc import Collection

import attrs

from condor_actors.cores.credd.credentials import CredentialRefused

__all__ = ["LocalIssuer", "OAuthService", "narrowed"]

_LOGIN = re.compile(r"[^\s/\x00-\x1f\x7f]+")
"""Names of users that are one word and one part of a path."""


@attrs.frozen(kw_only=True)
class OAuthService:
    """An OAuth2 server: where access tokens are had for refresh tokens, and as whom (RFC 6749, sections 2.3.1 and 6).

    Attributes:
        name: of the service, in small letters.
        token_url: https, or http on this machine.
        client_id: of the pool there.
        secret_file: holds the client's secret; empty: it has none.
        ca_file: whom to trust about the server's name; empty: whom the system trusts.
    """

    name: str
    token_url: str
    client_id: str
    secret_file: str = ""
    ca_file: str = ""


@attrs.frozen(kw_only=True)
class LocalIssuer:
    """Tokens that are made here, signed with a key of the pool's (JWT with the claims of SciTokens).

    Attributes:
        name: of the service, in small letters.
        issuer: the claim ``iss``.
        key_id: the header ``kid``.
        algorithm: ES256 or RS256.
        private_key: PEM.
        template: the claim ``scope``, with ``{username}`` for the user's login name.
        audience: the claim ``aud``.
        version: the claim ``ver``; empty: none.
        life_s: how long a token counts.
        is_json: whether a job gets it as a JSON object.
    """

    name: str
    issuer: str
    key_id: str
    algorithm: str
    private_key: bytes = attrs.field(repr=False)
    template: str
    audience: tuple[str, ...]
    version: str
    life_s: float
    is_json: bool

    def claims(self, user: str, scopes: str, audience: str, token_id: str, now_s: float) -> dict[str, object]:
        """What a token says.

        Args:
            user: the whole identity.
            scopes: those of the template that the job wants; empty: all.
            audience: those of the configured ones that the job wants; empty: all.
            token_id: that no other token has.
            now_s: seconds since 1970.

        Raises:
            CredentialRefused: the job wants what it may not have.
        """
        login = user.partition("@")[0]
        if not _LOGIN.fullmatch(login) or login in (".", ".."):
            raise CredentialRefused("denied", f"{login[:64]!r} could mean something else in the permissions of a token "
                                              "(LOCAL_CREDMON_AUTHZ_TEMPLATE); no token is made for that name")
        granted = self.template.replace("{username}", login).split()
        said: dict[str, object] = {
            "iss": self.issuer, "sub": login, "jti": token_id, "iat": int(now_s), "nbf": int(now_s),
            "exp": int(now_s + self.life_s),
            "scope": " ".join(narrowed(scopes, granted, f"{self.name}_oauth_permissions", "permissions")),
        }
        towards = narrowed(audience, self.audience, f"{self.name}_oauth_resource", "audiences")
        if towards:
            said["aud"] = towards[0] if len(towards) == 1 else list(towards)
        if self.version:
            said["ver"] = self.version
        return said


def narrowed(wanted: str, granted: Collection[str], command: str, what: str) -> tuple[str, ...]:
    """The words that are wanted of those that are granted; all of them when none is named.

    Raises:
        CredentialRefused: one is not granted.
    """
    words = wanted.split()
    beyond = [word for word in words if word not in granted]
    if beyond:
        raise CredentialRefused("denied", f"{command} asks for {' '.join(beyond)}; the {what} that there are: "
                                          f"{' '.join(granted) or 'none'}")
    return tuple(words) or tuple(granted)
