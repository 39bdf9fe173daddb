"""The lists of a job's checkpoints at a URL: in a folder of the owner's part of SPOOL, one for each.

Theory: a list is written whole when its checkpoint is there, and names every file with its digest; what a run goes on
from is the newest.  The name of a list says whether that may be: ``MANIFEST``; ``FAILURE``, what came back was not what
was sent; ``OLD``, newer ones are enough.  Those two wait until their files are removed
(:mod:`condor_actors.daemons.shadow.checkpoints.removal`).  All of this blocks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import attrs

from condor_actors.actors.workers import touching
from condor_actors.cores.checkpoints.manifest import (
    BadCheckpoint,
    CheckpointList,
    list_name,
    number_of,
    read_list,
    write_list,
)
from condor_actors.daemons.shadow.file_trouble import FileTrouble, file_trouble
from condor_actors.durable import write_whole
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.manifest import check_manifest, is_digest

__all__ = ["ALL", "UNUSED", "KeptLists", "lists_of"]

UNUSED = ("FAILURE", "OLD")
ALL = ("MANIFEST", *UNUSED)
MOST_SERIAL = 10**9


@attrs.frozen
class KeptLists:
    """Those of one job.

    Attributes:
        folder: where they are; it need not be there.
    """

    folder: Path

    def numbers(self, kinds: Sequence[str] = ("MANIFEST",)) -> list[int]:
        """Of the checkpoints whose lists are of these kinds, the oldest first."""
        touching(str(self.folder))
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(number for name in names for kind in kinds if (number := number_of(name, kind)) >= 0)

    def newest(self) -> CheckpointList | None:
        """What the next run goes on from; a list that is not whole is set aside.

        Raises:
            FileTrouble: one cannot be read.
        """
        for number in reversed(self.numbers()):
            try:
                return self.read(number)
            except BadCheckpoint:
                self.set_aside(number)
        return None

    def read(self, number: int, kind: str = "MANIFEST") -> CheckpointList:
        """One list.

        Raises:
            BadCheckpoint: it is not whole.
            FileTrouble: it cannot be read.
        """
        path = self.folder / list_name(number, kind)
        try:
            return read_list(path.read_bytes())
        except OSError as error:
            raise file_trouble("cannot read the list of a checkpoint", str(path), error) from None

    def keep(self, entries: Sequence[FileEntry], number: int, base: str, most: int) -> None:
        """A checkpoint is at its destination: write its list, and have no more than ``most`` in use.

        Raises:
            BadManifest: the entries are not to be carried out.
            FileTrouble: the number is another checkpoint's already, or the disk takes nothing.
        """
        check_manifest(entries)
        if not 0 < number <= MOST_SERIAL or not all(is_digest(entry.digest) for entry in entries
                                                    if entry.kind == "file"):
            raise FileTrouble(f"the machine tells of a checkpoint number {number} without what it consists of")
        made = CheckpointList(number=number, base=base, entries=tuple(entries))
        path = self.folder / list_name(number)
        if path.exists() and path.read_bytes() != write_list(made):
            raise FileTrouble(f"the machine tells of another checkpoint number {number} than there is")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, write_list(made), 0o600)
            for old in self.numbers()[:-most]:
                self._rename(old, "OLD")
        except OSError as error:
            raise file_trouble("cannot write the list of a checkpoint", str(path), error) from None

    def set_aside(self, number: int) -> int:
        """Use a checkpoint no more; how many are left that may be used.

        Raises:
            OSError: it cannot be done.
        """
        if number in self.numbers():
            self._rename(number, "FAILURE")
        return len(self.numbers())

    def _rename(self, number: int, kind: str) -> None:
        os.replace(self.folder / list_name(number), self.folder / list_name(number, kind))


def lists_of(spool: str, job: str) -> KeptLists:
    """Those of a job (``CLUSTER.PROC``); ``spool``: the owner's part of SPOOL."""
    return KeptLists(Path(spool or "/nonexistent", "lists", job))
