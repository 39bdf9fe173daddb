"""Questions to the pool's daemons in a user's name: over a connection of its own, on which the user's token is shown.

Theory: the page's daemon has rights of its own, and none of them may serve a user.  So nothing here goes over its links
or a UNIX socket: each question opens a TLS connection without a certificate, proves that it has the token, and is
judged and recorded by the daemon at the other end as the user's.  These functions block, and run on workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condor_actors.messages.admin import Ping, Pong
from condor_actors.wire.blocking import Client, NotTrusted, Unreachable, WireError, connect
from condor_actors.wire.idtokens.bearer import TokenCredentials
from condor_actors.wire.idtokens.verifier import TOKEN_METHOD
from condor_actors.wire.nodes import BadNode, TlsNode, parse_node

__all__ = ["ask_as", "who_is"]

TIMEOUT_S = 20.0
NAMED = "the token"
"""What messages call it; where it comes from nobody needs to know."""


def who_is(nodes: Sequence[str], ca: str, token: str) -> Pong:
    """Whom the first of the pool's collectors that answers takes the bearer of a token for.

    Args:
        nodes: of the collectors.
        ca: path of the pool's CA certificate.
        token: the user's.

    Raises:
        NotTrusted: the token does not count; with the reason.
        WireError: no collector answers.
    """
    problem: WireError = Unreachable("COLLECTOR_HOST names no collector")
    for node in nodes:
        try:
            with _connected(node, ca, token) as client:
                pong = client.ask("admin", Ping(), TIMEOUT_S)
        except NotTrusted:
            raise
        except WireError as error:
            problem = error
            continue
        if not isinstance(pong, Pong) or pong.method != TOKEN_METHOD:
            raise NotTrusted(f"{node} does not know this user by the token")
        return pong
    raise problem


def ask_as(node: str, ca: str, token: str, message: Any) -> Any:
    """The answer of a schedd to a message of the token's bearer.

    Raises:
        NotTrusted: the token does not count; with the reason.
        RequestRefused: the schedd refuses.
        WireError: it does not answer.
    """
    with _connected(node, ca, token) as client:
        return client.ask("schedd", message, TIMEOUT_S)


def _connected(node: str, ca: str, token: str) -> Client:
    try:
        parsed = parse_node(node)
    except BadNode as error:
        raise Unreachable(str(error)) from None
    if not isinstance(parsed, TlsNode) or parsed.realm:
        raise Unreachable(f"{node} is no address of a machine of this pool")
    return connect(node, TokenCredentials(ca=ca, tokens={NAMED: token}), TIMEOUT_S)
