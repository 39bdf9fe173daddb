"""What open files are after a move: locked as before, with the mode and the seals they had; or there is no image."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import DEADLINE_S, Compile, finished, tool
from tests.native.test_standalone import checkpoint, line, running

LOCKS = """
import fcntl, os, sys
whole, part, shared = open("whole", "w"), open("part", "w"), open("shared", "r")
fcntl.flock(whole, fcntl.LOCK_EX)
fcntl.lockf(part, fcntl.LOCK_EX, 10, 100)
fcntl.flock(shared, fcntl.LOCK_SH)
print("there", flush=True)
for word in sys.stdin:
    print(word, end="", flush=True)
"""


def may_lock(path: Path, how: int, *part: int) -> bool:
    """Whether this process gets a lock, which it gives back."""
    with path.open("r+") as file:
        try:
            if part:
                fcntl.lockf(file, how | fcntl.LOCK_NB, *part)
            else:
                fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def locked(folder: Path) -> list[bool]:
    """What others may have: the whole, the part, what is beside the part, the shared one alone, a share of it."""
    return [may_lock(folder / "whole", fcntl.LOCK_SH), may_lock(folder / "part", fcntl.LOCK_EX, 1, 105),
            may_lock(folder / "part", fcntl.LOCK_EX, 5, 110), may_lock(folder / "shared", fcntl.LOCK_EX),
            may_lock(folder / "shared", fcntl.LOCK_SH)]


def test_locks_are_taken_again(tmp_path: Path) -> None:
    image = tmp_path / "image"
    (tmp_path / "shared").touch()
    with running(tmp_path, "run", "--statistics", "--image", str(image), "--", sys.executable, "-c", LOCKS) as first:
        assert line(first) == b"there\n"
        assert locked(tmp_path) == [False, False, True, False, True]
        checkpoint(first, image)
    assert locked(tmp_path) == [True] * 5
    with running(tmp_path, "restart", str(image)) as again:
        assert again.stdin is not None
        again.stdin.write(b"again\n")
        again.stdin.flush()
        assert line(again) == b"again\n"
        assert locked(tmp_path) == [False, False, True, False, True]
        again.stdin.close()
        assert again.wait(DEADLINE_S) == 0
        again.stdin = None


@pytest.mark.parametrize("name", ["whole", "part"])
def test_a_lock_that_somebody_else_has_meanwhile_is_theirs(name: str, tmp_path: Path) -> None:
    image = tmp_path / "image"
    (tmp_path / "shared").touch()
    with running(tmp_path, "run", "--statistics", "--image", str(image), "--", sys.executable, "-c", LOCKS) as first:
        assert line(first) == b"there\n"
        checkpoint(first, image)
    with (tmp_path / name).open("r+") as file:
        if name == "part":
            fcntl.lockf(file, fcntl.LOCK_EX)
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        status, _, err = finished(tool("restart", str(image)), tmp_path)
    assert status == 115
    assert f"{tmp_path / name} is locked by another program".encode() in err
    assert finished(tool("restart", str(image)), tmp_path, b"over\n")[:2] == (0, b"over\n")


NAMELESS = """
import fcntl, os, sys
memory = os.memfd_create("x", os.MFD_ALLOW_SEALING)
os.write(memory, b"sealed"); os.fchmod(memory, 0o642)
fcntl.fcntl(memory, 1033, 2 | 4)
gone = os.open("gone", os.O_RDWR | os.O_CREAT, 0o600); os.fchmod(gone, 0o640); os.unlink("gone")
print("there", flush=True)
sys.stdin.readline()
print(*[oct(os.fstat(each).st_mode) for each in (memory, gone)], fcntl.fcntl(memory, 1034), os.pread(memory, 9, 0))
try:
    os.ftruncate(memory, 100)
except PermissionError:
    print("too long")
"""


def test_files_without_a_name_keep_mode_and_seals(tmp_path: Path) -> None:
    image, command = tmp_path / "image", [sys.executable, "-c", NAMELESS]
    native = finished(command, tmp_path, b"\n")[1].partition(b"\n")[2]
    assert b"too long" in native
    with running(tmp_path, "run", "--statistics", "--image", str(image), "--", *command) as first:
        assert line(first) == b"there\n"
        checkpoint(first, image)
    assert finished(tool("restart", str(image)), tmp_path, b"\n") == (0, native, b"")


CANNOT = {
    "a renamed pipe": ("os.mkfifo('x'); os.open('x', os.O_RDWR); os.mkdir('d'); os.link('x', 'd/y'); os.unlink('x')",
                       "has that name no longer"),
    "another name": ("open('x', 'w'); os.open('x', os.O_RDONLY); os.mkdir('d'); os.link('x', 'd/x'); os.unlink('x')",
                     "has that name no longer"),
}


@pytest.mark.parametrize("what", CANNOT)
def test_what_could_not_be_opened_again_is_said_before(what: str, tmp_path: Path) -> None:
    """There is no image, with the name of what is in the way, and the program goes on."""
    code, why = CANNOT[what]
    program = f"import os, sys\n{code}\nprint('there', flush=True)\nsys.stdin.readline()\nprint('over')"
    with running(tmp_path, "run", "--statistics", "--image", "image", "--", sys.executable, "-c", program) as process:
        assert line(process) == b"there\n"
        with pytest.raises(AssertionError, match=why):
            checkpoint(process, tmp_path / "image")
        assert process.communicate(b"\n")[0] == b"over\n"
        assert process.returncode == 0
    assert not (tmp_path / "image").exists()


ENDS = """
import fcntl, os, sys
GET_PIPE_SIZE, SET_PIPE_SIZE = 1032, 1031

