"""Memory in many pieces, and words in great number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, MOVED, Chain
from tests.native.conftest import Compile, finished, tool


def moved_once(command: list[str], folder: Path) -> int:
    """Run COMMAND, move it when it has said something, and return how it ended; "moved" is there when it goes on."""
    chain = Chain(command, folder, 1)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    while not (folder / "output").stat().st_size:
        assert not chain.until(EventKind.ENDED, within_s=0.05)
    chain.host.vacate(chain.session)
    chain.process.send_signal(CHECKPOINT_SIGNAL)
    chain.expect(EventKind.IMAGE)
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == MOVED
    (folder / "moved").touch()
    chain.start(str(chain.image))
    chain.expect(EventKind.ENDED)
    os.close(chain.output)
    return chain.process.wait(DEADLINE_S)


@pytest.mark.parametrize("kind", ["holes", "grown", "elsewhere"])
def test_memory_that_came_from_an_image(kind: str, compiled: Compile, tmp_path: Path) -> None:
    assert moved_once([compiled("pieces"), kind], tmp_path) == 0


def test_generated_code_and_what_moving_leaves_behind(compiled: Compile, tmp_path: Path) -> None:
    assert moved_once([compiled("generated")], tmp_path) == 0
    assert (tmp_path / "output").read_text() == "ready\ncode 1\nleft behind 1\n"


def test_more_gaps_than_a_machine_gives(compiled: Compile, tmp_path: Path) -> None:
    status, out, _err = finished(tool("run", "--", str(compiled("pieces")), "gaps"), tmp_path)
    assert (status, out) == (0, b"gaps 0\n")


def test_many_arguments(tmp_path: Path) -> None:
    script = tmp_path / "script"
    code = "import os, sys\nprint(len(sys.argv), sys.argv[-1], os.environ['HOME'])\n"
    script.write_text(f"#!{sys.executable} -E\n{code}")
    script.chmod(0o755)
    for count in (5000, 70000):
        words = [str(script), *map(str, range(count))]
        native = subprocess.run(words, capture_output=True, check=True)
        assert finished(tool("run", "--", *words), tmp_path) == (0, native.stdout, b"")
