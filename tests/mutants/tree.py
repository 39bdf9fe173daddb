"""A private copy of the tree in which one bug at a time is tried.

Theory: the checkout is never edited.  Each worker has a copy of its own, whose package comes first for the interpreter
and its children.  A changed file gets a time of its own and no bytecode of it is written, so nothing of a bug is left
when the file is put back.  What is compiled is made again only when a native source has changed since.

With a bug in place tests leave processes behind that they would end otherwise.  All of them know, in their environment,
which copy they belong to, and end with the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import psutil

from tests.mutants.mutation import ROOT, Mutation

__all__ = ["FAILED", "PASSED", "BuildFailed", "Outcome", "Stopped", "Tree"]

NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".hypothesis", ".*_cache", "*.egg-info", ".demo")
NOT_COPIED_FROM_TOP = frozenset({"build", "dist", "site"})
MARK = "CONDOR_MUTANTS_TREE"
"""The variable that says which copy a process belongs to."""

TEST_TIMEOUT_S = 30
RUN_TIMEOUT_S = 300.0
PASSED, FAILED = 0, 1
"""Exit statuses of pytest; all others say that the tests did not run."""


class BuildFailed(Exception):
    """The compiler does not take a source; ends with what it said."""


class Stopped(Exception):
    """The work was given up."""


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """What has no part in a copy; headers that the build has made in folders of their own have."""
    left_out = set(NOT_COPIED(folder, names))
    return left_out | NOT_COPIED_FROM_TOP if Path(folder) == ROOT else left_out


@attrs.frozen
class Outcome:
    """How a command ended.

    Attributes:
        status: its exit status; None: it did not end in time.
        output: what it printed.
    """

    status: int | None
    output: str


class Tree:
    """One copy, used by one thread; any other may :meth:`stop` it.

    Args:
        folder: where it goes; must not exist yet.

    Raises:
        RuntimeError: tests would not see the copy.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stale_build = False
        self._lock = threading.Lock()
        self._stopped = False
        shutil.copytree(ROOT, folder, symlinks=True, ignore=_not_copied)
        self._call([sys.executable, "-m", "compileall", "-q", "condor_actors", "tests", "twisted"], keeps_bytecode=True)
        seen = self._call([sys.executable, "-c", "import condor_actors; print(*condor_actors.__path__)"]).output.strip()
        if seen != str(folder / "condor_actors"):
            raise RuntimeError(f"the tests would run on {seen} and not on the copy in {folder}")

    def _call(self, command: list[str], *, keeps_bytecode: bool = False) -> Outcome:
        environment = {**os.environ, "PYTHONPATH": str(self.folder), MARK: str(self.folder)}
        if not keeps_bytecode:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            with self._lock:
                if self._stopped:
                    raise Stopped
                process = subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                           stdout=output, stderr=subprocess.STDOUT)
            try:
                status = process.wait(RUN_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                status = None
            self._end_processes()
            process.wait()
            if self._stopped:
                raise Stopped
            output.seek(0)
            return Outcome(status, output.read())

    def _end_processes(self) -> None:
        """Of this copy, with any parent."""
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == str(self.folder):
                    process.kill()
            except psutil.Error:  # it is someone else's, or gone
                continue

    def stop(self) -> None:
        """End what runs here; nothing more is begun."""
        with self._lock:
            self._stopped = True
        self._end_processes()

    def build(self) -> None:
        """Compile what is older than its source.

        Raises:
            BuildFailed: the compiler does not take it.
        """
        built = self._call([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], keeps_bytecode=True)
        if built.status != 0:
            raise BuildFailed(built.output[-2000:])
        self._stale_build = False

    def test(self, tests: Sequence[str], *, stops_at_first: bool = True) -> Outcome:
        """Run tests, named as pytest does."""
        flags = ["-x"] if stops_at_first else []
        return self._call([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=line", "-rf",
                           "-o", "addopts=", "-m", "not soak", f"--timeout={TEST_TIMEOUT_S}", *flags, *tests])

    @contextmanager
    def with_bug(self, mutation: Mutation) -> Iterator[None]:
        """The tree with one bug in it.

        Raises:
            StaleMutation: the text that it replaces is not there.
            BuildFailed: it does not compile.
        """
        path = self.folder / mutation.file
        sound, was = path.read_text("utf-8"), path.stat()
        buggy = mutation.applied_to(sound)
        try:
            path.write_text(buggy, "utf-8")
            if mutation.is_native or self._stale_build:
                self.build()
            yield
        finally:
            path.write_text(sound, "utf-8")
            if mutation.is_native:
                self._stale_build = True
            else:
                os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))  # its bytecode counts again

