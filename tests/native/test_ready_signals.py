"""Signals of what is ready, and names that files get late, are the native thing, also when the program is moved."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import Compile, finished, tool


def moved_and_native(command: list[str], links: int, pause_s: float, folder: Path) -> None:
    native, here = folder / "native", folder / "here"
    native.mkdir()
    here.mkdir()
    done = subprocess.run(command, cwd=native, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    life = Chain(command, folder, seed=links, work=here).live(links, pause_s)
    assert life.output.decode() == done.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)
    assert {path.name for path in here.iterdir()} == {path.name for path in native.iterdir()}


@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(1, 0, 0.0), (60, 8, 0.4), (30, 15, 0.1)])
def test_what_is_ready_tells_by_a_signal(
    rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    moved_and_native([compiled("ready"), str(rest_ms)], links, pause_s, tmp_path)


@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(1, 0, 0.0), (200, 6, 0.15), (60, 8, 0.02)])
def test_a_file_without_a_name_is_given_one(
    rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    moved_and_native([compiled("named_later"), str(rest_ms)], links, pause_s, tmp_path)


LEASES = """
import errno, fcntl, os
file = open("file", "w+")
print(fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_UNLCK)
for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK):
    try:
        print(fcntl.fcntl(file, fcntl.F_SETLEASE, kind))
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def test_leases_are_refused_as_by_a_file_system_without_them(tmp_path: Path) -> None:
    done = finished(tool("run", "--", sys.executable, "-c", LEASES), tmp_path)
    assert done[:2] == (0, b"True\nEINVAL\nEINVAL\nEINVAL\n")


SERVER = """
import fcntl, os, signal, socket, sys
heard = []
signal.signal(signal.SIGIO, lambda *_: heard.append(1))
ours, theirs = socket.socketpair()
fcntl.fcntl(ours, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(ours, fcntl.F_SETFL, fcntl.fcntl(ours, fcntl.F_GETFL) | os.O_ASYNC)
if os.fork() == 0:
    ours.close()
    theirs.send(b"x")
    os._exit(0)
while not heard:
    signal.pause()
print(ours.recv(5), os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_file_of_a_family_with_a_directory_of_its_own(tmp_path: Path) -> None:
    """The same within job_root: a name can be given to what the program has, and to nothing else."""
    place = tmp_path / "place"
    place.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    code = (
        "import os\n"
        "def give(path, name):\n"
        "    try:\n"
        "        os.link(path, name, src_dir_fd=0)\n"
        "        return 'given'\n"
        "    except OSError as error:\n"
        "        return error.errno\n"
        "one = os.open('.', os.O_TMPFILE | os.O_RDWR)\n"
        f"print(give(f'/proc/self/fd/{{one}}', 'name'), give('{secret}', 'other'), give('/proc/1/fd/0', 'third'))\n"
        "shell = os.open('/bin/sh', os.O_RDONLY)\n"
        "print(give(f'/proc/self/fd/{shell}', 'shell') in (13, 18))\n"
        "print(sorted(os.listdir('.')))\n"
    )
    words = ["--image", str(tmp_path / "image"), "--job-root", str(place), "--", "/usr/bin/python3", "-c", code]
    done = finished(tool("run", *words), place)
    assert done[:2] == (0, b"given 13 13\nTrue\n['name']\n"), done


def test_a_parent_that_waits_is_woken(tmp_path: Path) -> None:
    done = finished(tool("run", "--", sys.executable, "-c", SERVER), tmp_path)
    assert done[:2] == (0, b"b'x' 0\n")
