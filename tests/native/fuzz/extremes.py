"""Frames with extreme arguments, one input for each call of the table and each operation of the channel.

Each input opens one descriptor of every kind and then asks the same call again and again, with one argument at a time
at the edges of its type.  What a search finds by luck, arithmetic with a number nobody expected, is found here each
time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from native.generate import Call, parse

REQUEST = struct.Struct("<IHH6q")
TABLE = Path(__file__).parents[3] / "native" / "syscalls.tbl"
OPERATIONS = (*range(1001, 1035), 1040, 1041)
REMOVED = {"sync", "syncfs", "fsync", "fdatasync"}  # heard on the whole machine
AT_HERE = -100
MODES = 8  # of the harness, see mode_of in shadow_frames.c: an input's size modulo this
TRIED = (0, 2, 3, 7)  # plain; foreseen; with an undo journal; with one and confined
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
EDGES = [
    0, 1, -1, AT_HERE, 4095, 4096, 5119, 5120, 1 << 20, (1 << 20) + 1, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32,
    1 << 62, HIGHEST, HIGHEST - 4096, HIGHEST - (1 << 32), LOWEST, LOWEST + 4096,
]  # fmt: skip
PATH = b"file\0"


def frame(call: int, arguments: tuple[int, ...], payload: bytes = b"", slot: int = 7) -> bytes:
    """Return one request of the thread in SLOT."""
    return REQUEST.pack(len(payload), slot, call, *(*arguments, 0, 0, 0, 0, 0, 0)[:6]) + payload


def prologue(size: int = 20_000) -> bytes:
    """Return requests that make a file of SIZE bytes, open 3 to 14, one of each kind, and hold the first one's file."""
    return b"".join(
        (
            frame(263, (AT_HERE, 5, 0), PATH),
            frame(257, (AT_HERE, 5, 0o102, 0o600), PATH),
            frame(1, (3, size, size), bytes(size)),
            frame(257, (AT_HERE, 5, 0, 0, 1 << 30 | 16384), PATH),
            frame(257, (AT_HERE, 2, 0o200000, 0), b".\0"),
            frame(293, (1, 0)),
            frame(53, (1, 1, 0, 1)),
            frame(290, (1, 0)),
            frame(291, (0,)),
            frame(283, (1, 0)),
            frame(319, (2, 0), b"m\0"),
            frame(233, (11, 1, 7, 1), struct.pack("<IQ", 1, 7)),
            frame(1011, (3, 0)),
        )
    )


BEFORE = {1009: frame(1008, (0,))}  # an image is only ended when one has begun


def sane(call: Call) -> tuple[list[int], bytes]:
    """Return arguments and a payload with which CALL is likely to reach the kernel."""
    arguments, payload = [], b""
    counts = {int(word[3:]) for word in call.arguments if word.startswith("in@")}
    for place, word in enumerate(call.arguments):
        if word == "fd":
            arguments.append(3)
        elif word == "at":
            arguments.append(AT_HERE)
        elif word == "path":
            arguments.append(5)
            payload += PATH
        elif word == "i":
            arguments.append(16 if place in counts else 20000)
        else:
            arguments.append(1)
            if word[:2] in ("in", "io") and "=" in word:
                payload += bytes(int(word.partition("=")[2]))
    return (arguments + [0] * 6)[:6], payload + bytes(64)


def extremes(call: Call) -> bytes:
    """Return the input for CALL: each argument at each edge, on each kind of descriptor."""
    arguments, payload = sane(call)
    data = prologue() + frame(289, (-1, 0xFFFF, 8, 0))  # 15: of signals
    data += frame(1034, (1, 0)) + frame(1034, (2, 16, 2, 1))  # 16: of a process
    for place in range(6):
        for edge in EDGES:
            for number in range(2, 17) if place and arguments[0] == 3 else [arguments[0]]:
                tried = [number, *arguments[1:]]
                tried[place] = edge
                data += BEFORE.get(call.number, b"") + frame(call.number, tuple(tried), payload)
    return data


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield a name and an input for every call that goes home and every operation, in some modes of the harness."""
    calls = [call for call in parse(TABLE) if call.how == "remote" and call.name not in REMOVED]
    calls += [Call(number, f"operation-{number}", "remote", ["fd", "i", "i"]) for number in OPERATIONS]
    for call in calls:
        data = extremes(call)
        for mode in TRIED:
            yield f"{call.name}-{mode}", data + bytes((mode - len(data)) % MODES)
