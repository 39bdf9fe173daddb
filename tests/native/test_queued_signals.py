"""Signals that were sent and not taken yet are there after a checkpoint and after a move, as they were sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from tests.native.chain import DEADLINE_S, Chain
from tests.native.conftest import Compile

STEP_MS = "15"


def native(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize(("rounds", "moves"), [("1", 0), ("2", 12)])
def test_signals_that_wait_move(rounds: str, moves: int, compiled: Compile, tmp_path: Path) -> None:
    """Of processes and threads, with values, senders, order; timers' and ended children's among them."""
    command = [compiled("queued"), rounds, STEP_MS]
    life = Chain(command, tmp_path, seed=5).live(moves, 0.05)
    assert (life.status, life.output.decode()) == (0, native(command))
    assert bool(life.links) == bool(moves)


def test_signals_that_wait_are_there_after_a_checkpoint(compiled: Compile, tmp_path: Path) -> None:
    """The program goes on where it is, and finds them again."""
    command = [compiled("queued"), "2", STEP_MS]
    chain = Chain(command, tmp_path, seed=6)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    images = 0
    while not chain.until(EventKind.ENDED, within_s=0.01):  # far more often than what it waits for lasts
        if chain.asked_for_image().kind is EventKind.ENDED:
            break
        images += 1
    assert chain.process.wait(DEADLINE_S) == 0
    assert (tmp_path / "output").read_text() == native(command)
    assert images
