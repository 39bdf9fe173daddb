"""What a program writes to files in memory is memory of its home: a family may have so much, and then is told."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.native.conftest import finished, tool

PROGRAM = """
import errno, os

def tried(call, *words):
    try:
        return call(*words)
    except OSError as error:
        return errno.errorcode[error.errno]

def put(descriptor, data, at):
    return os.pwrite(descriptor, data, at), os.fsync(descriptor)  # which is told of writes that were not waited for

MIB = 1 << 20
one, other = os.memfd_create("one"), os.memfd_create("other")
print(tried(os.posix_fallocate, one, 0, 900 * MIB), tried(os.posix_fallocate, one, 900 * MIB, 200 * MIB))
if os.fork() == 0:  # what members have counts together
    print(tried(os.posix_fallocate, os.memfd_create("third"), 0, 200 * MIB), flush=True)
    os._exit(0)
os.wait()
written = 0
with open("source", "wb") as file:
    file.truncate(200 * MIB)
source = os.open("source", os.O_RDONLY)
print(tried(os.sendfile, other, source, 0, 200 * MIB))
while written < 200 * MIB and tried(put, other, b"x" * MIB, written) == (MIB, None):
    written += MIB
print(100 * MIB <= written <= 125 * MIB, tried(put, other, b"x", 150 * MIB))
print(tried(put, one, b"y", 5), os.pread(one, 2, 5))  # that memory is there
os.ftruncate(one, 0)
print(tried(put, other, b"x", 150 * MIB))
os.close(one), os.close(other)
print(tried(os.posix_fallocate, os.memfd_create("all"), 0, 1000 * MIB))
"""
SAID = b"""None ENOSPC
ENOSPC
ENOSPC
True ENOSPC
(1, None) b'y\\x00'
(1, None)
None
"""


def test_a_family_has_so_much_memory_at_home(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    assert finished([*tool("run", "--"), sys.executable, "program.py"], tmp_path) == (0, SAID, b"")

SEGMENT = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.shmat.restype, libc.shmat.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmdt.argtypes = [ctypes.c_void_p]
os.posix_fallocate(os.memfd_create("most"), 0, 1000 << 20)
segment = libc.shmget(0, 64 << 20, 0o600)
at = libc.shmat(segment, None, 0)
ctypes.memset(at, 7, 64 << 20)
print(libc.shmdt(at), libc.shmctl(segment, 0, None))
"""


def test_segments_of_shared_memory_count_apart(tmp_path: Path) -> None:
    """What is in one comes home as it is detached; had that no room, the program would end by SIGBUS."""
    (tmp_path / "program.py").write_text(SEGMENT)
    assert finished([*tool("run", "--"), sys.executable, "program.py"], tmp_path) == (0, b"0 0\n", b"")


MAPPED = """
import errno, mmap, os

MIB = 1 << 20

def tried(call, *words):
    try:
        return call(*words) and None
    except OSError as error:
        return errno.errorcode[error.errno]

memory = os.memfd_create("memory")
os.ftruncate(memory, 1100 * MIB)
print(tried(mmap.mmap, memory, 1100 * MIB), tried(mmap.mmap, memory, 1100 * MIB, mmap.MAP_PRIVATE))
some = mmap.mmap(memory, 900 * MIB)
some[5] = 7
other = os.memfd_create("other")
os.ftruncate(other, 100 * MIB)
more = mmap.mmap(other, 100 * MIB)
print(tried(os.ftruncate, other, 2000 * MIB), tried(mmap.mmap, other, 1900 * MIB))
third = os.memfd_create("third")
os.ftruncate(third, 100 * MIB)
print(tried(mmap.mmap, third, 100 * MIB), tried(os.posix_fallocate, third, 0, 50 * MIB))
more.close(), os.close(other)
print(tried(mmap.mmap, third, 100 * MIB), some[5], os.pread(memory, 1, 5))
"""


def test_more_than_there_is_room_for_cannot_be_mapped(tmp_path: Path) -> None:
    """What a mapping would bring home is refused before: later there is nothing but a signal."""
    (tmp_path / "program.py").write_text(MAPPED)
    said = b"ENOMEM None\nNone ENOMEM\nENOMEM ENOSPC\nNone 7 b'\\x07'\n"
    assert finished([*tool("run", "--"), sys.executable, "program.py"], tmp_path) == (0, said, b"")
