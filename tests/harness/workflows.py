"""Workflows on a real pool: DAG files in folders of their own, submitted, followed and killed."""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path

from tests.harness.readable_python import python_for_all
from tests.harness.user_pool import UserPool
from tests.pool_fixture import until

__all__ = ["DIAMOND", "SAY", "Workflows", "alive", "ended"]

SAY = """universe = local
executable = /bin/sh
arguments = "-c 'echo $(JOB) $(RETRY) >> all; $(then:exit 0)'"
queue
"""
DIAMOND = "JOB A say.sub\nJOB B say.sub\nJOB C say.sub\nJOB D say.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n"


class Workflows:
    """A pool, and a folder for each DAG."""

    def __init__(self, pool: UserPool) -> None:
        self.pool = pool
        self.program = pool.folder / "dagman"
        words = shlex.join(python_for_all().words)
        self.program.write_text(f'#!/bin/sh\nexec {words} -m condor_actors.tools.dag.dagman "$@"\n')
        self.program.chmod(0o755)
        self.folder = pool.work
        self._count = 0

    def begin(self, text: str, **files: str) -> Path:
        """A new folder with a DAG file ``x.dag`` and others; ``_`` in their names is a dot."""
        self._count += 1
        self.folder = self.pool.work / f"dag{self._count}"
        self.folder.mkdir()
        self.folder.chmod(0o777)
        for name, body in {"x.dag": text, "say.sub": SAY, **{n.replace("_", "."): b for n, b in files.items()}}.items():
            (self.folder / name).write_text(body)
            (self.folder / name).chmod(0o755)
        return self.folder

    def submit(self, *words: str, expect: int = 0) -> int:
        """Submit ``x.dag``; the cluster of its job."""
        said = self.pool.run("condor_submit_dag", *words, "-dagman", str(self.program), "x.dag", cwd=self.folder,
                             expect=expect)
        return int(said.rsplit("cluster ", 1)[1].split(".")[0]) if not expect else 0

    def wait(self) -> int:
        """Until the DAG has ended; its exit status."""
        self.pool.run("condor_wait", "-wait", "90", "x.dag.dagman.log", cwd=self.folder)
        return int(self.out().rsplit("EXITING WITH STATUS ", 1)[1].split()[0])

    def run(self, text: str, *words: str, **files: str) -> int:
        """Submit a DAG and wait for its end; its exit status."""
        self.begin(text, **files)
        self.submit(*words)
        return self.wait()

    def out(self) -> str:
        """What dagman.out says."""
        return (self.folder / "x.dag.dagman.out").read_text()

    def said(self) -> list[str]:
        """What the jobs and scripts have said."""
        path = self.folder / "all"
        return path.read_text().splitlines() if path.exists() else []

    def kill(self, times: int, step: int) -> int:
        """Kill DAGMan so often, whenever so many more lines were said; how often it was before the DAG ended."""
        kills = 0
        while kills < times:
            before = len(self.said())
            until(lambda before=before: ended(self.folder) or len(self.said()) >= before + step, self.out)
            if ended(self.folder):
                break
            pid = until(lambda: ended(self.folder) or self.pid(), "the DAG runs")
            if ended(self.folder):
                break
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
            until(lambda pid=pid: ended(self.folder) or not alive(pid), "it is dead")
        return kills

    def pid(self) -> int:
        """The process that runs the DAG; 0: none does now."""
        with suppress(OSError, ValueError, IndexError):  # also while it is being written
            return int((self.folder / "x.dag.lock").read_text().split()[1])
        return 0


def ended(folder: Path) -> bool:
    return (folder / "x.dag.metrics").exists()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
