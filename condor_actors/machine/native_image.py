"""What is in a checkpoint: an ELF executable with the program's memory, a note, and its open files.

::

    0        ELF header, program headers (one PT_LOAD per region that has data)
    0x11000  note "CONDOR": key=value lines (program, pid, threads, bytes, where the files are described …)
    0x12000  the regions; pages of zeros are holes

Nothing here runs anything; every number read is checked against the file's size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence

import attrs

__all__ = ["Image", "ImageDamaged", "OpenFile", "Segment", "is_image", "read_image"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_DESCRIBED = struct.Struct("<6IQ")
_FILE = struct.Struct("<BBBBIiIqII")
_ENTRY = struct.Struct("<3I")
_MAGIC = 0x46534443
_PT_LOAD, _PT_NOTE = 1, 4
_KINDS = ("file", "standard", "pipe", "socket pair", "event counter", "epoll", "timer", "nameless file")


class ImageDamaged(ValueError):
    """The file is no checkpoint, or not a whole one."""


@attrs.frozen
class Segment:
    """One region of the program's memory."""

    address: int
    offset: int
    size_bytes: int
    flags: int


@attrs.frozen
class OpenFile:
    """One open file of the program and the descriptors that name it."""

    kind: str
    path: str
    offset: int
    descriptors: tuple[int, ...]


@attrs.frozen(kw_only=True)
class Image:
    """A whole checkpoint."""

    path: str
    note: Mapping[str, str]
    segments: Sequence[Segment]
    files: Sequence[OpenFile]
    directory: str
    size_bytes: int
    stored_bytes: int
    entry: int

    @property
    def program(self) -> str:
        """Path of the program at home."""
        return self.note.get("program", "?")

    @property
    def cpu_level(self) -> int:
        """Level of the x86-64 architecture that the program may rely on."""
        return int(self.note.get("cpu", "x86-64-v1").rpartition("v")[2])

    @property
    def threads(self) -> int:
        """How many threads the program has."""
        return int(self.note.get("threads", "1"))


def _exactly(data: bytes, size: int, what: str) -> bytes:
    if len(data) != size:
        raise ImageDamaged(f"{what} is cut off")
    return data


def _read_headers(descriptor: int) -> tuple[int, list[tuple[int, ...]]]:
    head = os.pread(descriptor, _HEADER.size, 0)
    if len(head) < _HEADER.size or head[:6] != b"\x7fELF\x02\x01":
        raise ImageDamaged("not an ELF file for 64 bits")
    fields = _HEADER.unpack(head)
    kind, machine, entry, at, size, count = fields[1], fields[2], fields[4], fields[5], fields[9], fields[10]
    if kind != 2 or machine != 62 or size != _SEGMENT.size or at != _HEADER.size or not 0 < count <= 1170:
        raise ImageDamaged("not a checkpoint: its header is that of another program")
    table = _exactly(os.pread(descriptor, count * size, at), count * size, "the table of segments")
    return entry, list(_SEGMENT.iter_unpack(table))


def _read_note(descriptor: int, headers: list[tuple[int, ...]]) -> dict[str, str]:
    for kind, _flags, offset, _address, _physical, size, _memory, _align in headers:
        if kind != _PT_NOTE or not 20 < size <= 4096:
            continue
        data = _exactly(os.pread(descriptor, size, offset), size, "the note")
        name_size, text_size, _type = struct.unpack_from("<3I", data)
        if name_size == 7 and data[12:19] == b"CONDOR\0":
            lines = data[20 : 20 + text_size].decode(errors="replace").splitlines()
            return dict(line.split("=", 1) for line in lines if "=" in line)
    raise ImageDamaged("not a checkpoint: it has no note of the runtime")


def _memory(descriptor: int, segments: Sequence[Segment], address: int, size: int) -> bytes:
    for segment in segments:
        if segment.address <= address and address + size <= segment.address + segment.size_bytes:
            return _exactly(os.pread(descriptor, size, segment.offset + address - segment.address), size, "memory")
    raise ImageDamaged(f"address {address:#x} is not in the checkpoint")


def _parse_files(blob: bytes) -> tuple[str, list[OpenFile]]:
    magic, file_count, entry_count, _handles, _umask, directory_size, _generation = _DESCRIBED.unpack_from(blob)
    if magic != _MAGIC:
        raise ImageDamaged("the description of the open files has another format")
    at = _DESCRIBED.size
    directory = blob[at : at + directory_size - 1].decode(errors="replace")
    at += directory_size
    found: list[tuple[str, str, int]] = []
    for _ in range(file_count):
        kind, _end, _non, _pad, number, _flags, _mode, offset, path_size, content_size = _FILE.unpack_from(blob, at)
        at += _FILE.size
        path = blob[at : at + max(path_size - 1, 0)].decode(errors="replace")
        at += path_size + content_size
        name = _KINDS[kind] if kind < len(_KINDS) else f"kind {kind}"
        found.append((name, path or (f"number {number}" if name in ("standard", "pipe") else ""), offset))
    descriptors: list[list[int]] = [[] for _ in found]
    for _ in range(entry_count):
        descriptor, index, _cloexec = _ENTRY.unpack_from(blob, at)
        at += _ENTRY.size
        descriptors[index].append(descriptor)
    files = [OpenFile(*values, tuple(names)) for values, names in zip(found, descriptors, strict=True)]
    return directory, files


def read_image(path: str) -> Image:
    """Return what is in the checkpoint at PATH.

    Raises ImageDamaged when it is no checkpoint or not a whole one, OSError when it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        entry, headers = _read_headers(descriptor)
        note = _read_note(descriptor, headers)
        segments = [Segment(h[3], h[2], h[5], h[1]) for h in headers if h[0] == _PT_LOAD]
        whole = int(note.get("bytes", "0"))
        if status.st_size != whole:
            raise ImageDamaged(f"{status.st_size} bytes are there, {whole} were written")
        for segment in segments:
            if segment.offset + segment.size_bytes > status.st_size:
                raise ImageDamaged(f"the region at {segment.address:#x} reaches beyond the end of the file")
        if not any(s.address <= entry < s.address + s.size_bytes and s.flags & 1 for s in segments):
            raise ImageDamaged("the runtime's text is not in the checkpoint")
        blob = _memory(descriptor, segments, int(note["files_at"]), int(note["files_size"]))
        directory, files = _parse_files(blob)
    except (struct.error, KeyError, IndexError, ValueError) as error:
        if isinstance(error, ImageDamaged):
            raise
        raise ImageDamaged(f"its tables contradict each other ({error})") from error
    finally:
        os.close(descriptor)
    return Image(
        path=path, note=note, segments=segments, files=files, directory=directory, entry=entry,
        size_bytes=status.st_size, stored_bytes=status.st_blocks * 512,
    )  # fmt: skip


def is_image(path: str) -> bool:
    """Return whether PATH looks like a checkpoint, whole or not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _entry, headers = _read_headers(descriptor)
        _read_note(descriptor, headers)
    except ImageDamaged:
        return False
    finally:
        os.close(descriptor)
    return True
