"""Programs that start programs, moved with all their processes: the result is the native one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from condor_actors.machine.native.image import verify_image
from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, Chain, at_end_of_test, end_family
from tests.native.conftest import Compile, tool

FAMILIES = {
    "a parent that waits for one child": (
        "for i in 1 2 3 4 5; do sleep 0.2; echo $i; done; (sleep 0.2; exit 7); echo $?"
    ),
    "a pipeline": "seq 1 200000 | sed s/1/x/ | sort -n | md5sum; sleep 0.5; echo done",
    "a slow pipeline": (
        "(for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.1; done) | while read l; do echo got $l; done"
    ),
    "children that ended and were not waited for": (
        'sh -c "sleep 0.6; exit 3" & p=$!; (exit 5) & q=$!; sh -c "kill -9 \\$\\$" & k=$!; sleep 1.2;'
        "wait $p; echo $?; wait $q; echo $?; wait $k; echo $?"
    ),
    "grandchildren, and one whose parent has gone": (
        "((sleep 0.8; echo orphan > orphan) & ); sh -c 'sh -c \"sleep 0.5; echo deep\"; echo middle';"
        "sleep 0.8; until [ -s orphan ]; do sleep 0.1; done; cat orphan"
    ),
    "signals between members": (
        "sh -c 'trap \"echo heard; exit 4\" TERM; while :; do sleep 0.05; done' & p=$!;"
        "sleep 1; kill -TERM $p; wait $p; echo $?"
    ),
    "files with a shared position": (
        "exec 3> out; for i in 1 2 3 4 5 6; do sh -c 'echo line $0 >&3; sleep 0.1' $i; done; echo end >&3; cat out"
    ),
}
POOL = """
import multiprocessing, sys

def work(number):
    return sum(i * number % 7 for i in range(120000))

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(2) as pool:
        print(pool.map(work, range(12)))
    total = multiprocessing.Value("q", 0)
    def add(value):
        for i in range(2000):
            with value.get_lock():
                value.value += i
    if sys.argv[1] == "fork":
        members = [multiprocessing.Process(target=add, args=(total,)) for _ in range(3)]
        [m.start() for m in members]
        [m.join() for m in members]
    print(total.value, [m.exitcode for m in multiprocessing.active_children()])
"""
JOBS = {
    "job control": (
        "set -m; sleep 1.2 | cat & sleep 0.3; jobs -r | wc -l; kill -STOP %1; kill -CONT %1; wait %1; echo over $?;"
        "(trap 'exit 5' TERM; exec 2> /dev/null; while :; do sleep 0.05; done) & p=$!; sleep 0.8;"
        "kill -TERM -- -$p; wait $p; echo $?; kill -0 -- -$p 2> /dev/null || echo nobody"
    ),
    "a group that is ended as a whole": (
        "exec 2> /dev/null; set -m; sh -c 'sleep 100 & sleep 100 & wait' & p=$!;"
        "sleep 0.9; kill -KILL -- -$p; wait $p; echo $?"
    ),
    "a job that stopped itself": (
        "set -m; sh -c 'kill -STOP $$; echo went on; sleep 0.2; exit 3' & sleep 0.9; jobs -s | wc -l;"
        "kill -CONT %1; wait %1; echo $?"
    ),
    "a first process that is stopped": (
        "(sleep 0.9; kill -CONT $$; exit 4) & kill -STOP $$; echo went on; wait $!; echo $?"
    ),
    "a terminal's stop where nobody controls jobs": "setsid -w sh -c 'kill -TSTP $$; sleep 0.7; echo went on'",
    "a job in front that is stopped, and brought back": (
        "set -m; sh -c 'kill -TSTP 0; echo went on; exit 6' | cat; echo $?; sleep 0.5; fg %1; echo $?"
    ),
}
PLACES = {"here": 1.0, "sooner": 0.25, "at once": 0.0}
MAKEFILE = "all: a b c d\n\techo all\na b c d:\n\t@sleep 0.2; seq 1 20000 | md5sum > $@; cat $@ >> log; echo $@ done\n"


def moved(command: list[str], folder: Path, links: int = 4, pause_s: float = 0.35) -> None:
    """Run COMMAND natively and in LINKS links: both end alike. Is it faster than its first checkpoint, then again."""
    for place in ("native", *PLACES):
        (folder / place).mkdir()
        (folder / place / "pool.py").write_text(POOL)
        (folder / place / "Makefile").write_text(MAKEFILE)
    native = folder / "native"
    # not what a make that runs this test tells its own makes
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=native, env=own, check=False)
    for place, share in PLACES.items():
        life = Chain(command, folder / place, seed=links).live(links, pause_s * share)
        assert (life.status, sorted(life.output.splitlines())) == (done.returncode, sorted(done.stdout.splitlines()))
        if life.links:
            return
    raise AssertionError("the program was always faster than a checkpoint")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_moves(family: str, tmp_path: Path) -> None:
    moved(["/bin/sh", "-c", FAMILIES[family]], tmp_path)


@pytest.mark.parametrize("family", JOBS)
def test_a_shell_that_controls_jobs_moves(family: str, tmp_path: Path) -> None:
    moved(["/bin/bash", "-c", JOBS[family]], tmp_path)


@pytest.mark.parametrize(("pause_ms", "moves"), [(0, 0), (40, 12)])
def test_groups_and_sessions_are_the_native_ones(
    pause_ms: int, moves: int, compiled: Compile, tmp_path: Path
) -> None:
    """Who is in which group and session, who hears a signal, whom a wait finds."""
    command = [compiled("groups"), str(pause_ms)]
    native = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"NO" not in native
    life = Chain(command, tmp_path, seed=7).live(moves, 0.1)
    assert (life.status, life.output) == (0, native)
    assert bool(life.links) == bool(moves)


def run_natively(command: list[str], folder: Path) -> bytes:
    """Run a program that says when it is ready, and looks at what became of its children when there is a file ``go``.

    Not earlier: a child of its own that waits for the file, too, would end beside one that stops, and of two SIGCHLD
    at a time the kernel keeps one.
    """
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        said = b""
        while b"ready" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        (folder / "go").touch()
        said += process.stdout.read()
    assert process.returncode == 0
    return said


@pytest.mark.parametrize("program", ["continued", "stopped"])
def test_children_that_stopped_or_went_on_are_as_they_were(program: str, compiled: Compile, tmp_path: Path) -> None:
    """They stand still, or run; what waits have to tell of them is told once, and no signal comes once more."""
    command = [compiled(program), "go"]
    native = tmp_path / "native"
    native.mkdir()
    expected = run_natively(command, native)
    assert b"NO" not in expected
    chain = Chain(command, tmp_path, seed=1)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    while b"ready" not in (tmp_path / "output").read_bytes():
        assert chain.until(EventKind.ENDED, within_s=0.02) is None
    for move in range(3):
        assert chain.moved(move)
        chain.expect(EventKind.STARTED)
    (tmp_path / "go").touch()
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == 0
    os.close(chain.output)
    assert (tmp_path / "output").read_bytes() == expected


def test_control_of_a_terminal_of_the_submit_machine_is_refused(tmp_path: Path) -> None:
    """It would not be the same after a move. Terminals of the family's own: see test_terminals.py."""
    code = (
        "import errno, os\n"
        "def tried(what, *words):\n"
        "    try:\n"
        "        return what(*words)\n"
        "    except OSError as error:\n"
        "        return errno.errorcode[error.errno]\n"
        "print(os.isatty(0), tried(os.open, '/dev/tty', os.O_RDWR))\n"
        "print(tried(os.tcgetpgrp, 0), tried(os.tcsetpgrp, 0, os.getpgrp()))\n"
    )
    master, slave = os.openpty()
    chain = Chain([sys.executable, "-c", code], tmp_path, seed=1, terminal=slave)
    life = chain.live(0, 0)
    os.close(slave)
    os.close(master)
    assert (life.status, life.output) == (0, b"True ENXIO\nENOTTY ENOTTY\n")


