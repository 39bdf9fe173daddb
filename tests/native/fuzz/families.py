"""What the members of a program say of themselves while a checkpoint of all is taken, sound and hostile, as frames.

One process that says that it has children is enough of a family: it gathers itself, tells of memory that is shared, of
its children that ended, and writes a part and the table of all (native/shadow/family/family.c).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.native.fuzz.extremes import AT_HERE, EDGES, MODES, PATH, frame, prologue

EXIT, PATH_OF, FILE_INFO = 1002, 1017, 1041
IMAGE_BEGIN, IMAGE_END, HOLD, RELEASE, FORK, SHARE = 1008, 1009, 1011, 1012, 1013, 1029
GATHER, PARKED, COMMONS, PART, PART_WRITTEN = range(1024, 1029)
PROGRAM, MEMBERS_ASKED, LISTING = 1042, 1043, 1044
GROUP, ADOPT, REAL_PID, ORPHANS, PROCESS = 1030, 1007, 1015, 1033, 1034
FILE, NAME, WHO, ENDS = range(1, 5)
OF, SESSION, FIND, SET, LEAD, REAL, MEMBERS, ENDED = range(1, 9)
FIRST, MORE, OVER = 1, 2, 3
COMMON, KIN, CHILD = struct.Struct("<3Q"), struct.Struct("<2i2I"), struct.Struct("<4i")
MOST_SHARED_PIECES, MOST_MEMBERS = 1024, 1024
ASK, FILLED, CLAIM, LEFT, WHERE = range(5)
READ, WRITE, PREAD, PWRITE, SENDFILE, TRUNCATE, OPENAT, ALLOCATE, COPY = 0, 1, 17, 18, 40, 77, 257, 285, 326
IN_MEMORY, HANDLE = 13, 4096  # what the prologue has made in memory, and what it holds
SMALLEST_SPAN = 1 << 30  # a place is where a part begins, and its power of two
BITS_32, BITS_64 = (1 << 32) - 1, (1 << 64) - 1


def signed(value: int) -> int:
    """Return VALUE's lower 32 bits as a signed number."""
    value &= BITS_32
    return value - (1 << 32) if value >> 31 else value


def commons(*pieces: tuple[int, int, int]) -> bytes:
    """Return what tells of PIECES of shared memory: object, offset, size."""
    return frame(COMMONS, (), b"".join(COMMON.pack(*(number & BITS_64 for number in each)) for each in pieces))


def part(size: int, pid: int = 2, parent: int = 1, children: int | None = None, *ended: tuple[int, int, int]) -> bytes:
    """Return what tells of a member's part of SIZE bytes, and of its children: pid, whether it has ended, status."""
    count = len(ended) if children is None else children
    told = KIN.pack(signed(pid), signed(parent), count & BITS_32, 0)
    return frame(PART, (size,), told + b"".join(CHILD.pack(*map(signed, each), 0) for each in ended))


def taken(shared: bytes = b"", own: bytes = b"", written: tuple[int, int] = (0, 7), over: int = 1 << 16) -> bytes:
    """Return a whole checkpoint."""
    return b"".join((
        frame(GATHER, (FIRST, 1)), frame(GATHER, (MORE,)), frame(PARKED, ()), frame(IMAGE_BEGIN, (0,)),
        shared or commons((1, 0, 4096), (1, 4096, 4096), (2, 0, 1 << 20)),
        own or part(1 << 16, 2, 1, None, (3, 1, 256), (4, 1, 9)),
        frame(PART_WRITTEN, written), frame(IMAGE_END, (1, over)), frame(GATHER, (OVER, 0)),
    ))  # fmt: skip


def shared(*asked: tuple[int, ...]) -> bytes:
    """Return what asks for places of pieces of the held file, in order: offset, size, what, place, from."""
    return b"".join(frame(SHARE, (HANDLE, *each)) for each in asked)


def mapped() -> bytes:
    """Return what maps pieces of a file apart from each other, in two parts, claims them, and gives all up."""
    pieces = [(at * 8192, 4096, what) for at in (0, 2, 1, 70) for what in (ASK, FILLED)]
    far = [(4 * SMALLEST_SPAN, 4096, ASK), (4 * SMALLEST_SPAN, 4096, FILLED), (0, 1 << 16, ASK), (0, 1 << 16, FILLED)]
    end = frame(RELEASE, (HANDLE,)) + frame(SHARE, (0, 0, 0, LEFT))
    again = frame(HOLD, (3, 0)) + shared(
        (0, 4096, CLAIM, SMALLEST_SPAN | 30, 0), (4096, 4096, CLAIM, SMALLEST_SPAN | 30, 0)
    )
    return shared(*pieces, *far) + frame(FORK, (0,)) + end + again + shared((0, 8192, ASK)) + end


