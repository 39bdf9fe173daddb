"""What may break does break: the channel at any byte, the shadow, the disk, a checkpoint, the executable at home.

The program goes on from its checkpoint, or there is a clear error; nothing is lost and nothing is done twice.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from condor_actors.machine.native.image import ImageDamaged, read_image
from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, Task
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, Chain, at_end_of_test, end_family
from tests.native.conftest import Compile, finished, tool
from tests.native.test_undo_journal import tree

CHANNEL_LOST, CANNOT_START = 113, 115


class Relay(threading.Thread):
    """Carries bytes between two sockets until a number of them has passed, in both directions together."""

    def __init__(self, one: socket.socket, other: socket.socket, most: int) -> None:
        super().__init__(daemon=True)
        self.ends = {one: other, other: one}
        self.left = most

    def run(self) -> None:
        while self.left > 0:
            for end in select.select(list(self.ends), [], [])[0]:
                data = end.recv(min(self.left, 65536))
                self.left -= len(data)
                if not data:
                    self.left = 0
                    break
                self.ends[end].sendall(data)
        for end in self.ends:
            end.close()


class Cut(Chain):
    """A chain of which one run has a channel that ends after so many bytes."""

    def run_cut(self, executable: str, most: int) -> int:
        """Run EXECUTABLE until MOST bytes have passed, or to its end; return its exit status."""
        ours, relayed = socket.socketpair()
        away, theirs = socket.socketpair()
        null = os.open("/dev/null", os.O_RDWR)
        self.session = self.host.open(
            ours,
            Task(
                program=self.command[0], arguments=self.command, environment=self.environment,
                directory=str(self.work), image=str(self.image), standard_fds=(null, self.output, self.output),
            ),
        )  # fmt: skip
        os.close(null)
        relay = Relay(relayed, away, most)
        with theirs:
            self.process = subprocess.Popen(
                [executable, str(theirs.fileno()), "-", "family"], pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        relay.start()
        status = self.process.wait(DEADLINE_S)
        relay.join(DEADLINE_S)
        self.expect(EventKind.ENDED)
        return status


def prepared(folder: Path) -> Path:
    """Return a folder with the files that the rewriter finds."""
    folder.mkdir(parents=True)
    (folder / "table").write_bytes(bytes(range(256)) * 1000)
    (folder / "log").write_text("there before\n")
    return folder


@pytest.fixture(scope="module")
def expected(compiled: Compile, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return the files of a run that nothing disturbed."""
    native = prepared(tmp_path_factory.mktemp("native") / "work")
    subprocess.run([compiled("rewriter"), "80"], cwd=native, stdout=subprocess.PIPE, check=True)
    return tree(native)


def image_half_way(program: str, folder: Path, seed: int) -> Cut:
    """Return a chain that has its first image and nobody running."""
    chain = Cut([program, "80"], folder, seed, work=folder / "work")
    for pause_s in (0.02, 0.01, 0.005, 0.0, 0.0, 0.0, 0.0):
        shutil.rmtree(chain.work, ignore_errors=True)
        prepared(chain.work)
        chain.start(runtime_path())
        assert chain.process
        chain.expect(EventKind.STARTED)
        time.sleep(pause_s)
        chain.host.vacate(chain.session)
        chain.process.send_signal(CHECKPOINT_SIGNAL)
        event = chain.expect(EventKind.IMAGE, EventKind.ENDED)
        if event.kind is EventKind.IMAGE:
            chain.expect(EventKind.ENDED)
            chain.process.wait(DEADLINE_S)
            return chain
        chain.process.wait(DEADLINE_S)
    pytest.fail("the program was always faster than its checkpoint")


def test_a_channel_cut_anywhere(compiled: Compile, tmp_path: Path, expected: dict[str, object]) -> None:
    chain = image_half_way(compiled("rewriter"), tmp_path, seed=1)
    statuses = set()
    for most in [*range(0, 64, 7), *(chain.random.randrange(64, 60000) for _ in range(25))]:
        statuses.add(chain.run_cut(str(chain.image), most))
    assert statuses <= {CHANNEL_LOST, CANNOT_START, 0}
    assert CHANNEL_LOST in statuses
    chain.start(str(chain.image))
    assert chain.process
    assert chain.process.wait(DEADLINE_S) == 0
    chain.expect(EventKind.ENDED)
    os.close(chain.output)
    assert tree(chain.work) == expected


