"""condor_token_request, condor_token_request_list, condor_token_request_approve, condor_token_request_auto_approve: a
token for who has nothing to show.

**Source**: the manual's pages of these commands.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from condor_actors.messages.tokens import (
    ApproveTokenRequest,
    AutoApproveTokenRequests,
    QueryTokenRequests,
    TokenRequest,
    TokenRequests,
)
from condor_actors.tools.lib.command import ToolError, operands_of, reminder_of, values_of
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.daemon_lines import PLACE_FLAGS, line_to
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.pool.tokens import ASKED, COMMON, TOKENS, asked_levels, asked_life, keep, no_words, of_tokens
from condor_actors.wire.blocking import connect_tls
from condor_actors.wire.frames import TOKEN_REQUEST_LINE
from condor_actors.wire.idtokens.bearer import TokenCredentials
from condor_actors.wire.nodes import BadNode, tls_node

PATIENCE_S = 3600.0
TABLES: Mapping[str, tuple[Flag, ...]] = {
    "condor_token_request": (*COMMON, Flag("identity", 1, 1), Flag("pool", 1, 1), *ASKED),
    "condor_token_request_list": (*COMMON, *PLACE_FLAGS, Flag("json", 1)),
    "condor_token_request_approve": (*COMMON, *PLACE_FLAGS, Flag("reqid", 1, 1),
                                     Flag("requestid", 1, 1, alias="reqid"), Flag("yes", 1)),
    "condor_token_request_auto_approve": (*COMMON, *PLACE_FLAGS, Flag("netblock", 1, 1), Flag("lifetime", 1, 1)),
}



def request() -> int:
    """Entry of ``condor_token_request``."""
    return of_tokens("condor_token_request", _request, TABLES)


def list_requests() -> int:
    """Entry of ``condor_token_request_list``."""
    return of_tokens("condor_token_request_list", _list, TABLES)


def approve() -> int:
    """Entry of ``condor_token_request_approve``."""
    return of_tokens("condor_token_request_approve", _approve, TABLES)


def auto_approve() -> int:
    """Entry of ``condor_token_request_auto_approve``."""
    return of_tokens("condor_token_request_auto_approve", _auto_approve, TABLES)


def _request(given: Sequence[Given]) -> int:
    no_words(given, "condor_token_request")
    values, config = values_of(given), load()
    identity = values.get("identity") or f"condor@{config.needed_text('TRUST_DOMAIN')}"
    host = values.get("pool") or next(iter(config.list_of("COLLECTOR_HOST")), "")
    try:
        node = tls_node(host, config.integer("COLLECTOR_PORT"))
    except BadNode as error:
        raise ToolError(f"ERROR: {error}; say -pool HOST") from None
    guest = TokenCredentials(ca=os.path.expanduser(str(config.path("POOL_CA"))), tokens={})
    asked = {"identity": identity, "levels": asked_levels(given), "lifetime_s": asked_life(values)}
    with connect_tls(node, guest, 20.0) as connection:
        connection.settimeout(20.0)
        connection.sendall(TOKEN_REQUEST_LINE + json.dumps(asked).encode() + b"\n")
        number = _said(connection, "request_id")
        print(f"Token request enqueued. Ask an administrator of {host} (or, on another machine, yourself) to approve\n"
              f"request {number} for a token of {identity}:\n    condor_token_request_approve -reqid {number}",
              file=sys.stderr)
        connection.settimeout(PATIENCE_S)
        token = _said(connection, "token")
    keep(config, values, token)
    return 0


def _said(connection: ssl.SSLSocket, name: str) -> str:
    data = b""
    try:
        while not data.endswith(b"\n") and len(data) < 65536:
            more = connection.recv(1)
            if not more:
                break
            data += more
        answer: Any = json.loads(data)
        if "error" in answer:
            raise ToolError(f"ERROR: {answer['error']}")
        return str(answer[name])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise ToolError("ERROR: the collector hung up; does it give tokens (has it a signing key)?") from None


def _waiting(values: dict[str, str]) -> tuple[Any, tuple[TokenRequest, ...]]:
    _, client = line_to(load(), values, "collector")
    answer = client.ask(TOKENS, QueryTokenRequests())
    assert isinstance(answer, TokenRequests)
    return client, answer.requests


def _fields(each: TokenRequest) -> dict[str, str]:
    return {"RequestId": each.request_id, "RequestedIdentity": each.identity, "PeerLocation": each.address,
            "LimitAuthorization": " ".join(each.levels) or "(none)",
            "Lifetime": f"{each.lifetime_s:.0f}" if each.lifetime_s else "(as long as the daemon allows)",
            "RequestedAt": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.asked_s))}


def _list(given: Sequence[Given]) -> int:
    no_words(given, "condor_token_request_list")
    values = values_of(given)
    client, requests = _waiting(values)
    client.close()
    if "json" in values:
        print(json.dumps([_fields(each) for each in requests], indent=1))
    for each in () if "json" in values else requests:
        print("\n".join(f"{name} = {json.dumps(value)}" for name, value in _fields(each).items()) + "\n")
    return 0


def _approve(given: Sequence[Given]) -> int:
    values = values_of(given)
    wanted = values.get("reqid") or next(iter(operands_of(given)), "")
    if not wanted and ("yes" in values or "reqid" in values):
        raise ToolError("ERROR: which request? Say -reqid ID; condor_token_request_list shows those that wait")
    client, requests = _waiting(values)
    with client:
        found = [each for each in requests if each.request_id == wanted or not wanted]
        if not found:
            raise ToolError(f"ERROR: there is no request {wanted} for you to decide".replace("  ", " ")
                            + ": it was approved before, who asked has gone, it is of another pool, or it needs an "
                              "administrator; condor_token_request_list shows those that wait for you")
        for each in found:
            print("\n".join(f"{name} = {json.dumps(value)}" for name, value in _fields(each).items()))
            if "yes" not in values:
                print("\nTo approve, please type 'yes'")
                if sys.stdin.readline().strip() != "yes":
                    print("Request was not approved.")
                    return 1
            client.ask(TOKENS, ApproveTokenRequest(request_id=each.request_id))
            print(f"Request {each.request_id} approved successfully.")
    return 0


def _auto_approve(given: Sequence[Given]) -> int:
    values, life_s = values_of(given), asked_life(values_of(given))
    netblock = values.get("netblock", "")
    if not netblock or not life_s or operands_of(given):
        raise ToolError(f"ERROR: from where, and for how long?\n{reminder_of('condor_token_request_auto_approve')}")
    _, client = line_to(load(), values, "collector")
    with client:
        print(client.ask(TOKENS, AutoApproveTokenRequests(netblock=netblock, lifetime_s=life_s)).text)
        waiting = client.ask(TOKENS, QueryTokenRequests())
    assert isinstance(waiting, TokenRequests)
    print(f"Remote daemon reports {len(waiting.requests) or 'no'} un-approved requests pending.")
    return 0
