"""How a user's process finds the daemons of a pool, and what it shows to them: a certificate or a token of the user's.

The tools use it, and the shadow that hands a user's jobs to another schedd.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from condor_actors.wire.blocking import Client, LinkLost, NotTrusted, connect
from condor_actors.wire.nodes import BadNode, TlsNode, parse_node, tls_node

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

    from condor_actors.classads import ClassAd
    from condor_actors.wire.certificates.tool_credentials import ToolCredentials
    from condor_actors.wire.idtokens.bearer import TokenCredentials

__all__ = ["TOKEN_METHODS", "BadContact", "ads_of", "collector_node", "connect_as_user", "credentials", "dialable",
           "schedd_constraint"]

TOKEN_METHODS = ("IDTOKENS", "IDTOKEN", "TOKENS", "TOKEN")
COLLECTOR = "collector"


class BadContact(Exception):
    """The configuration or the list of partners does not say whom to ask, or how."""


def credentials(config: Any, *, as_user: bool = False, is_anew: bool = False,
                warn: Callable[[str], object] = str) -> ToolCredentials | TokenCredentials | None:
    """What this user shows over TLS, None when there is nothing: a certificate or a token, whichever comes first in
    SEC_CLIENT_AUTHENTICATION_METHODS and is there.

    Args:
        as_user: the user's own certificate even where the machine's could be read.
        is_anew: borrow a certificate even if there is a fresh one; it may be another pool's.
        warn: is told of files that hold no token.

    Raises:
        BadContact: a method is none.
    """
    found: ToolCredentials | TokenCredentials | None = None
    for method in config.list_of("SEC_CLIENT_AUTHENTICATION_METHODS"):
        if method.upper() == "SSL":
            found = _certificate(config, as_user=as_user, is_anew=is_anew)
        elif method.upper() in TOKEN_METHODS:
            found = _tokens(config, warn)
        elif method.upper() != "FS":  # that is for sockets of this machine, where nothing is shown
            raise BadContact(f"SEC_CLIENT_AUTHENTICATION_METHODS: {method} is none of SSL, IDTOKENS, FS")
        if found is not None:
            break
    return found


def _tokens(config: Any, warn: Callable[[str], object]) -> TokenCredentials | None:
    from condor_actors.wire.idtokens.bearer import TokenCredentials
    from condor_actors.wire.idtokens.token_files import own_tokens

    tokens, problems = own_tokens(config)
    for problem in problems:
        warn(problem)
    return TokenCredentials(ca=os.path.expanduser(str(config.path("POOL_CA"))), tokens=tokens) if tokens else None


def _certificate(config: Any, *, as_user: bool, is_anew: bool) -> ToolCredentials | None:
    from condor_actors.config.collectors import gateway_nodes
    from condor_actors.wire.certificates.tool_credentials import ToolCredentials

    if as_user:
        paths = {"certificate": "USER_CERTIFICATE", "key": "USER_CERTIFICATE", "ca": "POOL_CA",
                 "partners": "POOL_PARTNERS"}
        own = ToolCredentials(**{what: os.path.expanduser(config.text(name) or "") for what, name in paths.items()},
                              gateways=gateway_nodes(config))
        if is_anew or not own.is_fresh():
            own = own.borrow(str(config.path("RUN")))
        if own.is_usable():
            return own
    return ToolCredentials.of(config)


def connect_as_user(config: Any, address: str, warn: Callable[[str], object] = str) -> Client:
    """A line over which whose job it is follows from the user's own certificate or token.

    Raises:
        WireError: there is none.
        BadContact: as `credentials`.
    """
    shown = credentials(config, as_user=True, warn=warn)
    try:
        return connect(address, shown)
    except (NotTrusted, LinkLost):
        if hasattr(shown, "tokens"):  # who shows a token is its bearer or nobody
            raise
        return connect(address, credentials(config, as_user=True, is_anew=True, warn=warn))


def collector_node(config: Any, host: str, *, may_be_partner: bool) -> str:
    """The node of the collector on ``host``, or of the partner that is called so.

    Raises:
        BadNode: it is no address.
        BadContact: the list of partners cannot be read.
    """
    found = _partner(config, host) if may_be_partner else ""
    return found or str(tls_node(host, config.integer("COLLECTOR_PORT")))


def _partner(config: Any, pool: str) -> str:
    from pathlib import Path

    path = Path(os.path.expanduser(str(config.path("POOL_PARTNERS"))))
    if not path.exists():
        return ""
    from condor_actors.wire.partners.partner_store import BadPartners, read_partners

    try:
        partners = [each.known() for each in read_partners(path)]
    except BadPartners as error:
        raise BadContact(str(error)) from None
    return next((each.central for each in partners if each.is_called(pool)), "")


def schedd_constraint(name: str) -> str:
    """What is true of the ad of a schedd with this name, or on a machine of this name."""
    from condor_actors.classads import quote

    text = quote(name)
    return f'Name == {text} || Machine == {text} || (regexp(strcat("^", {text}, "\\\\."), Name))'


def ads_of(client: Client, kind: Any, constraint: str = "", projection: tuple[str, ...] = ()) -> list[ClassAd]:
    """Ads that a collector has.

    Raises:
        WireError: it refuses, or does not answer.
    """
    from condor_actors.classads import ClassAd
    from condor_actors.messages.advertise import QueryAds

    ads: list[ClassAd] = []
    cursor = ""
    while True:
        page = client.ask(COLLECTOR, QueryAds(ad_kind=kind, constraint=constraint, projection=projection,
                                              cursor=cursor))
        ads += [dialable(ClassAd.from_bytes(text), client.node) for text in page.ads]
        cursor = page.cursor
        if not cursor:
            return ads


def dialable(ad: ClassAd, collector: str) -> ClassAd:
    """An ad with addresses that can be dialled here, wherever the collector is that had it."""
    if "%" in collector:
        from condor_actors.messages.realm import node_abroad

        try:
            parsed = parse_node(collector)
        except BadNode:
            return ad
        if isinstance(parsed, TlsNode) and parsed.realm and ad.find("myaddress") is not None:
            ad["MyAddress"] = node_abroad(ad.get_str("MyAddress"), parsed.realm)
    return ad
