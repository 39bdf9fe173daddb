"""Members of a family that map the same file share it, however each of them came to be, and after a move as well."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.chain import Chain, moved_life
from tests.native.conftest import Compile, finished, tool

WRITERS = """
import sqlite3, subprocess, sys
rows = int(sys.argv[1])
if len(sys.argv) > 2:
    db = sqlite3.connect("rows.db", timeout=90, isolation_level=None)
    for number in range(rows):
        db.execute("INSERT INTO rows VALUES (?, ?)", (sys.argv[2], number))
    sys.exit()
db = sqlite3.connect("rows.db")
print(*db.execute("PRAGMA journal_mode=WAL").fetchone())
db.execute("CREATE TABLE rows (name, number)")
db.commit()
db.close()
members = [subprocess.Popen([sys.executable, sys.argv[0], str(rows), name]) for name in "abc"]
print(*(member.wait() for member in members))
db = sqlite3.connect("rows.db")
print(*db.execute("SELECT count(*), count(DISTINCT name || number) FROM rows").fetchone())
print(*db.execute("PRAGMA integrity_check").fetchone())
"""
LOCKED = """
import mmap, multiprocessing, sys

def add(lock, done, rounds):
    with open("total", "r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        for _ in range(rounds):
            with lock:
                memory[:8] = (int.from_bytes(memory[:8], "little") + 1).to_bytes(8, "little")
    done.release()

if __name__ == "__main__":
    rounds = int(sys.argv[1])
    context = multiprocessing.get_context("spawn")
    with open("total", "wb") as file:
        file.truncate(4096)
    lock, done = context.Lock(), context.Semaphore(0)
    members = [context.Process(target=add, args=(lock, done, rounds)) for _ in range(2)]
    for member in members:
        member.start()
    for member in members:
        done.acquire()
    for member in members:
        member.join()
    with open("total", "rb") as file:
        print(int.from_bytes(file.read(8), "little"))
"""
CALLS = """
import mmap, os, struct, subprocess, sys
rounds = int(sys.argv[1])
def page(number):
    return struct.pack("<Q", number) * 512
if len(sys.argv) > 2:
    pages = os.open("pages", os.O_WRONLY)
    for number in range(rounds):
        os.pwrite(pages, page(number), 4096 * (number % 16))
        os.write(1, b".")
        os.read(0, 1)
    sys.exit()
with open("pages", "w+b", buffering=0) as file:
    file.truncate(16 * 4096)
    looks, stores = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), mmap.mmap(file.fileno(), 0)
    writer = subprocess.Popen([sys.executable, sys.argv[0], str(rounds), "writer"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, bufsize=0)
    right = 0
    for number in range(rounds):
        writer.stdout.read(1)
        at = 4096 * (number % 16)
        right += looks[at:at + 4096] == page(number)
        stores[at:at + 8] = b"stored!!"
        right += os.pread(file.fileno(), 4096, at) == b"stored!!" + page(number)[8:]
        writer.stdin.write(b".")
    print(right, writer.wait())
"""
POSITIONS = """
import mmap, os, subprocess, sys
with open("shared", "w+b") as file:
    file.truncate(4096)
    memory = mmap.mmap(file.fileno(), 4096)
    if os.fork() == 0:
        with open(sys.argv[0], "rb", buffering=0) as own:
            first = own.read(20)
            assert own.seek(0, os.SEEK_CUR) == 20 and own.seek(0) == 0
            assert own.read(20) == first
        memory[0] = 7
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.wait()[1]), memory[0])
"""
GROWING = """
import mmap, os, sys
with open("grown", "w+b") as file:
    file.truncate(3 * 4096)
    memory = mmap.mmap(file.fileno(), 4096)
    memory[:5] = b"first"
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", '''
import mmap
with open("grown", "r+b") as file:
    memory = mmap.mmap(file.fileno(), 3 * 4096)
    assert memory[:5] == b"first"
    memory[8192:8196] = b"last"
    memory[:5] = b"FIRST"
    memory.close()
'''])
    assert os.wait()[1] == 0
    memory.resize(3 * 4096)
    print(memory[:5], memory[8192:8196])
    memory.close()
with open("grown", "rb") as file:
    data = file.read()
    print(len(data), data[:5], data[8192:8196])
"""


def native(program: str, folder: Path, *words: str) -> bytes:
    """Return what PROGRAM says without any of this."""
    folder.mkdir()
    (folder / "program.py").write_text(program)
    return subprocess.run([sys.executable, "program.py", *words], cwd=folder, check=True, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize(("program", "rounds"), [(WRITERS, "60"), (LOCKED, "20000"), (CALLS, "1500")],
                         ids=["a database's log", "semaphores with names", "mapped, and written by calls"])
def test_writers_that_were_executed_share_a_file_and_move(program: str, rounds: str, tmp_path: Path) -> None:
    expected = native(program, tmp_path / "native", rounds)
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "program.py").write_text(program)
    life = moved_life([sys.executable, "program.py", rounds], moved, seed=3, links=4, pause_s=0.4)
    assert (life.status, life.output) == (0, expected)
    assert re.search(rb"180 180|40000|3000 0", expected)


@pytest.mark.parametrize("program", [POSITIONS, GROWING], ids=["positions", "growing"])
def test_what_one_member_does_is_the_others(program: str, tmp_path: Path) -> None:
    expected = native(program, tmp_path / "native")
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "program.py").write_text(program)
    assert finished([*tool("run", "--"), sys.executable, "program.py"], moved) == (0, expected, b"")


def test_what_is_mapped_and_what_calls_move_are_the_same_bytes(compiled: Compile, tmp_path: Path) -> None:
    """Databases read through a mapping and write by calls; programs of MPI map for reading what others change."""
    program = compiled("mapped_transfers")
    done = []
    for name, command in (("native", [program]), ("here", [*tool("run", "--"), program])):
        folder = tmp_path / name
        folder.mkdir()
        said = finished(command, folder)
        files = {path.name: sorted(path.read_bytes().splitlines()) for path in folder.iterdir()}
        done.append((said, files))
    assert done[0] == done[1]
    assert done[0][0][0] == 0


def test_the_memory_of_many_files_is_given_back(tmp_path: Path) -> None:
    program = """
import mmap, os
if os.fork() == 0:
    os._exit(0)
os.wait()
for number in range(40):
    with open(f"file{number % 4}", "w+b") as file:
        file.truncate(1 << 20)
        with mmap.mmap(file.fileno(), 1 << 20) as memory:
            assert not any(memory[::4096]), number
            memory[:] = b"x" * (1 << 20)
print("done")
"""
    (tmp_path / "program.py").write_text(program)
    life = Chain([sys.executable, "program.py"], tmp_path, seed=1).live(2, 0.1)
    assert (life.status, life.output) == (0, b"done\n")
