"""Which tokens a job wants, by its ad; and the names of the files in which it finds them.

Theory: ``OAuthServicesNeeded`` names them, as HTCondor's does: ``box,gdrive*public``.  What a job wants of one beyond
its name is in ``OAuthTokenRequests``, a list of records with Service, Handle, Scopes and Audience.  ``SendCredential``
asks for its owner's Kerberos ticket.  The ad is the user's and hostile: what is no name is refused here, on the submit
machine and on the execute machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from condor_actors.classads import ClassAd
from condor_actors.cores.credd.token_attributes import SEND_TICKET, SERVICES
from condor_actors.messages.credentials import KRB, ServiceToken, WantedToken
from condor_actors.patterns import late

__all__ = ["BadTokenRequest", "FOLDER", "MOST_TOKENS", "REQUESTS", "TICKET_FILE", "token_file", "wanted_tokens",
           "wants_ticket"]

REQUESTS = "OAuthTokenRequests"
TICKET_FILE = f"{KRB}.cc"
_TICKET = WantedToken(service=KRB)
FOLDER = ".condor_creds"
"""In the job's scratch directory."""
MOST_TOKENS = 16
"""Of one job."""
_SERVICE = late(r"[a-z][a-z0-9-]{0,63}")
_HANDLE = late(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?")


class BadTokenRequest(ValueError):
    """An ad that asks for tokens in no way that can be understood; says what is wrong."""


def wants_ticket(job: ClassAd) -> bool:
    """Whether a job wants its owner's Kerberos ticket."""
    return job.get_bool(SEND_TICKET)


def wanted_tokens(job: ClassAd) -> tuple[WantedToken, ...]:
    """The tokens that a job wants, each name once; empty: none.

    Raises:
        BadTokenRequest: a name is none, or there are too many.
    """
    names = dict.fromkeys(word for word in job.get_str(SERVICES).replace(",", " ").split())
    count = len(names) + wants_ticket(job)
    if count > MOST_TOKENS:
        raise BadTokenRequest(f"{count} tokens for one job are too many; it may have {MOST_TOKENS}")
    requests = job.evaluate(REQUESTS)
    records = [each for each in requests if isinstance(each, ClassAd)] if isinstance(requests, list) else []
    found = []
    for name in names:
        service, _, handle = name.partition("*")
        check_name(service.lower(), handle)
        more = next((each for each in records if (each.get_str("Service").lower(), each.get_str("Handle"))
                     == (service.lower(), handle)), ClassAd())
        found.append(WantedToken(service=service.lower(), handle=handle, scopes=more.get_str("Scopes"),
                                 audience=more.get_str("Audience")))
    if wants_ticket(job) and _TICKET not in found:
        found.append(_TICKET)
    return tuple(found)


def check_name(service: str, handle: str) -> None:
    """Refuse what is no name of a token.

    Raises:
        BadTokenRequest: it is none.
    """
    if not _SERVICE.fullmatch(service) or not _HANDLE.fullmatch(handle):
        raise BadTokenRequest(f"{service[:64]}{'*' if handle else ''}{handle[:64]} names no token of a service; "
                              "expected letters, digits and dashes, and a handle behind a *")


def token_file(token: ServiceToken) -> str:
    """The name of the file with a token.

    Raises:
        BadTokenRequest: its name is none.
    """
    check_name(token.service, token.handle)
    if token.service == KRB and not token.handle:
        return TICKET_FILE
    return f"{token.service}_{token.handle}.use" if token.handle else f"{token.service}.use"


def requests_of(wanted: Sequence[WantedToken]) -> list[ClassAd]:
    """The records of ``OAuthTokenRequests``: of the tokens with scopes or an audience."""
    return [ClassAd({"Service": each.service, "Handle": each.handle, "Scopes": each.scopes, "Audience": each.audience})
            for each in wanted if each.scopes or each.audience]
