"""Says beforehand whether a program can run in the standard universe and what of it would be refused.

The verdict comes from the file alone: its format, its interpreter, and the C library's functions it imports,
compared with the functions whose system calls the runtime refuses.  A program that makes such calls by itself,
or loads libraries that do, is not seen through.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator

import attrs

__all__ = ["Verdict", "examine"]

_REFUSED = {
    "connect": "the network (EACCES)",
    "bind": "the network (EACCES)",
    "listen": "the network (EACCES)",
    "accept": "the network (EACCES)",
    "shmget": "System V shared memory (ENOSYS)",
    "semget": "System V semaphores (ENOSYS)",
    "msgget": "System V messages (ENOSYS)",
    "mq_open": "message queues (ENOSYS)",
    "ptrace": "looking into other processes (EPERM)",
    "inotify_init": "watching files (ENOSYS)",
    "inotify_init1": "watching files (ENOSYS)",
    "signalfd": "signals as descriptors (ENOSYS)",
    "io_setup": "asynchronous kernel I/O (ENOSYS)",
    "io_uring_setup": "asynchronous kernel I/O (ENOSYS)",
    "mount": "administration (EPERM)",
    "chroot": "administration (EPERM)",
    "userfaultfd": "handling its own page faults (EPERM)",
}


@attrs.frozen
class Verdict:
    """What became of the examination."""

    runs: bool
    summary: str
    remarks: tuple[str, ...] = ()


def _imports(data: bytes) -> Iterator[str]:
    """Yield the names of functions that the ELF file DATA takes from elsewhere."""
    (table_at,) = struct.unpack_from("<Q", data, 40)
    entry_size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table_at + i * entry_size) for i in range(count)]
    for section in sections:
        if section[1] != 11 or section[6] >= len(sections):  # SHT_DYNSYM
            continue
        strings = sections[section[6]]
        for at in range(section[4], section[4] + section[5], 24):
            name, _info, _other, index = struct.unpack_from("<IBBH", data, at)
            if index == 0 and name:
                start = strings[4] + name
                yield data[start : data.index(b"\0", start)].decode(errors="replace")


def _examine_elf(data: bytes) -> Verdict:
    kind, machine = struct.unpack_from("<HH", data, 16)
    if data[4] != 2 or machine != 62 or kind not in (2, 3):
        return Verdict(False, "cannot run: not a program for 64-bit x86")
    try:
        names = set(_imports(data))
    except (struct.error, ValueError):
        return Verdict(True, "can run; what it calls cannot be seen")
    refused = sorted({f"{name}: {why}" for name in names if (why := _REFUSED.get(name))})
    if not refused:
        return Verdict(True, "can run")
    return Verdict(True, "can run; these of its calls would be refused, should it make them", tuple(refused))


def examine(program: str) -> Verdict:
    """Return the verdict on PROGRAM, a path or a name to be found in PATH."""
    path = program if "/" in program else shutil.which(program)
    if path is None or not os.path.isfile(path):
        return Verdict(False, "cannot run: there is no such file")
    try:
        with open(path, "rb") as file:
            data = file.read(64 << 20)
    except OSError as error:
        return Verdict(False, f"cannot run: {error.strerror}")
    if data.startswith(b"#!"):
        line = data[2:].split(b"\n", 1)[0].split()
        if not line:
            return Verdict(False, "cannot run: its first line names no interpreter")
        inner = examine(os.fsdecode(line[0]))
        return Verdict(inner.runs, f"a script of {os.fsdecode(line[0])}, which {inner.summary}", inner.remarks)
    if not data.startswith(b"\x7fELF") or len(data) < 64:
        return Verdict(False, "cannot run: neither a program nor a script")
    return _examine_elf(data)
