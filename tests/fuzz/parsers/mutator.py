"""Makes inputs of honest ones: bits, bytes, numbers, cuts, repeats, splices, and words that parsers trip over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

__all__ = ["mutated"]

MOST_BYTES = 200_000
NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = [b"\0", b"\n", b"\r\n", b"...\n", b"(" * 300, b"[" * 300, b"{" * 300, b"$(a)", b"$(A:$(A))", b"-1",
         b"1e999", b"nan", b"../..", b"\xff\xfe", b"\xed\xa0\x80", b"9" * 400, b'"', b"\\", b"\x92",
         b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff",
         b"</c>", b"@=end\n", b"queue 9999999999\n", b"\x7f\x7f\x7f\x7f\x80"]


def _flip(data: bytearray, random: Random) -> None:
    at = random.randrange(len(data))
    data[at] ^= 1 << random.randrange(8)


def _byte(data: bytearray, random: Random) -> None:
    data[random.randrange(len(data))] = random.randrange(256)


def _cut(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data))
    del data[start:start + random.randrange(1, 1 + max(1, len(data) // 4))]


def _end(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data)):]


def _repeat(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data))
    piece = data[start:start + random.randrange(1, 64)]
    data[start:start] = piece * random.choice([1, 2, 7, 100])


def _number(data: bytearray, random: Random) -> None:
    size = random.choice([1, 2, 4, 8])
    value = random.choice(NUMBERS) & (256**size - 1)
    at = random.randrange(len(data))
    data[at:at + size] = value.to_bytes(size, random.choice(["little", "big"]))


def _word(data: bytearray, random: Random) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.choice(WORDS)


STEPS: list[Callable[[bytearray, Random], None]] = [_flip, _byte, _cut, _end, _repeat, _number, _word, _flip, _word]


def mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """An input made of one of the seeds, or of two."""
    data = bytearray(random.choice(seeds))
    if random.random() < 0.2:
        other = random.choice(seeds)
        data[random.randrange(len(data) + 1):] = other[random.randrange(len(other) + 1):]
    for _ in range(random.choice([1, 1, 2, 4, 8])):
        if data:
            random.choice(STEPS)(data, random)
    return bytes(data[:MOST_BYTES])
