"""Kerberos credential caches: what is kept of them, and that a hostile one is refused in words."""

from __future__ import annotations

import struct
from random import Random

import pytest

from condor_actors.cores.credd.credentials import CredentialRefused, Secret
from condor_actors.cores.credd.tickets import read_cache, secret_of, stored_cache

RENEWABLE, REALM = 0x00800000, b"R.EXAMPLE"
KEY = b"key-of-the-session"


def counted(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def principal(*name: bytes, realm: bytes = REALM) -> bytes:
    return struct.pack(">II", 1, len(name)) + counted(realm) + b"".join(map(counted, name))


ALICE = principal(b"alice")


def entry(server: bytes, *, client: bytes = ALICE, start: int = 100, end: int = 200, renew: int = 900,
          flags: int = RENEWABLE) -> bytes:
    return (client + server + struct.pack(">H", 18) + counted(KEY) + struct.pack(">4I", start, start, end, renew)
            + b"\0" + struct.pack(">I", flags) + struct.pack(">I", 1) + struct.pack(">H", 2) + counted(b"\x7f\0\0\1")
            + struct.pack(">I", 0) + counted(b"ticket") + counted(b""))


TGT = entry(principal(b"krbtgt", REALM))
HEADER = b"\x05\x04\x00\x0c" + struct.pack(">HHII", 1, 8, 0, 0)


def test_the_ticket_for_tickets_alone_is_kept() -> None:
    config = entry(principal(b"krb5_ccache_conf_data", b"pa_type", realm=b"X-CACHECONF:"), end=0)
    service = entry(principal(b"host", b"x"), end=800)
    ticket = read_cache(HEADER + ALICE + config + TGT + service, 150.0)
    assert (ticket.principal, ticket.start_s, ticket.ends_s, ticket.renew_until_s) == ("alice@R.EXAMPLE", 100, 200, 900)
    assert ticket.cache == b"\x05\x04\0\0" + ALICE + TGT
    assert read_cache(ticket.cache, 150.0) == ticket
    secret = Secret.from_bytes(secret_of(ticket).to_bytes())
    assert (stored_cache(secret.token), secret.ends_s) == (ticket.cache, 200.0)


@pytest.mark.parametrize(("more", "now_s", "is_due"), [
    ({}, 149.0, False), ({}, 150.0, True), ({"renew": 200}, 150.0, False), ({"flags": 0}, 199.0, False)])
def test_when_it_is_renewed(more: dict[str, int], now_s: float, is_due: bool) -> None:
    ticket = read_cache(HEADER + ALICE + entry(principal(b"krbtgt", REALM), **more), 100.0)
    assert ticket.wants_renewal(now_s) is is_due


@pytest.mark.parametrize(("data", "why"), [
    (b"", "is empty"),
    (b"\x05", "version 0, and 4"),
    (b"\x05\x03" + ALICE + TGT, "version 3, and 4"),
    (b"#!/bin/sh", "does not begin like one"),
    (HEADER + ALICE, "no ticket for other tickets"),
    (HEADER + principal(b"bob") + TGT, "no ticket for other tickets"),
    (HEADER + ALICE + entry(principal(b"krbtgt", b"OTHER")), "no ticket for other tickets"),
    (HEADER + struct.pack(">II", 1, 0xFFFFFFFF), "parts where 64"),
    (HEADER + principal(b"a" * 300) + TGT, "more than 256 bytes"),
    (HEADER + (evil := principal(b"a\n\x1b[2J")) + entry(principal(b"krbtgt", REALM), client=evil), "cannot be shown"),
    (HEADER + ALICE + TGT * 700, "more than 65536 bytes"),
])
def test_what_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(CredentialRefused, match=why) as refused:
        read_cache(data, 150.0)
    assert "kinit -f -r 7d, and then condor_store_cred add-krb" in refused.value.text
    assert KEY.decode() not in refused.value.text


def test_one_that_has_ended_is_refused() -> None:
    with pytest.raises(CredentialRefused, match="has run out"):
        read_cache(HEADER + ALICE + TGT, 200.0)


def test_no_byte_of_a_cache_breaks_the_reader() -> None:
    """Cut anywhere, and with any bytes changed: refused, or read to something that is read again alike."""
    random, whole = Random(1), HEADER + ALICE + TGT + entry(principal(b"host", b"x"))
    hostile = [whole[:length] for length in range(len(whole))]
    for _ in range(2000):
        changed = bytearray(whole)
        for _ in range(random.randrange(1, 4)):
            changed[random.randrange(len(changed))] = random.randrange(256)
        hostile.append(bytes(changed))
    for data in hostile:
        try:
            ticket = read_cache(data, 0.0)
        except CredentialRefused:
            continue
        assert read_cache(ticket.cache, 0.0) == ticket
