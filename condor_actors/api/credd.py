"""`Credd`: what a user entrusts to the credential daemon for his jobs."""

from __future__ import annotations

from typing import Any

from condor_actors.api.errors import as_condor_errors
from condor_actors.api.settings import config
from condor_actors.messages.credentials import (
    CheckServices,
    CredentialFacts,
    DeleteCredential,
    FetchTokens,
    StoreCredential,
    TokensFetched,
    WantedToken,
)
from condor_actors.tools.lib.contact import CREDD, credd, facts_of

__all__ = ["Credd", "CredentialFacts", "WantedToken"]


class Credd:
    """The credential daemon of this machine, or another one's.

    Args:
        address: ``<host:port>``, where it is not this machine's (or CREDD_HOST's).
    """

    def __init__(self, address: str = "") -> None:
        self._config = config()
        self.address = address

    def __repr__(self) -> str:
        return f"Credd({self.address!r})"

    def store(self, service: str, secret: bytes, *, handle: str = "", is_access_token: bool = False, scopes: str = "",
              audience: str = "") -> None:
        """Store a credential, in place of an earlier one of its name.

        Args:
            service: of which service.
            secret: a refresh token, or a JSON object with ``refresh_token`` or ``access_token``.
            handle: which of several of one service.
            is_access_token: it goes to jobs as it is.
            scopes, audience: what it was issued for, when jobs shall be able to ask for that.

        Raises:
            Refused: it cannot be stored; the text says why.
        """
        self._ask(StoreCredential(service=service, handle=handle, secret=secret, is_access_token=is_access_token,
                                  scopes=scopes, audience=audience))

    def delete(self, service: str = "", *, handle: str = "", user: str = "") -> None:
        """Delete a credential; all of them when no service is named.

        Args:
            service, handle: which.
            user: whose (``user@domain``), for administrators.

        Raises:
            Refused: there is none, or it is another user's.
        """
        self._ask(DeleteCredential(service=service, handle=handle, user=user, everything=not service))

    def credentials(self, user: str = "") -> list[CredentialFacts]:
        """What is stored: names, forms and times, never a secret; ``*`` for everybody's, which administrators see."""
        with as_condor_errors(), credd(self._config, self.address) as client:
            return list(facts_of(client, user))

    def check(self, *wanted: WantedToken) -> None:
        """Whether jobs could have these tokens.

        Raises:
            Refused: one is missing; the text has the remedy.
        """
        self._ask(CheckServices(wanted=wanted))

    def token(self, service: str, *, handle: str = "", scopes: str = "", audience: str = "") -> bytes:
        """What a job's file of a service would hold now; on the daemon's own machine only.

        Raises:
            Refused: there is no such token; the text has the remedy.
        """
        wanted = WantedToken(service=service, handle=handle, scopes=scopes, audience=audience)
        answer = self._ask(FetchTokens(wanted=(wanted,)))
        assert isinstance(answer, TokensFetched)
        return answer.tokens[0].token

    def _ask(self, message: Any) -> Any:
        with as_condor_errors(), credd(self._config, self.address) as client:
            return client.ask(CREDD, message)
