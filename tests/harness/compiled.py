"""``python -m tests.harness.compiled``: the tests' modules are compiled once, before each worker does it for itself.

Theory: every worker of pytest-xdist collects every test.  Half of what that costs is the rewriting of assertions, whose
result pytest leaves beside the modules, where it may; workers that begin at the same time find nothing there yet.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["main"]

HERE = Path(__file__).resolve().parents[1]
UNITS = "unit"
"""They are as much as all other folders together."""


def collection(folders: list[str]) -> subprocess.Popen[bytes]:
    """pytest, which looks for the tests in folders and leaves what it has compiled; what is wrong, the tests say."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-qq", "--collect-only", "-p", "no:cacheprovider",
         *(str(HERE / name) for name in folders)],
        env=environment, cwd=HERE.parent, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def main() -> None:
    """Compile; two processors do."""
    others = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name not in (UNITS, "__pycache__"))
    for process in [collection([UNITS]), collection(others)]:
        process.wait()


if __name__ == "__main__":
    main()
