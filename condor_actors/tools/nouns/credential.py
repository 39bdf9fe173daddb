"""``htcondor credential``: list, store, delete and print credentials.

**Source**: the manual, htcondor, "Credential Verbs".
"""

from __future__ import annotations

import base64
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from condor_actors.classads import ClassAd, quote
from condor_actors.cores.credd.credentials import NO_PASSWORDS
from condor_actors.cores.credd.token_attributes import SEND_TICKET, SERVICES
from condor_actors.cores.job_tokens import TICKET_FILE, wants_ticket
from condor_actors.messages.credentials import (
    KRB,
    CredentialFacts,
    DeleteCredential,
    FetchTokens,
    StoreCredential,
    WantedToken,
)
from condor_actors.messages.queue import QueryJobs
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import CREDD, credd, facts_of, load, schedd
from condor_actors.tools.nouns.words import table, tell
from condor_actors.tools.pool.store_cred import read_credential

KINDS = {"password": NO_PASSWORDS, "kerberos": "", "oauth2": ""}
_HEADS = ("User", "Service", "Handle", "Form", "Stored", "File")


def list_own(given: dict[str, Any]) -> int:
    """The caller's."""
    return _show("")


def list_all(given: dict[str, Any]) -> int:
    """Everybody's, for administrators."""
    return _show("*")


def add(given: dict[str, Any]) -> int:
    """Store one; service and handle are those of the file's name unless they are given."""
    _check_kind(given["type"])
    path = given["credential_file"]
    stem = Path(path).name.partition(".")[0].partition("_")
    service, handle = _named(given)
    if not service and not handle:
        service, handle = stem[0], stem[2]
    with credd(load()) as client:
        tell(client.ask(CREDD, StoreCredential(service=service, handle=handle, secret=read_credential(path))).text)
    return 0


def remove(given: dict[str, Any]) -> int:
    """Delete one, or all when neither service nor handle is named."""
    _check_kind(given["type"])
    service, handle = _named(given)
    if handle and not service:
        raise ToolError("--handle goes with --service")
    with credd(load()) as client:
        tell(client.ask(CREDD, DeleteCredential(service=service, handle=handle, everything=not service)).text)
    return 0


def get(given: dict[str, Any]) -> int:
    """Print what a job would get now."""
    _check_kind(given["type"])
    service, handle = _named(given)
    if not service:
        raise ToolError("which? --service SERVICE")
    wanted = WantedToken(service=service, handle=handle)
    with credd(load()) as client:
        (token,) = client.ask(CREDD, FetchTokens(wanted=(wanted,))).tokens
    if service == KRB:
        print(base64.b64encode(token.token).decode())
        return 0
    print(token.token.decode())
    return 0


def _named(given: dict[str, Any]) -> tuple[str, str]:
    """Service and handle; of Kerberos there is one."""
    service, handle = given["service"] or "", given["handle"] or ""
    if given["type"] != "kerberos":
        return service, handle
    if service or handle:
        raise ToolError("--service and --handle do not go with kerberos: you have one ticket")
    return KRB, ""


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ToolError(f"{kind!r} is no type of credential; expected {', '.join(KINDS)}")
    if KINDS[kind]:
        raise ToolError(KINDS[kind])


def _show(user: str) -> int:
    config = load()
    with credd(config) as client:
        known = list(facts_of(client, user))
    if not known:
        tell("No credentials are stored.")
        return 0
    jobs = _jobs({one.user for one in known})
    print(*table((*_HEADS, "Jobs"), [(*_row(one), " ".join(jobs[one.user, _name(one)])) for one in known]), sep="\n")
    return 0


def _name(one: CredentialFacts) -> str:
    return f"{one.service}*{one.handle}" if one.handle else one.service


def _row(one: CredentialFacts) -> tuple[str, ...]:
    stored = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.stored_s))
    file = TICKET_FILE if one.service == KRB else f"{_name(one).replace('*', '_')}.use"
    return one.user, one.service, one.handle, one.form, stored, file


def _jobs(users: set[str]) -> dict[tuple[str, str], list[str]]:
    """The jobs in the queue that name each credential; none where no queue answers."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    theirs = f"stringListMember(User, {quote(','.join(sorted(users)))})"
    constraint = f"({SERVICES} =!= undefined || {SEND_TICKET} =?= true) && {theirs}"
    try:
        with schedd(load()) as there:
            cursor = ""
            while True:
                page = there.ask(QueryJobs(constraint=constraint, cursor=cursor,
                                           projection=("User", SERVICES, SEND_TICKET, "ClusterId", "ProcId")))
                for text in page.ads:
                    ad = ClassAd.from_bytes(text)
                    needed = ad.get_str(SERVICES).replace(",", " ").split() + [KRB] * wants_ticket(ad)
                    for service in needed:
                        found[ad.get_str("User"), service].append(f"{ad['ClusterId']}.{ad['ProcId']}")
                cursor = page.cursor
                if not cursor:
                    return found
    except ToolError:
        return found
