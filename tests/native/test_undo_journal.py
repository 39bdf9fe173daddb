"""Files roll back with the program: after any number of crashes they are as if it had run once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, Chain
from tests.native.conftest import Compile, finished, tool


def tree(folder: Path) -> dict[str, object]:
    """Return everything under FOLDER: content, modes, links."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(("image", "output")):
            continue
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[name] = (mode, content)
    return found


class Crashes(Chain):
    """A chain in which the program runs on after each checkpoint and is then killed: its effects must be undone."""

    def live_with_crashes(self, crashes: int, pause_s: float) -> int:
        """Run to the end, returning how often the program was killed."""
        self.start(runtime_path())
        done = 0
        while True:
            assert self.process
            if self.expect(EventKind.STARTED, EventKind.ENDED).kind is EventKind.ENDED:
                break
            if self.until(EventKind.ENDED, within_s=self.random.random() * pause_s):
                break
            if done >= crashes:
                self.expect(EventKind.ENDED)
                break
            if done == 0 or self.random.random() < 0.7:  # sometimes it dies twice after one checkpoint
                self.process.send_signal(CHECKPOINT_SIGNAL)
                if self.expect(EventKind.IMAGE, EventKind.ENDED).kind is EventKind.ENDED:
                    break
            if self.until(EventKind.EXITED, EventKind.ENDED, within_s=self.random.random() * pause_s):
                break
            self.process.send_signal(signal.SIGKILL)
            status = self.process.wait(DEADLINE_S)
            event = self.expect(EventKind.EXITED, EventKind.LOST)
            self.expect(EventKind.ENDED)
            if event.kind is EventKind.EXITED:  # it had ended by itself
                assert status in (0, -signal.SIGKILL)
                return done
            done += 1
            self.start(str(self.image))
        assert self.process
        assert self.process.wait(DEADLINE_S) == 0
        return done


def run_with_crashes(program: str, folder: Path, seed: int, crashes: int) -> int:
    """Run PROGRAM natively and with crashes; return how many there were."""
    native = folder / "native"
    moved = folder / "moved"
    for place in (native, moved):
        place.mkdir(parents=True)
        (place / "table").write_bytes(bytes(range(256)) * 1000)
        (place / "log").write_text("there before\n")
    subprocess.run([program, "80"], cwd=native, stdout=subprocess.PIPE, check=True)
    chain = Crashes([program, "80"], moved, seed)
    done = chain.live_with_crashes(crashes, 0.03)
    os.close(chain.output)
    assert tree(moved) == tree(native), seed
    return done


@pytest.mark.parametrize("seed", range(4))
def test_crashes_leave_no_trace(seed: int, compiled: Compile, tmp_path: Path) -> None:
    assert run_with_crashes(compiled("rewriter"), tmp_path, seed, 6) >= 1
    assert not (tmp_path / "moved" / "image.undo").exists()


def test_an_image_of_a_program_that_has_ended_finds_its_files(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("there before\n")
    code = (
        "log = open('log', 'a', buffering=1)\nlog.write('begun\\n')\nprint('ready', flush=True)\n"
        "input()\nlog.write('ended\\n')"
    )
    command = tool("run", "--statistics", "--image", "image", "--", sys.executable, "-c", code)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as run:
        assert run.stdin
        assert run.stdout
        assert run.stderr
        assert run.stdout.readline() == b"ready\n"
        run.send_signal(signal.SIGUSR1)
        assert b"checkpoint" in run.stderr.readline()
        run.communicate(b"go on\n", timeout=DEADLINE_S)
    for _ in range(2):
        assert (tmp_path / "log").read_text() == "there before\nbegun\nended\n"
        assert finished(tool("restart", "image"), tmp_path, b"go on\n")[0] == 0
    assert (tmp_path / "log").read_text() == "there before\nbegun\nended\n"


def test_what_is_changed_in_place_is_as_it_was(tmp_path: Path) -> None:
    """A program that reads what it wrote in its own future would count a step twice."""
    (tmp_path / "counter").write_text("041" + "." * 200_000)
    code = (
        "counter = open('counter', 'r+b', buffering=0)\nprint('ready', flush=True)\ninput()\n"
        "number = int(counter.read(3))\ncounter.seek(0)\ncounter.write(b'%03d' % (number + 1))\n"
    )
    command = tool("run", "--statistics", "--image", "image", "--", sys.executable, "-c", code)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as run:
        assert run.stdout
        assert run.stderr
        assert run.stdout.readline() == b"ready\n"
        run.send_signal(signal.SIGUSR1)
        assert b"checkpoint" in run.stderr.readline()
        run.communicate(b"go on\n", timeout=DEADLINE_S)
    for _ in range(2):
        assert (tmp_path / "counter").read_text() == "042" + "." * 200_000
        assert finished(tool("restart", "image"), tmp_path, b"go on\n")[0] == 0
    assert (tmp_path / "counter").read_text() == "042" + "." * 200_000


@pytest.mark.soak
def test_many_crashes_leave_no_trace(compiled: Compile, tmp_path: Path) -> None:
    done = 0
    seed = 1000
    while done < 500:
        done += run_with_crashes(compiled("rewriter"), tmp_path / str(seed), seed, 20)
        seed += 1
