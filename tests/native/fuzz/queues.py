"""What a program does with semaphores, queues and shared memory, and what images say of them, sound and hostile.

See native/shadow/ipc/ipc.h and moved_ipc.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.native.fuzz.descriptions import DESCRIBE, ENTRY, TEXT, File, adopt, changed, description, file
from tests.native.fuzz.extremes import EDGES, LOWEST, MODES, frame, prologue

SEMGET, SEMCTL, SEMOP, MSGGET, MSGSND, MSGRCV, MSGCTL, CANCEL, EXIT = 64, 66, 220, 68, 69, 70, 71, 1001, 1002
RMID, SET, STAT, INFO, GETPID, GETVAL, GETALL, GETNCNT, GETZCNT, SETVAL, SETALL = 0, 1, 2, 3, 11, 12, 13, 14, 15, 16, 17
SHMGET, SHMAT, SHMCTL, RELEASE, READ_ONLY = 29, 30, 31, 1012, 0o10000
LOCK, SHM_STAT, SHM_INFO, SHM_STAT_ANY = 11, 13, 14, 15
SEM_STAT, SEM_INFO, SEM_STAT_ANY, MSG_STAT, MSG_INFO, MSG_STAT_ANY, COUNT = 18, 19, 20, 11, 12, 13, 1 << 20
CREATE, EXCLUSIVE, NO_WAIT, UNDO, CUT, EXCEPT, COPY = 0o1000, 0o2000, 0o4000, 0x1000, 0o10000, 0o20000, 0o40000
KIND = 11
OBJECT, USED, STEP = struct.Struct("<iiIIIIq"), struct.Struct("<qII"), 1 << 15
QUEUE, MESSAGE, SEGMENT = struct.Struct("<qqQiiQ"), struct.Struct("<qQ"), struct.Struct("<QqqiiII")
MOST_OBJECTS = 1024
POSIX_OPEN, POSIX_UNLINK, POSIX_SEND, POSIX_RECEIVE, POSIX_NOTIFY, POSIX_ATTRIBUTES = 240, 241, 242, 243, 244, 245
CLOSE, POSIX_KIND, POSIX, LIKE = 3, 15, struct.Struct("<QQQiiqQ"), struct.Struct("<8q")
FIRST, POSIX_CREATE, NONBLOCKING = 15, 0o102, 0o4000
"""The first descriptor that is free after the prologue, and flags of open."""


def operated(*operations: tuple[int, int, int], of: int = 0, slot: int = 7, timeout_ns: int = -1) -> bytes:
    """Return a request to do OPERATIONS, each a semaphore, what is added, and flags."""
    payload = b"".join(struct.pack("<HhH", at, by & 0x7FFF if by >= 0 else by, flags) for at, by, flags in operations)
    return frame(SEMOP, (of, 0, len(operations), timeout_ns), payload, slot)


def sent(kind: int, text: bytes, flags: int = 0, slot: int = 7, queue: int = 0) -> bytes:
    return frame(MSGSND, (queue, 0, len(text), flags), struct.pack("<q", kind) + text, slot)


def received(kind: int, flags: int = 0, slot: int = 7, room: int = 100, queue: int = 0) -> bytes:
    return frame(MSGRCV, (queue, 0, room, kind, flags), slot=slot)


def limited(most: int) -> bytes:
    """Return a request that gives the first queue room for MOST bytes."""
    return frame(MSGCTL, (0, SET), struct.pack("<iIIIIHHIQQ", 0, 0, 0, 0, 0, 0o600, 0, 0, 0, 0).ljust(88, b"\0")
                 + struct.pack("<Q", most).ljust(32, b"\0"))  # fmt: skip


def of_semaphores() -> bytes:
    """Return what makes sets, waits in each way, is told of them, is saved, and ends."""
    make = b"".join(frame(SEMGET, (77, *how)) for how in ((3, CREATE | 0o600), (3, CREATE | EXCLUSIVE), (4, 0)))
    waits = operated((0, -1, UNDO), slot=8) + operated((1, 0, 0), slot=9) + operated((0, -1, 0), slot=10, timeout_ns=1)
    told = b"".join(frame(SEMCTL, (0, 0, command)) for command in (
        STAT, INFO, GETPID, GETVAL, GETALL, GETNCNT, GETZCNT, SEM_STAT, SEM_INFO, SEM_STAT_ANY, COUNT, 99))  # fmt: skip
    change = frame(SEMCTL, (0, 0, SETALL), struct.pack("<3H", 2, 0, 5)) + frame(SEMCTL, (0, 2, SETVAL, 1))
    back = frame(SEMGET, (0, 2, 0o600)) + frame(SEMCTL, (1, 0, RMID)) + frame(SEMCTL, (0, 0, SET), bytes(104))
    last = operated((2, 3, UNDO), (2, -1, UNDO)) + operated((2, 32766, 0)) + operated((0, -9, NO_WAIT), (0, -9, 0))
    return (make + operated((1, 4, 0)) + waits + told + frame(CANCEL, (10,)) + operated((1, -4, 0)) + change + back
            + operated((0, -9, 0), slot=11) + last + frame(DESCRIBE, (1 << 20,)))  # fmt: skip


def of_queues() -> bytes:
    """Return what makes a queue, waits in each way, is told of it, is saved, and ends."""
    make = frame(MSGGET, (88, CREATE | 0o600)) + frame(MSGGET, (88, 0)) + frame(MSGGET, (89, 0))
    hand = received(4, slot=8) + received(-3, slot=9) + received(5, EXCEPT, slot=10) + received(9, slot=12, room=1)
    sends = sent(4, b"four") + sent(2, b"two") + sent(5, b"stays") + sent(6, b"six") + sent(9, b"long") + sent(9, b"")
    full = limited(6) + sent(7, b"waits", slot=11) + sent(7, b"not", NO_WAIT)
    full += received(0, COPY | NO_WAIT) + received(0)
    told = b"".join(frame(MSGCTL, (0, command)) for command in (STAT, INFO, MSG_STAT, MSG_INFO, MSG_STAT_ANY, 99))
    takes = received(LOWEST, NO_WAIT, room=1) + received(LOWEST, NO_WAIT | CUT, room=1) + received(1, NO_WAIT)
    return (make + hand + sends + full + told + takes + sent(3, b"saved") + sent(1, b"", slot=13) + limited(20_000)
            + frame(DESCRIBE, (1 << 20,)) + received(77, slot=14) + sent(0, b"none"))  # fmt: skip


def posted(text: bytes, priority: int = 0, slot: int = 7, of: int = FIRST, timeout_ns: int = 0) -> bytes:
    return frame(POSIX_SEND, (of, priority, len(text), timeout_ns), text, slot)


def fetched(slot: int = 7, of: int = FIRST, room: int = 64, timeout_ns: int = 0) -> bytes:
    return frame(POSIX_RECEIVE, (of, 0, room, timeout_ns), slot=slot)


def named(name: bytes, flags: int = POSIX_CREATE, like: tuple[int, ...] = (0, 2, 64)) -> bytes:
    """Return a request to open the POSIX queue with NAME, or to make it LIKE that."""
    attributes = LIKE.pack(*(*like, 0, 0, 0, 0, 0, 0, 0, 0)[:8]) if like else b""
    return frame(POSIX_OPEN, (len(name) + 1, flags, 0o600, len(attributes)), name + b"\0" + attributes)


def of_posix_queues() -> bytes:
    """Return what makes POSIX queues, waits in each way, is told of messages, is saved, and ends."""
    make = (
        named(b"one")
        + named(b"one", POSIX_CREATE | 0o200)
        + named(b"one", 0, ())
        + named(b"usual", like=())
        + named(b"none", 2)
    )
    make += b"".join(named(name) for name in (b"", b"a/b", b"..", b"x" * 256)) + named(
        b"large", like=(0, 1 << 30, 1 << 30)
    )
    event = [
        struct.pack("<qii", 5, number, how).ljust(64, b"\0")
        for how, number in ((0, 10), (1, 0), (2, 0), (9, 9), (0, 99))
    ]
    told = b"".join(frame(POSIX_NOTIFY, (FIRST, 64), one) for one in event) + frame(POSIX_NOTIFY, (FIRST, 0))
    told += frame(POSIX_NOTIFY, (FIRST, 64), event[0]) + posted(b"told", 7) + frame(POSIX_NOTIFY, (FIRST, 64), event[0])
    waits = (
        posted(b"low")
        + posted(b"full", slot=8)
        + posted(b"later", slot=8, timeout_ns=-1)
        + fetched()
        + fetched()
        + fetched()
    )
    waits += (
        fetched(slot=9, timeout_ns=-1)
        + posted(b"to who waits")
        + fetched(slot=10, timeout_ns=1)
        + fetched(slot=11, timeout_ns=-1)
    )
    how = [LIKE.pack(flags, 0, 0, 0, 0, 0, 0, 0) for flags in (NONBLOCKING, 1)]
    like = b"".join(frame(POSIX_ATTRIBUTES, (FIRST, 64, 64), one) for one in how) + frame(
        POSIX_ATTRIBUTES, (FIRST, 0, 64)
    )
    wrong = (
        posted(bytes(65))
        + posted(b"x", 40_000)
        + posted(b"x", of=3)
        + fetched(room=1)
        + fetched(of=3)
        + frame(0, (FIRST, 8, 8))
    )
    last = posted(b"saved", 3) + posted(b"too", 9) + frame(DESCRIBE, (1 << 20,)) + frame(POSIX_UNLINK, (4,), b"one\0")
    ends = (
        b"".join(frame(POSIX_UNLINK, (4,), name) for name in (b"one\0", b"a/b\0", b"none"))
        + frame(CLOSE, (FIRST,))
        + fetched()
    )
    return make + told + waits + frame(CANCEL, (11,)) + like + wrong + last + ends + frame(CLOSE, (FIRST + 1,))


def of_segments() -> bytes:
    """Return what makes memory, attaches it, is told of it, is saved, lets go of it and removes it."""
    make = frame(SHMGET, (99, 5000, CREATE | 0o600)) + frame(SHMGET, (99, 5001, 0)) + frame(SHMGET, (0, 1, 0o600))
    told = b"".join(frame(SHMCTL, (0, command)) for command in (STAT, INFO, LOCK, SHM_STAT, SHM_INFO, SHM_STAT_ANY, 99))
    attach = b"".join(frame(SHMAT, (which, 0, how)) for which, how in ((0, 0), (0, READ_ONLY), (1, 0), (9, 0)))
    ends = frame(RELEASE, (4097,)) + frame(SHMCTL, (0, RMID)) + frame(SHMCTL, (0, SET), bytes(112)) + told
    again = frame(RELEASE, (4098,)) + told + frame(SHMCTL, (1, RMID)) + frame(SHMCTL, (1, STAT))
    return make + attach + frame(18, (4097, 5, 5, 0), b"first") + told + frame(DESCRIBE, (1 << 20,)) + ends + again


def an_object(number: int, key: int, numbers: tuple[int, ...] = ()) -> bytes:
    return OBJECT.pack(*(numbers or (number, key, 0, 0, 0, 0o600, 1)))


def a_set(base: bytes, values: tuple[int, ...] = (1, 2), undone: tuple[int, ...] = (4242,), head: tuple[int, ...] = ()
          ) -> bytes:  # fmt: skip
    pairs = b"".join(struct.pack("<ii", value, 5) for value in values)
    undo = b"".join(struct.pack(f"<i{len(values)}h", pid, *(1 for _ in values)) for pid in undone)
    return base + USED.pack(*(head or (1, len(values), len(undone)))) + pairs + undo


def a_queue(base: bytes, messages: tuple[tuple[int, bytes], ...] = ((1, b"one"), (2, b"")), head: tuple[int, ...] = ()
            ) -> bytes:  # fmt: skip
    texts = b"".join(MESSAGE.pack(kind, len(text)) + text for kind, text in messages)
    return base + QUEUE.pack(*(head or (1, 1, 16384, 5, 6, len(messages)))) + texts


SETS = (a_set(an_object(0, 77)), a_set(an_object(3 * STEP + 1, 0), (0, 7, 9), ()))
MEMORY = file(TEXT, content=b"what is in it")
SEGMENTS = (an_object(0, 99) + SEGMENT.pack(13, 1, 1, 5, 6, 1, 0), an_object(1, 0) + SEGMENT.pack(13, 1, 1, 5, 6, 1, 1))


def a_posix_queue(number: int = 4, name: bytes = b"one", messages: tuple[tuple[int, bytes], ...] = ((9,
    b"first"), (0, b"")),
                  head: tuple[int, ...] = ()) -> bytes:  # fmt: skip
    texts = b"".join(MESSAGE.pack(kind, len(text)) + text for kind, text in messages)
    return an_object(number, 0) + POSIX.pack(*(head or (4, 64, len(messages), 2, 10, 5, len(name)))) + name + texts


def posix_brought(*queues: bytes, number: int = 4) -> bytes:
    """Return the request to have an open file of the POSIX queue with NUMBER again, and QUEUES."""
    counts = struct.pack("<IIII", 0, 0, 0, len(queues)) + bytes(2 * 3 * MOST_OBJECTS)
    return adopt(
        description(
            [file(POSIX_KIND, offset=number), file(KIND, content=counts + b"".join(queues))], entries=[(40, 0, 1)]
        )
    )


QUEUES = (a_queue(an_object(0, 88)), a_queue(an_object(2, 0), ()))


def kept(sets: tuple[bytes, ...] = SETS, queues: tuple[bytes, ...] = QUEUES, segments: tuple[bytes, ...] = (),
         head: tuple[int, ...] = ()) -> File:  # fmt: skip
    """Return a described family's objects; the second set's place was used three times before."""
    used = struct.pack(f"<{3 * MOST_OBJECTS}H", 0, 3, *[0] * (3 * MOST_OBJECTS - 2))
    counts = struct.pack("<IIII", *(head or (len(sets), len(queues), len(segments), 0)))
    return file(KIND, content=counts + used + b"".join(sets) + b"".join(queues) + b"".join(segments))


def brought(one: File, entries: list[tuple[int, int, int]] | None = None) -> bytes:
    """Return the request to have ONE again, which a file in memory follows."""
    return adopt(description([one, MEMORY], entries=entries or []))


def seeds() -> dict[str, bytes]:
    """Return what a search should begin with, by name."""
    ended = frame(EXIT, (0, 0)) + operated((0, 1, 0)) + sent(1, b"late") + received(0)
    heard = received(0) + frame(SEMCTL, (0, 0, GETALL)) + frame(DESCRIBE, (1 << 20,))
    memory = brought(kept(segments=SEGMENTS)) + frame(SHMAT, (0, 0, 0)) + frame(SHMCTL, (1, STAT))
    return {"segments": prologue() + of_segments() + ended, "described segments": prologue() + memory + memory,
            "posix queues": prologue() + of_posix_queues() + ended,
            "described posix queues": prologue() + posix_brought(a_posix_queue(), a_posix_queue(5,
                b"other")) + fetched(of=40) * 3
            + frame(DESCRIBE, (1 << 20,)),
            "semaphores": prologue() + of_semaphores() + ended, "queues": prologue() + of_queues() + ended,
            "described queues": prologue() + brought(kept()) + heard + brought(kept())}  # fmt: skip


def hostile() -> Iterator[bytes]:
    """Yield requests with one number at an edge, and images that say what cannot be."""
    for edge in EDGES:
        ready = frame(SEMGET, (0, 2, 0o600)) + frame(MSGGET, (0, 0o600))
        yield ready + b"".join(frame(SEMCTL, (0, edge, command, edge)) for command in range(21))
        yield ready + b"".join(frame(call, (edge, 0, edge, edge, edge), bytes(18)) for call in (SEMOP, MSGSND, MSGRCV))
        yield ready + b"".join(frame(MSGCTL, (0, command), bytes(120)) for command in (edge, SET, MSG_STAT, RMID, RMID))
        yield b"".join(frame(call, (edge, edge, edge), bytes(112)) for call in (SHMGET, SHMAT, SHMCTL))
        yield ready + operated((edge & 0xFFFF, 1, edge & 0xFFFF), timeout_ns=edge) + received(edge, edge, room=edge)
    up = operated(*((0, 1, UNDO) for _ in range(500)))
    yield frame(SEMGET, (0, 2, 0o600)) + up + frame(SEMCTL, (0, 0, SETALL), b"12")
    yield frame(SEMGET, (0, 32000, 0)) * 3 + frame(MSGGET, (0, 0)) * (MOST_OBJECTS + 1)
    yield frame(SHMGET, (0, 1 << 33, 0)) * 3 + frame(SHMGET, (0, 1, 0o600)) + frame(SHMAT, (2, 0, 0)) * 1025
    for numbers in changed((0, 77, 0, 0, 0, 0o600, 1), "iiIIIIq"):
        yield brought(kept((a_set(an_object(0, 0, numbers)),), (a_queue(an_object(0, 0, numbers)),)))
    for numbers in changed((1, 2, 1), "qII"):
        yield brought(kept((a_set(an_object(0, 77), head=numbers),)))
    for numbers in changed((1, 1, 16384, 5, 6, 2), "qqQiiQ"):
        yield brought(kept(queues=(a_queue(an_object(0, 77), head=numbers),)))
    for numbers in changed((13, 1, 1, 5, 6, 1, 0), "QqqiiII"):
        yield brought(kept(segments=(an_object(0, 77) + SEGMENT.pack(*numbers),)))
    yield brought(kept(segments=(SEGMENTS[0], SEGMENTS[0])))
    for numbers in changed((2, 2, 0, 0), "IIII"):
        yield brought(kept(head=numbers))
    yield brought(kept((SETS[0], SETS[0])))
    yield brought(kept((a_set(an_object(0, 77), undone=(5, 5)),)))
    yield brought(kept((a_set(an_object(0, 77), (-1, 40000)),)))
    for kind, text in ((0, b"none"), (-1, b"x"), (1, bytes(8193))):
        yield brought(kept(queues=(a_queue(an_object(0, 88), ((kind, text),)),)))
    for numbers in changed((4, 64, 2, 2, 10, 5, 3), "QQQiiqQ"):
        yield posix_brought(a_posix_queue(head=numbers)) + posted(b"x", of=40) + fetched(of=40) * 3
    for number in EDGES:
        yield posix_brought(a_posix_queue(number & 0x7FFFFFFF), number=number & 0x7FFFFFFF) + fetched(of=40)
        yield (
            named(b"edge", number, (number, number, number))
            + posted(b"x", number, timeout_ns=number)
            + fetched(room=number)
        )
    yield posix_brought(a_posix_queue(), a_posix_queue()) + posix_brought(
        a_posix_queue(messages=((-1, b"x"), (0, bytes(65))))
    )
    yield (
        b"".join(named(b"%d" % at, like=(0, 1, 1)) for at in range(MOST_OBJECTS + 1))
        + named(b"more", like=(0, 9, 1 << 20)) * 4
    )
    yield brought(kept(), [(3, 0, 0)])
    whole = description([kept()], entries=[])
    for end in range(len(whole) - 2 * ENTRY.size - 300, len(whole), 3):
        yield adopt(whole[:end])


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield a name and an input for each number that can be wrong."""
    together = list(hostile())
    groups = seeds()
    groups |= {f"hostile {at}": prologue() + b"".join(together[at : at + 8]) for at in range(0, len(together), 8)}
    for name, data in groups.items():
        for mode in range(MODES) if not name.startswith("hostile") else (0, 7):
            yield f"queues {name} {mode}", data + bytes((mode - len(data)) % MODES)
