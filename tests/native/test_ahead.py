"""Reading ahead and writing behind must not show."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowHost, Task
from tests.native.chain import at_end_of_test, end_family
from tests.native.conftest import DEADLINE_S, SOURCES, finished, tool

LATE = """
import errno, os, sys
out = os.open("big", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
told = []
def attempt(call, *words):
    try:
        return call(*words)
    except OSError as error:
        told.append(errno.errorcode[error.errno])
wrote = [attempt(os.write, out, b"x" * 65536) for _ in range(int(sys.argv[1]))]
for call in sys.argv[2:]:
    attempt(getattr(os, call), out)
print(told, os.stat("big").st_size)
"""


def both(command: list[str], folder: Path) -> tuple[tuple[int, bytes, bytes], tuple[int, bytes, bytes]]:
    """Run COMMAND here and under the runtime, each in a fresh directory."""
    (folder / "native").mkdir()
    (folder / "remote").mkdir()
    native = subprocess.run(command, cwd=folder / "native", capture_output=True, check=False)
    return (native.returncode, native.stdout, native.stderr), finished(tool("run", "--", *command), folder / "remote")


def test_order_of_reads_and_writes(tmp_path: Path) -> None:
    native, remote = both([sys.executable, str(SOURCES / "io_order.py")], tmp_path)
    assert native[0] == 0
    assert remote == native
    for name in ("a", "p", "m", "t", "killed"):
        assert (tmp_path / "remote" / name).read_bytes() == (tmp_path / "native" / name).read_bytes()


def test_shell_reads_line_by_line_from_a_file_that_others_go_on_with(tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(20000))
    (tmp_path / "lines").write_text(lines)
    script = "read one; head -c 7; sed -n 2p; read two; echo $one $two; md5sum; read rest; echo $rest"
    script = f"exec < {tmp_path}/lines; {script}"
    native, remote = both(["/bin/sh", "-c", script], tmp_path)
    assert remote == native


def test_standard_input_ends_where_the_program_stopped_reading(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(b"0123456789" * 100000)
    program = [sys.executable, "-c", "import os; print(len(os.read(0, 70000)))"]
    with given.open("rb") as file:
        done = subprocess.run(tool("run", "--", *program), stdin=file, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (0, b"70000\n")
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 70000


def limited(*words: str) -> list[str]:
    """Return a command whose files, at home, cannot grow beyond 1 MiB."""
    return ["bash", "-c", 'ulimit -f 1024; exec "$@"', "-", *tool("run", "--", sys.executable, "-c", LATE, *words)]


def test_a_late_write_error_is_told_once_by_the_next_call(tmp_path: Path) -> None:
    assert finished(limited("20", "close"), tmp_path)[1] == b"['EFBIG'] 1048576\n"
    assert finished(limited("20", "fsync", "close"), tmp_path)[1] == b"['EFBIG'] 1048576\n"
    status, out, _err = finished(limited("200", "close"), tmp_path)
    assert (status, out.endswith(b" 1048576\n")) == (0, True)
    assert out.count(b"EFBIG") >= 2  # every few megabytes, and at the end


def test_a_write_error_that_nobody_asked_about_is_reported(tmp_path: Path) -> None:
    _status, _out, err = finished(limited("20"), tmp_path)
    assert b"a write failed that the program was not told of" in err


@pytest.mark.alone
def test_a_program_that_begins_again_sees_todays_files(tmp_path: Path) -> None:
    """The second start is answered before it asks; what changed in between must show."""
    script = tmp_path / "program.py"
    (tmp_path / "names").mkdir()
    (tmp_path / "names" / "a").write_text("old")
    script.write_text(
        "import os\n"
        "print(sorted(os.listdir('names')), [open('names/' + n).read() for n in sorted(os.listdir('names'))])\n"
        "print(os.path.exists('later'), os.stat('names/a').st_size)\n"
        "open('later', 'w').write('made')\n"
        "print(os.path.exists('later'), os.stat('later').st_size, len(os.listdir('names')))\n"
    )
    host = ShadowHost()
    outputs: list[str] = []
    calls: list[int] = []
    for _ in range(4):
        calls.append(run_once(host, [sys.executable, "-S", str(script)], tmp_path, outputs))
        (tmp_path / "later").unlink()
        (tmp_path / "names" / "a").write_text("changed")
        (tmp_path / "names" / "b").write_text("new")
    assert outputs[0] == "['a'] ['old']\nFalse 3\nTrue 4 1\n"
    assert outputs[1:] == ["['a', 'b'] ['changed', 'new']\nFalse 7\nTrue 4 2\n"] * 3
    assert min(calls[1:]) < calls[0], "on a busy machine some answers lie for too long and are asked for again"


DESCRIPTORS = """
import os, select, sys
names = sys.argv[1:]
told = [os.getcwd()]
files = [open(name) for name in names]
one, two = select.epoll(), select.epoll()
told += [each.fileno() for each in files] + [one.fileno(), two.fileno()]
files[1].close()
one.close()
again = [open(names[1]), open(names[0]), select.epoll(), open(names[2])]
told += [each.fileno() for each in again] + [each.read() for each in (files[0], *again[:2], again[3])]
told += [os.getcwd(), os.listdir(".") == os.listdir(os.getcwd())]
os.chdir("below")
told += [os.getcwd(), os.stat(".").st_ino == os.stat(os.getcwd()).st_ino]
os.chdir("..")
os.rename("below", "renamed")
os.chdir("renamed")
told += [os.path.basename(os.getcwd())]
os.chdir("..")
os.rename("renamed", "below")
print(told)
"""


@pytest.mark.alone
def test_descriptors_and_the_directory_are_as_ever_in_a_start_that_is_foreseen(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    names = [str(tmp_path / each) for each in "abc"]
    for name in names:
        Path(name).write_text(name)
    command = [sys.executable, "-I", "-S", "-c", DESCRIPTORS, *names]
    native = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    host = ShadowHost()
    outputs: list[str] = []
    for _ in range(4):
        run_once(host, command, tmp_path, outputs)
    assert outputs == [native] * 4
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (moved / "below").mkdir()
    for name in "abc":
        (moved / name).write_text(name)
    assert run_once(host, command, moved, outputs)
    assert outputs[-1] == subprocess.run(command, cwd=moved, capture_output=True, text=True, check=True).stdout


def run_once(host: ShadowHost, command: list[str], folder: Path, outputs: list[str]) -> int:
    """Run COMMAND under HOST, add what it printed to OUTPUTS and return how many calls it made."""
    ours, theirs = socket.socketpair()
    calls = 0
    with theirs, (folder / "output").open("w+b") as output, open(os.devnull, "rb") as null:
        task = Task(
            program=command[0],
            arguments=command,
            environment={"PATH": os.environ["PATH"]},
            directory=str(folder),
            standard_fds=(null.fileno(), output.fileno(), output.fileno()),
        )
        session = host.open(ours, task)
        process = subprocess.Popen([runtime_path(), str(theirs.fileno()), "-"], pass_fds=(theirs.fileno(),))
        at_end_of_test(partial(end_family, process))
        theirs.close()
        over = False
        while not over:
            assert select.select([host], [], [], DEADLINE_S)[0]
            for event in host.events():
                if event.session == session and event.kind in (EventKind.EXITED, EventKind.LOST):
                    calls = host.statistics(session).calls
                over |= event.session == session and event.kind is EventKind.ENDED
        assert process.wait(DEADLINE_S) == 0
        output.seek(0)
        outputs.append(output.read().decode())
    return calls