def flags(descriptor):
    return oct(fcntl.fcntl(descriptor, fcntl.F_GETFL))

def info(descriptor):
    with open(f"/proc/self/fdinfo/{descriptor}") as file:
        return dict(line.split(":", 1) for line in file.read().splitlines())

os.mkfifo("named"), os.mkfifo("unlinked"), os.mkfifo("idle")
both = os.open("named", os.O_RDWR)
reader, writer = os.open("named", os.O_RDONLY), os.open("named", os.O_WRONLY)
fcntl.fcntl(both, SET_PIPE_SIZE, 1 << 17)
os.write(writer, b"named " * 12000); os.close(both)
gone = os.open("unlinked", os.O_RDWR); gone_reader = os.open("unlinked", os.O_RDONLY | os.O_NONBLOCK)
os.write(gone, b"unlinked"); os.unlink("unlinked"); os.close(gone)
idle = os.open("idle", os.O_RDONLY | os.O_NONBLOCK)
a, b = os.pipe()
a_too, b_too = os.open(f"/proc/self/fd/{a}", os.O_RDONLY | os.O_NONBLOCK), os.open(f"/dev/fd/{b}", os.O_WRONLY)
os.write(b, b"once")
os.mkdir("folder"); folder = os.open("folder", os.O_RDONLY)
old = os.open("old", os.O_RDWR | os.O_CREAT, 0o600); os.write(old, b"content")
old_reader = os.open("old", os.O_RDONLY); os.utime("old", (1234567, 7654321)); os.unlink("old"); os.fchmod(old, 0)
own = os.open(f"/proc/self/fd/{old_reader}", os.O_RDONLY | os.O_PATH)
hard = os.open("hard", os.O_RDWR | os.O_CREAT, 0o600); os.write(hard, b"hard"); os.fchmod(hard, 0o200)
linked = os.open("linked", os.O_RDWR | os.O_CREAT, 0o600); os.write(linked, b"linked")
os.mkfifo("pipe"); pipe = os.open("pipe", os.O_RDWR); os.write(pipe, b"in the pipe")
for name in ("linked", "pipe"): os.link(name, f"{name} again"); os.unlink(name)
memory = os.memfd_create("x", os.MFD_ALLOW_SEALING); os.write(memory, b"memory")
memory_too = os.open(f"/proc/self/fd/{memory}", os.O_RDWR)
here = os.open(".", os.O_RDONLY)
os.chdir("folder"); os.rmdir("../folder")
print("there", flush=True)
sys.stdin.readline()
print(fcntl.fcntl(reader, GET_PIPE_SIZE), len(os.read(reader, 1 << 20)), flags(reader), flags(writer))
print(os.read(gone_reader, 100), os.read(gone_reader, 100), os.fstat(gone_reader).st_nlink)
print(flags(idle), os.read(idle, 10))
print(flags(a), flags(a_too), os.read(a, 100), flags(b_too), info(b_too)["flags"])
try:
    os.read(a_too, 1)
except BlockingIOError:
    print("empty")
print(os.fstat(folder).st_nlink, os.fstat(folder).st_ino == os.stat("/proc/self/cwd").st_ino, os.listdir(folder))
os.pwrite(old, b"C", 0)
print(os.pread(old_reader, 100, 0), os.lseek(old_reader, 0, 1), os.lseek(old, 0, 1), oct(os.fstat(old).st_mode))
try:
    os.write(old_reader, b"no")
except OSError as error:
    print(error)
print(os.pread(hard, 10, 0), oct(os.fstat(hard).st_mode))
os.write(memory_too, b"Memo")
print(os.pread(memory, 10, 0), os.lseek(memory, 0, 1), info(memory)["pos"], info(memory)["flags"])
os.fchdir(here)
os.write(linked, b" file")
with open("linked again") as file:
    print(file.read(), os.fstat(linked).st_nlink, os.read(pipe, 100), os.listdir().count("pipe"))
"""


def test_named_pipes_folders_and_deleted_files_are_as_they_were(tmp_path: Path) -> None:
    """What lies in a named pipe, both its ends, deleted pipes and folders, files that were opened twice."""
    image, command = tmp_path / "image", [sys.executable, "-c", ENDS]
    (tmp_path / "native").mkdir()
    native = finished(command, tmp_path / "native", b"\n")[1].partition(b"\n")[2]
    assert native.count(b"\n") == 11
    with running(tmp_path, "run", "--statistics", "--image", str(image), "--", *command) as first:
        assert line(first) == b"there\n"
        checkpoint(first, image)
    status, out, err = finished(tool("restart", str(image)), tmp_path, b"\n")
    assert (status, err) == (0, b"")
    assert out.decode() == native.decode()
    assert not list(tmp_path.glob("*.gone.*"))


@pytest.mark.parametrize(("pause_ms", "moves"), [("0", 0), ("150", 4)])
def test_pipes_are_as_they_were(pause_ms: str, moves: int, compiled: Compile, tmp_path: Path) -> None:
    """Their flags, which differ by end, the room that they were given, packets, what is in them."""
    command = [compiled("pipes"), pause_ms]
    native = subprocess.run(command, capture_output=True, check=True).stdout
    life = Chain(command, tmp_path, seed=4).live(moves, 0.1)
    assert (life.status, life.output.decode()) == (0, native.decode())
    assert bool(life.links) == bool(moves)
