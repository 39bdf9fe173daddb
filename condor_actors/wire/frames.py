"""What a link says: frames, each one MessagePack array in the byte string of one ``deliver``.

==========  ==============================================================  =====================================
frame       fields                                                          when
==========  ==============================================================  =====================================
``HELLO``   protocols, boot id, process name, public node, kinds, window    first, once, both ways
``BATCH``   how many envelopes were taken so far, envelopes                 whatever was queued in one iteration
``ACK``     how many envelopes were taken so far                            when nothing else carries the number,
                                                                            and every 40 s as a sign of life
``BYE``     code, text                                                      before hanging up
==========  ==============================================================  =====================================

An envelope is a flat array of nine values.  Frames from the other side are checked value by value.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgpack

from condor_actors.messages.codec import MAX_BODY_BYTES
from condor_actors.messages.envelope import Envelope
from condor_actors.records import NamedTuple

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

HELLO, BATCH, ACK, BYE = 0, 1, 2, 3

PROTOCOLS = (1,)
"""Versions of this protocol that we speak, best first."""

WINDOW = 2048
"""Envelopes that may be under way to us without our acknowledgement."""

ACTORS_LINE = b"condor actors 1\n"
ENROL_LINE = b"condor enrol 1\n"
TOKEN_LINE = b"condor token 1\n"
TOKEN_REQUEST_LINE = b"condor token-request 1\n"
GUEST_LINES = frozenset({ENROL_LINE, TOKEN_REQUEST_LINE})
"""What one may want who has proved no identity."""

MAX_BATCH_BYTES = 256 * 1024
"""A batch is cut here, unless a single envelope is larger."""

SHORT_BYTES = 16
MAX_NAME = 256
MAX_KINDS = 4096
ENVELOPE_OVERHEAD_BYTES = 2048


class BadFrame(ValueError):
    """A frame that no honest peer sends."""


class Hello(NamedTuple):
    """Who speaks at the other end of a link, in its own words: for negotiation and logs, never for rights.

    Attributes:
        protocols: versions it speaks.
        boot_id: differs each time the process starts.
        process: its name for logs.
        public_node: where it listens; empty: nowhere.
        kinds: (kind, version) of each message it understands; empty: all (a tool).
        window: envelopes we may send it without acknowledgement.
    """

    protocols: tuple[int, ...] = PROTOCOLS
    boot_id: str = ""
    process: str = ""
    public_node: str = ""
    kinds: frozenset[tuple[str, int]] = frozenset()
    window: int = WINDOW


def pack_hello(hello: Hello) -> bytes:
    """The frame of a hello."""
    fields = [HELLO, hello.protocols, hello.boot_id, hello.process, hello.public_node, _sorted(hello.kinds),
              hello.window]
    packed: bytes = msgpack.packb(fields)
    return packed


@lru_cache(maxsize=8)
def _sorted(kinds: frozenset[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(kinds))


def pack_batch(taken: int, envelopes: Iterable[Envelope]) -> bytes:
    """The frame of some envelopes."""
    rows = [
        (e.kind, e.version, e.body, e.message_id, e.to, e.reply_to, e.in_reply_to, float(e.deadline_s),
         e.trace_id)
        for e in envelopes
    ]
    packed: bytes = msgpack.packb((BATCH, taken, rows))
    return packed


@lru_cache(maxsize=1024)
def pack_ack(taken: int) -> bytes:
    """The frame of an acknowledgement, or of a sign of life."""
    packed: bytes = msgpack.packb((ACK, taken))
    return packed


def pack_bye(code: str, text: str) -> bytes:
    """The frame of a farewell."""
    packed: bytes = msgpack.packb((BYE, code, text[:1000]), unicode_errors="replace")
    return packed


def unpack(frame: bytes) -> tuple[Any, ...]:
    """The fields of a frame, checked: its number first, then what the table says.

    Raises:
        BadFrame: it is none.
    """
    if len(frame) <= SHORT_BYTES:
        return _unpack_short(frame)
    return _checked(_fields(frame))


@lru_cache(maxsize=1024)
def _unpack_short(frame: bytes) -> tuple[Any, ...]:
    """Of acknowledgements: an idle link says the same again and again."""
    return _checked(_fields(frame))


def _fields(frame: bytes) -> tuple[Any, ...]:
    try:
        fields = msgpack.unpackb(frame, raw=False, use_list=False, max_ext_len=0)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise BadFrame(f"not MessagePack ({error})") from None
    if type(fields) is not tuple or not fields:
        raise BadFrame("not an array")
    return fields


def _checked(fields: tuple[Any, ...]) -> tuple[Any, ...]:
    number, count = fields[0], len(fields)
    if number == BATCH and count == 3:
        _check_count(fields[1])
        if type(fields[2]) is not tuple:
            raise BadFrame("a batch without envelopes")
        return BATCH, fields[1], [_envelope(row) for row in fields[2]]
    if number == ACK and count == 2:
        _check_count(fields[1])
        return fields
    if number == HELLO and count == 7:
        return HELLO, _hello(fields)
    if number == BYE and count == 3 and type(fields[1]) is str and type(fields[2]) is str:
        return BYE, fields[1][:MAX_NAME], fields[2][:1000]
    raise BadFrame(f"unknown frame {number!r}")


def _check_count(value: Any) -> None:
    if type(value) is not int or value < 0:
        raise BadFrame("a count that is none")


_ROW_TYPES = (str, int, bytes, str, str, str, str, float, str)


def _envelope(row: Any) -> Envelope:
    if type(row) is not tuple or tuple(map(type, row)) != _ROW_TYPES:
        raise BadFrame("an envelope that is none")
    kind, version, body, message_id, to, reply_to, in_reply_to, deadline_s, trace_id = row
    if (len(body) > MAX_BODY_BYTES or not 0.0 <= deadline_s < 1e9
            or max(map(len, (kind, message_id, to, reply_to, in_reply_to, trace_id))) > MAX_NAME):
        raise BadFrame("an envelope with a field over its limit")
    return Envelope(kind=kind, version=version, body=body, message_id=message_id, to=to, reply_to=reply_to,
                    in_reply_to=in_reply_to, deadline_s=deadline_s, trace_id=trace_id)


def _hello(fields: tuple[Any, ...]) -> Hello:
    _, protocols, boot_id, process, public_node, kinds, window = fields
    texts = (boot_id, process, public_node)
    if type(protocols) is not tuple or any(type(each) is not int for each in protocols):
        raise BadFrame("a hello without protocols")
    if any(type(each) is not str or len(each) > MAX_NAME for each in texts):
        raise BadFrame("a hello with a name that is none")
    if type(kinds) is not tuple or len(kinds) > MAX_KINDS or type(window) is not int or not 1 <= window <= 1 << 20:
        raise BadFrame("a hello with kinds or a window that are none")
    try:
        known = _kinds(kinds)
    except TypeError:  # it cannot be hashed
        raise BadFrame("a hello with a kind that is none") from None
    return Hello(protocols=protocols, boot_id=boot_id, process=process, public_node=public_node, kinds=known,
                 window=window)


@lru_cache(maxsize=8)
def _kinds(kinds: tuple[Any, ...]) -> frozenset[tuple[str, int]]:
    """The kinds of a hello, checked; the daemons of one version all say the same."""
    for kind in kinds:
        if type(kind) is not tuple or tuple(map(type, kind)) != (str, int):
            raise BadFrame("a hello with a kind that is none")
    return frozenset(kinds)


def check_hello(hello: Hello) -> str:
    """Why we cannot speak with this peer, in words that both ends can show; empty: we can."""
    if not set(hello.protocols) & set(PROTOCOLS):
        theirs = ", ".join(map(str, hello.protocols))
        ours = ", ".join(map(str, PROTOCOLS))
        return f"{hello.process} speaks protocol {theirs}, and its peer {ours}: they have different releases"
    return ""
