"""A program that is checkpointed, killed and continued elsewhere ends as one that was left alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from condor_actors.machine.native.image import ImageDamaged, is_image, read_image
from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, MOVED, Chain, moved_life
from tests.native.conftest import SOURCES, Compile, finished, tool

PYTHON = (
    "import hashlib\nh = hashlib.sha256()\n"
    "for i in range(400): h.update(str([j * j for j in range(8000)]).encode())\nprint(h.hexdigest())"
)
PERL = "my $s = 0; for my $i (1 .. 4000000) { $s += $i * $i % 7 } print qq($s\\n);"
SLEEPER = (
    "import time, threading\n"
    "def nap(): time.sleep(0.6)\n"
    "threads = [threading.Thread(target=nap) for _ in range(4)]\nbegan = time.monotonic()\n"
    "[t.start() for t in threads]\n[t.join() for t in threads]\n"
    "print(0.6 <= time.monotonic() - began < 60)"
)
NAMELESS = (
    "import hashlib, os, tempfile, time\n"
    "gone = tempfile.TemporaryFile(dir='.'); gone.write(b'0123456789abcdef' * 500000); gone.seek(7)\n"
    "far = os.memfd_create('far'); os.ftruncate(far, 1 << 40); places = [(1 << 39) + k * 8192 for k in range(40)]\n"
    "for at in places: os.pwrite(far, b'far away', at)\n"
    "only = os.open('only', os.O_CREAT | os.O_WRONLY | os.O_APPEND); os.unlink('only')\n"
    "for i in range(60): os.write(only, b'x' * 100); time.sleep(0.01)\n"
    "print(gone.read(3), hashlib.file_digest(gone, 'md5').hexdigest() if hasattr(hashlib, 'file_digest')"
    " else hashlib.md5(gone.read()).hexdigest())\n"
    "print([os.pread(far, 10, at - 1) for at in places], os.fstat(far).st_size, os.fstat(only).st_size)\n"
)
PIPES = (
    "import os, select\nr, w = os.pipe()\nos.write(w, b'left in the pipe')\n"
    "e = select.epoll(); e.register(r, select.EPOLLIN)\ns = 0\n"
    "for i in range(6000000): s += i\n"
    "print(e.poll(1)[0][1], os.read(r, 100), s)"
)
PROGRAMS = {
    "python": [sys.executable, "-c", PYTHON],
    "perl": ["/usr/bin/perl", "-e", PERL],
    "sleeping threads": [sys.executable, "-c", SLEEPER],
    "nameless files": [sys.executable, "-c", NAMELESS],
    "pipes and epoll": [sys.executable, "-c", PIPES],
    "node": ["/usr/bin/node", "-e", "let s=0;for(let i=0;i<5e7;i++)s=(s+i*i)%1000003;console.log(s)"],
    "awk": ["/usr/bin/awk", "BEGIN { for (i = 0; i < 6000000; i++) s += i % 7; print s }"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_chain_of_images_gives_the_same_end(name: str, tmp_path: Path) -> None:
    command = PROGRAMS[name]
    if not os.path.exists(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    native = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    life = moved_life(command, tmp_path, seed=1, links=5, pause_s=0.08)
    assert (life.status, life.output) == (native.returncode, native.stdout)


@pytest.mark.parametrize("seed", range(2))
def test_threads_survive(seed: int, compiled: Compile, tmp_path: Path) -> None:
    life = moved_life([compiled("threads")], tmp_path, seed, links=12, pause_s=0.02, least=2)
    assert (life.status, life.output) == (0, b"9000 9000\n")


def test_a_program_at_fixed_places(tmp_path: Path) -> None:
    program = str(tmp_path / "fixed")
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", program, str(SOURCES / "fixed.c")], check=True)
    native = subprocess.run([program], capture_output=True, check=True)
    assert native.stdout == b"440000\nnear 1, absurd -1\n20000000\n"
    life = moved_life([program], tmp_path, seed=7, links=8, pause_s=0.02)
    assert (life.status, life.output) == (0, native.stdout)


def test_the_stack_is_still_one(compiled: Compile, tmp_path: Path) -> None:
    life = moved_life([compiled("bounds")], tmp_path, seed=8, links=5, pause_s=0.1, least=2)
    assert (life.status, life.output) == (0, b"0 2\n")


def test_files_at_their_positions(compiled: Compile, tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    (tmp_path / "moved").mkdir()
    native = subprocess.run([compiled("worker"), "file"], cwd=tmp_path / "native", capture_output=True, check=False)
    life = moved_life([compiled("worker"), "file"], tmp_path / "moved", seed=3, links=6, pause_s=0.05, least=2)
    assert (life.status, life.output) == (native.returncode, native.stdout)
    assert (tmp_path / "moved" / "file").read_bytes() == (tmp_path / "native" / "file").read_bytes()


@pytest.mark.soak
def test_random_moments_of_threads(compiled: Compile, tmp_path: Path) -> None:
    links = 0
    seed = 100
    while links < 1000:
        folder = tmp_path / str(seed)
        folder.mkdir()
        life = Chain([compiled("threads")], folder, seed).live(links=50, pause_s=0.01)
        assert (life.status, life.output) == (0, b"9000 9000\n"), seed
        links += life.links
        seed += 1
        shutil.rmtree(folder)


@pytest.mark.soak
def test_random_moments_of_a_writer(compiled: Compile, tmp_path: Path) -> None:
    links = 0
    seed = 5000
    native = subprocess.run([compiled("worker"), "file"], cwd=tmp_path, capture_output=True, check=False)
    wanted = (tmp_path / "file").read_bytes()
    while links < 500:
        folder = tmp_path / str(seed)
        folder.mkdir()
        life = Chain([compiled("worker"), "file"], folder, seed).live(links=30, pause_s=0.02)
        assert (life.status, life.output) == (7, native.stdout), seed
        assert (folder / "file").read_bytes() == wanted, seed
        links += life.links
        seed += 1
        shutil.rmtree(folder)


def test_checkpoints_in_quick_succession_are_whole(compiled: Compile, tmp_path: Path) -> None:
    chain = Chain([compiled("threads")], tmp_path, seed=0)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    for _ in range(30):  # each one as soon as the one before is there
        chain.process.send_signal(CHECKPOINT_SIGNAL)
        assert chain.expect(EventKind.IMAGE, EventKind.ENDED).kind is EventKind.IMAGE
        image = read_image(str(chain.image))
        assert len(image.note["frames"].split()) == image.threads
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == 0
    os.close(chain.output)
    assert (tmp_path / "output").read_bytes() == b"9000 9000\n"


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_a_core_file_shows_where_the_threads_were(compiled: Compile, tmp_path: Path) -> None:
    image = image_of(compiled("worker"), tmp_path)
    status, out, _err = finished(tool("core", str(image), str(tmp_path / "core")), tmp_path)
    assert status == 0
    assert out.startswith(str(tmp_path / "core").encode())
    gdb = ["gdb", "-q", "-batch", "-nx", "-ex", "backtrace", "-ex", "info registers rip"]
    done = subprocess.run([*gdb, compiled("worker"), str(tmp_path / "core")], capture_output=True, check=False)
    assert b"main ()" in done.stdout
    assert b"rip" in done.stdout


def image_of(program: str, folder: Path) -> Path:
    """Return the last image of PROGRAM, which the command line's own timer made.

    A program that was faster than the timer of a busy machine is given more to do.
    """
    image = folder / "kept"
    for steps in (30, 120, 480):
        command = tool("run", "--every", "0.1s", "--image", str(image), "--", program, "file", str(steps))
        status, _out, err = finished(command, folder)
        assert (status, err) == (7, b"")
        if image.exists():
            return image
    raise AssertionError("the program was always faster than its first checkpoint")


def test_a_timer_faster_than_checkpoints_leaves_the_program_its_share(compiled: Compile, tmp_path: Path) -> None:
    image = tmp_path / "kept"
    command = tool("run", "--every", "0.001s", "--statistics", "--image", str(image), "--")
    status, _out, err = finished([*command, compiled("worker"), "file", "30"], tmp_path)
    assert status == 7
    assert err.count(b"checkpoint " + str(image).encode()) > 1


def test_command_line_from_run_to_restart(compiled: Compile, tmp_path: Path) -> None:
    image = image_of(compiled("worker"), tmp_path)
    written = (tmp_path / "file").read_bytes()
    status, out, _err = finished(tool("info", str(image)), tmp_path)
    assert status == 0
    assert f"checkpoint of {compiled('worker')}".encode() in out
    assert b"file " + str(tmp_path / "file").encode() in out
    assert finished(tool("verify", str(image)))[1].endswith(b"whole\n")
    status, out, err = finished(tool("restart", str(image)), tmp_path)
    assert (status, err) == (7, b"")
    assert (tmp_path / "file").read_bytes()[:100] == written[:100]


def test_image_alone_finds_the_command(compiled: Compile, tmp_path: Path) -> None:
    image = image_of(compiled("worker"), tmp_path)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "condor_checkpoint").write_text(f'#!/bin/sh\nexec {" ".join(tool())} "$@"\n')
    (folder / "condor_checkpoint").chmod(0o755)
    status, _out, _err = finished(["env", f"PATH={folder}:{os.environ['PATH']}", str(image)], tmp_path)
    assert status == 7
    status, _out, err = finished(["env", "PATH=/nowhere", str(image)], tmp_path)
    assert status == 115
    assert b"condor_checkpoint restart FILE" in err


def test_damaged_images_are_refused(compiled: Compile, tmp_path: Path) -> None:
    image = image_of(compiled("worker"), tmp_path)
    whole = read_image(str(image))
    assert whole.threads == 1
    data = image.read_bytes()
    copy = tmp_path / "copy"
    for damaged in (data[:-1], data[: len(data) // 2], data[:100], data[:0x11010], b"", data + b"x"):
        copy.write_bytes(damaged)
        with pytest.raises(ImageDamaged):
            read_image(str(copy))
        status, _out, err = finished(tool("restart", str(copy)))
        assert status == 1
        assert str(copy).encode() in err
    assert is_image(str(image))
    assert not is_image("/bin/sh")
    assert not is_image("/no/such/file")


def test_checkpoint_waits_for_helpers(tmp_path: Path) -> None:
    script = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); expr $i + 1 > last; done; cat last; exit 3"
    image = tmp_path / "kept"
    command = tool("run", "--every", "0.05s", "--image", str(image), "--", "/bin/sh", "-c", script)
    status, out, err = finished(command, tmp_path)
    assert (status, out, err) == (3, b"41\n", b"")


WAITING = "cat one; read word < two; echo $word; exit 3"
"""A helper that waits for someone to write into a pipe, then the shell itself waits for another."""


def test_a_program_moves_with_a_helper_that_waits_in_a_long_call(tmp_path: Path) -> None:
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    chain = Chain(["/bin/sh", "-c", WAITING], tmp_path, seed=0)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    writer = os.open(tmp_path / "one", os.O_WRONLY)  # opens when the helper does
    chain.host.vacate(chain.session)
    chain.process.send_signal(CHECKPOINT_SIGNAL)
    chain.expect(EventKind.IMAGE)
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == MOVED
    assert read_image(str(chain.image)).note["processes"] == "2"
    chain.start(str(chain.image))
    chain.expect(EventKind.STARTED)
    os.write(writer, b"helped\n")
    os.close(writer)
    (tmp_path / "two").write_text("moved\n")
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == 3
    os.close(chain.output)
    assert (tmp_path / "output").read_bytes() == b"helped\nmoved\n"


def test_whoever_asks_for_a_checkpoint_hears_why_there_is_none_yet(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "one")
    script = "sh -c 'echo $$ > pid; exec cat one' & wait $!; exit 3"
    words = tool("run", "--image", str(tmp_path / "image"), "--", "/bin/bash", "-c", script)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, env=environment, text=True) as run:
        assert run.stderr
        writer = os.open(tmp_path / "one", os.O_WRONLY)  # opens when the helper is there
        pid = (tmp_path / "pid").read_text().strip()
        family = psutil.Process(run.pid).children(recursive=True)
        helper = max(family, key=lambda process: (process.create_time(), process.pid))
        helper.suspend()  # by nobody of its family
        assert finished(tool("now", str(run.pid)))[0] == 0
        assert run.stderr.readline() == (
            f"condor_checkpoint: no checkpoint yet: process {pid} of the program does not stop: "
            "it is suspended, or in a long call\n"
        )
        helper.resume()
        os.close(writer)
        assert run.wait(DEADLINE_S) == 3


def test_a_signal_that_waits_moves_too(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})\nos.kill(os.getpid(), signal.SIGUSR2)\n"
        "print('ready', flush=True)\ninput()\nprint(signal.sigpending() == {signal.SIGUSR2})\n"
    )
    command = tool("run", "--statistics", "--image", "image", "--", sys.executable, "-c", code)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as run:
        assert run.stdout
        assert run.stderr
        assert run.stdout.readline() == b"ready\n"
        run.send_signal(signal.SIGUSR1)
        assert b"checkpoint" in run.stderr.readline()
        assert run.communicate(b"go on\n", timeout=DEADLINE_S)[0] == b"True\n"
    assert finished(tool("restart", "image"), tmp_path, b"go on\n")[:2] == (0, b"True\n")
