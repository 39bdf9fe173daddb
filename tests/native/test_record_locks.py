"""Record locks (fcntl) belong to a process and a file, as natively, and move with the program."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from tests.native.chain import DEADLINE_S, MOVED, Chain
from tests.native.conftest import Compile, finished, tool
from tests.native.test_open_files_moved import may_lock
from tests.native.test_standalone import checkpoint, line, running

NEWER_MAGIC, OLDER_MAGIC = b"CDSG", b"CDSF"  # of what an image says of open files


@pytest.mark.parametrize(("pause_ms", "moves"), [("0", 0), ("15", 8)])
def test_locks_belong_to_processes(pause_ms: str, moves: int, compiled: Compile, tmp_path: Path) -> None:
    """By several descriptors, inherited, given back by closing, kept by an exec, gone with the process."""
    command = [compiled("records"), pause_ms]
    native = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, stdin=subprocess.DEVNULL).stdout
    life = Chain(command, tmp_path, seed=8).live(moves, 0.1)
    assert (life.status, life.output.decode()) == (0, native.decode())
    assert bool(life.links) == bool(moves)


CONNECTIONS = """
import sqlite3, sys
one, two = (sqlite3.connect("data", isolation_level=None, timeout=5) for _ in range(2))
one.execute("create table t (n)")
one.execute("begin"); one.execute("select * from t").fetchall()
two.execute("begin"); two.execute("select * from t").fetchall()
print("there", flush=True)
sys.stdin.readline()
one.execute("commit")
two.execute("insert into t values (1)"); two.execute("commit")
print(*one.execute("select n from t").fetchone(), flush=True)
"""


def test_two_connections_of_a_process_to_a_database(tmp_path: Path) -> None:
    """SQLite takes a lock by one descriptor and goes on with another."""
    image = tmp_path / "image"
    command = [sys.executable, "-c", CONNECTIONS]
    with running(tmp_path, "run", "--statistics", "--image", str(image), "--", *command) as first:
        assert line(first) == b"there\n"
        outside = sqlite3.connect(tmp_path / "data", isolation_level=None, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            outside.execute("insert into t values (2)")
        outside.close()
        checkpoint(first, image)
    assert finished(tool("restart", str(image)), tmp_path, b"\n")[:2] == (0, b"1\n")


SHARED = """
import fcntl, os, sys
file = open("shared", "r+")
ready, told = os.pipe()
if os.fork() == 0:
    fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)
    os.write(told, b"!")
    os.close(told)
    sys.stdin.readline()
    os._exit(0)
os.read(ready, 1)
fcntl.lockf(file, fcntl.LOCK_EX, 10, 100)
print("there", flush=True)
os.wait()
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("free")
except OSError:
    print("not free")
"""


OLDER = """
import fcntl, os, struct, time
file = open("data", "r+")
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 10, 10, 0))
print("there", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
fcntl.lockf(file, fcntl.LOCK_EX, 5, 12)
fcntl.lockf(file, fcntl.LOCK_UN)
print("unlocked", flush=True)
while not os.path.exists("end"):
    time.sleep(0.01)
"""


def said(chain: Chain, word: bytes) -> None:
    """Return when the program has written WORD."""
    while word not in (chain.folder / "output").read_bytes():
        assert chain.until(EventKind.ENDED, within_s=0.02) is None


def test_locks_of_an_older_image(tmp_path: Path) -> None:
    """In it all are those of open files: the process can change and give back its own, also after another move."""
    older, data = tmp_path / "older", tmp_path / "data"
    data.touch()
    chain = Chain([sys.executable, "-c", OLDER], tmp_path, seed=1)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    said(chain, b"there")
    chain.host.vacate(chain.session)
    assert chain.asked_for_image().kind is EventKind.IMAGE
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == MOVED
    chain.image.replace(older)
    content = older.read_bytes()
    assert NEWER_MAGIC in content
    older.write_bytes(content.replace(NEWER_MAGIC, OLDER_MAGIC))
    chain.start(str(older))
    chain.expect(EventKind.STARTED)
    assert not may_lock(data, fcntl.LOCK_EX, 1, 10)
    assert chain.moved(1)
    chain.expect(EventKind.STARTED)
    assert not may_lock(data, fcntl.LOCK_EX, 1, 10)
    (tmp_path / "go").touch()
    said(chain, b"unlocked")
    assert may_lock(data, fcntl.LOCK_EX, 100, 0)
    (tmp_path / "end").touch()
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == 0
    os.close(chain.output)


def test_members_take_their_own_locks_again(tmp_path: Path) -> None:
    """A parent and its child that have one open file; and a program outside that has one of the two meanwhile."""
    image, shared = tmp_path / "image", tmp_path / "shared"
    shared.touch()
    command = [sys.executable, "-c", SHARED]
    with running(tmp_path, "run", "--statistics", "--image", str(image), "--", *command) as first:
        assert line(first) == b"there\n"
        assert [may_lock(shared, fcntl.LOCK_EX, 10, at) for at in (0, 50, 100)] == [False, True, False]
        checkpoint(first, image)
    with shared.open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 5)
        status, _, err = finished(tool("restart", str(image)), tmp_path, b"\n")
    assert status != 0
    assert f"{shared} is locked by another program".encode() in err
    assert finished(tool("restart", str(image)), tmp_path, b"\n")[:2] == (0, b"free\n")
