"""Pseudo-terminals within a program's family: what it finds in them is the native thing, also when it is moved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from tests.native.chain import DEADLINE_S, Chain
from tests.native.conftest import Compile

SHELL = Path(__file__).parent / "programs" / "shell_on_terminal.py"
NAMES = """
import os, time
master, slave = os.openpty()
name = os.ttyname(slave)
os.write(master, b'typed\\n')
print('ready', flush=True)
while not os.path.exists('go'):
    time.sleep(0.01)
again = os.open(name, os.O_RDWR | os.O_NOCTTY)
print(os.ttyname(slave) == name, os.read(again, 100))
print(os.stat(name).st_rdev == os.fstat(slave).st_rdev, os.access(name, os.W_OK),
      os.readlink(f'/proc/self/fd/{slave}') == name)
os.chmod(name, 0o600)
"""


@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(5, 0, 0.0), (120, 8, 0.2), (60, 12, 0.02)])
def test_what_a_program_finds_in_terminals_is_the_native_thing(
    rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    command = [compiled("terminals"), str(rest_ms)]
    native = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    life = Chain(command, tmp_path, seed=links).live(links, pause_s)
    assert life.output.decode() == native.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)


@pytest.mark.parametrize(("links", "rest_s"), [(0, 0.0), (8, 0.06)])
def test_a_shell_on_a_terminal_obeys_what_is_typed(links: int, rest_s: float, tmp_path: Path) -> None:
    """A Control-C, a stopped job, the foreground and a new size, typed by another member."""
    life = Chain([sys.executable, str(SHELL), str(rest_s)], tmp_path, seed=links).live(links, 0.15)
    assert (life.status, life.output) == (0, b"3\n")
    assert bool(life.links) == bool(links)


@pytest.mark.parametrize("confined", [False, True])
def test_a_name_stays_where_the_kernel_has_another_number(confined: bool, tmp_path: Path) -> None:
    chain = Chain(["/usr/bin/python3", "-c", NAMES], tmp_path, seed=1)
    chain.job_root = str(tmp_path) if confined else None
    if confined:
        chain.image = tmp_path.parent / f"{tmp_path.name}.image"
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    while b"ready" not in (tmp_path / "output").read_bytes():
        assert chain.until(EventKind.ENDED, within_s=0.02) is None
    taken: list[int] = []
    for move in range(2):
        taken.extend(os.openpty())  # so the number is another program's
        assert chain.moved(move)
        chain.expect(EventKind.STARTED)
        taken.extend(os.openpty())
    (tmp_path / "go").touch()
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == 0, (tmp_path / "output").read_text()
    for one in taken:
        os.close(one)
    assert (tmp_path / "output").read_text() == "ready\nTrue b'typed\\n'\nTrue True True\n"
