"""A write for which there is no room at home is never lost in silence: a program that does not ask dies of it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.test_conformance import AWAY, ROOT, compiled_here, place

__all__ = ["place"]

pytestmark = pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("prlimit"),
                                reason="needs a C compiler and prlimit")
LIMIT = "--fsize=300000"
PROBLEM = "a write failed that the program was not told of: File too large\n"


@pytest.fixture
def work(place: Path) -> Path:
    folder = place / "work"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    return folder


def away(place: Path, work: Path, how: str) -> subprocess.CompletedProcess[str]:
    """Run the program, which may write no file of more than 300,000 bytes."""
    program = compiled_here("lost_write", place)
    return subprocess.run(["prlimit", LIMIT, sys.executable, "-c", AWAY, program, how, "out"], cwd=work, text=True,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"},
                          capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("how", ["exit", "over", "closed", "exec"])
def test_a_program_that_does_not_ask_dies_of_it(how: str, place: Path, work: Path) -> None:
    done = away(place, work, how)
    assert done.returncode == -signal.SIGBUS, done
    assert f"{work / 'out'}: {PROBLEM}" in done.stderr


def test_its_parent_sees_that(place: Path, work: Path) -> None:
    done = away(place, work, "child")
    assert (done.returncode, done.stdout) == (0, f"-1 {int(signal.SIGBUS)}\n"), done
    assert f"{work / 'out'}: {PROBLEM}" in done.stderr


def test_one_that_asks_goes_on(place: Path, work: Path) -> None:
    done = away(place, work, "told")
    assert (done.returncode, done.stderr) == (3, "")