def test_a_session_moves(tmp_path: Path) -> None:
    moved(["/bin/sh", "-c", "setsid -w sh -c 'sleep 0.7; echo in; exit 3'; echo $?"], tmp_path)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_python_move(method: str, tmp_path: Path) -> None:
    moved([sys.executable, "pool.py", method], tmp_path, pause_s=0.6)


def test_make_moves(tmp_path: Path) -> None:
    moved(["/usr/bin/make", "-j2"], tmp_path)


def test_who_spawns_programs_learns_what_became_of_them_over_moves(compiled: Compile, tmp_path: Path) -> None:
    """A checkpoint waits for a child that has its parent's memory still, and for the parent."""
    command = [compiled("spawns"), "10"]
    native = subprocess.run(command, capture_output=True, check=True).stdout
    life = Chain(command, tmp_path, seed=5).live(8, 0.15)
    assert (life.status, life.output) == (0, native)
    assert life.links


def test_an_image_of_a_family_is_whole_and_says_so(tmp_path: Path) -> None:
    chain = Chain(["/bin/sh", "-c", "sleep 30 | cat; echo never"], tmp_path, seed=1)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    chain.process.send_signal(CHECKPOINT_SIGNAL)
    chain.expect(EventKind.IMAGE)
    image = verify_image(str(chain.image))
    assert int(image.note["processes"]) >= 1
    chain.host.close(chain.session)
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(60) == 113


def test_forks_without_end_are_no_hindrance(tmp_path: Path) -> None:
    """A loop of short children does not outrun the wish for a checkpoint."""
    loop = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done; echo $i"
    moved(["/bin/sh", "-c", loop], tmp_path, pause_s=0.3)


def test_the_command_takes_one_of_a_family(tmp_path: Path) -> None:
    image = tmp_path / "x.ckpt"
    words = [*tool("run", "--every", "0.2s", "--image", str(image), "--"), "/bin/sh", "-c", "read go | cat; echo over"]
    pipe = subprocess.PIPE
    run = subprocess.Popen(words, cwd=tmp_path, stdin=pipe, stdout=pipe)
    at_end_of_test(partial(end_family, run))
    end_s = time.monotonic() + DEADLINE_S
    while not image.exists() or int(verify_image(str(image)).note["processes"]) != 3:
        assert run.poll() is None
        assert time.monotonic() < end_s
        time.sleep(0.05)
    assert run.communicate(b"go\n", timeout=DEADLINE_S)[0] == b"over\n"
    assert run.returncode == 0
