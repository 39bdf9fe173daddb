"""Checkpoints as pieces: what a whole one consists of, whether a file is it, and how it moves from machine to machine.

Theory: an image is cut where its segments begin and at every address that is a multiple of 128 KiB: so a region that
grows does not move the boundaries of the others, and one that is divided differently after a restart has the same.  A
piece is named by its SHA-256; zeros have none.  The list of pieces is written beside the image and is the only thing
that is trusted: a file is the checkpoint exactly when each piece of the list is in it.  That the list itself is one
that a starter host made, its seal says (:mod:`condor_actors.cores.checkpoint_seals`).
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import struct
from collections.abc import Iterable, Mapping, Sequence

import attrs
import zstandard

from condor_actors.cores.checkpoint_seals import SEAL_BYTES, Seal
from condor_actors.durable import write_at
from condor_actors.transfer.streams import BadStream

__all__ = ["ImageList", "ImageSink", "Piece", "list_image", "take_over", "verify_image"]

PIECE_BYTES = 128 << 10
_ONE = struct.Struct("<QI32s")
_SIZE = struct.Struct("<Q")
_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ZEROS = bytes(PIECE_BYTES)
_MAX_BYTES = 1 << 46


@attrs.frozen
class Piece:
    """``length`` bytes at ``offset`` whose SHA-256 is ``digest``."""

    offset: int
    length: int
    digest: bytes


@attrs.frozen
class ImageList:
    """What a checkpoint of ``size_bytes`` consists of; the rest is zeros.

    ``seal``: whose word that is; it is no part of the digest.
    """

    size_bytes: int
    pieces: tuple[Piece, ...]
    seal: Seal | None = attrs.field(default=None, eq=False)

    def to_bytes(self) -> bytes:
        """Its form on the wire and on disk."""
        return self._contents() + (self.seal.to_bytes() if self.seal is not None else b"")

    def _contents(self) -> bytes:
        return _SIZE.pack(self.size_bytes) + b"".join(_ONE.pack(p.offset, p.length, p.digest) for p in self.pieces)

    @classmethod
    def from_bytes(cls, data: bytes) -> ImageList:
        """The list in ``data``.

        Raises:
            BadStream: it is none, or its pieces overlap or lie outside.
        """
        left = (len(data) - _SIZE.size) % _ONE.size
        end = len(data) - SEAL_BYTES if left == SEAL_BYTES % _ONE.size else len(data)
        if end < _SIZE.size or (end - _SIZE.size) % _ONE.size:
            raise BadStream("a list of pieces that is cut off")
        (size,) = _SIZE.unpack_from(data)
        pieces = tuple([Piece(*fields) for fields in _ONE.iter_unpack(memoryview(data)[_SIZE.size : end])])
        seal = Seal.from_bytes(data[end:])
        end = 0
        for piece in pieces:
            if piece.offset < end or not 0 < piece.length <= PIECE_BYTES or piece.offset + piece.length > size:
                raise BadStream("pieces that overlap or lie outside of their image")
            end = piece.offset + piece.length
        if size > _MAX_BYTES:
            raise BadStream(f"a checkpoint of {size} bytes")
        return cls(size, pieces, seal)

    @property
    def digest(self) -> str:
        """The name of the whole: SHA-256 of the list, hexadecimal."""
        return hashlib.sha256(self._contents()).hexdigest()

    @property
    def stored_bytes(self) -> int:
        """Bytes that are not zeros."""
        return sum(piece.length for piece in self.pieces)


def _segments(descriptor: int, size: int) -> list[tuple[int, int, int]]:
    """(begin, end, phase) of the parts of the file; ``phase`` is where a part's first byte lies in a piece."""
    head = os.pread(descriptor, _ELF.size, 0)
    found: dict[int, int] = {0: 0}
    if len(head) == _ELF.size and head[:4] == b"\x7fELF":
        fields = _ELF.unpack(head)
        at, entry, count = fields[5], fields[9], fields[10]
        table = os.pread(descriptor, entry * count, at) if entry == _SEGMENT.size and at < size else b""
        whole = len(table) // _SEGMENT.size * _SEGMENT.size
        for each in _SEGMENT.iter_unpack(table[:whole]):
            if each[0] == 1 and 0 < each[2] < size:
                found[each[2]] = each[3] % PIECE_BYTES
    begins = sorted(found)
    return [(begin, end, found[begin]) for begin, end in itertools.pairwise([*begins, size])]


def _data_ranges(descriptor: int, start: int, end: int) -> Iterable[tuple[int, int]]:
    """Parts of a range that are no holes of the file."""
    at = start
    while at < end:
        try:
            begin = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            yield at, end
            return
        if begin >= end:
            return
        at = min(end, os.lseek(descriptor, begin, os.SEEK_HOLE))
        yield begin, at


