"""The frames of a bulk connection (``condor bulk 1``).

Theory: the dialling side asks, one request after the other; the other side answers in the same order.  Each request
shows a *transfer key*, the right to read and write certain blobs for one run.  Data goes in blocks, each compressed on
its own when that makes the whole faster, so a transfer can break anywhere and go on from its offset.

======  ===============================  =====================================================
letter  payload                          means
======  ===============================  =====================================================
``G``   key, digest, offset              get: send me this blob from ``offset``
``P``   key, digest, size                put: I want to give you this blob
``H``   size                             answer to ``G``: it comes, so long in all
``S``   offset                           answer to ``P``: send, from ``offset``
``Y``   –                                answer to ``P``: I have it (before or after the data)
``N``   code, text                       answer to both: no
``D``   bytes                            a block
``Z``   zstd frame                       a block, compressed
``E``   –                                the end of the blocks
======  ===============================  =====================================================
"""

from __future__ import annotations

import struct
import time
from typing import Any

import msgpack
import zstandard

BULK_LINE = b"condor bulk 1\n"
"""The first line of a bulk connection; ``office.services[BULK_LINE]`` of a post office serves it."""

BLOCK_BYTES = 256 * 1024
MAX_FRAME_BYTES = BLOCK_BYTES + 64 * 1024
HEADER = struct.Struct(">IB")

GET, PUT, HEAD, SEND, HAVE, NO, DATA, ZDATA, END = (ord(letter) for letter in "GPHSYNDZE")
SHAPES: dict[int, tuple[type, ...]] = {
    GET: (str, str, int), PUT: (str, str, int), HEAD: (int,), SEND: (int,), HAVE: (), NO: (str, str), END: (),
}
SILENCE_S = 120.0
"""A bulk connection with a transfer on which nothing moves for so long is cut."""


class BadStream(ValueError):
    """Bytes that no honest peer sends."""


def frame(letter: int, *fields: Any) -> bytes:
    """The bytes of a control frame."""
    payload: bytes = msgpack.packb(fields)
    return HEADER.pack(len(payload), letter) + payload


class FrameReader:
    """Cuts a stream of bytes into frames, without copying a byte twice."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Whole frames in ``data`` and what was left before: (letter, payload).

        Raises:
            BadStream: a frame over its limit.
        """
        buffer = self._buffer
        buffer += data
        found = []
        position = 0
        while len(buffer) - position >= HEADER.size:
            length, letter = HEADER.unpack_from(buffer, position)
            if length > MAX_FRAME_BYTES:
                raise BadStream(f"a frame of {length} bytes")
            start = position + HEADER.size
            if len(buffer) < start + length:
                break
            found.append((letter, bytes(memoryview(buffer)[start : start + length])))
            position = start + length
        del buffer[:position]
        return found


def fields_of(letter: int, payload: bytes) -> tuple[Any, ...]:
    """The checked fields of a control frame.

    Raises:
        BadStream: they are not what the table says.
    """
    shape = SHAPES.get(letter)
    if shape is None:
        raise BadStream(f"frame {letter:#x}")
    try:
        fields = msgpack.unpackb(payload, use_list=False, max_ext_len=0, max_str_len=4096)
    except (ValueError, msgpack.UnpackException) as error:
        raise BadStream(f"fields that cannot be read ({error})") from None
    if type(fields) is not tuple or tuple(map(type, fields)) != shape:
        raise BadStream(f"fields that frame {chr(letter)} does not have")
    if any(type(field) is int and field < 0 for field in fields):
        raise BadStream("a negative number")
    return fields


class Packer:
    """Decides, block by block, whether compression makes a transfer faster.

    Theory: a block takes ``raw / link`` seconds as it is and about ``max(raw / cpu, packed / link)`` compressed, since
    the next block is compressed while this one travels.  ``cpu`` and the ratio are measured on blocks of this very file
    (every sixteenth is tried again), ``link`` is what this connection carried lately.
    """

    def __init__(self, *, local: bool) -> None:
        self._local = local
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._link_rate = 0.0
        self._worth = False
        self._blocks = 0

    def sent(self, size_bytes: int, span_s: float) -> None:
        """Note what the link carried in a while."""
        if span_s > 0.0:
            rate = size_bytes / span_s
            self._link_rate = rate if not self._link_rate else 0.7 * self._link_rate + 0.3 * rate

    def new_file(self) -> None:
        """The next block is of another file."""
        self._blocks = 0

    def pack(self, block: bytes) -> bytes:
        """The frame of a block."""
        probe = self._blocks % 16 == 0
        self._blocks += 1
        if not self._local and (self._worth or probe):
            began_s = time.thread_time()  # not what others on this machine take
            packed = self._compressor.compress(block)
            cpu_s = time.thread_time() - began_s
            if probe:
                self._worth = self._pays(len(block), len(packed), cpu_s)
            if self._worth and len(packed) < len(block):
                return HEADER.pack(len(packed), ZDATA) + packed
        return HEADER.pack(len(block), DATA) + block

    def _pays(self, raw: int, packed: int, cpu_s: float) -> bool:
        link_rate = self._link_rate or 100e6
        return max(cpu_s, packed / link_rate) < 0.9 * raw / link_rate


def unpack_block(letter: int, payload: bytes, decompressor: zstandard.ZstdDecompressor) -> bytes:
    """The content of a block.

    Raises:
        BadStream: it is none, or larger than a block.
    """
    if letter == DATA:
        return payload
    try:
        if not 0 <= zstandard.frame_content_size(payload) <= BLOCK_BYTES:
            raise BadStream("a block that does not say its size, or grows over its limit")
        content: bytes = decompressor.decompress(payload, max_output_size=BLOCK_BYTES)
    except zstandard.ZstdError as error:
        raise BadStream(f"a block that cannot be decompressed ({error})") from None
    return content
