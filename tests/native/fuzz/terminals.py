"""What a program does with pseudo-terminals, and what images say of them, sound and hostile, as frames.

See native/shadow/terminals and native/shadow/checkpoint/moved_terminals.c.  Where the machine allows no mount the
harness has none, and every open fails.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.native.fuzz.descriptions import DESCRIBE, File, adopt, changed, description, edges, file
from tests.native.fuzz.extremes import AT_HERE, EDGES, MODES, frame, prologue

READ, WRITE, CLOSE, IOCTL, OPEN, EXIT, PATH_OF, GROUP, SIGNALS = 0, 1, 3, 16, 257, 1002, 1017, 1030, 1031
TERMINAL = 12  # FILE_TERMINAL of session.h
TCGETS, TCSETS, TCSBRK, TCXONC, TCFLSH = 0x5401, 0x5402, 0x5409, 0x540A, 0x540B
TIOCSCTTY, TIOCGPGRP, TIOCSPGRP, TIOCOUTQ, TIOCSWINSZ, TIOCNOTTY, TIOCGSID = (
    0x540E, 0x540F, 0x5410, 0x5411, 0x5414, 0x5422, 0x5429)  # fmt: skip
TIOCGPTN, TIOCSPTLCK, TIOCGPKT, TIOCPKT, TIOCGPTPEER = 0x80045430, 0x40045431, 0x80045438, 0x5420, 0x5441
CODES = (TCGETS, TCSETS, TCSETS + 1, TCSETS + 2, TCSBRK, TCXONC, TCFLSH, TIOCSCTTY, TIOCGPGRP, TIOCSPGRP, TIOCOUTQ,
         TIOCSWINSZ, TIOCNOTTY, TIOCGSID, TIOCGPTN, TIOCSPTLCK, TIOCGPKT, TIOCPKT, TIOCGPTPEER, 0x541B, 0x5425,
         0x80045439, 0x5412)  # fmt: skip
NONBLOCK, MASTER = 0o4002, 14  # the first descriptor behind the prologue's
LEAD = 5  # of the operation on groups
STATE = struct.Struct("<4IB19s")
MOVED = struct.Struct("<3i8B36s8s2I")
RECORD = struct.Struct("<2I")
COOKED, RAW = (0x500, 5, 0xBF, 0x8A3B), (0, 0, 0xBF, 0)
CHARACTERS = bytes((3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0))


def state(flags: tuple[int, ...] = COOKED, line: int = 0, characters: bytes = CHARACTERS) -> bytes:
    """Return a setting, as the kernel has it."""
    return STATE.pack(*flags, line, characters)


def opened(name: bytes, flags: int = NONBLOCK) -> bytes:
    return frame(OPEN, (AT_HERE, len(name) + 1, flags, 0), name + b"\0")


def asked(code: int, data: bytes = b"", argument: int = 0, descriptor: int = MASTER) -> bytes:
    return frame(IOCTL, (descriptor, code, argument), data)


def typed(text: bytes, descriptor: int = MASTER) -> bytes:
    return frame(WRITE, (descriptor, len(text), len(text)), text)


def ready() -> bytes:
    """Return what makes a terminal: its master is 14, its slave 15, and the caller leads its session."""
    leads = frame(GROUP, (LEAD, 0))
    return b"".join((opened(b"/dev/ptmx"), asked(TIOCSPTLCK, bytes(4)), leads, asked(TIOCGPTPEER, b"", 2)))


def life() -> bytes:
    """Return what is done with one from its beginning to its end."""
    number, heard = struct.pack("<I", 1), frame(SIGNALS, ())
    slave = MASTER + 1
    return b"".join((
        ready(), asked(TIOCSCTTY, descriptor=slave), asked(TIOCGPTN), opened(b"/dev/pts/0"), opened(b"/dev/tty"),
        opened(b"/dev/pts/1234567"), typed(b"a line\nand \x16\x03one\x03more"), heard, typed(b"\x13\x11\x1a\x1c"),
        heard, asked(TIOCSPGRP, struct.pack("<i", 1), descriptor=slave), asked(TIOCGPGRP, descriptor=slave),
        asked(TIOCGSID),
        frame(READ, (slave, 100, 100)), typed(b"said\n", slave), asked(TIOCOUTQ), frame(READ, (MASTER, 100, 100)),
        asked(TIOCPKT, number), asked(TIOCGPKT), frame(READ, (MASTER, 4096, 4096)), asked(TCXONC, b"", 0, slave),
        typed(b"x" * 5000), typed(b"y" * 5000, slave), frame(DESCRIBE, (1 << 20,)), asked(TCSETS, state(RAW), 0, slave),
        frame(READ, (slave, 4096, 4096)), asked(TIOCSWINSZ, struct.pack("<4H", 24, 80, 0, 0)), heard,
        asked(TCFLSH, b"", 2, slave), frame(DESCRIBE, (1 << 20,)), asked(TIOCNOTTY, descriptor=slave), heard,
        frame(CLOSE, (MASTER,)), frame(READ, (slave, 9, 9)), heard, frame(DESCRIBE, (1 << 20,)),
        *(opened(b"/dev/ptmx") for _ in range(300)), frame(PATH_OF, (MASTER,)), frame(PATH_OF, (MASTER + 1,)),
        frame(EXIT, (0,)),
    ))  # fmt: skip


def record(data: bytes, kind: int = 0, size: int | None = None) -> bytes:
    return RECORD.pack(kind, len(data) if size is None else size) + data


INPUT = record(b"typed\n") + record(b"and more", 1) + record(bytes(range(1, 200)))


def moved(numbers: tuple[int, ...] = (), setting: bytes = b"", output: bytes = b"written\n", inputs: bytes = INPUT,
          records: int = 3, end: int = 0) -> File:  # fmt: skip
    """Return one end of a described terminal; NUMBERS: its number, session, group, and eight facts of one byte."""
    told = numbers or (3, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0)
    head = MOVED.pack(*told, setting or state(), struct.pack("<4H", 24, 80, 0, 0), len(output), records)
    return file(TERMINAL, end=end, content=head + output + inputs)


def back(*files: File) -> bytes:
    return adopt(description(list(files)))


def seeds() -> dict[str, bytes]:
    """Return what a search should begin with, by name."""
    both = back(moved(), moved(end=1)) + frame(READ, (3, 4096, 4096)) + frame(READ, (4, 4096, 4096))
    raw = back(moved(setting=state(RAW), inputs=record(b"x" * 4000), records=1), moved(end=1))
    return {"terminals": prologue() + life(), "described terminals": both + frame(DESCRIBE, (1 << 20,)), "raw": raw}


def hostile() -> Iterator[bytes]:
    """Yield requests with one number at an edge."""
    for code in CODES:
        for descriptor in (MASTER, MASTER + 1):
            tried = (asked(code, data, edge, descriptor) for edge in EDGES for data in (b"", bytes(4), b"\xff" * 60))
            yield prologue() + ready() + b"".join(tried)
    for edge in EDGES:
        yield prologue() + ready() + opened(b"/dev/ptmx", edge) + asked(TIOCGPTPEER, b"", edge) + frame(
            READ, (MASTER, edge, edge)) + frame(WRITE, (MASTER, edge, edge), b"x\x03y")
    for numbers in changed((3, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0), "iiiBBBBBBBB"):
        yield back(moved(numbers), moved(numbers, end=1))
    for edge in edges("I"):
        yield back(moved(records=edge), moved(end=1))
        yield back(moved(inputs=record(b"x", 0, edge), records=1)) + back(moved(inputs=record(b"x", edge), records=1))
    yield back(moved(inputs=record(b"x" * 4096) * 40, records=40), moved(end=1))
    yield back(moved(output=b"x" * 100_000), moved(end=1))
    yield back(moved(), moved(), moved(end=1), moved(end=2))
    for flags in (COOKED, RAW):
        yield back(moved(setting=state(flags, 255, bytes(range(1, 20)))), moved(end=1))
        yield back(moved(setting=state(flags, 0, b"\xff" * 19), inputs=record(bytes(range(256)) * 2)), moved(end=1))
    whole = description([moved(), moved(end=1)])
    for end in range(0, len(whole), 5):
        yield adopt(whole[:end])


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield a name and an input for each number that can be wrong."""
    together = list(hostile())
    groups = seeds()
    groups |= {f"hostile {at}": b"".join(together[at : at + 4]) for at in range(0, len(together), 4)}
    for name, data in groups.items():
        for mode in range(MODES) if not name.startswith("hostile") else (0, 7):
            yield f"terminals {name} {mode}", data + bytes((mode - len(data)) % MODES)
