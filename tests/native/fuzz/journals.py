"""Undo journals to begin a search with: a record of each kind, as the shadow writes them (see journal.h)."""

from __future__ import annotations

import stat
import struct

__all__ = ["seeds"]

_RECORD = struct.Struct("<4I2Q2I4q")
SIZE, BLOCK, MADE, REMOVED, MOVED, STATUS = range(1, 7)


def record(kind: int, path: str, other: str = "", data: bytes = b"", *, mode: int = 0, number: int = 0) -> bytes:
    names = [os_name(path), os_name(other) if other else b""]
    head = _RECORD.pack(kind, len(names[0]), len(names[1]), mode, number, len(data), 65534, 65534, 1, 2, 3, 4)
    return head + b"".join(names) + data


def os_name(path: str) -> bytes:
    return path.encode() + b"\0"


def seeds() -> dict[str, bytes]:
    """By name; each has every length modulo four, which says how it is used."""
    one = {
        "size": record(SIZE, "/below/a", number=3), "block": record(BLOCK, "/below/a", data=b"old", number=1),
        "made": record(MADE, "/below/b"), "moved": record(MOVED, "/below/a", "/below/c"),
        "link": record(REMOVED, "/below/d", "a", mode=stat.S_IFLNK | 0o777),
        "folder": record(REMOVED, "/below/e", "1", mode=stat.S_IFDIR | 0o755),
        "file": record(REMOVED, "/below/f", "1", mode=stat.S_IFREG | 0o644),
        "pipe": record(REMOVED, "/below/g", "1", mode=stat.S_IFIFO | 0o600),
        "pipe as a copy": (record(REMOVED, "/below/h", "/below/g", mode=stat.S_IFREG | 0o600)
                           + record(REMOVED, "/below/g", "1", mode=stat.S_IFIFO | 0o600)),
        "status": record(STATUS, "/below/a", mode=stat.S_IFREG | 0o600),
        "out": record(MOVED, "/below/../a", "/below/../c") + record(SIZE, "/below/link/x", number=1 << 62),
        "cut off": record(BLOCK, "/below/a", data=b"x" * 100)[:-50],
    }
    one["all"] = b"".join(one.values())
    return {f"{name} {more}": data + bytes(more) for name, data in one.items() for more in range(4)}
