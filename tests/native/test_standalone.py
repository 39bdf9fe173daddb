"""Programs that run without a pool: whose checkpoints are whose, what ends with what, what is told of them."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from condor_actors.machine.native.image import read_image
from tests.native.conftest import DEADLINE_S, Compile, finished, tool

REPOSITORY = Path(__file__).parents[2]


@contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command, with pipes; what is left of it in the end is killed."""
    process = subprocess.Popen(
        tool(*words), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def program_of(process: subprocess.Popen[bytes]) -> int:
    """The process in which the program runs."""
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(child)


def ends(pid_fd: int) -> bool:
    return bool(select.select([pid_fd], [], [], DEADLINE_S)[0])


def checkpoint(process: subprocess.Popen[bytes], image: Path) -> None:
    """Have one taken, with --statistics, and hear of it."""
    process.send_signal(signal.SIGUSR1)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert f"checkpoint {image}:".encode() in said, said


LOOP = "int main(void) { volatile unsigned long n = 0; __builtin_puts(\"on\"); __builtin_fflush(0); for (;;) n++; }"


@pytest.fixture(scope="session")
def loop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that makes no system call after its first line."""
    if shutil.which("gcc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("loop")
    (folder / "loop.c").write_text("#include <stdio.h>\n" + LOOP.replace("__builtin_", ""))
    subprocess.run(["gcc", "-o", str(folder / "loop"), str(folder / "loop.c")], check=True)
    return str(folder / "loop")


@pytest.mark.parametrize("restarted", [False, True], ids=["run", "restarted"])
def test_a_program_that_makes_no_calls_does_not_outlive_the_command(restarted: bool, loop: str, tmp_path: Path) -> None:
    image = tmp_path / "loop.ckpt"
    with running(tmp_path, "run", "--statistics", "--", loop) as first:
        assert line(first) == b"on\n"
        checkpoint(first, image)
        watched, process = os.pidfd_open(program_of(first)), first
        if restarted:
            first.kill()
            assert ends(watched)
            first.wait()
            with running(tmp_path, "restart", "--statistics", str(image)) as second:
                checkpoint_again(second, image)
                watched = os.pidfd_open(program_of(second))
                second.kill()
                assert ends(watched)
            return
        process.kill()
        assert ends(watched)


STOPS = """
import os, signal, time
child = os.fork()
if not child:
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(1000)
os.waitpid(child, os.WUNTRACED)
print(child, flush=True)
time.sleep(1000)
"""


def test_a_member_that_is_stopped_does_not_outlive_the_command(tmp_path: Path) -> None:
    with running(tmp_path, "run", "--", sys.executable, "-c", STOPS) as process:
        watched = os.pidfd_open(int(line(process)))
        process.kill()
        assert ends(watched)


def checkpoint_again(process: subprocess.Popen[bytes], image: Path) -> None:
    """Of a program that may just have been started: it is asked until it is one that can be."""
    assert process.stderr is not None
    ready: list[object] = []
    while not ready:
        if Path(f"/proc/{process.pid}/cmdline").read_bytes() and b"SigCgt:\t" in Path(
                f"/proc/{process.pid}/status").read_bytes() and catches(process.pid):
            process.send_signal(signal.SIGUSR1)
        ready = select.select([process.stderr], [], [], 0.1)[0]
    assert f"checkpoint {image}".encode() in process.stderr.readline()


def catches(pid: int) -> bool:
    """Whether a process would take the signal that asks for a checkpoint."""
    found = re.search(r"SigCgt:\t(\w+)", Path(f"/proc/{pid}/status").read_text())
    return found is not None and bool(int(found[1], 16) >> (signal.SIGUSR1 - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_programs_is_the_programs_to_take(number: signal.Signals, tmp_path: Path,
                                                    request: pytest.FixtureRequest) -> None:
    script = f"trap 'echo taken; exit 3' {number.name[3:]}; echo on; while :; do read word || :; done"
    before = signal.signal(number, signal.SIG_DFL)  # what is ignored here (nohup) would be ignored there
    request.addfinalizer(lambda: signal.signal(number, before))
    with running(tmp_path, "run", "--", "/bin/sh", "-c", script) as process:
        assert line(process) == b"on\n"
        process.send_signal(number)
        assert line(process) == b"taken\n"
        assert process.wait(DEADLINE_S) == 3
    with running(tmp_path, "run", "--", "/bin/sh", "-c", "echo on; read word") as process:
        assert line(process) == b"on\n"
        process.send_signal(number)
        assert process.wait(DEADLINE_S) == -number


def test_two_programs_of_one_name_have_a_checkpoint_each(compiled: Compile, tmp_path: Path) -> None:
    names = []
    for folder in ("one", "two", "three"):
        (tmp_path / folder).mkdir()
        names.append(str(shutil.copy(compiled("regions"), tmp_path / folder / "sim")))
    images = [tmp_path / name for name in ("sim.ckpt", "sim.2.ckpt", "sim.3.ckpt")]
    with running(tmp_path, "run", "--statistics", "--", names[0], "3") as one, ExitStack() as stack:
        assert line(one) == b"there\n"
        two = stack.enter_context(running(tmp_path, "run", "--statistics", "--", names[1], "5"))
        assert line(two) == b"there\n"
        checkpoint(one, images[0])
        assert two.stderr is not None
        assert f"of another run; the checkpoints of this one go to {images[1]}".encode() in two.stderr.readline()
        checkpoint(two, images[1])
        status, _, err = finished(tool("restart", "--image", str(images[0]), str(images[1])), tmp_path)
        assert status == 1
        assert b"the checkpoints of a program that runs go there" in err
    third = finished(tool("run", "--", names[2], "7"), tmp_path, b"x")  # one that was killed left its work
    assert third[:2] == (0, b"there\n0 wrong\n")
    assert str(images[2]).encode() in third[2]
    assert not images[2].exists()
    for image, program in zip(images[:2], names[:2], strict=True):
        assert read_image(str(image)).program == program
        assert finished(tool("restart", str(image)), tmp_path, b"x")[:2] == (0, b"0 wrong\n")
    assert {path.name for path in tmp_path.iterdir()} <= {
        "one", "two", "three", *(f"{image.name}{end}" for image in images for end in ("", ".undo"))}


@pytest.mark.parametrize("count", [40, 3000])
def test_a_core_of_many_regions(count: int, compiled: Compile, tmp_path: Path) -> None:
    image = tmp_path / "regions.ckpt"
    with running(tmp_path, "run", "--statistics", "--", compiled("regions"), str(count)) as process:
        assert line(process) == b"there\n"
        checkpoint(process, image)
    status, _, err = finished(tool("core", str(image), str(tmp_path / "core")), tmp_path)
    assert (status, err) == (0, b"")
    listed = subprocess.run(["readelf", "-lW", str(tmp_path / "core")], capture_output=True, text=True, check=True)
    loads = re.findall(r"LOAD +0x(\w+) 0x(\w+)", listed.stdout)
    places = {int(address, 16): int(offset, 16) for offset, address in loads}
    data = (tmp_path / "core").read_bytes()
    for number in range(count):
        text = f"region {number}\0".encode()
        at = places[0x300000000000 + 2 * number * 4096]
        assert data[at : at + len(text)] == text
    assert finished(tool("verify", str(image)), tmp_path)[0] == 0
    assert finished(tool("restart", str(image)), tmp_path, b"x")[:2] == (0, b"0 wrong\n")


def test_what_is_told_of_a_checkpoint_is_what_it_takes(compiled: Compile, tmp_path: Path) -> None:
    with running(tmp_path, "run", "--statistics", "--", compiled("regions"), "10") as process:
        assert line(process) == b"there\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        found = re.search(rb": (\d+) bytes on disk in", process.stderr.readline())
        assert found is not None
        image = read_image(str(tmp_path / "regions.ckpt"))
        assert int(found[1]) == image.stored_bytes
