"""Unpacks images of Apptainer and Singularity: SIF files, whose root directory is a squashfs, and a squashfs alone.

Theory: the file is as hostile as any image.  Of its header and its table of parts only numbers are believed that lie
within the file; the squashfs is read by a library written in Python, in a process with the job's account, bounded in
memory and time (:mod:`.unpack`); and what it names goes through the same hands as the entries of a tar file.

====================== =========================================================
bytes                  of a SIF file
====================== =========================================================
32 to 41               ``SIF_MAGIC``
88 to 95, 96 to 103    how many descriptors there may be, and where they begin
585 bytes each         a descriptor: what it is (4), whether it is used (1), three
                       numbers (12), where its data begins and how much it is
                       (16), more (168 with the name), and 384 that depend on the
                       kind: of a partition its file system and what it is for
====================== =========================================================
"""

from __future__ import annotations

import contextlib
import importlib
import os
import struct
from collections.abc import Iterable
from typing import IO, Any

from condor_actors.machine.containers.image_tree import FOLDER, BadImage, Tree, parts_of

__all__ = ["ENTER", "is_sif", "load", "squashfs_offset", "unpack_sif"]

MAGIC_AT, MAGIC = 32, b"SIF_MAGIC\0"
SQUASHFS_MAGIC = b"hsqs"
HEADER = struct.Struct("<88xqq")
DESCRIPTOR = struct.Struct("<i?12xqq168x")
EXTRA_BYTES = 384
PARTITION = struct.Struct("<ii")
DESCRIPTOR_BYTES = DESCRIPTOR.size + EXTRA_BYTES
MOST_DESCRIPTORS = 4096
IS_PARTITION, PRIMARY, SQUASHFS, ENCRYPTED = 0x4004, 2, 1, 5
ENTER = ("/bin/sh", "-c",
         'for each in /.singularity.d/env/*.sh; do [ -f "$each" ] && . "$each"; done; exec "$@"', "sh")
"""What starts a program in such an image: its variables are set by scripts of its own."""


def load() -> None:
    """Load the library that reads a squashfs, while this process can still see its files: a job's account may not."""
    with contextlib.suppress(ImportError):  # said when there is such an image
        importlib.import_module("PySquashfsImage")


def is_sif(stream: IO[bytes]) -> bool:
    """Whether a stream that can be sought in is a SIF file or a squashfs; it is at its beginning afterwards."""
    head = stream.read(MAGIC_AT + len(MAGIC))
    stream.seek(0)
    return head[MAGIC_AT:] == MAGIC or head.startswith(SQUASHFS_MAGIC)


def squashfs_offset(stream: IO[bytes]) -> int:
    """Where the root directory's squashfs begins.

    Raises:
        BadImage: there is none that can be used.
    """
    size = stream.seek(0, os.SEEK_END)
    if _at(stream, 0, len(SQUASHFS_MAGIC), size) == SQUASHFS_MAGIC:
        return 0
    count, begin = HEADER.unpack(_at(stream, 0, HEADER.size, size))
    if not 0 < count <= MOST_DESCRIPTORS:
        raise BadImage(f"its header says that it has {count} parts")
    found = []
    for number in range(count):
        entry = _at(stream, begin + number * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES, size)
        kind, is_used, offset, length = DESCRIPTOR.unpack_from(entry)
        system, purpose = PARTITION.unpack_from(entry, DESCRIPTOR.size)
        if not is_used or kind != IS_PARTITION or purpose != PRIMARY:
            continue
        if system == ENCRYPTED:
            raise BadImage("its root directory is encrypted")
        if system != SQUASHFS:
            raise BadImage(f"its root directory is in a file system of the kind {system}; squashfs (1) can be used")
        if not 0 < offset <= size - length or length <= 0:
            raise BadImage("its root directory lies outside the file")
        found.append(offset)
    if len(found) != 1:
        raise BadImage(f"it has {len(found)} root directories")
    if _at(stream, found[0], len(SQUASHFS_MAGIC), size) != SQUASHFS_MAGIC:
        raise BadImage("its root directory is no squashfs")
    return int(found[0])


def _at(stream: IO[bytes], offset: int, length: int, size: int) -> bytes:
    if not 0 <= offset <= size - length:
        raise BadImage("it is shorter than its header says")
    stream.seek(offset)
    return stream.read(length)


def unpack_sif(stream: IO[bytes], tree: Tree, budget: Any) -> None:
    """Put what is in the squashfs into the tree.

    Args:
        budget: is taken from for each entry, before it is made.

    Raises:
        BadImage: it cannot be used. OSError: the disk.
    """
    offset = squashfs_offset(stream)
    try:
        from PySquashfsImage import SquashFsImage  # only this kind of image takes it

        _put_all(SquashFsImage(stream, offset, closefd=False), tree, budget)
    except ImportError as error:
        raise BadImage(f"its squashfs takes {error.name}, which is not here; gzip, xz and zstd can be read") from None
    except (struct.error, ArithmeticError, RuntimeError) as error:
        raise BadImage(f"its squashfs cannot be read: {error}") from None


def _put_all(image: Iterable[Any], tree: Tree, budget: Any) -> None:
    for entry in image:
        if entry.parent is None:
            continue
        parts = parts_of(entry.path)
        if "/" in entry.name or not parts or parts[-1] != entry.name:
            raise BadImage(f"it has an entry called {entry.name[:200]!r}")
        budget.take(entry.size if entry.is_file else 0)
        folder = tree.folder(parts[:-1])
        if entry.is_dir:
            _make_folder(entry, parts[-1], folder)
        elif entry.is_symlink:
            os.symlink(entry.readlink(), parts[-1], dir_fd=folder)
        elif entry.is_file:
            _copy(entry, parts[-1], folder)


def _make_folder(entry: Any, name: str, folder: int) -> None:
    os.mkdir(name, 0o755, dir_fd=folder)
    here = os.open(name, FOLDER, dir_fd=folder)
    os.fchmod(here, entry.mode & 0o1777 | 0o700)
    os.close(here)


def _copy(entry: Any, name: str, folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    target, left = os.open(name, flags, 0o600, dir_fd=folder), entry.size
    try:
        for block in entry.iter_bytes():
            left -= len(block)
            if left < 0:
                raise BadImage(f"its entry {name[:200]!r} is larger than it says")
            view = memoryview(block)
            while view:
                view = view[os.write(target, view):]
        if left:
            raise BadImage(f"its entry {name[:200]!r} is smaller than it says")
        os.fchmod(target, entry.mode & 0o777 | 0o400)
    finally:
        os.close(target)
