"""What a description sees of the world: given from outside, so that making jobs stays pure.

The tool gives the real caller's folder, environment, clock and file system; tests and simulations give others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from condor_actors import records

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from random import Random
    from typing import Protocol
else:
    Protocol = object


class FileSystem(Protocol):
    """Questions about files of the submit machine.  Paths are absolute except where a statement names them."""

    def read_text(self, path: str) -> str:
        """The text of a file of rows or an included file; ``-`` is standard input.  Raises OSError."""

    def run(self, command: str) -> str:
        """What a command prints.  Raises OSError."""

    def glob(self, pattern: str) -> Sequence[tuple[str, bool]]:
        """(path, is a folder) of what matches, sorted."""

    def size_kib(self, path: str) -> int:
        """Size of a file or of all below a folder, rounded up; 0 when there is none."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder of that name."""

    def access_problem(self, path: str, mode: str) -> str:
        """Why the file cannot be opened for ``r`` or ``w`` (``No such file or directory`` …); empty: it can."""

    def preflight(self, path: str) -> tuple[bool, str, Sequence[str]]:
        """Whether a program can run with its files elsewhere, in words, and which of its calls would be refused."""

    def first_line(self, path: str) -> bytes:
        """The first line of a file, at most 1024 bytes; empty when it cannot be read."""


@records.frozen(kw_only=True)
class Environment:
    """The world of one submission.

    Attributes:
        cwd: the caller's folder.
        environ: the caller's environment.
        user: the caller's name, for accounting groups.
        now_s: seconds since 1970.
        arch, opsys: as in machine ads; ``automatic`` has further names (``OPSYSANDVER``, ``SPOOL`` …).
        files: the file system.
        setting: a value of the configuration, None when it is not set.
        version, platform: the two lines of condor_version.
        random: for the ``$RANDOM_`` macros; None: Python's own.
        submit_method: 0 condor_submit, 1 a DAG's own, 2 Python …
    """

    cwd: str
    environ: Mapping[str, str]
    user: str
    now_s: int
    arch: str
    opsys: str
    files: FileSystem
    setting: Callable[[str], str | None]
    version: str
    platform: str
    automatic: Mapping[str, str] = records.Factory(dict)
    random: Random | None = None
    submit_method: int = 0