def moved() -> bytes:
    """Return what maps a file, reads, writes, cuts and empties it by descriptors, and asks where that is in memory."""
    moves = [frame(READ, (3, 8, 8)), frame(WRITE, (3, 5, 5), b"moved"), frame(PREAD, (3, 8, 8, 0)),
             frame(PWRITE, (3, 5, 5, 4094), b"moved"), frame(TRUNCATE, (3, 100)), frame(ALLOCATE, (3, 3, 0, 4096))]
    where = b"".join(frame(SHARE, (3, number, 1 << 20, WHERE)) for number in (0, 1))
    empties = frame(OPENAT, (AT_HERE, len(PATH), 0o1001, 0), PATH)
    too_much = frame(ALLOCATE, (IN_MEMORY, 0, 0, 1 << 31))
    copies = frame(COPY, (3, 0, 3, 0, 8, 0)) + frame(SENDFILE, (3, 3, 0, 8))
    reads = frame(OPENAT, (AT_HERE, len(PATH), 0, 0), PATH) + b"".join(frame(HOLD, (fd, 2)) for fd in range(3, 20))
    held = frame(HOLD, (3, 0)) + shared((0, 1 << 16, ASK)) + where + shared((0, 1 << 16, FILLED))
    return held + b"".join(each + where for each in moves) + empties + where + too_much + copies + reads


def grouped(*asked: tuple[int, ...]) -> bytes:
    """Return what asks for groups and changes them, in order: what, pid, group, session, number where it runs."""
    return b"".join(frame(GROUP, each) for each in asked)


def groups_of_a_program() -> bytes:
    """Return a program's life in groups: it asks, leads, tells of children that ended, and is saved with them."""
    ended = [(ENDED, pid, 3, 4242, 9) for pid in (3, 4, 5)]
    asks = [(what, pid, group) for what in (OF, SESSION, FIND, SET, REAL, MEMBERS) for pid, group in ((0, 0), (3, 3))]
    return grouped((OF,), (LEAD,), *ended, *asks, (MEMBERS, 0, -1)) + taken() + grouped((FIND, 0, 3), (SET, 0, 3))


def processes() -> bytes:
    """Return what makes descriptors of processes, names, polls, reads and saves them, and asks for orphans."""
    made = b"".join(frame(PROCESS, (FILE, flags)) for flags in (0, 0o4000, 1)) + frame(FORK, (0,))
    named = [(NAME, 15, 2, 0), (NAME, 15, 3, 1), (NAME, 16, 4242, 1), (NAME, 16, 5, 0), (NAME, 3, 2, 0)]
    asked = [(WHO, 15), (WHO, 16), (WHO, 3), (ENDS, 0, 2), (ENDS, 0, 4242), (ENDS, 0, 0)]
    told = [(0,), (64, 64), (0, 64), (-1, 64)]
    return (
        made
        + b"".join(frame(PROCESS, each) for each in (*named, *asked))
        + b"".join(frame(READ, (fd, 8, 8)) + frame(FILE_INFO, (fd, 0)) + frame(PATH_OF, (fd,)) for fd in (15, 16))
        + grouped((LEAD,), *((ENDED, pid, pid, 1, 9) for pid in range(3, 90)))
        + b"".join(frame(ORPHANS, each) for each in told)
        + b"".join(frame(REAL_PID, (9, way)) for way in range(4))
        + taken()
        + frame(EXIT, (0,))
        + frame(PROCESS, (NAME, 15, 2, 1))
    )


def seen() -> bytes:
    """Return what a program asks of its family under /proc: what they run, where they are, which names there are."""
    runs = frame(PROGRAM, (12345, 5), b"name".ljust(16, b"\0") + b"/bin\0one\0two\0") + frame(
        PROGRAM, (), b"other".ljust(16, b"\0")
    )
    asks = b"".join(frame(MEMBERS_ASKED, (what, pid)) for what in (1, 2, 3) for pid in (2, 1, 4242, 0))
    names = b"".join(
        frame(LISTING, (which, 0), text)
        for which in range(5)
        for text in (b"", b"dtask\0fstat\0lexe\0", b"d/\0", b"no")
    )
    reads = b"".join(frame(217, (fd, size, size)) for fd in (15, 16, 17) for size in (4096, 10, 4096))
    looks = (
        frame(262, (15, 1, 144, 0x1000), b"\0")
        + frame(332, (15, 1, 0x1000, 0x7FF, 256), b"\0")
        + frame(READ, (15, 8, 8))
        + frame(81, (15,))
    )
    born = frame(FORK, (0,)) + frame(MEMBERS_ASKED, (1, 77), slot=8) + frame(LISTING, (1, 0), slot=9)
    texts = b"".join(frame(1005, (0, which), b"text") for which in range(3))
    return runs + asks + names + reads + looks + texts + frame(PROGRAM, (1, 99), b"short") + taken() + born


