"""Families in which members are stopped: they are saved, and are stopped wherever they go on."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from condor_actors.messages.codes import CHECKPOINT_SIGNAL

from .chain import Chain
from .conftest import Compile
from .test_families import moved

SHELLS = {
    "a job that is stopped for a while": (
        "set -m; (sleep 0.2; echo in; sleep 0.2; exit 3) & kill -STOP %1; sleep 1; jobs -s | wc -l; jobs -r | wc -l;"
        "kill -CONT %1; wait %1; echo over $?"
    ),
    "a pipeline that is stopped": (
        "set -m; (for i in 1 2 3 4; do echo $i; sleep 0.1; done) | cat & sleep 0.15; kill -STOP %1; sleep 0.8;"
        "jobs -s | wc -l; kill -CONT %1; wait %1; echo $?"
    ),
    "one that stops itself": "sh -c 'kill -STOP $$; echo on; exit 4' & p=$!; sleep 1; kill -CONT $p; wait $p; echo $?",
}


def native(command: list[str]) -> bytes:
    """Return what COMMAND says outside."""
    said = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"NO" not in said
    return said


@pytest.mark.parametrize(("pause_ms", "moves"), [(0, 0), (60, 15)])
def test_stopped_members_are_stopped_after_moves(
    pause_ms: int, moves: int, compiled: Compile, tmp_path: Path
) -> None:
    """What waits tell, what is heard and what is pending is as natively."""
    command = [compiled("stopped"), str(pause_ms)]
    life = Chain(command, tmp_path, seed=11).live(moves, 0.15)
    assert (life.status, life.output) == (0, native(command))
    assert bool(life.links) == bool(moves)


def test_a_checkpoint_does_not_show_to_stopped_members(compiled: Compile, tmp_path: Path) -> None:
    """Images are taken at random moments, and the program goes on where it is."""
    command = [compiled("stopped"), "60"]
    chain = Chain(command, tmp_path, seed=1)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    images = 0
    while not chain.until(EventKind.ENDED, within_s=chain.random.random() * 0.05):
        chain.process.send_signal(CHECKPOINT_SIGNAL)
        event = chain.expect(EventKind.IMAGE, EventKind.NO_IMAGE, EventKind.ENDED)
        if event.kind is EventKind.ENDED:
            break
        if event.kind is EventKind.NO_IMAGE:
            assert event.value == errno.EAGAIN, event.text
        else:
            images += 1
    assert chain.process.wait(60) == 0
    assert (tmp_path / "output").read_bytes() == native(command)
    assert images


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_with_stopped_jobs_moves(shell: str, tmp_path: Path) -> None:
    moved(["/bin/bash", "-c", SHELLS[shell]], tmp_path)
