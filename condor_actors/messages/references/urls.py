"""What a name of a file says: a path, or a URL and its scheme.

Theory: this is the one place that tells the two apart, so that no two parts of a pool can read a name differently.
Schemes compare without case (RFC 3986, 3.1).  ``file:`` is the submit machine's own path and never leaves it.
"""

from __future__ import annotations

from condor_actors.patterns import late

__all__ = ["FETCHED", "MAX_URL_BYTES", "OBJECT_STORES", "bad_url", "is_url", "local_path", "scheme_of", "shown_url",
           "travels_as_url"]

FETCHED = ("http", "https")
"""Schemes that execute machines fetch from and send to, in the order in which they are told."""
OBJECT_STORES = ("s3", "gs")
"""Schemes that the submit machine signs: execute machines see https."""
FILE = "file"
MAX_URL_BYTES = 8192
_QUERY = late(r"[?#]")
_SCHEME = late(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_NOT_PRINTED = late(r"[\x00-\x20\x7f]")
_LOCAL_HOST = "localhost/"


def scheme_of(name: str) -> str:
    """The scheme of ``scheme://…`` in small letters; empty for a path."""
    found = _SCHEME.match(name)
    return found.group(1).lower() if found else ""


def is_url(name: str) -> bool:
    """Whether a name is a URL (``scheme://…``)."""
    return bool(scheme_of(name))


def travels_as_url(name: str) -> bool:
    """Whether the execute machine has to fetch it: any URL but ``file:``."""
    return scheme_of(name) not in ("", FILE)


def local_path(name: str) -> str:
    """The path that a ``file:`` URL names; other names as they are."""
    if scheme_of(name) != FILE:
        return name
    rest = name[len(FILE) + len("://"):]
    return rest[len(_LOCAL_HOST) - 1:] if rest[:len(_LOCAL_HOST)].lower() == _LOCAL_HOST else rest


def bad_url(url: str) -> str:
    """Why a URL of a manifest is not one to fetch here; empty: it may be tried."""
    if len(url.encode(errors="surrogateescape")) > MAX_URL_BYTES:
        return f"a URL of more than {MAX_URL_BYTES} bytes"
    if _NOT_PRINTED.search(url):
        return "a URL with blanks or control characters"
    scheme = scheme_of(url)
    if not scheme:
        return "no URL"
    return "a file of the submit machine, which is read there and never here" if scheme == FILE else ""


def shown_url(url: str) -> str:
    """A URL for people and logs: without password, query and fragment, which may hold secrets."""
    scheme, mark, rest = url.partition("://")
    rest = _QUERY.split(rest, maxsplit=1)[0]
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"[:500]
