"""Sockets within a program's family: what they do, also when they are moved, is the native thing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .chain import Chain

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(("rest_s", "links", "pause_s"), [(0.1, 0, 0.0), (0.6, 6, 0.15), (0.6, 6, 0.05)])
def test_what_is_on_its_way_through_sockets_moves(rest_s: float, links: int, pause_s: float, tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAMS / "sockets_moved.py"), str(rest_s)]
    for place in ("native", "moved"):
        (tmp_path / place).mkdir()
    done = subprocess.run(command, capture_output=True, cwd=tmp_path / "native", check=False)
    life = Chain(command, tmp_path / "moved", seed=links).live(links, pause_s)
    assert life.output.decode() == done.stdout.decode() + done.stderr.decode()
    assert (life.status, done.returncode) == (0, 0)
    assert life.links == links
