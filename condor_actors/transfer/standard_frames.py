"""The frames between a running standard-universe job and its home (``condor standard 1``).

Theory: the shadow dials the starter host and shows the key of one run.  From then on the stream belongs to that run:
it carries the runtime's channels, one per member of the job's family, as they are, and between them the checkpoints
that travel out before the start and home afterwards.  A checkpoint travels as pieces that are named by their digest,
so the side that has an older one asks only for what is new.  Little-endian, as the channel itself.

======  ===================  ==============================================================================
letter  payload              means
======  ===================  ==============================================================================
``K``   run id, key          home: this is the run I belong to
``R``   offer                starter: it is here, and there is a place for its files; offer: empty, or ``OFFER``: the
                             stream may outlive its connections
``N``   text                 starter: no
``D``   bytes                of the channel of a member
``F``   –                    home: a member with this number is being born; its channel follows
``B``   number (8)           home: as ``F``, of the helper that a process whose channel goes straight home has asked for
``L``   number, label (8)    home: the channel of that helper is the connection with that label, and goes straight home
``E``   –                    the channel of a member has ended
``I``   size, pieces, seal   either: a checkpoint comes (member 1: an increment, from the starter to the last whole one
                             that went home, from home to the whole one that follows); pieces: offset (8), length (4),
                             SHA-256 (32) each; seal: run (8), number (8), MAC (32)
``W``   numbers (4 each)     answer to ``I``: these pieces are wanted
``P``   number (4), bytes    a piece
``Z``   number (4), zstd     a piece, compressed
``Y``   errno, text          the checkpoint is whole and kept (0), or not
``C``   run id, key, secret  home, on another connection: it is to be the channel; secret: 32 bytes, or none
``S``   run id, key, label   home, on another connection: it is to be the channel of a helper, which ``L`` names
``G``   run id, key, label,  home, on another connection: it is the numbered channel of the first process (label 0) or
        secret, number       of a helper, or goes on over this connection; so many bytes have come
``V``   –                    starter: the next checkpoint is to be the program's last act here
``A``   number (8)           either: so many frames have come; home's first one, right after ``R``, takes the offer
``O``   –                    either: the stream is over, and not just this connection
``U``   run id, key, number  home, on another connection: the stream goes on here; so many frames have come
======  ===================  ==============================================================================

**A stream that outlives its connections.**  Where home has taken the offer, the frames of each end after ``R`` (home's:
after ``K``) are numbered, but for ``A`` and ``O`` (:mod:`condor_actors.transfer.numbered_frames`).  When the connection
breaks, home dials again and says ``U``; the starter's answer is an ``A``, or ``N``.  Then both send what had not come.
The channels of such a run are numbered, too, but for those that the stream carries: ``G`` is answered in the same way,
and from then on the connection is neither TLS nor frames, but what the relays of both ends say to each other
(``native/relay/numbered.c``).
"""

from __future__ import annotations

import struct
from typing import Any

import msgpack

from condor_actors.transfer.streams import BadStream

__all__ = [
    "ARRIVED", "BORN", "CHANNEL", "CHANNEL_LINE", "DATA", "ENDED", "IMAGE", "INCREMENT", "KEPT", "KEY", "MEMBER", "NO",
    "NUMBERED", "OFFER", "OVER", "PACKED", "PIECE", "READY", "RESUMED", "RESUMED_LINE", "SPARE", "STANDARD_LINE",
    "STRAIGHT", "StreamReader", "VACATE", "WANTED", "arrived_frame", "fields_of", "first_frame", "frame",
    "message_frame", "number_of",
]

STANDARD_LINE = b"condor standard 1\n"
"""The first line of such a stream; ``office.services[STANDARD_LINE]`` of a post office serves it."""

CHANNEL_LINE = b"condor channel 1\n"
"""The first line of a connection that becomes the channel of a process: ``C``, ``S`` or ``G``, and the answer; from
then on it is neither TLS nor frames, but what the runtime and the native shadow say to each other."""

