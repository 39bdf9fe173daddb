"""Folders for what a fuzzer writes, which are gone when its process ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile

__all__ = ["fuzz_folder"]


def fuzz_folder() -> str:
    """A new folder of this process; the process that a runner starts for each parser ends like a program of its own."""
    name = tempfile.mkdtemp(prefix="condor-fuzz-")
    atexit.register(shutil.rmtree, name, ignore_errors=True)
    return name
