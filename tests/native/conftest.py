"""Programs for the native tests, compiled once, and a way to run them here and under the runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.native.chain import end_of_test

SOURCES = Path(__file__).parent / "programs"
DEADLINE_S = 120

Compile = Callable[[str], str]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles a program of tests/native/programs and returns its path."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("programs")
    done: dict[str, str] = {}

    def compile_program(name: str) -> str:
        if name not in done:
            target = str(folder / name)
            source = str(SOURCES / f"{name}.c")
            subprocess.run([compiler, "-O1", "-w", "-o", target, source, "-lpthread"], check=True)
            done[name] = target
        return done[name]

    return compile_program


@pytest.fixture(autouse=True)
def _untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    """End what a test has left running."""
    yield
    end_of_test()


def tool(*words: str) -> list[str]:
    """Return the command line of condor_checkpoint with WORDS."""
    return [sys.executable, "-m", "condor_actors.tools.jobs.checkpoint", *words]


def finished(command: list[str], cwd: Path | None = None, given: bytes = b"") -> tuple[int, bytes, bytes]:
    """Run COMMAND to its end; return status, standard output and standard error."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        command, cwd=cwd, input=given, capture_output=True, timeout=DEADLINE_S, env=environment, check=False
    )
    return done.returncode, done.stdout, done.stderr
