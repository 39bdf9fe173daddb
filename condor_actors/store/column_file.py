"""A file of columns: attributes of many records, each attribute together, so that a question reads only its own.

Theory: attributes of jobs repeat.  So a column is a list of the different texts that it has, and for each record the
number of its text; what depends on a few attributes is worked out once for each combination of their texts, with the
same code as for a whole ad.

===========================  =================================================================================
part                         has
===========================  =================================================================================
the first bytes              `MAGIC`, which is also the version of the form
blocks                       compressed: texts of a column, numbers of a column, or real numbers
index                        compressed MessagePack: facts of the file, and of each column where its blocks are
the last bytes               where the index begins, its length and check sum, `MAGIC` again
===========================  =================================================================================

A file is written beside its place, forced to the disk and moved there, so it is whole or not there.  Each part has a
check sum; a file that is not what it says raises :class:`BadColumns`, and its reader has the records themselves.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from array import array
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgpack
import zstandard

from condor_actors.durable import write_whole

__all__ = ["END", "BadColumns", "Column", "ColumnFile", "write_columns"]

MAGIC = b"columns1"
END = struct.Struct("<QII8s")
"""The last bytes."""
_LEVEL = 3
_ONE_BYTE = 256
MOST_BLOCK_BYTES = 1 << 30


class BadColumns(Exception):
    """A file that is torn, damaged, or of another version."""


@attrs.frozen
class Column:
    """An attribute of all records.

    Attributes:
        texts: the different ones; the first is of records that have none.
        codes: the number of its text for each record; bytes where there are few texts.
    """

    texts: Sequence[bytes]
    codes: Sequence[int]


def write_columns(path: Path, facts: Mapping[str, Any], columns: Mapping[str, Column],
                  reals: Mapping[str, array[float]], most_bytes: int, always: Collection[str] = ()) -> int:
    """Write a file, whole or not at all.

    Args:
        path: the file; its folder is made.
        facts: of the whole file; ``count`` says how many records it has, ``has_all_names`` whether ``columns`` has all.
        columns: by name; of those that do not fit into ``most_bytes`` together the largest are left out.
        reals: by name; they are always kept.
        most_bytes: that the columns may take.
        always: columns that are kept in any case and do not count.

    Returns:
        How many bytes the file has.

    Raises:
        OSError: the disk takes nothing.
    """
    packer = zstandard.ZstdCompressor(level=_LEVEL)
    blocks = _Blocks()
    kept: dict[str, tuple[int, bytes, bytes]] = {}
    left_bytes = most_bytes
    packed = [(name, len(column.texts), packer.compress(b"\n".join(column.texts[1:])),
               packer.compress(_numbers(column.codes))) for name, column in columns.items()]
    for name, count, texts, codes in sorted(packed, key=lambda each: (len(each[2]) + len(each[3]), each[0])):
        if name not in always:
            left_bytes -= len(texts) + len(codes)
        if name in always or left_bytes >= 0:
            kept[name] = (count, texts, codes)
    index = packer.compress(msgpack.packb({
        "facts": {**facts, "is_whole": len(kept) == len(columns)},
        "columns": {name: (count, blocks.place(texts), blocks.place(codes))
                    for name, (count, texts, codes) in kept.items()},
        "reals": {name: blocks.place(packer.compress(_as_little(numbers).tobytes()))
                  for name, numbers in reals.items()},
    }))
    end = END.pack(blocks.size, len(index), zlib.crc32(index), MAGIC)
    data = b"".join((*blocks.parts, index, end))
    write_whole(path, data, 0o600)
    return len(data)


class _Blocks:
    """What is in the file before its index; blocks that are the same are there once."""

    def __init__(self) -> None:
        self.parts = [MAGIC]
        self.size = len(MAGIC)
        self._places: dict[bytes, tuple[int, int, int]] = {}

    def place(self, block: bytes) -> tuple[int, int, int]:
        """Where a block is, how long it is, and its check sum."""
        found = self._places.get(block)
        if found is None:
            found = self._places[block] = (self.size, len(block), zlib.crc32(block))
            self.parts.append(block)
            self.size += len(block)
        return found


def _numbers(codes: Sequence[int]) -> bytes:
    if isinstance(codes, bytes):
        return codes
    if max(codes, default=0) < _ONE_BYTE:
        return bytes(codes)
    if list(codes) == list(range(1, len(codes) + 1)):
        return b""  # each record has a text of its own
    return _as_little(array("I", codes)).tobytes()


def _as_little(numbers: array[Any]) -> array[Any]:
    """On the disk the low byte comes first."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


class ColumnFile:
    """A file that is open for reading.

    Attributes:
        facts: what was said of the whole file.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read.
        BadColumns: it is damaged, or of another version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        try:
            size = os.fstat(self._file.fileno()).st_size
            if size < len(MAGIC) + END.size:
                raise BadColumns(f"{path}: it is too short")
            at, length, check, magic = END.unpack(os.pread(self._file.fileno(), END.size, size - END.size))
            if magic != MAGIC or os.pread(self._file.fileno(), len(MAGIC), 0) != MAGIC:
                raise BadColumns(f"{path}: it is of another version")
            try:
                index = msgpack.unpackb(self._block((at, length, check)))
                self.facts: dict[str, Any] = dict(index["facts"])
                self._columns: dict[str, Any] = dict(index["columns"])
                self._reals: dict[str, Any] = dict(index["reals"])
                self._count = int(self.facts["count"])
            except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
                raise BadColumns(f"{path}: its index cannot be read: {error}") from error
        except BaseException:
            self._file.close()
            raise

    def _block(self, place: Sequence[int]) -> bytes:
        at, length, check = place
        data = os.pread(self._file.fileno(), length, at)
        if len(data) != length or zlib.crc32(data) != check:
            raise BadColumns(f"{self._path}: it is damaged")
        try:
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_BLOCK_BYTES)
        except zstandard.ZstdError as error:
            raise BadColumns(f"{self._path}: {error}") from error

    @property
    def is_whole(self) -> bool:
        """Whether no attribute was left out: one without a column is in no record."""
        return bool(self.facts["is_whole"] and self.facts.get("has_all_names", True))

    def column(self, name: str) -> Column | None:
        """A column by its name; None: no record has it, or (see ``is_whole``) it was left out.

        Raises:
            BadColumns: it is damaged.
        """
        found = self._columns.get(name)
        if found is None:
            return None
        count, texts, codes = found
        known = [b"", *self._block(texts).split(b"\n")]
        numbers: Sequence[int] = self._block(codes)
        if not numbers:
            numbers = range(1, self._count + 1)
        elif len(numbers) != self._count:
            numbers = _as_little(array("I", bytes(numbers)))
        if len(known) != count or len(numbers) != self._count or max(numbers) >= count:
            raise BadColumns(f"{self._path}: {name} has not what the index says")
        return Column(known, numbers)

    def reals(self, name: str) -> array[float]:
        """Real numbers by their name.

        Raises:
            BadColumns: they are damaged, or not there.
        """
        if name not in self._reals:
            raise BadColumns(f"{self._path}: it has no {name}")
        numbers = _as_little(array("d", self._block(self._reals[name])))
        if len(numbers) != self._count:
            raise BadColumns(f"{self._path}: {name} has not what the index says")
        return numbers

    def close(self) -> None:
        """Give the file back."""
        self._file.close()