def seeds() -> dict[str, bytes]:
    """Return what a search should begin with, by name."""
    return {"family": taken(), "family with a helper": frame(FORK, (0,)) + taken() + taken(), "mapped": mapped(),
            "moved": moved(), "groups": groups_of_a_program(), "processes": processes(), "seen": seen()}


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield a name and an input for each number that can be wrong."""
    many = [(number, 0, 4096) for number in range(MOST_SHARED_PIECES + 2)]
    crowd = [(number + 3, 1, 0) for number in range(MOST_MEMBERS + 2)]
    groups = {f"seed {name}": [data] for name, data in seeds().items()}
    groups["pieces"] = [
        taken(commons(tuple(edge if at == place else 1 for at in range(3)), (1, 0, 1)))
        for place in range(3)
        for edge in EDGES
    ]
    groups["many pieces"] = [taken(commons(*many[:count])) for count in (MOST_SHARED_PIECES, MOST_SHARED_PIECES + 1)]
    groups["cut pieces"] = [taken(frame(COMMONS, (), bytes(size))) for size in range(50)]
    groups["parts"] = [taken(own=part(edge)) for edge in EDGES]
    groups["pids"] = [taken(own=part(4096, edge, edge, None, (edge, edge, edge))) for edge in EDGES]
    groups["children"] = [taken(own=part(4096, 2, 1, edge, (3, 1, 0))) for edge in EDGES]
    groups["crowds"] = [
        taken(own=part(4096, 2, 1, None, *crowd[:count]))
        for count in (MOST_MEMBERS - 1, MOST_MEMBERS, MOST_MEMBERS + 1)
    ]
    groups["written"] = [taken(written=(edge, edge)) for edge in EDGES]
    groups["over"] = [taken(over=edge) for edge in EDGES]
    groups["gathered"] = [frame(GATHER, (edge, other)) for edge in EDGES for other in (0, 1, -1, 1 << 31)]
    groups["parts again"] = [taken(own=part(4096) + part(4096)), taken(own=b"".join(part(1 << 43) for _ in range(9)))]
    groups["places"] = [
        shared((edge, other, what)) for edge in EDGES for other in (4096, edge) for what in (ASK, FILLED)
    ]
    groups["claims"] = [shared((0, 4096, CLAIM, edge, other)) for edge in EDGES for other in (0, edge)]
    groups["claims in parts"] = [
        shared((0, 4096, CLAIM, base << 30 | bits, 0)) for base in (0, 1, 8191, 8192) for bits in (29, 30, 31, 43, 62)
    ]
    groups["many gaps"] = [shared(*((at * 8192, 4096, what) for at in range(70) for what in (ASK, FILLED)))]
    groups["groups"] = [
        grouped((ENDED, 3, 3, 4242, 9), (what, edge, other), (what, 0, edge)) + taken()
        for what in range(ENDED + 2)
        for edge in EDGES
        for other in (0, 3, edge)
    ]
    groups["processes"] = [
        frame(PROCESS, (FILE, 0)) + frame(PROCESS, (what, 15, edge, 1)) + frame(PROCESS, (what, edge, other, edge))
        for what in range(ENDS + 2)
        for edge in EDGES
        for other in (2, edge)
    ]
    groups["seen"] = [
        frame(call, (edge, other), bytes(40))
        for call in (PROGRAM, MEMBERS_ASKED, LISTING)
        for edge in EDGES
        for other in (1, edge)
    ]
    groups["orphans"] = [frame(ORPHANS, (edge, other)) for edge in EDGES for other in (64, edge)]
    groups["many ended"] = [grouped(*((ENDED, pid, pid, 1, 9) for pid in range(1, 1100)), (MEMBERS, 0, 5)) + taken()]
    for name, requests in groups.items():
        data = prologue() + b"".join(requests)
        for mode in range(MODES):
            yield f"family {name} {mode}", data + bytes((mode - len(data)) % MODES)
