"""Pools that root starts and that drop root: with an account of their own, and a Python that this account can read."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import condor_actors
from condor_actors.machine.privilege.pool_account import PoolAccount, out_of_reach
from tests.harness.root_helper import POOL, status_of
from tests.pool_fixture import PersonalPool, fresh_folder, until

ACCOUNT = PoolAccount(POOL, POOL, f"uid {POOL}")
REPOSITORY = Path(condor_actors.__file__).parents[1]


def python_for_all() -> tuple[str, dict[str, str]]:
    """A Python that every account can run, and what it needs in its environment; skips the test without one."""
    if not out_of_reach(ACCOUNT, (Path(sys.executable), REPOSITORY)):
        return sys.executable, {}
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    path = {"PYTHONPATH": f"{REPOSITORY}:{sysconfig.get_path('platlib')}"}
    for word in ("condor_actors.classads._core", "twisted", "condor_actors.services"):
        done = subprocess.run(["setpriv", f"--reuid={POOL}", f"--regid={POOL}", "--clear-groups", python, "-P", "-c",
                               f"import {word}"], env={**os.environ, **path}, capture_output=True, check=False, cwd="/")
        if done.returncode != 0:
            pytest.skip(f"no Python that every account can run has {word}: {done.stderr.decode()[-200:]}")
    return python, path


class RootPool(PersonalPool):
    """A personal pool that root starts; its daemons become the account POOL."""

    def __init__(self, folder: Path, *, slots: int = 4, config: str = "") -> None:
        self._python, self._path = python_for_all()
        super().__init__(folder, slots=slots, config=f"CONDOR_IDS = {POOL}.{POOL}\n{config}")

    def command(self, *words: str) -> list[str]:
        """As ever; the daemons run by the Python that every account can read."""
        if words[0] == "condor_personal":
            start = "import sys; from condor_actors.tools.admin.personal import main; sys.exit(main())"
            path = [f"{name}={value}" for name, value in self._path.items()]
            return ["env", *path, self._python, "-P", "-c", start, *words[1:]]
        return super().command(*words)

    def status(self, name: str) -> dict[str, str]:
        """``/proc/PID/status`` of a daemon."""
        return status_of(self.pid(name))

    def pid(self, name: str) -> int:
        """The process of a daemon, as soon as it listens."""
        file = self.dir / "run" / f"{name}.address"
        until(file.exists, f"{name} listens")
        return int(file.read_text().split()[-1])


@contextmanager
def root_pool(**options: object) -> Iterator[RootPool]:
    """A pool, stopped in the end."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a pool that an ordinary user starts has no root to drop")
    with fresh_folder() as folder:
        pool = RootPool(folder, **options)  # type: ignore[arg-type]
        try:
            yield pool
        finally:
            pool.stop()