def _cuts(descriptor: int, size: int) -> Iterable[tuple[int, int]]:
    """(offset, length) of everything that may hold data; holes are passed over a piece at a time."""
    for start, end, phase in _segments(descriptor, size):
        grid = start - phase  # addresses that are multiples of a piece are at this offset and every piece after it
        done = start
        for begin, stop in _data_ranges(descriptor, start, end):
            at = max(done, grid + (begin - grid) // PIECE_BYTES * PIECE_BYTES)
            while at < stop:
                length = min(PIECE_BYTES - (at - grid) % PIECE_BYTES, end - at)
                yield at, length
                at += length
            done = at


def list_image(path: str) -> ImageList:
    """What the file at ``path`` consists of.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        pieces = []
        for offset, length in _cuts(descriptor, size):
            data = os.pread(descriptor, length, offset)
            if data != _ZEROS[: len(data)]:
                pieces.append(Piece(offset, len(data), hashlib.sha256(data).digest()))
        return ImageList(size, tuple(pieces))
    finally:
        os.close(descriptor)


def verify_image(path: str, wanted: ImageList) -> str:
    """Why the file at ``path`` is not the checkpoint ``wanted``; empty when it is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return error.strerror or "it cannot be opened"
    try:
        size = os.fstat(descriptor).st_size
        if size != wanted.size_bytes:
            return f"{size} bytes are there, {wanted.size_bytes} were written"
        for piece in wanted.pieces:
            if hashlib.sha256(os.pread(descriptor, piece.length, piece.offset)).digest() != piece.digest:
                return f"the {piece.length} bytes at {piece.offset} are not what was written"
    except OSError as error:
        return error.strerror or "it cannot be read"
    finally:
        os.close(descriptor)
    return ""


def take_over(wanted: ImageList, target: int, old_path: str, old: ImageList | None) -> list[int]:
    """Write what an older image has into ``target`` (a descriptor, empty); the numbers of the pieces it lacks.

    Raises:
        OSError: ``target`` cannot be written.
    """
    known: Mapping[bytes, Piece] = {piece.digest: piece for piece in old.pieces} if old is not None else {}
    os.ftruncate(target, wanted.size_bytes)
    try:
        source = os.open(old_path, os.O_RDONLY | os.O_CLOEXEC) if known else -1
    except OSError:
        source = -1
    lacking: list[int] = []
    try:
        for number, piece in enumerate(wanted.pieces):
            have = known.get(piece.digest) if source >= 0 else None
            data = os.pread(source, have.length, have.offset) if have is not None else b""
            if have is not None and hashlib.sha256(data).digest() == piece.digest:
                write_at(target, data, piece.offset)
            else:
                lacking.append(number)
    finally:
        if source >= 0:
            os.close(source)
    return lacking


def encode_numbers(numbers: Sequence[int]) -> bytes:
    """Numbers of pieces as bytes."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


def decode_numbers(data: bytes, count: int) -> tuple[int, ...]:
    """Numbers of pieces below ``count``.

    Raises:
        BadStream: they are none.
    """
    if len(data) % 4:
        raise BadStream("numbers that are cut off")
    numbers = struct.unpack(f"<{len(data) // 4}I", data)
    if any(number >= count for number in numbers):
        raise BadStream("the number of a piece that the image does not have")
    return numbers


class ImageSink:
    """Takes the pieces of a checkpoint that were asked for into a descriptor.

    Args:
        wanted: the whole; target: where it goes; lacking: the numbers that were asked for.
    """

    def __init__(self, wanted: ImageList, target: int, lacking: Sequence[int]) -> None:
        self._wanted = wanted
        self._target = target
        self._lacking = set(lacking)
        self._decompressor = zstandard.ZstdDecompressor()

    @property
    def whole(self) -> bool:
        """Whether nothing is lacking."""
        return not self._lacking

    def take(self, payload: bytes, packed: bool) -> None:
        """One piece.

        Raises:
            BadStream: it is none that was asked for, or not what its name says.
            OSError: it cannot be written.
        """
        number = self._number_of(payload)
        piece = self._wanted.pieces[number]
        data = payload[4:]
        if packed:
            try:
                data = self._decompressor.decompress(data, max_output_size=PIECE_BYTES)
            except zstandard.ZstdError as error:
                raise BadStream(f"a piece that cannot be decompressed ({error})") from None
        if len(data) != piece.length or hashlib.sha256(data).digest() != piece.digest:
            raise BadStream("a piece that is not what its name says")
        write_at(self._target, data, piece.offset)
        self._lacking.discard(number)

    def drop(self, payload: bytes) -> None:
        """One piece that came too late: the image could not be written meanwhile.

        Raises:
            BadStream: it is none that was asked for.
        """
        self._lacking.discard(self._number_of(payload))

    def _number_of(self, payload: bytes) -> int:
        if len(payload) < 4:
            raise BadStream("a piece without a number")
        number = int.from_bytes(payload[:4], "little")
        if number not in self._lacking:
            raise BadStream("a piece that nobody asked for")
        return number
