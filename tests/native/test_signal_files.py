"""What a program reads of signals by their descriptors (signalfd) is the native thing, also when it is moved."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import Compile


@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(5, 0, 0.0), (120, 8, 0.15), (60, 12, 0.02)])
def test_what_a_program_reads_of_signals_is_the_native_thing(
    rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    command = [compiled("signal_files"), str(rest_ms)]
    native = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    life = Chain(command, tmp_path, seed=links).live(links, pause_s)
    assert life.output.decode() == native.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)


def test_script_records_a_session_on_a_terminal(tmp_path: Path) -> None:
    """It reads signals of its child by a descriptor, and has a pseudo-terminal for it."""
    command = ["/usr/bin/script", "-qec", "for i in 1 2 3 4 5; do sleep 0.2; echo line $i; done; exit 4", "/dev/null"]
    native = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    life = Chain(command, tmp_path, seed=7).live(6, 0.15)
    assert (life.status, life.output) == (native.returncode, native.stdout)
    assert life.links
