"""condor_manifest: look at the lists (MANIFEST files) of checkpoints that jobs have sent to a URL.

**Source**: the program of that name, and the manual, "Checkpoint Destinations".
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from condor_actors.cores.checkpoints.manifest import (
    BadCheckpoint,
    CheckpointList,
    file_of_line,
    number_of,
    read_list,
    write_list,
)
from condor_actors.durable import write_whole
from condor_actors.messages.manifest import FileEntry
from condor_actors.tools.lib.command import ToolError, Words, operands_of, reminder_of, run
from condor_actors.tools.lib.flags import Flag, Given

FLAGS = (Flag("help", 1), Flag("version", 1))
NO_NUMBER = 255
"""The exit status that stands for -1."""


def main() -> int:
    """Entry of ``condor_manifest``."""
    return run(FLAGS, "condor_manifest", _answer, words=Words.of("condor_manifest"))


def _answer(given: Sequence[Given]) -> int:
    words = operands_of(given)
    if not words:
        raise ToolError(f"ERROR: no function given\n{reminder_of('condor_manifest')}")
    if words[0] == "deleteFilesStoredAt":
        raise ToolError("ERROR: the shadow host of a job's owner removes its checkpoints, as "
                        "CHECKPOINT_DESTINATION_MAPFILE says, when the job leaves the queue; deleteFilesStoredAt is "
                        "not for people here")
    function = _FUNCTIONS.get(words[0])
    if function is None:
        raise ToolError(f"ERROR: condor_manifest has no function {words[0]}; it has {', '.join(_FUNCTIONS)}")
    if len(words) != 2:
        raise ToolError(f"ERROR: {words[0]} takes one word, and got {len(words) - 1}")
    return function(words[1])


def _number(name: str) -> int:
    number = number_of(name)
    print(number)
    return number % 256 if number >= 0 else NO_NUMBER


def _read(path: str) -> CheckpointList:
    with open(path, "rb") as file:
        return read_list(file.read())


def _is_whole(path: str) -> int:
    try:
        found = _read(path)
        if number_of(os.path.basename(path)) not in (found.number, -1):
            raise BadCheckpoint(f"it is the list of checkpoint {found.number}")
    except BadCheckpoint as error:
        print("false", f"{path}: {error}", sep="\n")
        return 1
    print("true")
    return 0


def _files_are_whole(path: str) -> int:
    try:
        for entry in _read(path).entries:
            if entry.kind == "file" and _digest(entry.path) != entry.digest:
                raise BadCheckpoint(f"{entry.path} is not what the list says")
    except (BadCheckpoint, OSError) as error:
        name = getattr(error, "filename", None)
        print("false", f"{path}: {f'{name}: {error.strerror}' if isinstance(error, OSError) else error}", sep="\n")
        return 1
    print("true")
    return 0


def _of_line(place: int) -> Callable[[str], int]:
    def show(line: str) -> int:
        try:
            print(file_of_line(line)[place])
        except BadCheckpoint as error:
            raise ToolError(f"ERROR: {error}") from None
        return 0

    return show


def _digest(path: str) -> str:
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", path)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum(path: str) -> int:
    print(f"{_digest(path)} *{path}")
    return 0


def _make(folder: str) -> int:
    """Write the list of a folder's files into it, as of checkpoint 0."""
    if not os.path.isdir(folder):
        raise ToolError(f"ERROR: {folder} is no folder")
    entries = []
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(here, name)
            if os.path.isfile(path) and number_of(name) < 0:
                mode = os.stat(path).st_mode & 0o777
                entries.append(FileEntry(path=os.path.relpath(path, folder), mode=mode, digest=_digest(path)))
    made = os.path.join(folder, "_condor_checkpoint_MANIFEST.0000")
    # In one piece, and never through a link: a job may have left the folder, with what lies in it.
    write_whole(Path(made), write_list(CheckpointList(number=0, base="", entries=tuple(entries))))
    print(made)
    return 0


_FUNCTIONS = {
    "getNumberFromFileName": _number, "validateManifestFile": _is_whole, "validateFilesListedIn": _files_are_whole,
    "FileFromLine": _of_line(1), "ChecksumFromLine": _of_line(0), "compute_file_sha256_checksum": _sum,
    "createManifestFor": _make,
}


if __name__ == "__main__":
    sys.exit(main())
