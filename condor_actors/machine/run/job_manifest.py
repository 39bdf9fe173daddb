"""The lists of a job's files that the job wants (``manifest``): a folder with ``in``, ``out`` and ``environment``.

Theory: ``in`` is written when the input files are there, ``out`` when the program has ended and its outputs are about
to be looked for.  By then the job may have put anything in the folder's place.  So nothing is followed: the folder is
opened as a directory and not through a link, and each file in it is made anew.  What cannot be written for the job's
own doing is left out.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping

from condor_actors.cores.argument_quoting import join_raw
from condor_actors.machine.run.sandbox import Sandbox

__all__ = ["record_inputs", "record_outputs"]

MOST_NAMES = 1_000_000
"""How many names a list has at most."""
MOST_DEPTH = 200

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def record_inputs(sandbox: Sandbox, folder: str, variables: Mapping[str, str]) -> None:
    """List the files and variables that the job begins with.

    Args:
        sandbox: not the job's yet; folder: a name in it.

    Raises:
        OSError: no space, or what came with the inputs is in the way.
    """
    with sandbox.rights():
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{sandbox.path}/{folder}", 0o700)
        place = os.open(f"{sandbox.path}/{folder}", _FOLDER)
        try:
            _write(place, "environment", iter([join_raw([f"{name}={value}" for name, value in variables.items()])]))
            _write(place, "in", _names_in(sandbox.path))
        finally:
            os.close(place)


def record_outputs(sandbox: Sandbox, folder: str) -> None:
    """List the files that the job has left.  The folder is missing afterwards where the job has put something else in
    its place."""
    with sandbox.rights(), contextlib.suppress(OSError):
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{sandbox.path}/{folder}", 0o700)
        place = os.open(f"{sandbox.path}/{folder}", _FOLDER)
        try:
            _write(place, "out", _names_in(sandbox.path))
        finally:
            os.close(place)


def _write(place: int, name: str, lines: Iterator[str]) -> None:
    """Make a file with these lines, whatever has its name.

    Raises:
        OSError: it cannot be made.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=place), "wb") as stream:
        for line in lines:
            stream.write(os.fsencode(line) + b"\n")


def _names_in(folder: str) -> Iterator[str]:
    """All names below a folder, from ``./`` on: folders end in ``/``, and line ends in a name are escaped."""
    top = os.open(folder, _FOLDER)
    try:
        for count, name in enumerate(_below(top, ".", 0)):
            if count == MOST_NAMES:
                return
            yield name.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in name else name
    finally:
        os.close(top)


def _below(folder: int, path: str, depth: int) -> Iterator[str]:
    with os.scandir(folder) as found:
        entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
    for name, is_folder in entries:
        yield f"{path}/{name}/" if is_folder else f"{path}/{name}"
        if not is_folder or depth == MOST_DEPTH:
            continue
        with contextlib.suppress(OSError):  # it has gone, or nobody may look into it
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                if stat.S_ISDIR(os.fstat(inner).st_mode):
                    yield from _below(inner, f"{path}/{name}", depth + 1)
            finally:
                os.close(inner)
