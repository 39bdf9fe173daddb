"""Addresses as people and daemons write them: the one parser of all of them.

================================  ========================================================
``host``, ``10.0.0.1``            a name or an address
``host:port``
``::1``, ``fe80::1%eth0``         an IPv6 address alone, without brackets
``[::1]``, ``[::1]:port``         one in brackets
``<any of these>``                in angle brackets, and what follows a ``?`` in them is
                                  passed over, as in ``<10.0.0.1:9618?alias=x>``
================================  ========================================================

An IPv6 address has one spelling afterwards, the shortest.  It imports little: the tools load it.
"""

from __future__ import annotations

from _socket import AF_INET6, inet_ntop, inet_pton

__all__ = ["MOST_PORT", "BadAddress", "is_ipv6", "joined_address", "split_address"]

MOST_PORT = 65535
LONGEST_HOST = 255
_NEVER = frozenset(' \t\r\n\0<>[]@/?,;"\\\'')


class BadAddress(ValueError):
    """A text that is no address."""


def split_address(text: str) -> tuple[str, int | None]:
    """The host of an address, and its port; None: it names none.

    Raises:
        BadAddress: it is no address; says what one looks like.
    """
    inner = text.strip()
    if inner.startswith("<") and inner.endswith(">"):
        inner = inner[1:-1].partition("?")[0]
    if inner.startswith("["):
        host, closed, rest = inner[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise _bad(text)
        return _six(host, text), _port(rest[1:], text) if rest else None
    if inner.count(":") > 1:
        return _six(inner, text), None
    host, colon, port = inner.partition(":")
    if not host or len(host) > LONGEST_HOST or not host.isprintable() or not _NEVER.isdisjoint(host):
        raise _bad(text)
    return host, _port(port, text) if colon else None


def joined_address(host: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_ipv6(host: str) -> bool:
    """Whether this is an IPv6 address."""
    try:
        inet_pton(AF_INET6, host.partition("%")[0])
    except (OSError, ValueError):
        return False
    return True


def _six(host: str, text: str) -> str:
    address, percent, zone = host.partition("%")
    if not is_ipv6(address) or (percent and not zone.replace("-", "").replace(".", "").replace("_", "").isalnum()):
        raise _bad(text)
    return inet_ntop(AF_INET6, inet_pton(AF_INET6, address)) + percent + zone


def _port(text: str, whole: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_PORT)) and int(text) <= MOST_PORT):
        raise _bad(whole)
    return int(text)


def _bad(text: str) -> BadAddress:
    return BadAddress(f"{text[:200]!r} is no address; expected host or host:port, an IPv6 address with a port in "
                      "brackets ([::1]:9618)")
