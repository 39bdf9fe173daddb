"""Makes a core file of a checkpoint, so that a debugger shows where the program was.

The image has the program's memory and, on the runtime's stacks, the signal frame each thread was parked with; a core
file has the same memory and the registers as notes.  Nothing is executed.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from condor_actors.durable import write_at
from condor_actors.machine.native.image import Image, ImageDamaged, Segment

__all__ = ["write_core"]

_RUNTIME_PLACES = 0x6FFE00000000
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_REGISTERS = struct.Struct("<18Q")  # r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip eflags
_MACHINE_CONTEXT_AT = 40
_PRSTATUS, _PRPSINFO, _AUXV = 1, 3, 6
_PIECE = 1 << 20


def _note(kind: int, content: bytes) -> bytes:
    padded = content + bytes(-len(content) % 4)
    return struct.pack("<3I8s", 5, len(content), kind, b"CORE\0") + padded


class _Memory:
    """Reads the program's memory out of the image."""

    def __init__(self, descriptor: int, segments: list[Segment]) -> None:
        self._descriptor = descriptor
        self._segments = segments

    def read(self, address: int, size: int) -> bytes:
        for segment in self._segments:
            if segment.address <= address and address + size <= segment.address + segment.size_bytes:
                return os.pread(self._descriptor, size, segment.offset + address - segment.address)
        raise ImageDamaged(f"address {address:#x} is not in the checkpoint")


def _prstatus(memory: _Memory, thread: int, frame: int, fs_base: int) -> bytes:
    values = _REGISTERS.unpack(memory.read(frame + _MACHINE_CONTEXT_AT, _REGISTERS.size))
    r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags = values
    none = (1 << 64) - 1
    user: tuple[int, ...] = (
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        none,
        rip,
        0x33,
        flags,
    )
    user = (*user, rsp, 0x2B, fs_base, 0, 0, 0, 0, 0)
    head = struct.pack("<3ihxxQQ4i", 0, 0, 0, 0, 0, 0, thread, 0, 0, 0)
    return head + bytes(64) + struct.pack("<27Q", *user) + struct.pack("<ii", 1, 0)


def _prpsinfo(image: Image) -> bytes:
    name = os.fsencode(os.path.basename(image.program))[:15]
    pid = int(image.note.get("pid", "0"))
    return struct.pack("<4bxxxxQII4i16s80s", 0, 82, 0, 0, 0, 0, 0, pid, 0, 0, 0, name, os.fsencode(image.program)[:79])


def _notes(image: Image, memory: _Memory) -> bytes:
    notes = b""
    for index, words in enumerate(image.note.get("frames", "").split()):
        thread, frame, fs_base = (int(word, 16) for word in words.split(":"))
        notes += _note(_PRSTATUS, _prstatus(memory, thread, frame, fs_base))
        if index == 0:
            notes += _note(_PRPSINFO, _prpsinfo(image))
            at, size = (int(word, 16) for word in image.note["auxv"].split(":"))
            notes += _note(_AUXV, memory.read(at, size))
    if not notes:
        raise ImageDamaged("the checkpoint does not say where its threads were")
    return notes


def _copy(source: int, target: int, offset: int, to: int, size: int) -> None:
    """Copy SIZE bytes; zeros stay holes."""
    done = 0
    while done < size:
        piece = os.pread(source, min(_PIECE, size - done), offset + done)
        if not piece:
            raise ImageDamaged("the checkpoint ends too early")
        if piece.count(0) != len(piece):
            write_at(target, piece, to + done)
        done += len(piece)


def write_core(image: Image, path: str) -> None:
    """Write a core file of IMAGE to PATH.

    Raises ImageDamaged when the image lacks what is needed, OSError when a file cannot be read or written.
    """
    source = os.open(image.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        notes = _notes(image, _Memory(source, list(image.segments)))
        own = [segment for segment in image.segments if segment.address < _RUNTIME_PLACES]
        at = _HEADER.size + _SEGMENT.size * (len(own) + 1)
        headers = [_SEGMENT.pack(4, 0, at, 0, 0, len(notes), 0, 4)]
        data_at = (at + len(notes) + 4095) & ~4095
        places = []
        for segment in own:
            fields = (1, segment.flags, data_at, segment.address, 0, segment.size_bytes, segment.size_bytes, 4096)
            headers.append(_SEGMENT.pack(*fields))
            places.append(data_at)
            data_at += segment.size_bytes
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        head = _HEADER.pack(ident, 4, 62, 1, 0, _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size, len(headers), 0, 0, 0)
        Path(path).write_bytes(head + b"".join(headers) + notes)
        target = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.ftruncate(target, data_at)
            for segment, place in zip(own, places, strict=True):
                _copy(source, target, segment.offset, place, segment.size_bytes)
        finally:
            os.close(target)
    finally:
        os.close(source)
