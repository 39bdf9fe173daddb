"""Fetches an input file by its URL: http, https and file.

Theory: the bytes go straight into a file that is open already, in a thread of the reactor's pool; a transfer that
stops moving for :data:`SILENCE_S` is given up.  A server of https must be vouched for by an authority that the machine
knows, or by one of the administrator's file.
"""

from __future__ import annotations

import os
import ssl
import urllib.error
import urllib.request
from urllib.parse import unquote, urlsplit

__all__ = ["SCHEMES", "FetchFailed", "fetch"]

SCHEMES = ("http", "https", "file")
SILENCE_S = 60.0
BLOCK_BYTES = 256 * 1024


class FetchFailed(Exception):
    """The URL could not be had; the text says why."""


def fetch(url: str, descriptor: int, authorities: str = "") -> int:
    """Copy the content of ``url`` into an open file; blocks.

    Args:
        authorities: a file with more authorities that vouch for servers of https; empty: the machine's own only.

    Returns:
        How many bytes there were.

    Raises:
        FetchFailed: unknown scheme, refused, not found, broken off, or the disk is full.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise FetchFailed(f"{url}: this machine fetches {', '.join(SCHEMES)} only")
    total = 0
    try:
        if parts.scheme == "file":
            with open(unquote(parts.path), "rb") as local:
                while block := local.read(BLOCK_BYTES):
                    total += _write(descriptor, block)
            return total
        request = urllib.request.Request(url, headers={"User-Agent": "condor-starter"})  # noqa: S310 - checked above
        context = _trust(authorities) if parts.scheme == "https" else None
        with urllib.request.urlopen(request, timeout=SILENCE_S, context=context) as response:  # noqa: S310
            while block := response.read(BLOCK_BYTES):
                total += _write(descriptor, block)
            expected = response.headers.get("Content-Length")
        if expected is not None and expected.isdigit() and int(expected) != total:
            raise FetchFailed(f"{url}: {total} of {expected} bytes came")
    except urllib.error.HTTPError as error:
        raise FetchFailed(f"{url}: the server says {error.code} {error.reason}") from None
    except OSError as error:
        raise FetchFailed(f"{url}: {error}") from None
    return total


def _trust(authorities: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authorities:
        try:
            context.load_verify_locations(authorities)
        except (OSError, ssl.SSLError) as error:
            raise FetchFailed(f"AUTH_SSL_CLIENT_CAFILE {authorities} cannot be used: {error}") from None
    return context


def _write(descriptor: int, block: bytes) -> int:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view):]
    return len(block)
