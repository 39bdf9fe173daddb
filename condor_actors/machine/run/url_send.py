"""Sends output files by http and https (``PUT``), as the job's account, in processes of their own.

Theory: see :mod:`condor_actors.machine.run.url_client`.  The starter host opens the file with the job's rights, and
this program inherits the descriptor.  An error of the server's own (5xx, 429), a name that is not found and a
connection that breaks may go better another time; what a server refuses does not.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
import sys
from collections.abc import Iterator
from urllib.parse import unquote, urljoin, urlsplit

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

__all__ = ["SendOrder", "send"]

REDIRECTS = (307, 308)
"""Those that ask for the same once more, there."""
TEMPORARY = (408, 425, 429)
SAID_BYTES = 4096
_CODE = re.compile(rb"<Code>([A-Za-z]{1,60})</Code>")
"""What object stores say besides the status."""


@attrs.frozen(kw_only=True)
class SendOrder:
    """What one process is to do.

    Attributes:
        url: http or https.
        source: the descriptor of the open file; size_bytes: of it.
        account: whom it becomes; None: it is that account already.
        most_s: more is given up.
        authorities: a file with more authorities that vouch for servers of https; empty: the machine's own only.
    """

    url: str
    source: int
    size_bytes: int
    account: Account | None
    most_s: float
    authorities: str = ""

    def encode(self) -> bytes:
        """For the process's standard input."""
        return json.dumps(attrs.asdict(self)).encode()


def _decode(data: bytes) -> SendOrder:
    fields = json.loads(data)
    return SendOrder(account=account_of(fields.pop("account")), **fields)


def send(order: SendOrder, context: ssl.SSLContext) -> None:
    """Send the file to the order's URL; blocks.

    Raises:
        UrlFailed: another scheme, refused, broken off, or the file is not what it was.
    """
    url = order.url
    for _ in range(MOST_REDIRECTS + 1):
        if scheme_of(url) not in FETCHED or bad_url(url):
            raise UrlFailed(f"{shown_url(url)}: this machine sends to {', '.join(FETCHED)} only")
        try:
            status, reason, where = _put(url, order, context)
        except (OSError, http.client.HTTPException) as error:
            wrong = isinstance(error, ssl.SSLCertVerificationError)
            raise UrlFailed(f"{shown_url(url)}: {error or type(error).__name__}", temporary=not wrong) from None
        except ValueError as error:
            raise UrlFailed(f"{shown_url(url)}: {error}") from None
        if 200 <= status < 300:
            return
        if status not in REDIRECTS or not where:
            raise UrlFailed(f"{shown_url(url)}: the server says {status} {reason}".rstrip(),
                            temporary=status >= 500 or status in TEMPORARY)
        try:
            target = urljoin(url, where)
        except ValueError as error:
            raise UrlFailed(f"{shown_url(url)}: its server sends us on to nowhere: {error}") from None
        if not may_follow(url, target):
            raise UrlFailed(f"{shown_url(url)}: its server sends us on to {shown_url(target)}, which is not followed")
        url = target
    raise UrlFailed(f"{shown_url(order.url)}: it leads on and on")


def _put(url: str, order: SendOrder, context: ssl.SSLContext) -> tuple[int, str, str]:
    """One request: the status, what the server says of it, and where it sends us on."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection = (http.client.HTTPSConnection(host, port, timeout=SILENCE_S, context=context)
                  if scheme_of(url) == "https" else http.client.HTTPConnection(host, port, timeout=SILENCE_S))
    headers = {"User-Agent": AGENT, "Content-Type": "application/octet-stream",
               "Content-Length": str(order.size_bytes)}
    if parts.username is not None:
        who = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(who.encode()).decode()
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.connect()
        is_whole = True
        try:
            connection.request("PUT", path, body=_blocks(order), headers=headers)
        except (BrokenPipeError, ConnectionResetError):
            is_whole = False
        response = connection.getresponse()
        if not is_whole and response.status < 300:
            raise UrlFailed(f"{shown_url(url)}: the server answered before it had the whole file", temporary=True)
        said = _CODE.search(response.read(SAID_BYTES)) if response.status >= 400 else None
        reason = f"{response.reason} ({said.group(1).decode()})" if said else response.reason
        return response.status, reason, response.headers.get("Location", "")
    finally:
        connection.close()


def _blocks(order: SendOrder) -> Iterator[bytes]:
    done = 0
    while done < order.size_bytes:
        block = os.pread(order.source, min(BLOCK_BYTES, order.size_bytes - done), done)
        if not block:
            raise UrlFailed(f"the file became shorter while it was sent to {shown_url(order.url)}")
        done += len(block)
        yield block


def main() -> int:
    """Carry out the order on standard input."""
    return carry_out(_decode(sys.stdin.buffer.read()), send)


if __name__ == "__main__":
    sys.exit(main())
