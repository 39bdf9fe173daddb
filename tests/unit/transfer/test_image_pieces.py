"""Checkpoints in pieces: whole or not, zeros, growth, hostile lists."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from condor_actors.cores.checkpoint_seals import Generation, Seal, make_seal, seal_problem
from condor_actors.transfer.image_pieces import (
    PIECE_BYTES,
    ImageList,
    ImageSink,
    Piece,
    list_image,
    take_over,
    verify_image,
)
from condor_actors.transfer.streams import BadStream

_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")


def image(path: Path, segments: list[tuple[int, bytes]]) -> Path:
    """An ELF file with these segments (address, content), one behind the other."""
    table, body, offset = b"", b"", 0x1000
    for address, content in segments:
        table += _SEGMENT.pack(1, 6, offset, address, address, len(content), len(content), 4096)
        body += content
        offset += len(content)
    head = _ELF.pack(b"\x7fELF\x02\x01" + bytes(10), 2, 62, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    path.write_bytes((head + table).ljust(0x1000, b"\0") + body)
    return path


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def moved(wanted: ImageList, source: Path, target: Path, old: Path | None = None) -> list[int]:
    """Bring an image to another place; the numbers of the pieces that travelled."""
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    lacking = take_over(wanted, descriptor, str(old or ""), list_image(str(old)) if old else None)
    sink = ImageSink(wanted, descriptor, lacking)
    data = source.read_bytes()
    for number in lacking:
        piece = wanted.pieces[number]
        sink.take(struct.pack("<I", number) + data[piece.offset : piece.offset + piece.length], packed=False)
    assert sink.whole
    os.close(descriptor)
    return lacking


def test_an_image_arrives_whole(tmp_path: Path) -> None:
    source = image(tmp_path / "a", [(0x400000, noise(700_000, 1)), (0x800000, bytes(500_000) + noise(5000, 2))])
    wanted = list_image(str(source))
    moved(wanted, source, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == source.read_bytes()
    assert verify_image(str(tmp_path / "b"), wanted) == ""
    assert wanted.stored_bytes < 900_000  # zeros are no pieces
    assert ImageList.from_bytes(wanted.to_bytes()) == wanted


def test_only_what_changed_travels_though_everything_has_moved(tmp_path: Path) -> None:
    heap, stack = noise(1_000_000, 3), noise(300_000, 4)
    old = image(tmp_path / "old", [(0x400000, heap), (0x7000000, stack)])
    grown = heap[:-100] + noise(100_000, 5)
    new = image(tmp_path / "new", [(0x400000, grown), (0x7000000, stack)])
    wanted = list_image(str(new))
    lacking = moved(wanted, new, tmp_path / "to", old)
    assert (tmp_path / "to").read_bytes() == new.read_bytes()
    assert sum(wanted.pieces[number].length for number in lacking) < 3 * PIECE_BYTES


def test_any_damage_is_found(tmp_path: Path) -> None:
    source = image(tmp_path / "a", [(0x400000, noise(400_000, 6))])
    wanted = list_image(str(source))
    data = source.read_bytes()
    for place in (0, 0x1000, 0x1000 + 399_999):
        source.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert verify_image(str(source), wanted)
    source.write_bytes(data[:-1])
    assert "bytes are there" in verify_image(str(source), wanted)


def test_an_old_image_that_is_not_what_its_list_says_is_not_used(tmp_path: Path) -> None:
    source = image(tmp_path / "a", [(0x400000, noise(400_000, 7))])
    wanted = list_image(str(source))
    old = tmp_path / "old"
    old.write_bytes(bytes(source.stat().st_size))
    descriptor = os.open(tmp_path / "to", os.O_RDWR | os.O_CREAT, 0o600)
    assert take_over(wanted, descriptor, str(old), wanted) == list(range(len(wanted.pieces)))
    os.close(descriptor)


@pytest.mark.parametrize("pieces", [
    [(0, 10), (5, 10)], [(10, 5), (0, 5)], [(90, 20)], [(0, 0)], [(0, PIECE_BYTES + 1)], [(1 << 60, 10)],
])
def test_lists_that_lie_are_refused(pieces: list[tuple[int, int]]) -> None:
    data = ImageList(100, tuple(Piece(offset, length, bytes(32)) for offset, length in pieces)).to_bytes()
    with pytest.raises(BadStream):
        ImageList.from_bytes(data)
    with pytest.raises(BadStream):
        ImageList.from_bytes(data[:-1])


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_a_seal_travels_with_the_list_and_is_no_part_of_its_digest(count: int) -> None:
    pieces = tuple(Piece(number, 1, bytes([number]) * 32) for number in range(count))
    plain = ImageList(100, pieces)
    sealed = ImageList(100, pieces, Seal(Generation(3, 7), b"m" * 32))
    for each in (plain, sealed):
        back = ImageList.from_bytes(each.to_bytes())
        assert (back.pieces, back.size_bytes, back.seal) == (pieces, 100, each.seal)
    assert sealed.digest == plain.digest


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_a_sealed_list_that_is_cut_off_anywhere_is_none_or_not_the_jobs(count: int) -> None:
    """Where what is left has the length of a shorter list, it is another list, which nobody has sealed."""
    key, run = b"k" * 32, "7.0#3@q"
    plain = ImageList(100, tuple(Piece(number, 1, bytes([number]) * 32) for number in range(count)))
    whole = ImageList(100, plain.pieces, make_seal(key, run, 1, plain.digest)).to_bytes()
    found = ImageList.from_bytes(whole)
    assert seal_problem(key, run, found.digest, found.seal) == ""
    for length in range(len(whole)):
        try:
            found = ImageList.from_bytes(whole[:length])
        except BadStream:
            continue
        assert seal_problem(key, run, found.digest, found.seal), length


def test_pieces_that_lie_are_refused(tmp_path: Path) -> None:
    source = image(tmp_path / "a", [(0x400000, noise(1000, 8))])
    wanted = list_image(str(source))
    descriptor = os.open(tmp_path / "to", os.O_RDWR | os.O_CREAT, 0o600)
    sink = ImageSink(wanted, descriptor, [0])
    of_another = struct.pack("<I", 0) + noise(wanted.pieces[0].length, 9)
    for payload in (b"", b"\0\0\0", struct.pack("<I", 7) + b"x", struct.pack("<I", 0) + b"x", of_another):
        with pytest.raises(BadStream):
            sink.take(payload, packed=False)
    with pytest.raises(BadStream):
        sink.take(struct.pack("<I", 0) + b"no zstd", packed=True)
    os.close(descriptor)
