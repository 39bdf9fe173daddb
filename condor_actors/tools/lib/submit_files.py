"""The submit machine's file system, as the submit language asks for it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

from condor_actors.tools.lib.command import ToolError
from condor_actors.written_text import MOST_BYTES, printed_text, read_written

MOST_PRINTED_BYTES = MOST_BYTES


def check_name(path: str) -> str:
    """The path itself, when a description that a command writes can name it as it is.

    In another, a line end would begin a command of its own, and ``$(…)`` would be another file.

    Raises:
        ToolError: it cannot.
    """
    if any(each in path for each in "\r\n$") or path != path.strip() or path.endswith("\\"):
        raise ToolError(f"ERROR: {path!r} cannot be named in a submit description: rename it; it has a line end, a $, "
                        "blanks around it or a backslash at its end")
    return path


class LocalFiles:
    """Answers from the real file system; remembers sizes, since thousands of jobs share their inputs."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}

    def read_text(self, path: str) -> str:
        """The text of a file, of standard input for ``-``."""
        if path == "-":
            return sys.stdin.read()
        return read_written(path).replace("\r\n", "\n")

    def run(self, command: str) -> str:
        """What a shell command prints.

        Raises:
            OSError: it fails.
        """
        return printed_text(command, most_bytes=MOST_PRINTED_BYTES)

    def glob(self, pattern: str) -> Sequence[tuple[str, bool]]:
        """(path, is a folder) of what matches, sorted."""
        import glob

        return [(path, os.path.isdir(path)) for path in sorted(glob.glob(os.path.expanduser(pattern)))]

    def size_kib(self, path: str) -> int:
        """Size of a file or of everything below a folder, rounded up; 0 when there is none."""
        known = self._sizes.get(path)
        if known is None:
            known = self._sizes[path] = _size_kib(path)
        return known

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder of that name."""
        return os.path.isdir(path)

    def access_problem(self, path: str, mode: str) -> str:
        """Why the file cannot be opened; empty: it can.  For writing, a folder that takes a new file will do."""
        if mode == "w" and not os.path.exists(path):
            path = os.path.dirname(path) or "."
            return "" if os.access(path, os.W_OK | os.X_OK) else "Permission denied" if os.path.exists(path) else (
                "No such file or directory"
            )  # fmt: skip
        if not os.path.exists(path):
            return "name with a NUL" if "\0" in path else "No such file or directory"
        kind = os.stat(path).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) and os.path.realpath(path) != os.devnull:
            return "not a regular file or a folder"
        if mode == "w" and os.path.isdir(path):
            return "Is a directory"
        return "" if os.access(path, os.R_OK if mode == "r" else os.W_OK) else "Permission denied"

    def first_line(self, path: str) -> bytes:
        """The first line of a file, at most 1024 bytes; empty when it cannot be read, or is a pipe or device."""
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                return file.readline(1024) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
        except OSError:
            return b""

    def preflight(self, path: str) -> tuple[bool, str, Sequence[str]]:
        """As ``condor_checkpoint preflight`` says it."""
        from condor_actors.machine.native.preflight import examine

        verdict = examine(path)
        return verdict.runs, verdict.summary, verdict.remarks


def _size_kib(path: str) -> int:
    try:
        if not os.path.isdir(path):
            return (os.stat(path).st_size + 1023) // 1024
    except (OSError, ValueError):
        return 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return (total + 1023) // 1024
