"""What a program does with inotify, and what images say of its watches, sound and hostile, as frames.

See native/shadow/files/inotify.c and moved_inotify.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.native.fuzz.descriptions import DESCRIBE, TEXT, File, adopt, changed, description, edges, file
from tests.native.fuzz.extremes import EDGES, MODES, frame, prologue

READ, WRITE, CLOSE, IOCTL, CHMOD, UNLINK, POLL, EPOLL_WAIT = 0, 1, 3, 16, 268, 263, 1003, 1004
ADD, REMOVE, BEGIN, EPOLL_CTL, FIONREAD, AT_HERE, OPEN, MAKE = 254, 255, 294, 233, 0x541B, -100, 257, 258
NONBLOCK, CREATE_AND_WRITE, NO_FOLLOW, ONCE_MORE = 0o4000, 0o101, 0x2000000, 0x20000000
MODIFY, ATTRIB, DELETE_SELF, EVERYTHING, OVERFLOW = 0x2, 0x4, 0x400, 0xFFF, 0x4000
FIRST = 14  # the first descriptor behind the prologue's
KIND = 10
HEAD, WATCH, EVENT = struct.Struct("<iI"), struct.Struct("<iIIIQQ"), struct.Struct("<iIII")


def named(name: bytes, *arguments: int) -> tuple[tuple[int, ...], bytes]:
    """Return what a call with NAME after its first argument needs."""
    return (arguments[0], len(name), *arguments[1:]), name


def watched(name: bytes, mask: int, instance: int = FIRST) -> bytes:
    return frame(ADD, *named(name, instance, mask))


def life() -> bytes:
    """Return what watches, does things, hears of some of them, is described between, and hears of the others."""
    put = frame(OPEN, (AT_HERE, 9, CREATE_AND_WRITE, 0o600), b"./folder\0")
    touch = frame(CHMOD, (AT_HERE, 5, 0o600), b"file\0") + frame(CHMOD, (AT_HERE, 5, 0o640), b"file\0")
    hear = frame(READ, (FIRST, 4096, 4096))
    return b"".join((
        frame(BEGIN, (NONBLOCK,)), frame(MAKE, (AT_HERE, 5, 0o700), b"made\0"), watched(b"file\0", EVERYTHING),
        watched(b".\0", EVERYTHING), watched(b"file\0", MODIFY | ONCE_MORE), watched(b"none\0", MODIFY),
        watched(b"made\0", EVERYTHING), watched(b"/proc/self\0", MODIFY), watched(b"file\0", MODIFY, 3),
        frame(EPOLL_CTL, (10, 1, FIRST, 1), struct.pack("<IQ", 1, 7)), frame(EPOLL_CTL, (FIRST, 1, 5, 1), bytes(12)),
        frame(EPOLL_WAIT, (FIRST, 1, 0)), frame(EPOLL_WAIT, (10, 5, 0)), hear, put, touch,
        frame(IOCTL, (FIRST, FIONREAD, 4)), frame(DESCRIBE, (1 << 20,)), frame(DESCRIBE, (1 << 20,)),
        frame(READ, (FIRST, 4, 4)), frame(READ, (FIRST, 40, 40)), touch, frame(IOCTL, (FIRST, FIONREAD, 4)), hear, hear,
        frame(WRITE, (FIRST, 4, 4), b"none"), frame(REMOVE, (FIRST, 1)), frame(REMOVE, (FIRST, 1)),
        frame(UNLINK, (AT_HERE, 5, 0x200), b"made\0"), hear, hear, watched(b"file\0", MODIFY),
        frame(UNLINK, (AT_HERE, 5, 0), b"file\0"), frame(DESCRIBE, (1 << 20,)), frame(CLOSE, (FIRST,)),
        *(frame(BEGIN, (0,)) for _ in range(70)),
    ))  # fmt: skip


def watch(number: int, name: bytes = b"", mask: int = EVERYTHING, place: int = 0,
          changes: tuple[int, ...] = ()) -> bytes:  # fmt: skip
    """Return what a description says of one watch; CHANGES stand for its numbers."""
    return WATCH.pack(*(changes or (number, mask, place, len(name), 1, 1))) + name


def happened(number: int, mask: int, name: bytes = b"") -> bytes:
    return EVENT.pack(number, mask, 0, len(name)) + name


SOUND = [watch(1, b"/file\0"), watch(3, b"/\0"), watch(4, b"/none\0", DELETE_SELF), watch(5, place=2),
         watch(9, b"/file\0")]  # fmt: skip
EVENTS = happened(1, MODIFY) + happened(3, 0x100, b"name".ljust(16, b"\0")) + happened(-1, OVERFLOW)


def instance(watches: list[bytes] | None = None, events: bytes = EVENTS, head: tuple[int, ...] = ()) -> File:
    """Return a described instance."""
    told = SOUND if watches is None else watches
    return file(KIND, content=HEAD.pack(*(head or (10, len(told)))) + b"".join(told) + events)


NAMELESS = file(TEXT, content=b"deleted")


def seeds() -> dict[str, bytes]:
    """Return what a search should begin with, by name."""
    back = adopt(description([instance(), NAMELESS]))
    heard = frame(IOCTL, (3, FIONREAD, 4)) + frame(READ, (3, 4096, 4096)) * 2 + frame(DESCRIBE, (1 << 20,))
    return {"watches": prologue() + life(), "described watches": prologue() + back + heard + back}


def hostile() -> Iterator[bytes]:
    """Yield requests with one number at an edge."""
    for edge in EDGES:
        ready = frame(BEGIN, (edge,)) + frame(BEGIN, (NONBLOCK,))
        yield ready + frame(ADD, (FIRST, 5, edge), b"file\0") + frame(ADD, (edge, 5, MODIFY), b"file\0")
        yield ready + frame(ADD, (FIRST, edge, NO_FOLLOW | ATTRIB), b"file") + frame(REMOVE, (FIRST, edge))
        yield ready + frame(READ, (FIRST, edge, edge)) + frame(EPOLL_WAIT, (FIRST, edge, edge))
    for numbers in changed((1, EVERYTHING, 0, 6, 1, 1), "IIIIQQ"):
        signed = (numbers[0] - (1 << 32) if numbers[0] >> 31 else numbers[0], *numbers[1:])
        yield adopt(description([instance([watch(1, b"/file\0", changes=signed)]), NAMELESS]))
    for numbers in changed((10, len(SOUND)), "iI"):
        yield adopt(description([instance(head=numbers), NAMELESS]))
    for edge in edges("I"):
        yield adopt(description([instance(events=EVENTS + EVENT.pack(1, 2, 0, edge) + b"name")]))
    yield adopt(description([instance([watch(2, b"/file\0"), watch(1, b"/\0")])]))
    yield adopt(description([instance(events=happened(1, MODIFY) * 70_000)]))
    whole = description([instance(), NAMELESS])
    for end in range(0, len(whole), 3):
        yield adopt(whole[:end])


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield a name and an input for each number that can be wrong."""
    together = list(hostile())
    groups = seeds()
    groups |= {f"hostile {at}": prologue() + b"".join(together[at : at + 8]) for at in range(0, len(together), 8)}
    for name, data in groups.items():
        for mode in range(MODES) if not name.startswith("hostile") else (0, 7):
            yield f"watches {name} {mode}", data + bytes((mode - len(data)) % MODES)