RESUMED_LINE = b"condor standard resumed 1\n"
"""The first line of a connection on which a stream goes on whose connection has broken: ``U`` and its answer, ``A`` or
``N``; then the frames of the stream."""

KEY, READY, NO, DATA, MEMBER, BORN, ENDED, IMAGE, WANTED, PIECE, PACKED, KEPT, VACATE, CHANNEL, SPARE, STRAIGHT = (
    ord(each) for each in "KRNDFBEIWPZYVCSL")
ARRIVED, OVER, RESUMED, NUMBERED = ord("A"), ord("O"), ord("U"), ord("G")
OFFER = b"\x02"
INCREMENT = 1
HEADER = struct.Struct("<IHB")
MAX_FRAME_BYTES = 1 << 20
MAX_FIRST_BYTES = 8 << 10
MAX_LIST_BYTES = 32 << 20
"""Of the lists of pieces: enough for 180 GiB."""

_SHAPES: dict[int, tuple[type, ...]] = {
    KEY: (str, str), CHANNEL: (str, str, bytes), SPARE: (str, str, int), NO: (str,), KEPT: (int, str),
    RESUMED: (str, str, int), NUMBERED: (str, str, int, bytes, int)}
_NUMBER = struct.Struct("<Q")


def frame(letter: int, payload: bytes = b"", member: int = 0) -> bytes:
    """The bytes of one frame."""
    return HEADER.pack(len(payload), member, letter) + payload


def message_frame(letter: int, *fields: Any) -> bytes:
    """A frame of ``K``, ``N`` or ``Y``."""
    payload: bytes = msgpack.packb(fields)
    return frame(letter, payload)


def arrived_frame(number: int) -> bytes:
    """A frame of ``A``."""
    return frame(ARRIVED, _NUMBER.pack(number))


def number_of(payload: bytes) -> int:
    """The number in a frame of ``A``.

    Raises:
        BadStream: there is none.
    """
    if len(payload) != _NUMBER.size:
        raise BadStream("an acknowledgement without a number")
    number: int = _NUMBER.unpack(payload)[0]
    return number


def first_frame(data: bytes) -> tuple[int, bytes, bytes] | None:
    """The first frame in ``data``, which is a small one: letter, payload, and what comes after it; None: not whole yet.

    Raises:
        BadStream: it is no small one.
    """
    if len(data) < HEADER.size:
        return None
    length, _, letter = HEADER.unpack_from(data)
    if length > MAX_FIRST_BYTES:
        raise BadStream(f"a first frame of {length} bytes")
    end = HEADER.size + length
    return (letter, data[HEADER.size : end], data[end:]) if len(data) >= end else None


def fields_of(letter: int, payload: bytes) -> tuple[Any, ...]:
    """The checked fields of such a frame.

    Raises:
        BadStream: they are not what the table says.
    """
    try:
        fields = msgpack.unpackb(payload, use_list=False, max_ext_len=0, max_str_len=4096)
    except (ValueError, msgpack.UnpackException) as error:
        raise BadStream(f"fields that cannot be read ({error})") from None
    if type(fields) is not tuple or tuple(map(type, fields)) != _SHAPES[letter]:
        raise BadStream(f"fields that frame {chr(letter)} does not have")
    return fields


class StreamReader:
    """Cuts a stream of bytes into frames: (letter, member, payload)."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """The whole frames in ``data`` and what was left before.

        Raises:
            BadStream: a frame over its limit.
        """
        buffer = self._buffer
        buffer += data
        found = []
        at = 0
        while len(buffer) - at >= HEADER.size:
            length, member, letter = HEADER.unpack_from(buffer, at)
            if length > (MAX_LIST_BYTES if letter in (IMAGE, WANTED) else MAX_FRAME_BYTES):
                raise BadStream(f"a frame of {length} bytes")
            start = at + HEADER.size
            if len(buffer) < start + length:
                break
            found.append((letter, member, bytes(memoryview(buffer)[start : start + length])))
            at = start + length
        del buffer[:at]
        return found
