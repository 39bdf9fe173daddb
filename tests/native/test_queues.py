"""Semaphores, queues, memory of System V, POSIX queues: what a program hears is the native thing, also when moved."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import Compile, finished, tool
from tests.native.test_conformance import AWAY, NATIVE, run


@pytest.mark.parametrize("program", ["queues", "segments", "posix_queues"])
@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(2, 0, 0.0), (60, 8, 0.1), (30, 12, 0.02)])
def test_what_a_program_hears_is_the_native_thing(
    program: str, rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    command = [compiled(program), str(rest_ms)]
    native, here = tmp_path / "native", tmp_path / "here"
    native.mkdir()
    here.mkdir()
    done = subprocess.run(command, cwd=native, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    life = Chain(command, here, seed=links).live(links, pause_s)
    assert life.output.decode() == done.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)


@pytest.mark.parametrize("program", ["queues", "segments"])
def test_arguments_that_are_wrong_are_refused_as_natively(program: str, compiled: Compile, tmp_path: Path) -> None:
    command = [compiled(program), "arguments"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert finished(tool("run", "--", *command), tmp_path)[:2] == (0, done.stdout)


def test_there_is_an_end_to_how_many_there_are(tmp_path: Path) -> None:
    """Queues, semaphores, and bytes of messages."""
    code = (
        "import ctypes, errno\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "made = []\n"
        "while (one := c.msgget(0, 0o600)) >= 0: made.append(one)\n"
        "print(len(made), errno.errorcode[ctypes.get_errno()])\n"
        "letter = ctypes.create_string_buffer(b'\\1' + bytes(8191 + 8))\n"
        "sent = 0\n"
        "while sent < 5000 and not c.msgsnd(made[sent % 1024], letter, 8192 - sent % 2 * 8192, 0o4000): sent += 1\n"
        "print(sent < 5000, errno.errorcode[ctypes.get_errno()])\n"
        "for one in made: c.msgctl(one, 0, None)\n"
        "print(c.semget(0, 32000, 0o600) >= 0, c.semget(0, 32000, 0o600) >= 0, c.semget(0, 1537, 0o600),"
        " errno.errorcode[ctypes.get_errno()], c.semget(0, 1536, 0o600) >= 0)\n"
    )
    assert finished(tool("run", "--", sys.executable, "-c", code), tmp_path)[:2] == (
        0, b"1024 ENOSPC\nTrue EAGAIN\nTrue True -1 ENOSPC True\n")


@pytest.mark.skipif(shutil.which("ipcmk") is None, reason="needs ipcmk, ipcs and ipcrm")
def test_the_commands_for_them_see_the_familys_own(tmp_path: Path) -> None:
    """Those of the machine are not told: the number of one that is there is another one's here, or none."""
    script = "ipcmk -S 3 -p 600 && ipcmk -Q -p 640 && ipcs -s && ipcs -q; ipcrm -amsg; ipcrm -asem; ipcs -s -q"
    made = subprocess.run(["ipcmk", "-Q"], capture_output=True, check=True, text=True).stdout.split()[-1]
    try:
        status, output, _ = finished(tool("run", "--", "/bin/sh", "-c", script), tmp_path)
    finally:
        subprocess.run(["ipcrm", "-q", made], check=True)
    lines = [line.split()[3:] for line in output.decode().splitlines() if line.startswith("0x")]
    assert (status, lines) == (0, [["600", "3"], ["640", "0", "0"]])


def test_the_mode_decides_what_a_program_may_do(tmp_path: Path) -> None:
    """But for user 0: so it is done as nobody."""
    code = (
        "import ctypes, errno\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "queue, kept = c.msgget(0, 0o200), c.semget(0, 1, 0o400)\n"
        "letter = ctypes.create_string_buffer(b'\\1' + bytes(15))\n"
        "print(c.msgsnd(queue, letter, 1, 0), c.msgrcv(queue, letter, 1, 0, 0), errno.errorcode[ctypes.get_errno()])\n"
        "print(c.semctl(kept, 0, 12), c.semctl(kept, 0, 16, 1), errno.errorcode[ctypes.get_errno()])\n"
        "print(c.msgctl(queue, 0, None), c.semctl(kept, 0, 0))\n"
    )
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        ways = [run(how, ["/usr/bin/python3", "-c", code], Path(name) / "work") for how in (NATIVE, AWAY)]
    assert ways == [["0 -1 EACCES", "0 -1 EACCES", "0 0"]] * 2


def test_what_nobody_has_attached_stays_and_what_is_removed_ends(tmp_path: Path) -> None:
    """Also when its last process was killed; and there is an end to how much of it there can be."""
    code = (
        "import ctypes, errno, os, signal\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "c.shmat.restype = ctypes.c_void_p\n"
        "c.shmdt.argtypes = [ctypes.c_void_p]\n"
        "def inside(at): return ctypes.string_at(at + 4090, 12)\n"
        "kept, removed = c.shmget(0, 8192, 0o600), c.shmget(0, 8192, 0o600)\n"
        "if not os.fork():\n"
        "    at = c.shmat(kept, None, 0)\n"
        "    ctypes.memmove(at + 4090, b'over an edge', 12)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "at = c.shmat(kept, None, 0)\n"
        "print(inside(at))\n"
        "come, go = os.pipe()\n"
        "if not (child := os.fork()):\n"
        "    c.shmat(removed, None, 0)\n"
        "    c.shmctl(removed, 0, None)\n"
        "    ctypes.memmove(at, b'by the killed', 13)\n"
        "    os.write(go, b'x')\n"
        "    signal.pause()\n"
        "os.read(come, 1)\n"
        "print(c.shmctl(removed, 2, ctypes.create_string_buffer(112)))\n"
        "os.kill(child, 9)\n"
        "os.wait()\n"
        "print(c.shmctl(removed, 2, ctypes.create_string_buffer(112)), errno.errorcode[ctypes.get_errno()])\n"
        "print(ctypes.string_at(at, 13), c.shmdt(at), c.shmctl(kept, 0, None))\n"
        "c.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]\n"
        "print(c.shmget(0, (4 << 30) + 1, 0o600), errno.errorcode[ctypes.get_errno()],\n"
        "      c.shmget(0, 4 << 30, 0o600) >= 0, c.shmget(0, 1, 0o600), errno.errorcode[ctypes.get_errno()])\n"
    )
    assert finished(tool("run", "--", sys.executable, "-c", code), tmp_path)[:2] == (
        0, b"b'over an edge'\n0\n-1 EINVAL\nb'by the killed' 0 0\n-1 ENOMEM True -1 ENOSPC\n")
