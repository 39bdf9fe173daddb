"""What an image says of its open files, sound and hostile, as frames for the shadow (see described.h).

No search finds its way into a description by luck: it begins with a number of 32 bits.  Here are sound ones of every
kind of file, and then each of their numbers at the edges of its type, all cut short at every byte, and contents of
nameless files whose pieces lie.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.native.fuzz.extremes import EDGES, HIGHEST, MODES, frame, prologue

PWRITE, DESCRIBE, ADOPT = 18, 1006, 1007
CLOSE, FCNTL, GETLK, SETLK, OFD_SETLK = 3, 72, 5, 6, 37
UNANSWERED = 0xFFFF  # slot of a request that wants no answer
MAGIC, OLDER_MAGIC, GENERATION = 0x47534443, 0x46534443, 1
HEAD = struct.Struct("<6IQ")
FILE = struct.Struct("<4BIiIqII")
ENTRY = struct.Struct("<3I")
PIECE = struct.Struct("<2q")
LOCK = struct.Struct("<2q2I")
ASKED = struct.Struct("<2h4x2qi4x")  # struct flock
PLAIN, STANDARD, PIPE, PAIR, EVENT, EPOLL, TIMER, TEXT, _, RECORDS = range(10)
PROCESS, OWNERS = 14, 16
TO_BE_NAMED, TELLS = 0o20200000, 0o20000  # O_TMPFILE, O_ASYNC
PATH_SIZE, CONTENT_SIZE = 8, 9  # places among a file's numbers
FIRST_HANDLE, FIRST_LOCKED, MOST_LOCKED = 4096, 5120, 1024
A_SECOND = struct.pack("<4q", 0, 0, 1, 0)

File = tuple[tuple[int, ...], bytes, bytes]
Pieces = list[tuple[int, int, bytes]]


def pieces(size: int, parts: Pieces) -> bytes:
    """Return the content of a nameless file of SIZE bytes: PARTS are (place, the size it says it has, bytes)."""
    return struct.pack("<q", size) + b"".join(PIECE.pack(at, told) + data for at, told, data in parts)


def file(kind: int, number: int = 0, end: int = 0, flags: int = 2, sparse: int = 0, offset: int = 0,
         path: bytes = b"", content: bytes = b"", mode: int = 0o100600) -> File:  # fmt: skip
    """Return the numbers, the path and the content of one open file."""
    return (kind, end, 0, sparse, number, flags, mode, offset, len(path), len(content)), path, content


A_PIPE = 4096 << 32 | 1
WHICH = struct.pack("<2Q", 5, 6)
WHICH_AND_WHEN = struct.pack("<2Q4q", 5, 7, 1, 2, 3, 4)
NAMELESS = pieces(1 << 20, [(0, 5, b"first"), (65536, 6, b"second"), ((1 << 20) - 4, 4, b"last")])
FILES = {
    "plain": file(PLAIN, path=b"file\0", offset=7),
    "name only": file(PLAIN, path=b"/file\0", flags=0o10000000),
    "standard": file(STANDARD, number=1),
    "pipe to read": file(PIPE, number=1, content=b"in the pipe"),
    "pipe to write": file(PIPE, number=1, end=1),
    "one of a pair": file(PAIR, number=2, content=b"in one direction"),
    "the other": file(PAIR, number=2, end=1, content=b"in the other"),
    "event counter": file(EVENT, offset=3),
    "epoll set": file(EPOLL, content=struct.pack("<IIQ", 3, 1, 99) + struct.pack("<IIQ", 7, 5, 1)),
    "timer": file(TIMER, offset=1, content=A_SECOND),
    "nameless": file(TEXT, sparse=1, offset=9, flags=0o2002, content=NAMELESS),
    "nameless, one of several": file(TEXT, sparse=2, offset=3, content=WHICH_AND_WHEN + NAMELESS),
    "the same again": file(TEXT, sparse=2, flags=0, content=WHICH_AND_WHEN + NAMELESS),
    "deleted pipe": file(PLAIN, sparse=1, offset=A_PIPE, mode=0o10600, content=WHICH + b"in it"),
    "its other end": file(PLAIN, sparse=1, flags=1, mode=0o10600, offset=A_PIPE, content=WHICH + b"in it"),
    "deleted directory": file(PLAIN, sparse=1, flags=0, mode=0o40700, path=b"/was (deleted)\0", content=bytes(16)),
    "named pipe": file(PLAIN, path=b"pipe\0", flags=0, offset=A_PIPE, mode=0o10600, content=bytes(16) + b"in it"),
    "of a process that ended": file(PLAIN, path=b"/proc/4194305/stat\0", flags=0),
    "to be named": file(TEXT, sparse=2, flags=TO_BE_NAMED | 2, path=b".\0", content=WHICH_AND_WHEN + NAMELESS),
    "nameless and whole": file(TEXT, content=b"as it was"),
    "process": file(PROCESS, offset=2),
    "process that has ended": file(PROCESS, flags=0o4002, offset=1 << 32 | 3),
    "records of the first": file(RECORDS, path=b"file\0", content=LOCK.pack(0, 9, 0, 1) + LOCK.pack(20, -1, 0, 0)),
}  # fmt: skip


def description(files: list[File], head: tuple[int, ...] = (), entries: list[tuple[int, int, int]] | None = None,
                directory: bytes = b"/\0") -> bytes:  # fmt: skip
    """Return a description of FILES; unless ENTRIES say otherwise each has a descriptor, and the first one a handle."""
    if entries is None:
        entries = [(3 + i, i, i % 2) for i in range(len(files))] + [(FIRST_HANDLE, 0, 0)] * bool(files)
    handles = sum(descriptor >= FIRST_HANDLE for descriptor, _, _ in entries)
    sound = (MAGIC, len(files), len(entries) - handles, handles, 0o22, len(directory), GENERATION)
    return b"".join(
        (
            HEAD.pack(*(head or sound)),
            directory,
            *(FILE.pack(*numbers) + path + content for numbers, path, content in files),
            *(ENTRY.pack(*entry) for entry in entries),
        )
    )


def adopt(data: bytes) -> bytes:
    """Return the request to open again what DATA describes."""
    return frame(ADOPT, (), data)


def edges(layout: str) -> list[int]:
    """Return the edges that fit in a number of LAYOUT, a letter of struct's."""
    bits = 8 * struct.calcsize(f"<{layout}")
    signed = layout.islower()
    values = {edge & ((1 << bits) - 1) for edge in EDGES}
    return sorted(value - (1 << bits) if signed and value >> (bits - 1) else value for value in values)


