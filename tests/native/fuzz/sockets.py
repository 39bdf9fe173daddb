"""What a program does with sockets, and what images say of them, sound and hostile, as frames.

See native/shadow/sockets.  A life with streams, packets, datagrams, open files beside messages and a circle of them;
then each number of each call, and each of a described socket's, at the edges of its type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.native.fuzz.descriptions import DESCRIBE, File, adopt, changed, description, file
from tests.native.fuzz.extremes import EDGES, MODES, frame, prologue

READ, WRITE, CLOSE, IOCTL, SENDFILE = 0, 1, 3, 16, 40
SOCKET, CONNECT, SENDMSG, RECVMSG, SHUTDOWN, BIND, LISTEN, OWN, PEER, PAIR = 41, 42, 46, 47, 48, 49, 50, 51, 52, 53
SETSOCKOPT, GETSOCKOPT, ACCEPT4 = 54, 55, 288
UNIX, INET, INET6, STREAM, DGRAM, SEQPACKET, NONBLOCK = 1, 2, 10, 1, 2, 5, 0o4000
FIONREAD, FORK, DO_NOT_WAIT, NAME_ROOM = 0x541B, 1013, 0x40, 128
LIST_INTERFACES, INTERFACE_FLAGS, INTERFACE_BYTES = 0x8912, 0x8913, 40
FIRST = 14  # the first descriptor behind the prologue's
NOBODY = (1 << 32) - 1
FRESH, BOUND, LISTENS, CONNECTED, SHUT = range(5)
SOCKET_KIND = 8
DESCRIBED = struct.Struct("<6i4B2II128sI128s6i4x2q")
LAYOUT = "iiiiiiBBBBII"
NAMES = {
    UNIX: (b"\1\0named\0", b"\1\0\0abstract", b"\1\0"),
    INET: (b"\2\0\x1f\x90\x7f\0\0\1" + bytes(8), b"\2\0\0\0" + bytes(12), b"\2\0\0\x50\xc0\0\2\1" + bytes(8)),
    INET6: (b"\x0a\0\x1f\x91" + bytes(19) + b"\1" + bytes(4), b"\x0a\0\0\0" + bytes(24)),
}


def message(descriptor: int, data: bytes, name: bytes = b"", rights: tuple[int, ...] = ()) -> bytes:
    """Return what sends DATA, and the open files of RIGHTS beside it."""
    numbers = struct.pack(f"<{len(rights)}i", *rights)
    arguments = (descriptor, DO_NOT_WAIT, len(name), len(rights), len(data))
    return frame(SENDMSG, arguments, name + numbers + data)


def hear(descriptor: int, flags: int = DO_NOT_WAIT, rights: int = 10, size: int = 100) -> bytes:
    """Return what takes a message."""
    return frame(RECVMSG, (descriptor, flags, NAME_ROOM, rights, size))


def life(domain: int, kind: int, name: bytes) -> bytes:
    """Return a listener, two connections, one of them accepted, and what goes through it."""
    listener, caller, late, far = range(FIRST, FIRST + 4)
    dialled = (caller, len(name))
    return b"".join((
        *(frame(SOCKET, (domain, kind | NONBLOCK, 0)) for _ in range(3)),
        frame(SETSOCKOPT, (listener, 1, 2, 4, 4), struct.pack("<i", 1)), frame(BIND, (listener, len(name)), name),
        frame(LISTEN, (listener, 3)), frame(OWN, (listener,)), frame(CONNECT, dialled, name),
        frame(CONNECT, (late, len(name)), name), frame(ACCEPT4, (listener, 0, 0, NONBLOCK)), frame(PEER, (far,)),
        message(caller, b"one"), message(caller, b"two", rights=(5, far, caller)),
        message(late, b"waits", rights=(late,)),
        message(far, b"back", name), frame(WRITE, (caller, 4, 4), b"more"), frame(IOCTL, (far, FIONREAD, 4)),
        frame(DESCRIBE, (1 << 20,)), frame(FORK, (0,)), hear(far), hear(far, DO_NOT_WAIT | 2), hear(far),
        frame(READ, (far, 10, 10)), frame(READ, (caller, 10, 10)), frame(SENDFILE, (caller, 3, 0, 100)),
        *(frame(SETSOCKOPT, (far, level, option, 16, 16), struct.pack("<2q", 0, 1000)) for level, option in
          ((1, 20), (1, 21), (1, 7), (1, 8), (1, 13), (1, 16), (6, 1), (41, 26))),
        *(frame(GETSOCKOPT, (far, level, option)) for level, option in
          ((1, 3), (1, 4), (1, 7), (1, 17), (1, 20), (1, 30), (1, 13), (6, 1), (6, 99))),
        frame(IOCTL, (far, LIST_INTERFACES, 1000)), frame(IOCTL, (far, LIST_INTERFACES, 1 << 40)),
        frame(IOCTL, (far, INTERFACE_FLAGS, INTERFACE_BYTES), b"lo".ljust(INTERFACE_BYTES, b"\0")),
        frame(SHUTDOWN, (far, 1)), hear(caller), frame(SHUTDOWN, (listener, 2)), frame(ACCEPT4, (listener,)),
        frame(CLOSE, (late,)),
    ))  # fmt: skip


def datagrams(domain: int, name: bytes) -> bytes:
    """Return packets to a name, to whom it is connected, and to nobody."""
    one, other = FIRST, FIRST + 1
    known = NAMES[domain][0]
    nobody = (*NAMES[domain], b"\1\0\0nobody" if domain == UNIX else known[:2] + b"\0\x09" + known[4:])
    return b"".join((
        *(frame(SOCKET, (domain, DGRAM | NONBLOCK, 0)) for _ in range(2)), frame(BIND, (one, len(name)), name),
        message(other, b"a packet", name), message(other, b"", name, (5,) if domain == UNIX else ()),
        *(message(other, b"lost", each) for each in nobody), frame(CONNECT, (other, len(name)), name),
        message(other, b"again"), frame(OWN, (other,)), frame(PEER, (other,)), frame(DESCRIBE, (1 << 20,)), hear(one),
        frame(IOCTL, (one, FIONREAD, 4)), hear(one, size=0), hear(one), hear(one), frame(SHUTDOWN, (other, 2)),
        frame(CONNECT, (other, 2), b"\0\0"), message(other, b"to whom?"),
    ))  # fmt: skip


def circle() -> bytes:
    """Return sockets that only their own messages still have."""
    one, other = FIRST, FIRST + 1
    closes = frame(CLOSE, (one,)) + frame(CLOSE, (other,))
    return frame(PAIR, (UNIX, STREAM, 0, 1)) + message(one, b"round", rights=(one, other)) + closes


def on_its_way(*messages: tuple[bytes, tuple[int, ...]]) -> bytes:
    """Return what a description says of MESSAGES: their bytes, and the numbers of files beside them."""
    return b"".join(struct.pack(f"<2I{len(files)}I", len(data), len(files), *files) + data for data, files in messages)


def socket(state: int, kind: int = STREAM, domain: int = UNIX, number: int = 9, end: int = 0, content: bytes = b"",
           waiting: tuple[int, ...] = (), changes: tuple[int, ...] = (), path: bytes = b"") -> File:  # fmt: skip
    """Return a described socket: CHANGES stand for its numbers up to the names."""
    sound = (domain, kind, 0, state, 3, 0, kind == DGRAM, state != CONNECTED, bool(path), 0, 0, len(waiting))
    name = NAMES[domain][0]
    told = DESCRIBED.pack(*(changes or sound), len(name), name, 0, bytes(2), 1, 0, 0, 1, 0, 0, 0, 5)
    whole = told + struct.pack(f"<{len(waiting)}I", *waiting) + content
    return file(SOCKET_KIND, number, end, offset=STREAM if kind == STREAM else SEQPACKET, content=whole, path=path)


def described() -> list[File]:
    """Return sound sockets of every kind: a listener with one that waits, a pair with files on their way, datagrams."""
    words = on_its_way((b"bytes", ()), (b"files", (0, 1)), (b"more", ()))
    return [
        socket(LISTENS, number=4, waiting=(1,), path=b"/named\0"), socket(CONNECTED, number=5, end=1, content=words),
        socket(CONNECTED, number=5, content=words), socket(FRESH, number=6),
        socket(BOUND, DGRAM, INET, 7, content=on_its_way((bytes(128) + b"packet", ()), (bytes(128), ()))),
        socket(LISTENS, STREAM, INET6, 8), socket(SHUT, number=10),
        socket(BOUND, DGRAM, number=11, waiting=(7,)), socket(BOUND, DGRAM, number=12, waiting=(NOBODY,)),
    ]  # fmt: skip


def seeds() -> dict[str, bytes]:
    """Return what a search should begin with, by name."""
    found = {f"socket {domain} {kind}": life(domain, kind, NAMES[domain][0]) for domain, kind in
             ((UNIX, STREAM), (UNIX, SEQPACKET), (INET, STREAM), (INET6, STREAM))}  # fmt: skip
    found |= {f"datagrams {domain}": datagrams(domain, names[0]) for domain, names in NAMES.items()}
    found["datagrams without paths"] = datagrams(UNIX, NAMES[UNIX][1])
    found["circle"] = circle()
    found["described sockets"] = adopt(description(described())) + frame(DESCRIBE, (1 << 20,))
    return {name: prologue() + data for name, data in found.items()}


def hostile() -> Iterator[bytes]:
    """Yield requests with one number at an edge."""
    for edge in EDGES:
        yield from (frame(SOCKET, arguments) for arguments in ((edge, 1, 0), (1, edge, 0), (2, 1, edge)))
        ready = frame(SOCKET, (UNIX, STREAM, 0)) + frame(PAIR, (UNIX, STREAM, 0, 1))
        yield ready + b"".join(frame(call, (descriptor, edge), NAMES[domain][0]) for call in (BIND, CONNECT, LISTEN)
                               for descriptor in (FIRST, FIRST + 1) for domain in NAMES)  # fmt: skip
        for place in range(1, 5):
            arguments = [FIRST + 1, DO_NOT_WAIT, 0, 0, 4]
            arguments[place] = edge
            yield ready + frame(SENDMSG, tuple(arguments), b"data") + frame(RECVMSG, (FIRST + 2, *arguments[1:]))
        yield ready + frame(SENDMSG, (FIRST + 1, 0, 0, 1, 0), struct.pack("<q", edge)[:4]) + hear(FIRST + 2)
        yield ready + b"".join(frame(GETSOCKOPT, (FIRST, *pair)) + frame(SETSOCKOPT, (FIRST, *pair, 4, 4), bytes(4))
                               for pair in ((1, edge), (edge, 1)))  # fmt: skip
    sound = (UNIX, STREAM, 0, LISTENS, 3, 0, 0, 1, 0, 0, 0, 1)
    rest = [socket(CONNECTED, number=5, end=1), socket(CONNECTED, number=5)]
    for numbers in changed(sound, LAYOUT):
        yield adopt(description([socket(LISTENS, waiting=(1,), changes=numbers), *rest]))
    for numbers in ((0,), (2,), (7,), (1 << 31,), (0, 0)):
        yield adopt(description([socket(BOUND, DGRAM, number=11, waiting=numbers), *rest]))
    for files in ((0,), (7,), (1 << 31,), tuple(range(3)) * 100):
        yield adopt(description([socket(CONNECTED, content=on_its_way((b"data", files))), *rest]))
    whole = description(described())
    for end in range(0, len(whole), 7):
        yield adopt(whole[:end])
    for number, kind in ((9, SEQPACKET), (4, STREAM)):  # ends that do not fit together
        yield adopt(description([socket(CONNECTED, number=number), socket(CONNECTED, kind, number=number, end=1),
                                 socket(LISTENS, number=number, end=1), socket(FRESH, number=number)]))  # fmt: skip


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield a name and an input for each number that can be wrong."""
    together = list(hostile())
    groups = seeds()
    groups |= {f"hostile {at}": prologue() + b"".join(together[at : at + 8]) for at in range(0, len(together), 8)}
    for name, data in groups.items():
        for mode in range(MODES) if not name.startswith("hostile") else (0, 3):
            yield f"sockets {name} {mode}", data + bytes((mode - len(data)) % MODES)
