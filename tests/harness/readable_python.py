"""A Python that every account can run, wherever the tests' own is: daemons that drop root need it.

It is found once in a run of the tests: the tests' own Python; else the system's, where it has the same version and
loads what is installed for the tests; else a copy of the interpreter, without what is installed for it, in a folder
that goes with the run.  ``python_for_all().words`` begin a command line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import attrs
import pytest

import condor_actors
from condor_actors.machine.privilege.pool_account import PoolAccount, out_of_reach
from tests.harness.root_helper import POOL

__all__ = ["Python", "python_for_all"]

ACCOUNT = PoolAccount(POOL, POOL, f"uid {POOL}")
REPOSITORY = Path(condor_actors.__file__).parents[1]
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
NOT_COPIED = ("site-packages", "test", "__pycache__", "config-*", "idlelib", "tkinter", "ensurepip")
NEEDED = ("condor_actors.classads._core", "twisted", "condor_actors.services")
COPIES: list[tempfile.TemporaryDirectory[str]] = []


@attrs.frozen
class Python:
    """One that every account can run.

    Attributes:
        program: its path.
        environment: what it needs to find the tests' packages.
    """

    program: str
    environment: dict[str, str] = attrs.field(factory=dict)

    @property
    def words(self) -> list[str]:
        """The beginning of a command line that runs it."""
        return self.words_with("")

    def words_with(self, packages: str) -> list[str]:
        """The same, with packages in a folder that go before all others; empty: there are none."""
        found = self.environment.get("PYTHONPATH", "")
        path = {"PYTHONPATH": f"{packages}:{found}" if found else packages} if packages else {}
        return ["env", *(f"{name}={value}" for name, value in {**self.environment, **path}.items()), self.program, "-P"]

    def problem(self) -> str:
        """Why an account without a name cannot run the daemons with it; empty: it can."""
        done = subprocess.run(
            ["setpriv", f"--reuid={POOL}", f"--regid={POOL}", "--clear-groups", *self.words, "-c",
             f"import {', '.join(NEEDED)}"], capture_output=True, text=True, check=False, cwd="/")
        return done.stderr[-200:] if done.returncode else ""


@cache
def python_for_all() -> Python:
    """The one of this run; skips the test where there is none."""
    if not out_of_reach(ACCOUNT, (Path(sys.executable), REPOSITORY)):
        return Python(sys.executable)
    above = out_of_reach_of_packages()
    if above:
        pytest.skip(f"what is tested is below {above}, where other accounts do not come")
    # What is installed comes first: a build leaves its own list of commands in the repository, and that may be old.
    path = {"PYTHONPATH": f"{sysconfig.get_path('platlib')}:{REPOSITORY}"}
    system = Python(f"/usr/bin/{VERSION}", path)
    if os.access(system.program, os.X_OK) and not system.problem():
        return system
    copy = copied_python(path)
    problem = copy.problem()
    if problem:
        pytest.skip(f"no Python that every account can run has what is needed: {problem}")
    return copy


def out_of_reach_of_packages() -> str:
    """The folder that keeps other accounts from the packages themselves; empty: none does."""
    for folder in (REPOSITORY, Path(sysconfig.get_path("platlib"))):
        for above in reversed((folder, *folder.parents)):
            if not above.stat().st_mode & 0o001:
                return str(above)
    return ""


def copied_python(path: dict[str, str]) -> Python:
    """A copy of the tests' interpreter and its standard library."""
    made = tempfile.TemporaryDirectory(prefix="condor-python-")
    COPIES.append(made)
    top, home = Path(made.name), Path(sys.base_prefix)
    top.chmod(0o755)
    (top / "bin").mkdir()
    shutil.copy2(Path(sys.executable).resolve(), top / "bin" / VERSION)
    shutil.copytree(home / "lib" / VERSION, top / "lib" / VERSION, symlinks=True,
                    ignore=shutil.ignore_patterns(*NOT_COPIED))
    for library in (home / "lib").glob(f"lib{VERSION}*.so*"):
        shutil.copy2(library, top / "lib" / library.name, follow_symlinks=True)
    return Python(str(top / "bin" / VERSION), {**path, "LD_LIBRARY_PATH": str(top / "lib")})