def changed(numbers: tuple[int, ...], layouts: str) -> Iterator[tuple[int, ...]]:
    """Yield NUMBERS with one of them at a time at each edge of its type."""
    for place, layout in enumerate(layouts):
        for edge in edges(layout):
            yield (*numbers[:place], edge, *numbers[place + 1 :])


def hostile_pieces() -> Iterator[bytes]:
    """Yield contents of nameless files whose sizes and places do not fit."""
    for edge in edges("q"):
        yield pieces(edge, [(0, 4, b"data")])
        yield pieces(edge, [(edge, 4, b"data")])
        yield pieces(4096, [(edge, 4, b"data")])
        yield pieces(4096, [(0, edge, b"data"), (8, 4, b"data")])
        yield pieces(4096, [(0, 4, b"data"), (8, edge, b"")])
    for cut in range(len(NAMELESS)):
        yield NAMELESS[:cut]


def locks(place: int = 0) -> bytes:
    """Return requests for record locks at PLACE of descriptors, by each way to say where it is, and of closing one."""
    fits = max(min(place, HIGHEST), -HIGHEST)
    asked = [
        frame(FCNTL, (fd, command, 32), ASKED.pack(kind, whence, fits, fits, 0))
        for fd in (3, 4, 5) for command in (GETLK, SETLK, OFD_SETLK) for kind in (0, 1, 2, 3) for whence in (0, 1, 2)
    ]
    return b"".join((*asked, frame(DESCRIBE, (1 << 20,)), frame(FCNTL, (3, 0, 40)), frame(CLOSE, (3,))))


