"""Sockets within a program's family: what they do, also when they are moved, is the native thing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import Compile, finished, tool

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


def test_files_that_a_program_sends_itself_are_no_more_than_it_may_open(compiled: Compile, tmp_path: Path) -> None:
    """The kernel exempts root, so the native one is nobody's."""
    program = compiled("rights")
    said = {}
    for place, words in (("native", [program]), ("here", tool("run", "--", program))):
        (tmp_path / place).mkdir()
        if place == "native" and os.geteuid() == 0:
            words = ["setpriv", "--reuid=65533", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", *words]
            for folder in (Path(program).parent, *Path(program).parents):
                if folder.stat().st_mode & 0o005 != 0o005 and folder.stat().st_uid == os.geteuid():
                    folder.chmod(folder.stat().st_mode | 0o005)
        said[place] = finished(words, tmp_path / place)[:2]
    assert said["here"] == said["native"]
    assert said["here"][1].count(b"sending: ETOOMANYREFS\nabout as many as may be open: yes\n") == 3
