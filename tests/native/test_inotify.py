"""What a program hears of the files that it watches is the native thing, also when it is moved."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from tests.native.chain import DEADLINE_S, MOVED, Chain, NoImage
from tests.native.conftest import Compile, finished, tool

MODIFY, ATTRIB, DELETE_SELF, OVERFLOW, IGNORED = 0x2, 0x4, 0x400, 0x4000, 0x8000
FOLLOWED = (
    "echo line 0 > log; (for i in 1 2 3 4 5 6 7; do sleep 0.15; echo line $i >> log; done) & "
    "tail -n +1 -f log | head -n 8; wait"
)


def places(folder: Path) -> tuple[Path, Path]:
    """Return two new folders in FOLDER: to run natively, and here."""
    found = folder / "native", folder / "here"
    for place in found:
        place.mkdir()
    return found


@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(2, 0, 0.0), (120, 8, 0.2), (60, 12, 0.02)])
def test_what_a_program_hears_is_the_native_thing(
    rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    command = [compiled("watches"), "all", str(rest_ms)]
    native, here = places(tmp_path)
    done = subprocess.run(command, cwd=native, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    work = here / "work"
    work.mkdir()
    life = Chain(command, here, seed=links, work=work).live(links, pause_s)
    assert life.output.decode() == done.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)


def test_tail_follows_a_file_across_moves(tmp_path: Path) -> None:
    native, here = places(tmp_path)
    command = ["/bin/sh", "-c", FOLLOWED]
    done = subprocess.run(command, cwd=native, capture_output=True, check=True)
    assert done.stdout.count(b"\n") == 8
    life = Chain(command, here, seed=3).live(4, 0.2)
    assert (life.status, life.output) == (0, done.stdout)
    assert life.links


def heard(folder: Path, text: str) -> None:
    """Wait until the program in FOLDER has said TEXT."""
    end_s = time.monotonic() + DEADLINE_S
    while text not in (folder / "output").read_text():
        assert time.monotonic() < end_s, (folder / "output").read_text()
        time.sleep(0.01)


@pytest.fixture
def waiting(compiled: Compile, tmp_path: Path) -> Chain:
    """Return a program that watches files in tmp_path/work, and waits."""
    work = tmp_path / "work"
    (work / "folder").mkdir(parents=True)
    for name in ("file", "gone", "same", "folder/inside"):
        (work / name).write_text("begin")
    chain = Chain([compiled("watches"), "wait"], tmp_path, seed=1, work=work)
    chain.start(runtime_path())
    chain.expect(EventKind.STARTED)
    heard(tmp_path, "ready\n")
    return chain


def test_what_others_did_while_a_program_was_nowhere_is_told(waiting: Chain, tmp_path: Path) -> None:
    """A change of a file, its end, and that there was something in a directory; nothing of what stayed as it was."""
    assert waiting.process
    work = tmp_path / "work"
    waiting.host.vacate(waiting.session)
    assert waiting.asked_for_image().kind is EventKind.IMAGE
    waiting.expect(EventKind.ENDED)
    assert waiting.process.wait(DEADLINE_S) == MOVED
    (work / "file").write_text("and more of it")
    (work / "gone").unlink()
    (work / "folder" / "inside").write_text("changed")
    waiting.start(str(waiting.image))
    waiting.expect(EventKind.ENDED)
    assert waiting.process.wait(DEADLINE_S) == 0
    told = (tmp_path / "output").read_text().split("ready\n")[1].splitlines()
    masks = [tuple(int(word, 16) for word in line.split()[:2]) for line in told if line.endswith(" -")]
    assert masks == [(1, MODIFY), (2, DELETE_SELF), (2, IGNORED), (-1, OVERFLOW)]
    assert "3 2 inside" in told  # the watches are there again


def test_a_watched_file_that_was_renamed_stops_a_checkpoint_with_its_name(waiting: Chain, tmp_path: Path) -> None:
    assert waiting.process
    (tmp_path / "work" / "same").rename(tmp_path / "work" / "other")
    with pytest.raises(NoImage) as said:  # at once, not when the time is over
        waiting.asked_for_image()
    why = f"{tmp_path / 'work' / 'same'}: it is watched, and has that name no longer"
    assert str(said.value) == f"no checkpoint: {os.strerror(errno.ESTALE)} ({why})"
    waiting.host.close(waiting.session)
    waiting.process.wait(DEADLINE_S)


def test_a_confined_program_watches_what_it_may_read(compiled: Compile, tmp_path: Path) -> None:
    """Outside of job_root nothing is heard."""
    work, outside = tmp_path / "work", tmp_path / "else"
    for folder in (work, outside):
        folder.mkdir()
    (work / "link").symlink_to(outside)
    code = (
        "import ctypes, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "fd = c.inotify_init()\n"
        f"for name in ('.', '/etc', 'link', '..', '{outside}', '/proc/self/fd/0'):\n"
        "    found = c.inotify_add_watch(fd, name.encode(), 2)\n"
        "    print(name, found if found > 0 else os.strerror(ctypes.get_errno()))\n"
    )
    chain = Chain(["/usr/bin/python3", "-c", code], tmp_path, seed=1, work=work)
    chain.job_root = str(work)
    lines = chain.live(0, 0.0).output.decode().splitlines()
    assert lines[:2] == [". 1", "/etc 2"]
    assert [line.split(" ", 1)[1] for line in lines[2:]] == [*["Permission denied"] * 3, os.strerror(errno.ELOOP)]


def test_there_is_an_end_to_what_can_be_watched(tmp_path: Path) -> None:
    code = (
        "import ctypes, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "made = [c.inotify_init() for _ in range(65)]\n"
        "print(made.index(-1), os.strerror(ctypes.get_errno()))\n"
        "os.close(made[0])\n"
        "print(c.inotify_init() > 0)\n"
    )
    assert finished(tool("run", "--", "/usr/bin/python3", "-c", code), tmp_path)[:2] == (
        0, b"64 Too many open files\nTrue\n")


TOLD = """
import ctypes, os
libc = ctypes.CDLL(None)
watches = libc.inotify_init1(0)
print([libc.inotify_add_watch(watches, name, 0x100) for name in (b".", b"/tmp", b"/")])
with open(f"/proc/self/fdinfo/{watches}") as file:
    print(sorted(line.split()[1] for line in file if line.startswith("inotify")))
"""


def test_what_is_watched_is_told_under_proc(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TOLD]
    native = finished(command, tmp_path)
    assert native[1].count(b"wd:") == 3
    assert finished([*tool("run", "--"), *command], tmp_path) == native
