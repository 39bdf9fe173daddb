"""Fetches input files by http and https, as the job's account, in processes of their own.

Theory: see :mod:`condor_actors.machine.run.url_client`.  The starter host opens the file with the job's rights.

No proxy is used, since none is in the environment.  A redirect leads to http and https only, and never from https to
http.  Addresses of the machine itself and its network may be fetched: the job could open them as well.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urljoin

import attrs

from condor_actors.machine.run.url_client import (
    AGENT,
    BLOCK_BYTES,
    MOST_REDIRECTS,
    SILENCE_S,
    UrlFailed,
    account_of,
    carry_out,
    may_follow,
)
from condor_actors.machine.run.users import Account
from condor_actors.messages.references.urls import FETCHED, bad_url, scheme_of, shown_url

__all__ = ["MOST_REDIRECTS", "FetchOrder", "fetch"]


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
    return FetchOrder(account=account_of(fields.pop("account")), **fields)


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = MOST_REDIRECTS

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Follow to http and https only, and not down from https."""
        target = urljoin(req.full_url, newurl)
        if not may_follow(req.full_url, target):
            raise UrlFailed(f"{shown_url(req.full_url)}: its server sends us on to {shown_url(target)}, "
                              "which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """One that knows http and https, and nothing else that the library could do."""
    opener = urllib.request.OpenerDirector()
    for each in (urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(context=context), _Redirects(),
                 urllib.request.HTTPErrorProcessor(), urllib.request.HTTPDefaultErrorHandler(),
                 urllib.request.UnknownHandler()):
        opener.add_handler(each)
    opener.addheaders = [("User-Agent", AGENT)]
    return opener


def fetch(order: FetchOrder, descriptor: int, context: ssl.SSLContext) -> int:
    """Copy the content of the order's URL into an open file; blocks.  Returns how many bytes there were.

    Raises:
        UrlFailed: another scheme, refused, not found, broken off, too much, or the disk is full.
    """
    url, total = order.url, 0
    shown = shown_url(url)
    if scheme_of(url) not in FETCHED or bad_url(url):
        raise UrlFailed(f"{shown}: this machine fetches {', '.join(FETCHED)} only")
    try:
        with _opener(context).open(url, timeout=SILENCE_S) as response:
            while block := response.read(BLOCK_BYTES):
                total += len(block)
                if total > order.most_bytes:
                    raise UrlFailed(f"{shown}: it has more than the {order.most_bytes} bytes there is room for")
                _write(descriptor, block)
            expected = response.headers.get("Content-Length")
        if expected is not None and expected.isdecimal() and int(expected) != total:
            raise UrlFailed(f"{shown}: {total} of {expected} bytes came")
    except urllib.error.HTTPError as error:
        raise UrlFailed(f"{shown}: the server says {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UrlFailed(f"{shown}: {error}") from None
    return total


def _write(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view):]


def main() -> int:
    """Carry out the order on standard input; the content goes to standard output."""
    order = _decode(sys.stdin.buffer.read())
    return carry_out(order, lambda order, context: fetch(order, sys.stdout.fileno(), context))


if __name__ == "__main__":
    sys.exit(main())
