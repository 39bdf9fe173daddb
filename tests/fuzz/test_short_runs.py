"""The fuzzers themselves, for a moment: some hundred inputs to each parser, from a fixed seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("atheris")

HERE = Path(__file__).parent


@pytest.mark.parametrize(("language", "runs"), [("classads", 600), ("config", 80)])
def test_fresh_inputs(language: str, runs: int, tmp_path: Path) -> None:
    folder = HERE / language
    command = [
        sys.executable,
        str(folder / "run.py"),
        str(tmp_path),
        str(folder / "corpus"),
        f"-runs={runs}",
        "-seed=1",
    ]
    done = subprocess.run(
        [*command, f"-artifact_prefix={tmp_path}/"], capture_output=True, text=True, check=False, errors="replace"
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
