"""What children hear when their parents end, and whose they become then, is the native thing, also after moves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import Compile


@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(5, 0, 0.0), (120, 10, 0.15), (60, 14, 0.02)])
def test_what_becomes_of_the_children_of_those_that_end_is_the_native_thing(
    rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    command = [compiled("kinship"), str(rest_ms), *(["threads"] if not links else [])]
    native = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    life = Chain(command, tmp_path, seed=links).live(links, pause_s)
    assert life.output.decode() == native.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)