def in_pipes_and_directories() -> bytes:
    """Return requests that have a named pipe, a deleted one, and a deleted directory for its own, described."""
    asked = (
        frame(259, (-100, 5, 0o10600), b"pipe\0"),
        frame(257, (-100, 5, 0o2, 0), b"pipe\0"),
        frame(1, (15, 4, 4), b"pipe"),
        frame(257, (-100, 5, 0o1, 0), b"pipe\0"),
        frame(1041, (15,)),
        frame(1040, (15, 0)),
        frame(1040, (0, 0)),
        frame(1040, (3, 2)),
        frame(263, (-100, 5, 0), b"pipe\0"),
        frame(258, (-100, 7, 0o700), b"folder\0"),
        frame(80, (7,), b"folder\0"),
        frame(263, (-100, 5, 0x200), b"../folder\0"),
    )
    return b"".join((prologue(100), *asked, frame(DESCRIBE, (1 << 20,)), frame(DESCRIBE, (600,))))


OWNED = struct.Struct("<Ii")


def owned(*owners: tuple[int, int]) -> bytes:
    """Return the request to open again a pipe whose ends tell by signals; OWNERS say of which file they are whose."""
    ends = [file(PIPE, number=1, flags=TELLS), file(PIPE, number=1, end=1, flags=TELLS | 1)]
    said = file(OWNERS, content=b"".join(OWNED.pack(*each) for each in owners))
    return adopt(description([*ends, said], entries=[(3, 0, 0), (4, 1, 0)]))


def ready() -> bytes:
    """Return requests for signals of descriptors that are ready, some that make them so, and late names for a file."""
    on, off, ioctl, link = struct.pack("<i", 1), bytes(4), 16, 265
    tells, owns, told = 0x5452, 0x8902, 0x8903
    asked = [frame(ioctl, (fd, tells, 0), on) for fd in (3, 6, 8, 10)] + [frame(FCNTL, (7, 4, TELLS | 1))]
    asked += [frame(FCNTL, (fd, 8, owner)) for fd in (6, 8) for owner in (*EDGES, 2, -2, 1)]
    asked += [frame(FCNTL, (6, 15, 8), struct.pack("<2i", kind, who)) for kind in (0, 1, 2, 3) for who in (-1, 0, 1, 2)]
    asked += [frame(FCNTL, (6, command, 8)) for command in (9, 10, 11, 15, 16, 1024, 1025)]
    asked += [frame(ioctl, (8, owns, 0), on), frame(ioctl, (8, told, 0)), frame(ioctl, (6, owns, 0), on)]
    asked += [frame(1, (7, 4, 4), b"pipe"), frame(1, (9, 4, 4), b"pair"), frame(1031, ()), frame(DESCRIBE, (1 << 20,))]
    asked += [frame(ioctl, (6, tells, 0), off), frame(CLOSE, (8,)), frame(CLOSE, (3,))]
    named = [frame(257, (-100, 2, TO_BE_NAMED | 2, 0o600), b".\0"), frame(DESCRIBE, (1 << 20,))]
    fds, flags = (3, -100, 99), (0, 0x1000, 0x1400)
    named += [frame(link, (fd, 1, -100, 7, flag), b"\0linked\0") for fd in fds for flag in flags]
    return b"".join((prologue(100), *asked, *named, owned((0, 5), (1, -1), (0, -(1 << 31)), (99, 1))))


