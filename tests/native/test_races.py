"""Threads that map, unmap, open, close, time, signal, fork and execute at once: the result is the native one.

What each thread does has one possible result; what they share is what the runtime keeps for all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.conftest import Compile, finished, tool

ROUNDS = 40


def outcome(command: list[str], folder: Path) -> tuple[int, bytes, bytes, dict[str, bytes]]:
    """Run COMMAND in the new FOLDER; return status, output, errors, and the files it left."""
    folder.mkdir(parents=True)
    status, out, err = finished(command, folder)
    return status, out, err, {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def race(program: str, seed: int, folder: Path) -> None:
    words = [program, str(ROUNDS), str(seed)]
    native = outcome(words, folder / f"native.{seed}")
    assert native[:2] == (0, b"0 complaints\n"), native[1]
    assert outcome([*tool("run", "--"), *words], folder / f"here.{seed}") == native, f"seed {seed}"


@pytest.mark.parametrize("seed", range(4))
def test_threads_do_not_disturb_each_other(seed: int, compiled: Compile, tmp_path: Path) -> None:
    race(compiled("racing"), seed, tmp_path)


@pytest.mark.soak
def test_a_thousand_races(compiled: Compile, tmp_path: Path) -> None:
    for seed in range(100, 1100):
        race(compiled("racing"), seed, tmp_path / str(seed))


@pytest.mark.parametrize("every", [[], ["--every", "0.03s", "--image", "x.ckpt"]], ids=["alone", "with checkpoints"])
def test_of_two_threads_that_execute_one_does(every: list[str], compiled: Compile, tmp_path: Path) -> None:
    """A checkpoint that is due in the same moment waits, or the exec does; neither waits for the other forever."""
    assert finished([*tool("run", *every, "--"), compiled("execs"), "40"], tmp_path) == (7, b"over\n", b"")


def test_mappings_that_are_cut_moved_and_grown(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("mapped")
    native = outcome([program], tmp_path / "native")
    assert native[0] == 0
    assert outcome([*tool("run", "--"), program], tmp_path / "here") == native
