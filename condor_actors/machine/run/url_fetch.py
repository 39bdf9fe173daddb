"""Fetches input files by http and https, as the job's account, in processes of their own.

Theory: whatever a server says is parsed with the rights of the job and no others.  The starter host opens the file
with the job's rights, starts this module as a program by the launcher (in the claim's control group, with limits and
hardly any environment), and writes what it is to do into its standard input, so that no list of processes has the URL.
The program loads what it needs, becomes the job's account for good, and only then opens a connection.  What went wrong
comes as one sentence over its standard error.

No proxy is used, since none is in the environment.  A redirect leads to http and https only, and never from https to
http.  Addresses of the machine itself and its network may be fetched: the job could open them as well.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urljoin

import attrs

from condor_actors.machine.run.users import Account
from condor_actors.messages.references.urls import FETCHED, bad_url, scheme_of, shown_url

__all__ = ["REASON_BYTES", "FetchFailed", "FetchOrder", "fetch"]

SILENCE_S = 60.0
BLOCK_BYTES = 256 * 1024
REASON_BYTES = 2000
MOST_REDIRECTS = 10


class FetchFailed(Exception):
    """The URL could not be had; the text says why."""


@attrs.frozen(kw_only=True)
class FetchOrder:
    """What one process is to do.

    Attributes:
        url: http or https.
        account: whom it becomes; None: it is that account already.
        most_bytes, most_s: more is given up.
        authorities: a file with more authorities that vouch for servers of https; empty: the machine's own only.
    """

    url: str
    account: Account | None
    most_bytes: int
    most_s: float
    authorities: str = ""

    def encode(self) -> bytes:
        """For the process's standard input."""
        return json.dumps(attrs.asdict(self)).encode()


def _decode(data: bytes) -> FetchOrder:
    fields = json.loads(data)
    account = fields.pop("account")
    if account is not None:
        account = Account(**account | {"groups": tuple(account["groups"])})
    return FetchOrder(account=account, **fields)


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = MOST_REDIRECTS

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Follow to http and https only, and not down from https."""
        target = urljoin(req.full_url, newurl)
        if scheme_of(target) not in FETCHED or (scheme_of(req.full_url), scheme_of(target)) == FETCHED[::-1]:
            raise FetchFailed(f"{shown_url(req.full_url)}: its server sends us on to {shown_url(target)}, "
                              "which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _trust(authorities: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authorities:
        try:
            context.load_verify_locations(authorities)
        except (OSError, ssl.SSLError) as error:
            raise FetchFailed(f"AUTH_SSL_CLIENT_CAFILE {authorities} cannot be used: {error}") from None
    return context


def _opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """One that knows http and https, and nothing else that the library could do."""
    opener = urllib.request.OpenerDirector()
    for each in (urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(context=context), _Redirects(),
                 urllib.request.HTTPErrorProcessor(), urllib.request.HTTPDefaultErrorHandler(),
                 urllib.request.UnknownHandler()):
        opener.add_handler(each)
    opener.addheaders = [("User-Agent", "condor-starter")]
    return opener


def fetch(order: FetchOrder, descriptor: int, context: ssl.SSLContext) -> int:
    """Copy the content of the order's URL into an open file; blocks.  Returns how many bytes there were.

    Raises:
        FetchFailed: another scheme, refused, not found, broken off, too much, or the disk is full.
    """
    url, total = order.url, 0
    shown = shown_url(url)
    if scheme_of(url) not in FETCHED or bad_url(url):
        raise FetchFailed(f"{shown}: this machine fetches {', '.join(FETCHED)} only")
    try:
        with _opener(context).open(url, timeout=SILENCE_S) as response:
            while block := response.read(BLOCK_BYTES):
                total += len(block)
                if total > order.most_bytes:
                    raise FetchFailed(f"{shown}: it has more than the {order.most_bytes} bytes there is room for")
                _write(descriptor, block)
            expected = response.headers.get("Content-Length")
        if expected is not None and expected.isdecimal() and int(expected) != total:
            raise FetchFailed(f"{shown}: {total} of {expected} bytes came")
    except urllib.error.HTTPError as error:
        raise FetchFailed(f"{shown}: the server says {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchFailed(f"{shown}: {error}") from None
    return total


def _write(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view):]


def _become(account: Account) -> None:
    os.setgroups(account.groups or (account.gid,))
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    with contextlib.suppress(PermissionError):
        os.setresuid(0, 0, 0)
        raise FetchFailed("the way back to root is open")


def main() -> int:
    """Carry out the order on standard input; the content goes to standard output."""
    order = _decode(sys.stdin.buffer.read())
    try:
        context = _trust(order.authorities)
        "".encode("idna")  # what the library would look for on the disk later
        socket.getaddrinfo("localhost", None)
        if order.account is not None and os.geteuid() == 0:
            _become(order.account)

        def too_long(number: int, frame: object) -> None:
            raise FetchFailed(f"{shown_url(order.url)}: it takes more than {order.most_s:g} s")

        signal.signal(signal.SIGALRM, too_long)
        signal.setitimer(signal.ITIMER_REAL, order.most_s)
        fetch(order, sys.stdout.fileno(), context)
    except FetchFailed as error:
        os.write(sys.stderr.fileno(), str(error).encode(errors="replace")[:REASON_BYTES])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
