"""condor_store_cred: entrust a credential to the credential daemon, delete it, ask whether it is there.

**Source**: the manual, condor_store_cred.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from condor_actors.cores.credd.credentials import MOST_SECRET_BYTES, NO_PASSWORDS, TICKET, TICKET_REMEDY
from condor_actors.messages.credentials import KRB, CredentialFacts, DeleteCredential, StoreCredential
from condor_actors.tools.lib.command import ToolError, framed
from condor_actors.tools.lib.contact import CREDD, credd, facts_of, load, refused
from condor_actors.tools.manual.described_parser import DescribedParser
from condor_actors.wire.blocking import WireError

VERBS = ("add", "delete", "query")
KINDS = ("", "-oauth", "-krb", "-pwd")
KLIST_S = 10.0
_KLIST = re.compile(r"(?:Ticket cache: |credentials cache found \(filename: )(?P<name>[^\s)]+)")
OTHERS_WORDS = 2
"""The exit status when a credential is there, for other scopes or another audience than asked for."""


def read_credential(path: str) -> bytes:
    """The bytes of a file, ``-`` for standard input; one byte more than may be stored says that it is too long.

    Raises:
        OSError: it cannot be read.
    """
    if path == "-":
        return sys.stdin.buffer.read(MOST_SECRET_BYTES + 1)
    with open(path, "rb") as file:
        return file.read(MOST_SECRET_BYTES + 1)


def own_cache(environment: Mapping[str, str]) -> str:
    """The file of the caller's own Kerberos credential cache: what KRB5CCNAME names, or klist.

    Raises:
        ToolError: it is no file, or none is there.
    """
    name = environment.get("KRB5CCNAME", "") or _cache_of_klist()
    kind, colon, path = name.partition(":")
    if colon and "/" not in kind:
        if kind.upper() != "FILE":
            raise ToolError(f"your Kerberos tickets are in {name}, which is no file; make one: kinit -c FILE:CACHE -f "
                            "-r 7d, and condor_store_cred add-krb -i CACHE")
        name = path
    if not os.path.lexists(name):
        raise ToolError(f"{name}: you have no Kerberos tickets here; get one: {TICKET_REMEDY}")
    return name


def _cache_of_klist() -> str:
    """The default cache as klist says it; where it cannot be asked, the file that it mostly is."""
    try:
        done = subprocess.run(["klist"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=KLIST_S, env={**os.environ, "LC_ALL": "C"}, check=False)
    except (OSError, subprocess.SubprocessError):
        return f"/tmp/krb5cc_{os.getuid()}"
    found = _KLIST.search(done.stdout + done.stderr)
    return found["name"] if found else f"/tmp/krb5cc_{os.getuid()}"


def command_parser() -> argparse.ArgumentParser:
    """The reader of its words."""
    parser = DescribedParser(prog="condor_store_cred", allow_abbrev=False)
    parser.add_argument("action", metavar="ACTION", choices=[verb + kind for verb in VERBS for kind in KINDS],
                        help="add-oauth, delete-oauth or query-oauth; add-krb, delete-krb or query-krb for a Kerberos "
                             "ticket; query without more lists all of yours")
    parser.add_argument("-i", metavar="FILE", dest="file",
                        help="read the credential from FILE; -: standard input; add-krb: by default your own cache")
    parser.add_argument("-s", metavar="SERVICE", dest="service", default="", help="of this service")
    parser.add_argument("-H", metavar="HANDLE", dest="handle", default="", help="which of several of one service")
    parser.add_argument("-S", metavar="SCOPES", dest="scopes", default="",
                        help="add: it was issued for these; query: was it?")
    parser.add_argument("-A", metavar="AUDIENCE", dest="audience", default="",
                        help="add: it was issued for this audience; query: was it?")
    parser.add_argument("-P", dest="is_access_token", action="store_true",
                        help="it is an access token, which goes to jobs as it is")
    parser.add_argument("-n", metavar="HOST:PORT", dest="address", default="",
                        help="the credential daemon there; by default CREDD_HOST, or this machine's")
    parser.add_argument("-u", metavar="USER", dest="user", default="",
                        help="delete, query: another user's, for administrators (USER@DOMAIN)")
    parser.add_argument("-c", dest="pool_password", action="store_true", help="refused: there is no pool password")
    parser.add_argument("-f", metavar="FILE", dest="password_file", help="refused: there is no pool password")
    parser.add_argument("-p", metavar="PASSWORD", dest="password", help="refused: passwords are not stored")
    return parser


@framed
def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_store_cred``; the exit status."""
    given = command_parser().parse_args(words)
    verb, _, kind = given.action.partition("-")
    if given.pool_password or given.password_file or given.password is not None or kind == "pwd":
        raise ToolError(f"condor_store_cred: {NO_PASSWORDS}")
    if kind == KRB:
        if given.service or given.handle or given.scopes or given.audience or given.is_access_token:
            raise ToolError(f"condor_store_cred: -s, -H, -S, -A and -P do not go with {given.action}: you have one "
                            "Kerberos ticket")
        given.service = KRB
    if not kind and not given.service and verb != "query":
        raise ToolError(f"condor_store_cred: {verb} alone means a password: {NO_PASSWORDS}. For a service: "
                        f"condor_store_cred {verb}-oauth -s SERVICE")
    if kind and not given.service:
        raise ToolError(f"condor_store_cred: {given.action} needs -s SERVICE")
    return _do(verb, given)


def _do(verb: str, given: argparse.Namespace) -> int:
    content = b""
    if verb == "add":
        if given.service == KRB and not given.file:
            given.file = own_cache(os.environ)
        if not given.file:
            raise ToolError("condor_store_cred: add-oauth needs -i FILE (or -i - for standard input)")
        if given.user:
            raise ToolError("condor_store_cred: only its owner stores a credential; -u goes with delete and query")
        content = read_credential(given.file)
    with credd(load(), given.address) as client:
        try:
            if verb == "add":
                print(client.ask(CREDD, StoreCredential(
                    service=given.service, handle=given.handle, secret=content, scopes=given.scopes,
                    audience=given.audience, is_access_token=given.is_access_token)).text)
                return 0
            if verb == "delete":
                print(client.ask(CREDD, DeleteCredential(service=given.service, handle=given.handle,
                                                         user=given.user)).text)
                return 0
            return _query(given, list(facts_of(client, given.user)))
        except WireError as error:
            raise ToolError(refused(error)) from None


def _query(given: argparse.Namespace, known: Sequence[CredentialFacts]) -> int:
    wanted = (given.service.lower(), given.handle)
    found = [one for one in known if not given.service or (one.service, one.handle) == wanted]
    if not found:
        print(f"No credential of {given.service} is stored." if given.service else "No credentials are stored.")
        return 1
    for one in found:
        print(line_of(one))
    if any(set(has.split()) != set(asked.replace(",", " ").split())
           for one in found for has, asked in ((one.scopes, given.scopes), (one.audience, given.audience)) if asked):
        print("It was stored for other scopes, or another audience.", file=sys.stderr)
        return OTHERS_WORDS
    return 0


def line_of(one: CredentialFacts) -> str:
    """What is said of a credential."""
    name = f"{one.service}*{one.handle}" if one.handle else one.service
    stored = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.stored_s))
    more = "".join(f", {word} {text!r}" for word, text in (("scopes", one.scopes), ("audience", one.audience)) if text)
    what = "Kerberos ticket" if one.form == TICKET else f"{one.form} token"
    return f"{name}: {what} of {one.user}, stored {stored}{more}"
