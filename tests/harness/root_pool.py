"""Pools that root starts and that drop root: with an account of their own, and a Python that this account can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.harness.readable_python import python_for_all
from tests.harness.root_helper import POOL, status_of
from tests.pool_fixture import PersonalPool, fresh_folder, until

CONFIG = f"CONDOR_IDS = {POOL}.{POOL}\n"


def readable_personal(*arguments: str) -> list[str]:
    """``condor_personal`` by the Python that every account can read; so its daemons are."""
    start = "import sys; from condor_actors.tools.admin.personal import main; sys.exit(main())"
    return [*python_for_all().words, "-c", start, *arguments]


class RootPool(PersonalPool):
    """A personal pool that root starts; its daemons become the account POOL."""

    def __init__(self, folder: Path, *, slots: int = 4, config: str = "") -> None:
        super().__init__(folder, slots=slots, config=CONFIG + config)

    def command(self, *words: str) -> list[str]:
        """As ever; the daemons run by the Python that every account can read."""
        if words[0] == "condor_personal":
            return readable_personal(*words[1:])
        return super().command(*words)

    def status(self, name: str) -> dict[str, str]:
        """``/proc/PID/status`` of a daemon."""
        return status_of(self.pid(name))

    def pid(self, name: str) -> int:
        """The process of a daemon, as soon as it listens."""
        return pid_of(self, name)


def pid_of(pool: PersonalPool, name: str) -> int:
    """The process of a daemon, as soon as it listens."""
    file = pool.dir / "run" / f"{name}.address"
    until(file.exists, f"{name} listens")
    return int(file.read_text().split()[-1])


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def helper_of(pid: int) -> int:
    """The condor_root of a daemon.  One more is there for a moment when a job is started: it becomes its launcher."""
    def found() -> list[int]:
        with suppress(FileNotFoundError, ProcessLookupError):
            helpers = [child for child in children(pid) if status_of(child)["Name"] == "condor_root"]
            return helpers if len(helpers) == 1 else []
        return []

    return int(until(found, "one helper")[0])


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


def scratch_of_a_victim(pool: RootPool) -> Path:
    """The scratch directory of a job that runs, with a file that no other job is to see: ``secret`` has ``mine``."""
    pool.submit("executable = /bin/sh\ntransfer_executable = false\n"
                "arguments = \"-c 'echo mine > secret; sleep 1000'\"\nshould_transfer_files = YES\n"
                "request_memory = 100MB\nlog = victim.log\nqueue\n")
    found = until(lambda: [path for path in (pool.dir / "execute").glob("dir_*") if (path / "secret").exists()],
                  "the victim to run")
    return Path(found[0])
