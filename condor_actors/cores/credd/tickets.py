"""Kerberos tickets: what a user's credential cache holds, and what is kept of it.

Theory: a cache is a user's file and hostile.  It is read whole, by the format's own lengths, and what is kept is
written anew: its owner's principal and the one ticket that other tickets are had for (krbtgt of his own realm).  So
neither the program that renews it nor a job's libraries see a byte that nobody has looked at, but the ticket itself,
which only its realm's server can read.

**Source**: MIT Kerberos documentation, "Credential cache file format", version 4; RFC 4120, section 5.3 (flags).
"""

from __future__ import annotations

import base64
import binascii
import struct

import attrs

from condor_actors.cores.credd.credentials import (
    MOST_SECRET_BYTES,
    TICKET,
    TICKET_REMEDY,
    CredentialRefused,
    Secret,
)

__all__ = ["Ticket", "read_cache", "secret_of", "stored_cache"]

MAGIC = b"\x05\x04"
NO_HEADER = b"\x00\x00"
RENEWABLE = 0x00800000
MOST_PARTS = 64
"""Of a principal's name, and addresses or authorization data of a ticket."""
MOST_TICKETS = 1000
MOST_NAME_BYTES = 256
_TGS = b"krbtgt"


@attrs.frozen(kw_only=True)
class Ticket:
    """A ticket for other tickets.

    Attributes:
        principal: whose, as people write it.
        start_s, ends_s: from and until when it counts, seconds since 1970.
        renew_until_s: until when it can be renewed; 0: it cannot.
        cache: a credential cache with it alone.
    """

    principal: str
    start_s: float
    ends_s: float
    renew_until_s: float
    cache: bytes = attrs.field(repr=False)

    @property
    def is_renewable(self) -> bool:
        """Whether a renewal would make it count longer."""
        return self.renew_until_s > self.ends_s

    def wants_renewal(self, now_s: float) -> bool:
        """Whether half of its life is over, and a renewal would make it count longer."""
        return self.is_renewable and self.ends_s - now_s <= (self.ends_s - self.start_s) / 2


class _Broken(Exception):
    """It is no cache; says why, and nothing of what it holds."""


@attrs.define
class _Bytes:
    data: bytes
    at: int = 0

    def take(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self.data):
            raise _Broken("it ends in the middle")
        taken, self.at = self.data[self.at:end], end
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def counted(self) -> bytes:
        return self.take(self.number(4))

    def parts(self) -> int:
        count = self.number(4)
        if count > MOST_PARTS:
            raise _Broken(f"it has {count} parts where {MOST_PARTS} are the most")
        return count


@attrs.frozen
class _Entry:
    """One ticket of a cache: for which service (realm, name), its times and flags, and its bytes."""

    client: tuple[bytes, ...]
    server: tuple[bytes, ...]
    times: tuple[int, int, int, int]
    flags: int
    data: bytes = attrs.field(repr=False)


def read_cache(data: bytes, now_s: float) -> Ticket:
    """The ticket of a credential cache (a file as kinit writes it).

    Args:
        data: the file.
        now_s: seconds since 1970.

    Raises:
        CredentialRefused: it is none, has no such ticket, or the ticket has ended; says nothing of what it holds but
            the principal.
    """
    ticket = _read(data)
    if ticket.ends_s <= now_s:
        raise CredentialRefused("denied", f"the Kerberos ticket of {ticket.principal} has run out; get another: "
                                          f"{TICKET_REMEDY}")
    return ticket


def _read(data: bytes) -> Ticket:
    if len(data) > MOST_SECRET_BYTES:
        raise CredentialRefused("invalid", f"a Kerberos credential cache of more than {MOST_SECRET_BYTES} bytes is not "
                                           f"kept; get one with fewer tickets: {TICKET_REMEDY}")
    if not data:
        raise CredentialRefused("invalid", f"the Kerberos credential cache is empty; get a ticket: {TICKET_REMEDY}")
    try:
        if data[:1] != MAGIC[:1]:
            raise _Broken("it does not begin like one")
        if data[:2] != MAGIC:
            raise _Broken(f"its format is version {data[1] if len(data) > 1 else 0}, and 4 is expected")
        return _ticket_of(data)
    except _Broken as error:
        raise CredentialRefused("invalid", f"that is no Kerberos credential cache that can be used: {error}; make one: "
                                           f"{TICKET_REMEDY}") from None


def _ticket_of(data: bytes) -> Ticket:
    stream = _Bytes(data, len(MAGIC))
    stream.take(stream.number(2))
    start = stream.at
    owner = _principal(stream)
    owner_data = data[start:stream.at]
    found: list[_Entry] = []
    for _ in range(MOST_TICKETS):
        if stream.at == len(data):
            break
        entry = _entry(stream)
        if entry.client == owner and entry.server == (owner[0], _TGS, owner[0]):
            found.append(entry)
    else:
        raise _Broken(f"it has more than {MOST_TICKETS} tickets")
    if not found:
        raise _Broken("it has no ticket for other tickets of its owner's own realm (krbtgt)")
    best = max(found, key=lambda entry: entry.times[2])
    authenticated, begins, ends, renew_until = best.times
    return Ticket(principal=_text(owner), start_s=float(begins or authenticated), ends_s=float(ends),
                  renew_until_s=float(renew_until) if best.flags & RENEWABLE else 0.0,
                  cache=MAGIC + NO_HEADER + owner_data + best.data)


def _principal(stream: _Bytes) -> tuple[bytes, ...]:
    """The realm, and the parts of the name."""
    stream.take(4)  # the kind of name
    count = stream.parts()
    name = tuple(stream.counted() for _ in range(count + 1))
    if any(len(part) > MOST_NAME_BYTES for part in name):
        raise _Broken(f"a part of a name has more than {MOST_NAME_BYTES} bytes")
    return name


def _entry(stream: _Bytes) -> _Entry:
    start = stream.at
    client, server = _principal(stream), _principal(stream)
    stream.take(2)  # the kind of key
    stream.counted()
    times = struct.unpack(">4I", stream.take(16))
    stream.take(1)  # whether its key is another ticket's
    flags = stream.number(4)
    for _ in range(2):  # addresses, authorization data
        for _ in range(stream.parts()):
            stream.take(2)
            stream.counted()
    stream.counted()
    stream.counted()
    return _Entry(client, server, times, flags, stream.data[start:stream.at])


def _text(name: tuple[bytes, ...]) -> str:
    """A principal, of which every character can be shown."""
    realm, *parts = (part.decode("utf-8", "replace") for part in name)
    text = f"{'/'.join(parts)}@{realm}"
    if len(text) > MOST_NAME_BYTES or not text.isprintable():
        raise _Broken(f"its principal cannot be shown; expected up to {MOST_NAME_BYTES} printable characters")
    return text


def secret_of(ticket: Ticket) -> Secret:
    """A ticket as it is sealed."""
    return Secret(form=TICKET, token=base64.b64encode(ticket.cache).decode("ascii"), ends_s=ticket.ends_s)


def stored_cache(token: str) -> bytes:
    """The cache that `secret_of` has packed.

    Raises:
        CredentialRefused: it is none.
    """
    try:
        return base64.b64decode(token, validate=True)
    except (ValueError, binascii.Error):
        raise CredentialRefused("internal", "the ticket that is kept is no credential cache") from None
