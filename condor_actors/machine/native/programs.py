"""Where the compiled programs of this package are.

The wheel carries them in ``condor_actors/machine/native/bin``; ``python setup.py build_ext --inplace`` puts them
into the same folder of a source tree.  Nothing here compiles anything.
"""

from __future__ import annotations

import platform
from pathlib import Path

__all__ = ["NativeProgramMissing", "benchmark_path", "launcher_path", "program_path", "root_helper_path",
           "runtime_is_there", "runtime_path"]

_FOLDER = Path(__file__).resolve().parent / "bin"


class NativeProgramMissing(RuntimeError):
    """A compiled program of the package is not there."""


def program_path(name: str) -> str:
    """Return the absolute path of the compiled program NAME.

    Raises NativeProgramMissing, naming the remedy, when the package was not built.
    """
    path = _FOLDER / name
    if not path.is_file():
        raise NativeProgramMissing(
            f"{path} does not exist; build it with 'python setup.py build_ext --inplace' or install the wheel"
        )
    return str(path)


def runtime_is_there() -> bool:
    """Return whether this machine can run jobs of the standard universe."""
    return platform.machine() == "x86_64" and (_FOLDER / "condor_runtime").is_file()


def launcher_path() -> str:
    """Return the absolute path of ``condor_launcher``, which prepares and becomes a job's process."""
    return program_path("condor_launcher")


def benchmark_path() -> str:
    """Return the absolute path of ``condor_benchmark``, which measures the machine's speed."""
    return program_path("condor_benchmark")


def runtime_path() -> str:
    """Return the absolute path of ``condor_runtime``, which runs a program whose files are elsewhere."""
    return program_path("condor_runtime")


def root_helper_path() -> str:
    """Return the absolute path of ``condor_root``, which keeps root's rights for a daemon that has dropped them."""
    return program_path("condor_root")