def saved() -> bytes:
    """Return requests that make a file of each kind, give it content and have all of them described."""
    gone = b"gone\0"
    opened = (
        prologue(100),
        frame(257, (-100, 5, 0o102, 0o600), gone),
        frame(PWRITE, (15, 5, 5, 100_000), b"end\0\0"),
        frame(PWRITE, (15, 5, 5, 0), b"begin"),
        frame(263, (-100, 5, 0), gone),
        frame(PWRITE, (13, 4, 4, 70_000), b"data"),
        frame(1, (7, 4, 4), b"pipe"),
        frame(1, (8, 4, 4), b"pair"),
        frame(286, (11, 0, 0), A_SECOND),
    )
    asked = [frame(DESCRIBE, (capacity,)) for capacity in (1 << 20, 1 << 26, (1 << 26) + 1, 4000, 500, 40, 10, 0, -1)]
    refused = frame(PWRITE, (3, 4, 4, HIGHEST - 8), b"late", UNANSWERED)
    return b"".join((*opened, *asked, refused, asked[0]))


def seeds() -> dict[str, bytes]:
    """Return what a search should begin with, by name: sound frames of each kind."""
    found = {f"adopt {name}": adopt(description([one])) for name, one in FILES.items()}
    return {**found, "adopt all": adopt(description(list(FILES.values()))), "describe": saved(), "ready": ready(),
            "describe pipes and directories": in_pipes_and_directories()}


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield a name and an input for all that can be wrong with a description, a part of it in each."""
    everything = list(FILES.values())
    whole = description(everything)
    sound_head = HEAD.unpack_from(whole)
    groups = {f"seed {name}": [data] for name, data in seeds().items()}
    groups["heads"] = [adopt(description(everything, head)) for head in changed(sound_head, "IIIIIIQ")]
    for name, (numbers, path, content) in FILES.items():
        groups[f"file {name}"] = [
            adopt(description([(wrong, path, content)])) for wrong in changed(numbers, "BBBBIiIqII")
        ]
    groups["entries"] = [adopt(description(everything, entries=[wrong])) for wrong in changed((3, 0, 0), "III")]
    both = [FILES["plain"], FILES["records of the first"]]
    groups["locked"] = [
        adopt(description(both, entries=[(3, 0, 0), (FIRST_LOCKED + at, which, 0)])) + locks()
        for at in (-1, 0, MOST_LOCKED - 1, MOST_LOCKED) for which in (0, 1)
    ]
    groups["locked twice"] = [
        adopt(description(both, entries=[(3, 0, 0), *wrong])) + frame(DESCRIBE, (1 << 20,))
        for wrong in ([(FIRST_LOCKED, 1, 0)] * 2, [(FIRST_LOCKED, 0, 0)], [(4, 1, 0)])
    ]
    groups["locked for reading"] = [adopt(description([file(PLAIN, flags=0, path=b"file\0"), both[1]]))]
    older = file(PLAIN, path=b"file\0", content=LOCK.pack(0, 9, 0, 1))
    groups["locked in an older image"] = [
        adopt(description([older], (OLDER_MAGIC, 1, 1, 0, 0o22, 2, GENERATION), [(3, 0, 0)])) + locks()
    ]
    groups["locks"] = [prologue(100) + locks(edge) for edge in EDGES]
    groups["owners"] = [owned((which, who)) for which in edges("I") for who in edges("i")]
    groups["pieces"] = [adopt(description([file(TEXT, sparse=1, content=one)])) for one in hostile_pieces()]
    groups["cut"] = [adopt(whole[:cut]) for cut in range(len(whole))]
    groups["too much"] = [
        adopt(description([file(PAIR, content=bytes(1 << 20))])),
        adopt(description([file(PIPE, number=number) for number in range(600)])),
    ]
    directories = (b"", b"/", b"none\0", b"file\0", b"#0\0")
    groups["directories"] = [adopt(description([], directory=name)) for name in directories]
    groups["directories"] += [
        adopt(description(everything, directory=b"#%d\0" % place)) for place in range(len(everything) + 1)
    ]
    for name, requests in groups.items():
        data = prologue() + b"".join(requests)
        for mode in range(MODES):
            yield f"{name} {mode}", data + bytes((mode - len(data)) % MODES)
