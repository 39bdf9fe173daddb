"""Reads a tar file or a layer that is compressed with zstd, as if it were not.

Theory: the reader of tar files goes forward, and back where an archive lists its layers in another order, as it does
with gzip: a seek backwards begins anew.  Output is made in bounded pieces, whatever the input promises, and a frame
whose window takes more memory than :data:`MOST_WINDOW_BYTES` is refused.  The library ends quietly where its input
breaks off, so the headers of all blocks are walked before anything is unpacked.
"""

from __future__ import annotations

import io
import os
import struct
from typing import IO

import zstandard

__all__ = ["MOST_WINDOW_BYTES", "ZstdStream", "is_zstd"]

MAGIC = 0xFD2FB528
SKIPPED_MAGIC = 0x184D2A50
"""The last four bits are free."""
MAGIC_BYTES = 4
MOST_HEADER_BYTES = 18
BLOCK_HEADER_BYTES = 3
CHECKSUM_BYTES = 4
REPEATED = 1
"""The type of a block that is one byte, repeated."""
MOST_WINDOW_BYTES = 128 << 20
"""What the program zstd takes by itself, and no ordinary level of it exceeds."""
PIECE_BYTES = 1 << 20


def is_zstd(stream: IO[bytes]) -> bool:
    """Whether a stream begins with a frame of zstd; it stands at its beginning before and afterwards."""
    begin = stream.read(MAGIC_BYTES)
    stream.seek(0)
    return len(begin) == MAGIC_BYTES and (_number(begin) == MAGIC or _number(begin) & ~15 == SKIPPED_MAGIC)


def _number(four: bytes) -> int:
    return int(struct.unpack("<I", four)[0])


def _taken(stream: IO[bytes], size_bytes: int) -> bytes:
    data = stream.read(size_bytes)
    if len(data) < size_bytes:
        raise EOFError("its compressed data is cut short")
    return data


def _pass_blocks(stream: IO[bytes], place: int, end: int) -> int:
    """Where the frame ends that begins at a place.

    Raises:
        EOFError: it does not. zstandard.ZstdError: it has no header.
    """
    stream.seek(place)
    header = stream.read(MOST_HEADER_BYTES)
    place += zstandard.frame_header_size(header)
    last = False
    while not last:
        stream.seek(place)
        said = int.from_bytes(_taken(stream, BLOCK_HEADER_BYTES), "little")
        last, kind, size_bytes = bool(said & 1), said >> 1 & 3, said >> 3
        place += BLOCK_HEADER_BYTES + (1 if kind == REPEATED else size_bytes)
    if zstandard.get_frame_parameters(header).has_checksum:
        place += CHECKSUM_BYTES
    if place > end:
        raise EOFError("its compressed data is cut short")
    return place


def _check_whole(stream: IO[bytes]) -> None:
    """Walk all frames.

    Raises:
        EOFError: the last one does not end. zstandard.ZstdError: there is something else between them.
    """
    end, place = stream.seek(0, os.SEEK_END), 0
    while place < end:
        stream.seek(place)
        magic = _number(_taken(stream, MAGIC_BYTES))
        if magic & ~15 == SKIPPED_MAGIC:
            place += 2 * MAGIC_BYTES + _number(_taken(stream, MAGIC_BYTES))
            if place > end:
                raise EOFError("its compressed data is cut short")
        else:
            place = _pass_blocks(stream, place, end)
    stream.seek(0)


class ZstdStream(io.RawIOBase):
    """What a compressed stream has in it.

    Args:
        source: it can be sought in, and stays open.

    Raises:
        EOFError: it is cut short. zstandard.ZstdError: it is no frames of zstd.
    """

    def __init__(self, source: IO[bytes]) -> None:
        super().__init__()
        _check_whole(source)
        self._source = source
        self._begin()

    def _begin(self) -> None:
        self._source.seek(0)
        self._place = 0
        self._reader = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW_BYTES).stream_reader(
            self._source, read_across_frames=True, closefd=False)

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def seekable(self) -> bool:
        """Forward by reading, backward by beginning anew."""
        return True

    def read(self, size: int = -1) -> bytes:
        """As many bytes as were asked for, fewer at the end only.

        Raises:
            zstandard.ZstdError: they cannot be unpacked.
        """
        if size < 0:
            raise io.UnsupportedOperation("all of a stream is never read at once")
        data = bytearray()
        while len(data) < size and (piece := self._reader.read(min(size - len(data), PIECE_BYTES))):
            data += piece
        self._place += len(data)
        return bytes(data)

    def tell(self) -> int:
        """The place in what was unpacked, in bytes."""
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place from the beginning, or at most to the end; see :meth:`read` for errors."""
        if whence != os.SEEK_SET or offset < 0:
            raise io.UnsupportedOperation("places are counted from the beginning")
        if offset < self._place:
            self._begin()
        while self._place < offset and self.read(min(offset - self._place, PIECE_BYTES)):
            pass
        return self._place
