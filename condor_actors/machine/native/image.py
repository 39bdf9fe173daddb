"""What is in a checkpoint: an ELF executable with the program's memory, a note, and its open files.

::

    0        ELF header, program headers (one PT_LOAD per region that has data; what is beyond a thousand regions is in
             a table of the runtime's, which the note names)
    0x11000  note "CONDOR": key=value lines (program, pid, threads, bytes, where the files are described …)
    0x12000  the regions; pages of zeros are holes

The image of a family is that of its first process; the other processes' follow it, each an image with headers of its
own whose offsets count from the beginning of the file, then a table of who is whose child.

The digest of all pages stands at 0x10ff0, so that any damage is found (``verify_image``).

An *increment* (``Image.base``) has only the pages that changed since a whole image, at the places where they are
to be, and behind the regions a table of what is to be copied: offset, offset in the base, bytes.  ``full_image``
makes a whole image of the two.  Only that can be executed.

Nothing here runs anything; every number read is checked against the file's size.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Mapping, Sequence

import attrs

from condor_actors.durable import sync_folder

__all__ = [
    "Image",
    "ImageDamaged",
    "OpenFile",
    "Segment",
    "full_image",
    "is_image",
    "latest_image",
    "merge_images",
    "read_image",
    "verify_image",
]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_DESCRIBED = struct.Struct("<6IQ")
_FILE = struct.Struct("<BBBBIiIqII")
_ENTRY = struct.Struct("<3I")
_LATE = struct.Struct("<3Qi?3x")
_MOST_LATE = 4096
_MAGICS = (0x47534443, 0x46534443)  # the second: of older images, which have the same form
_PT_LOAD, _PT_NOTE = 1, 4
_KINDS = ("file", "standard", "pipe", "socket pair", "event counter", "epoll", "timer", "nameless file",
          "socket", "record locks", "inotify instance", "semaphores, queues and shared memory",
          "pseudo-terminal", "signals", "process")


_SAME = struct.Struct("<3Q")
_PAGE = 4096
_DIGEST_AT = 0x10FF0
_DIGEST_MAGIC = b"Cdigest1"


def _page_up(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


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
    def generation(self) -> str:
        """Number of this image (hexadecimal); no two have the same."""
        return self.note.get("generation", "")

    @property
    def base(self) -> str | None:
        """Generation of the whole image that this one adds to; None for a whole image."""
        whole = int(self.note.get("bytes", "0"))
        return self.note.get("base") if self.size_bytes > whole else None

    @property
    def threads(self) -> int:
        """How many threads the program has."""
        return int(self.note.get("threads", "1"))

    @property
    def processes(self) -> int:
        """How many processes of the program are in it."""
        return int(self.note.get("processes", "1"))


def _exactly(data: bytes, size: int, what: str) -> bytes:
    if len(data) != size:
        raise ImageDamaged(f"{what} is cut off")
    return data


def _read_headers(descriptor: int) -> tuple[int, list[tuple[int, ...]]]:
    head = os.pread(descriptor, _HEADER.size, 0)
    if len(head) < _HEADER.size or head[:6] != b"\x7fELF\x02\x01":
        raise ImageDamaged("not a checkpoint: not an ELF file for 64 bits")
    fields = _HEADER.unpack(head)
    kind, machine, entry, at, size, count = fields[1], fields[2], fields[4], fields[5], fields[9], fields[10]
    if kind != 2 or machine != 62 or size != _SEGMENT.size or at != _HEADER.size or not 0 < count <= 1170:
        raise ImageDamaged("not a checkpoint: its header is that of another program")
    table = _exactly(os.pread(descriptor, count * size, at), count * size, "the table of segments")
    return entry, list(_SEGMENT.iter_unpack(table))


def _read_note(descriptor: int, headers: list[tuple[int, ...]]) -> dict[str, str]:
    for kind, _flags, offset, _address, _physical, size, _memory, _align in headers:
        if kind != _PT_NOTE or not 20 < size <= 4096 or offset > os.fstat(descriptor).st_size:
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
    if magic not in _MAGICS:
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


def _late_segments(descriptor: int, segments: Sequence[Segment], note: Mapping[str, str]) -> list[Segment]:
    """The regions with data that have no header of their own."""
    count = int(note.get("late_count", "0"))
    if not 0 <= count <= _MOST_LATE:
        raise ImageDamaged("its table of further regions is longer than any")
    table = _memory(descriptor, segments, int(note["late_at"]), count * _LATE.size) if count else b""
    flags = ((1, 4), (2, 2), (4, 1))  # a right as mprotect has it, as a header has it
    return [Segment(start, offset, end - start, sum(flag for bit, flag in flags if protection & bit))
            for start, end, offset, protection, has_data in _LATE.iter_unpack(table) if has_data and end > start]


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
        if "base" in note and status.st_size > whole:
            whole += _page_up(int(note["same_count"]) * _SAME.size)
        if status.st_size != whole:
            raise ImageDamaged(f"{status.st_size} bytes are there, {whole} were written")
        segments += _late_segments(descriptor, segments, note)
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


def _verified(descriptor: int, moved: Sequence[tuple[int, int, int]] = ()) -> int:
    """Read the whole open image; return what its MOVED pieces (to, from, bytes) add to the digest of another one.

    Raises ImageDamaged when its digest is not the one it was written with.
    """
    from condor_actors.machine.native import _native

    ffi = _native.ffi
    pieces = b"".join(_SAME.pack(*piece) for piece in sorted(moved, key=lambda piece: piece[1]))
    found = ffi.new("struct shadow_digest *")
    table = ffi.cast("struct shadow_moved *", ffi.from_buffer(pieces))
    failed = int(_native.lib.shadow_digest_image(descriptor, table, len(moved), found))
    if failed:
        raise ImageDamaged(f"its digest cannot be computed ({os.strerror(-failed)})")
    if found.computed != found.stored:
        raise ImageDamaged("its content differs from what was written")
    return int(found.moved)


def verify_image(path: str) -> Image:
    """Return what is in the checkpoint or increment at PATH after reading all of it.

    Raises ImageDamaged when it is no checkpoint or any byte of it differs from what was written, OSError when it
    cannot be read.
    """
    image = read_image(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _verified(descriptor)
    finally:
        os.close(descriptor)
    return image


def _copy(source: int, target: int, offset: int, to: int, size: int) -> None:
    while size:
        done = os.copy_file_range(source, target, size, offset, to)
        if not done:
            raise ImageDamaged("the image before it ends too early")
        offset, to, size = offset + done, to + done, size - done


def _copy_data(source: int, target: int, size: int) -> None:
    """Copy what is no hole of the first SIZE bytes."""
    at = 0
    while at < size:
        try:
            start = os.lseek(source, at, os.SEEK_DATA)
        except OSError:
            break  # only a hole is left
        at = min(os.lseek(source, start, os.SEEK_HOLE), size)
        if start < at:
            _copy(source, target, start, start, at - start)


def full_image(base: str, increment: str, to: str) -> Image:
    """Make a whole image at TO from the whole image at BASE and the INCREMENT to it; return what is in it.

    Both are verified on the way; TO appears when it is complete and is as durable as its file system makes it.
    Raises ImageDamaged when one is damaged or they do not belong together, OSError when a file cannot be read or
    written.
    """
    temporary = f"{to}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    target = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    try:
        merge_images(base, increment, target)
        os.fsync(target)
        image = read_image(temporary)
        os.replace(temporary, to)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(target)
    sync_folder(os.path.dirname(to))
    return attrs.evolve(image, path=to)


def merge_images(base: str, increment: str, target: int) -> None:
    """Write the whole image of the two at BASE and INCREMENT, both verified on the way, to the empty file TARGET (a
    descriptor).

    Raises ImageDamaged when one is damaged or they do not belong together, OSError when a file cannot be read or
    written.
    """
    before, after = read_image(base), read_image(increment)
    if before.base is not None or after.base != before.generation:
        raise ImageDamaged(f"{increment} does not add to {base}")
    whole, count = int(after.note["bytes"]), int(after.note["same_count"])
    old, new = os.open(base, os.O_RDONLY | os.O_CLOEXEC), os.open(increment, os.O_RDONLY | os.O_CLOEXEC)
    try:
        digest = _verified(new, [(0, 0, whole)])
        table = _exactly(os.pread(new, count * _SAME.size, whole), count * _SAME.size, "the table of pages")
        same = list(_SAME.iter_unpack(table))
        if any(at + size > whole or old_at + size > before.size_bytes for at, old_at, size in same):
            raise ImageDamaged("its table of pages leads out of the image")
        digest = (digest + _verified(old, same)) % (1 << 64)
        os.ftruncate(target, whole)
        _copy_data(new, target, whole)
        for offset, base_offset, size in same:
            _copy(old, target, base_offset, offset, size)
        os.pwrite(target, _DIGEST_MAGIC + digest.to_bytes(8, "little"), _DIGEST_AT)
    finally:
        os.close(old)
        os.close(new)


def latest_image(path: str) -> str:
    """Bring the image at PATH up to its increment, ``PATH.delta``, when there is one, and return PATH.

    An increment that is damaged or belongs to another image is left alone: the whole image is the one before it.
    """
    delta = f"{path}.delta"
    if os.path.exists(delta):
        try:
            full_image(path, delta, path)
        except ImageDamaged:
            return path
        os.unlink(delta)
    return path
