"""The pools that this one trusts, as a file that every machine of the pool has.

The central manager writes it (``condor_flock``); the other machines get it with the news of what is revoked.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from condor_actors.cores.flock_terms import read_terms, terms_entry
from condor_actors.durable import write_whole
from condor_actors.messages.flock_terms import FlockTerms
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import is_realm, node_abroad
from condor_actors.wire.nodes import BadNode, tls_node
from condor_actors.written_text import read_plain

__all__ = [
    "BadPartners", "Partner", "changed_partners", "gateways_in", "parse_partners", "partners_text", "read_partners",
]

MOST_PARTNERS = 256
MOST_GATEWAYS = 8
MOST_BYTES = 4 << 20


class BadPartners(ValueError):
    """A list of partners that cannot be read; names the file and what is wrong."""


@attrs.frozen(kw_only=True)
class Partner:
    """Another pool.

    Attributes:
        name: what it is called, by its authority and here.
        central: node of its central manager, as that pool names it (``<host:port>``).
        ca: the certificate of its authority (PEM).
        crl: its revocation list (PEM); empty: none is known.
        gateways: nodes of its gateways, as this pool dials them; none: it has none, or these dial.
        terms: on which it has machines here, and jobs from here.
    """

    name: str
    central: str
    ca: bytes
    crl: bytes = b""
    gateways: tuple[str, ...] = ()
    terms: FlockTerms = attrs.field(factory=FlockTerms)

    def known(self) -> KnownPartner:
        """As daemons know it: with nodes that this pool dials."""
        return KnownPartner(name=self.name, central=node_abroad(self.central, self.name),
                            gateways=tuple(node_abroad(each, self.name) for each in self.gateways),
                            terms=self.terms)


def parse_partners(data: bytes, where: str) -> tuple[Partner, ...]:
    """The partners in a list's text, by name.

    Raises:
        BadPartners: it is none; names ``where``.
    """
    if not data.strip():
        return ()
    try:
        if len(data) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES} bytes")
        listed = json.loads(data)
        if not isinstance(listed, dict) or len(listed) > MOST_PARTNERS:
            raise ValueError(f"expected an object with at most {MOST_PARTNERS} pools")
        return tuple(_partner(name, entry) for name, entry in sorted(listed.items()))
    except (ValueError, KeyError, TypeError, RecursionError, BadNode) as error:
        raise BadPartners(f"{where}: {error}; condor_flock writes it") from None


def _partner(name: str, entry: Mapping[str, Any]) -> Partner:
    if not is_realm(name):
        raise ValueError(f"{name!r} is no name of a pool that can be a partner")
    return Partner(name=name, central=str(tls_node(str(entry["central"]))), ca=str(entry["ca"]).encode("ascii"),
                   crl=str(entry.get("crl", "")).encode("ascii"), gateways=gateways_in(entry.get("gateways", [])),
                   terms=read_terms(entry.get("terms", {})))


def gateways_in(listed: Any) -> tuple[str, ...]:
    """The nodes in a list of gateways.

    Raises:
        ValueError: it is none, or a long one.
    """
    if not isinstance(listed, list) or len(listed) > MOST_GATEWAYS:
        raise ValueError(f"expected at most {MOST_GATEWAYS} gateways")
    return tuple(str(tls_node(str(each))) for each in listed)


def partners_text(partners: Mapping[str, Partner]) -> bytes:
    """The opposite of :func:`parse_partners`."""
    return json.dumps({name: {"central": each.central, "ca": each.ca.decode(), "crl": each.crl.decode(),
                              "gateways": list(each.gateways), "terms": terms_entry(each.terms)}
                       for name, each in sorted(partners.items())}, indent=1).encode() + b"\n"


def read_partners(path: Path) -> tuple[Partner, ...]:
    """The partners in a file; none where there is no file.

    Raises:
        BadPartners: it cannot be read.
    """
    try:
        return parse_partners(read_plain(path), str(path))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise BadPartners(f"{path}: {error.strerror}") from None


@contextlib.contextmanager
def changed_partners(path: Path) -> Iterator[dict[str, Partner]]:
    """The partners of a file by name, to be changed: what is there in the end is written, one process at a time.

    Raises:
        BadPartners: the file cannot be read.
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        before = {each.name: each for each in read_partners(path)}
        partners = dict(before)
        yield partners
        if partners != before:
            write_whole(path, partners_text(partners))
    finally:
        os.close(descriptor)
