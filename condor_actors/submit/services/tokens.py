"""The section about tokens of services: use_oauth_services and what is wanted of each, and send_credential."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.credd.token_attributes import SEND_TICKET, SERVICES
from condor_actors.cores.job_tokens import (
    MOST_TOKENS,
    REQUESTS,
    BadTokenRequest,
    check_name,
    requests_of,
)
from condor_actors.messages.codes import Universe
from condor_actors.messages.credentials import KRB, WantedToken
from condor_actors.patterns import late
from condor_actors.submit.build_context import BuildContext, unquoted
from condor_actors.submit.errors import SubmitError

__all__ = ["tokens"]

COMMAND, TICKET_COMMAND = "use_oauth_services", "send_credential"
SECTIONS = (Universe.VANILLA, Universe.PARALLEL)
_MORE = late(r"(?P<service>[a-z0-9-]+)_oauth_(?P<what>permissions|resource)(?:_(?P<handle>.+))?")

_LIKE = late(r"_oauth_(?:permissions|resource)(?:_|\Z)")


def tokens(context: BuildContext) -> None:
    """OAuthServicesNeeded, OAuthTokenRequests, SendCredential."""
    wants_ticket = context.boolean(TICKET_COMMAND, SEND_TICKET)
    if wants_ticket:
        _check_universe(context, TICKET_COMMAND)
        context.set_expression(SEND_TICKET, "true")
    named = context.text(COMMAND, SERVICES)
    services = list(dict.fromkeys(unquoted(named or "").lower().replace(",", " ").split()))
    more = _more(context)
    stray = sorted({service for service, _ in more} - set(services))
    if stray:
        name = context.scope.spellings.get(f"{stray[0]}_oauth_permissions", f"{stray[0]}_oauth_…")
        raise SubmitError(f"{name} is about a service that {COMMAND} does not name", command=name.lower(),
                          remedy=f"say {COMMAND} = {', '.join([*services, stray[0]])}")
    if not services:
        return
    _check_universe(context, COMMAND)
    if KRB in services:
        raise SubmitError(f"{COMMAND}: {KRB} is no OAuth service, but stands for Kerberos tickets", command=COMMAND,
                          remedy=f"say {TICKET_COMMAND} = true")
    wanted = []
    for service in services:
        handles = [handle for name, handle in more if name == service] or [""]
        for handle in handles:
            said = more.get((service, handle), {})
            wanted.append(WantedToken(service=service, handle=handle, scopes=said.get("permissions", ""),
                                      audience=said.get("resource", "")))
    try:
        for each in wanted:
            check_name(each.service, each.handle)
    except BadTokenRequest as error:
        raise SubmitError(f"{COMMAND}: {error}", command=COMMAND) from None
    count = len(wanted) + wants_ticket
    if count > MOST_TOKENS:
        raise SubmitError(f"{COMMAND}: {count} tokens for one job are too many; it may have {MOST_TOKENS}",
                          command=COMMAND)
    context.set(SERVICES, ",".join(map(str, wanted)))
    requests = requests_of(wanted)
    if requests:
        context.set_expression(REQUESTS, str(ClassAd({REQUESTS: requests}).expression(REQUESTS)))


def _check_universe(context: BuildContext, command: str) -> None:
    """Refuse a universe whose jobs have no private folder of credentials."""
    if context.universe not in SECTIONS:
        raise SubmitError(f"{command} has no effect in this universe: no starter brings tokens to the job",
                          command=command, remedy="use universe = vanilla, container or parallel")


def _more(context: BuildContext) -> dict[tuple[str, str], dict[str, str]]:
    """What is said of each service and handle: ``permissions`` and ``resource``, in the order they were given."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for key in context.scope.assigned:
        match = _MORE.fullmatch(key)
        if match is None and _LIKE.search(key) is not None and not key.startswith("my."):
            raise SubmitError(f"{context.scope.spellings.get(key, key)}: names of services have no underscores",
                              command=key, remedy="say SERVICE_oauth_permissions or SERVICE_oauth_permissions_HANDLE")
        if match is not None:
            spelled = context.scope.spellings.get(key, key)
            handle = spelled[len(spelled) - len(match["handle"]):] if match["handle"] else ""
            text = unquoted(context.text(key) or "")
            words = " ".join(text.replace(",", " ").split())
            found.setdefault((match["service"], handle), {})[match["what"]] = words
    return found
