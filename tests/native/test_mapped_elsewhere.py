"""A file that others at home have mapped or locked is not mapped shared and writable: nobody undoes another's work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.pool_fixture import BIN

MAPS = """
import errno, mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
try:
    memory = mmap.mmap(file, 4096, mmap.MAP_SHARED)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
    sys.exit()
print("mapped", flush=True)
sys.stdin.readline()
memory[int(sys.argv[2])] = 120
memory.flush()
"""
LOCKS = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
getattr(fcntl, sys.argv[2])(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.readline()
"""
Run = subprocess.Popen[str]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    path = tmp_path / "shared"
    path.write_bytes(b"." * 4096)
    return path


@contextmanager
def running(*command: str | Path, says: str) -> Iterator[Run]:
    """A program that says a word and goes on when its standard input ends, in a folder of its own."""
    with TemporaryDirectory() as folder, \
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=folder) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        try:
            said = run.stdout.readline()
            assert said == f"{says}\n", (said, run.stderr.read() if run.poll() is not None else "")
            yield run
        finally:
            run.stdin.close()
            run.wait(60)


def away(*command: str | Path) -> list[str | Path]:
    return [BIN / "condor_checkpoint", "run", "--", *command]


def test_by_another_job(shared: Path) -> None:
    first = away(sys.executable, "-c", MAPS, shared, "1")
    second = away(sys.executable, "-c", MAPS, shared, "2")
    with running(*first, says="mapped") as one, running(*second, says="EAGAIN") as two:
        assert two.stderr
        assert two.stderr.read() == (f"condor_checkpoint: {shared} cannot be mapped shared and writable: "
                                     "another job of this user has it mapped\n")
        assert one.poll() is None
    with running(*second, says="mapped"):
        pass
    assert shared.read_bytes()[:4] == b".xx."


def test_by_a_program_at_home(shared: Path) -> None:
    with running(sys.executable, "-c", MAPS, shared, "1", says="mapped") as local, \
            running(*away(sys.executable, "-c", MAPS, shared, "2"), says="EAGAIN") as job:
        name = Path(f"/proc/{local.pid}/comm").read_text().strip()
        assert job.stderr
        assert f"{name} (process {local.pid}) has it mapped" in job.stderr.read()


@pytest.mark.parametrize("how", ["flock", "lockf"])
def test_one_that_a_program_at_home_has_locked(how: str, shared: Path) -> None:
    with running(sys.executable, "-c", LOCKS, shared, how, says="locked") as local, \
            running(*away(sys.executable, "-c", MAPS, shared, "2"), says="EAGAIN") as job:
        assert job.stderr
        assert f"(process {local.pid}) has it locked" in job.stderr.read()


def test_its_own_locks_are_no_hindrance(shared: Path) -> None:
    """Its members', too: databases lock a file and map it."""
    program = (f"import fcntl, mmap, os, subprocess, sys\nfile = os.open({str(shared)!r}, os.O_RDWR)\n"
               "fcntl.lockf(file, fcntl.LOCK_EX, 4, 0)\nfcntl.flock(file, fcntl.LOCK_SH)\n"
               f"sys.exit(subprocess.call([sys.executable, '-c', {MAPS!r}, {str(shared)!r}, '3']))")
    with running(*away(sys.executable, "-c", program), says="mapped"):
        pass
    assert shared.read_bytes()[:4] == b"...x"


def test_a_reader_at_home_is_no_hindrance(shared: Path) -> None:
    reads = MAPS.replace("mmap.MAP_SHARED", "mmap.MAP_SHARED, mmap.PROT_READ").replace("memory[", "# [")
    with running(sys.executable, "-c", reads, shared, "0", says="mapped"), \
            running(*away(sys.executable, "-c", MAPS, shared, "2"), says="mapped"):
        pass
    assert shared.read_bytes()[:4] == b"..x."


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
@pytest.mark.parametrize("visitors", [0, 3], ids=["open", "full"])
def test_another_users_mark_means_nothing(visitors: int, shared: Path) -> None:
    """Its name can be guessed: a process that takes it keeps nobody from mapping, also if it takes no more visitors."""
    found = shared.stat()
    name = f"condor-mapped/0/{found.st_dev:x}/{found.st_ino:x}"
    takes = (f"import os, socket\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\ns.bind('\\0{name}')\n"
             f"s.listen(0)\nkept = [socket.socket(socket.AF_UNIX) for _ in range({visitors})]\nfor each in kept:\n"
             f"    each.setblocking(False)\n    each.connect_ex('\\0{name}')\nprint('taken', flush=True)\ninput()")
    with running(sys.executable, "-c", takes, says="taken"), \
            running(*away(sys.executable, "-c", MAPS, shared, "2"), says="mapped"):
        pass
    assert shared.read_bytes()[:4] == b"..x."
