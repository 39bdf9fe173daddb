"""Locks whose words name their owners keep them when the program moves, and those who die with one are known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import Compile


@pytest.mark.parametrize(("pause_ms", "moves"), [(0, 0), (15, 8)])
def test_locks_know_their_owners(pause_ms: int, moves: int, compiled: Compile, tmp_path: Path) -> None:
    """Of threads and of processes: taken in turn, tried, given back by others, left by a thread, an exit, an exec."""
    command = [compiled("owned"), str(pause_ms)]
    native = subprocess.run(command, capture_output=True, check=True).stdout
    life = Chain(command, tmp_path, seed=3).live(moves, 0.1)
    assert (life.status, life.output.decode()) == (0, native.decode())
    assert bool(life.links) == bool(moves)