def test_a_program_that_cannot_even_begin(compiled: Compile, tmp_path: Path) -> None:
    chain = Cut([compiled("rewriter"), "80"], tmp_path, 1, work=prepared(tmp_path / "work"))
    before = tree(chain.work)
    for most in range(0, 400, 13):
        assert chain.run_cut(runtime_path(), most) in (CHANNEL_LOST, CANNOT_START)
    os.close(chain.output)
    assert tree(chain.work) == before


def test_the_shadow_dies(compiled: Compile, tmp_path: Path, expected: dict[str, object]) -> None:
    work, image = prepared(tmp_path / "work"), tmp_path / "image"
    source = Path(__file__).parents[2]
    shadow = subprocess.Popen(
        tool("run", "--every", "0.02s", "--image", str(image), "--", compiled("rewriter"), "80"), cwd=work,
        stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    at_end_of_test(partial(end_family, shadow))
    while not image.exists() and shadow.poll() is None:
        os.sched_yield()
    shadow.send_signal(signal.SIGKILL)
    shadow.wait(DEADLINE_S)
    if not image.exists():
        pytest.skip("the program was faster than its checkpoint")
    status, _out, err = finished(tool("restart", str(image)), work)
    assert (status, err) == (0, b"")
    assert tree(work) == expected


def test_the_executable_at_home_changes(compiled: Compile, tmp_path: Path, expected: dict[str, object]) -> None:
    program = tmp_path / "program"
    shutil.copy2(compiled("rewriter"), program)
    chain = image_half_way(str(program), tmp_path, seed=2)
    program.unlink()
    program.write_bytes(b"something else")
    chain.start(str(chain.image))
    assert chain.process
    assert chain.process.wait(DEADLINE_S) == 0
    chain.expect(EventKind.ENDED)
    os.close(chain.output)
    assert tree(chain.work) == expected


def test_every_kind_of_truncated_checkpoint(compiled: Compile, tmp_path: Path) -> None:
    chain = image_half_way(compiled("rewriter"), tmp_path, seed=3)
    os.close(chain.output)
    data = chain.image.read_bytes()
    read_image(str(chain.image))
    edges = {
        0,
        1,
        4,
        16,
        63,
        64,
        65,
        0x1000,
        0x11000,
        0x11040,
        0x12000,
        len(data) // 2,
        len(data) - 4096,
        len(data) - 1,
    }
    copy = tmp_path / "copy"
    for size in sorted(edges):
        copy.write_bytes(data[:size])
        with pytest.raises(ImageDamaged):
            read_image(str(copy))
    before = tree(chain.work)
    status, _out, err = finished(tool("restart", str(copy)), chain.work)
    assert status == 1
    assert str(copy).encode() in err
    assert tree(chain.work) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of two megabytes."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_no_room_for_the_checkpoint(compiled: Compile, tmp_path: Path, small_disk: Path) -> None:
    image = small_disk / "image"
    (small_disk / "filler").write_bytes(bytes((2 << 20) - (64 << 10)))  # no image has room in the rest
    native = subprocess.run([compiled("worker"), "file"], cwd=tmp_path, capture_output=True, check=False)
    wanted = (tmp_path / "file").read_bytes()
    (tmp_path / "file").unlink()
    command = tool("run", "--every", "0.02s", "--image", str(image), "--", compiled("worker"), "file")
    status, out, err = finished(command, tmp_path)
    assert (status, out) == (native.returncode, native.stdout)
    assert b"No space left on device" in err
    assert not image.exists()
    assert (tmp_path / "file").read_bytes() == wanted


def test_no_room_for_the_programs_files(compiled: Compile, small_disk: Path) -> None:
    code = (
        "import os\nf = open('big', 'wb', buffering=0)\ntotal = 0\n"
        "try:\n    while True:\n        total += f.write(bytes(65536)); os.fsync(f.fileno())\n"
        "except OSError as error:\n    print(error.strerror)\n"
    )
    status, out, _err = finished([*tool("run", "--"), "/usr/bin/python3", "-c", code], small_disk)
    assert (status, out) == (0, b"No space left on device\n")
