"""The checkpoints of one job at home: the last good one, the one before it, and how the program ended.

::

    <folder>/image            the last checkpoint; the native shadow puts a new one in its place when it is whole
    <folder>/image.delta      where the last one is an increment: what changed since that whole one
    <folder>/image.undo/      what the program changed at home since then (the native shadow's)
    <folder>/image.undo.1/    what it changed between the one before and that
    <folder>/previous         the one before it, with previous.delta where that was an increment
    <folder>/.next-previous*  what is to be the one before, while a new one is on its way into its place
    <folder>/<digest>.list    of which pieces an image consists, kept before the image takes its place
    <folder>/ended            run id and exit status of a program that has ended

Theory: an image counts when a list says so, piece by piece; whatever crash left the folder in whatever state, the
newest image that matches a list is the one to start from, and none that does not match is ever started.  An increment
and its image count together or not at all: the journals lead back to the state that both describe, not to the image's.
Both stay as they were sealed: what is started of them is merged where it runs.  Here no seal is verified: whose folder
it is could replace the verdict as well as the files.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import Counter
from pathlib import Path
from typing import BinaryIO

import attrs

from condor_actors.durable import sync_folder
from condor_actors.machine.native.image import ImageDamaged, read_image
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.transfer.image_pieces import ImageList, verify_image
from condor_actors.transfer.streams import BadStream

__all__ = ["CheckpointFolder", "GoodImage"]


@attrs.frozen
class GoodImage:
    """A checkpoint that was verified.

    Attributes:
        path: the file; pieces: what it consists of; delta: the increment that belongs to it, or nothing.
        is_previous: the last one was damaged or is gone; ``why``: what is wrong with it.
        added: what the increment consists of.
    """

    path: str
    pieces: ImageList
    is_previous: bool = False
    why: str = ""
    delta: str = ""
    added: ImageList | None = None

    @property
    def newest(self) -> str:
        """The file that tells how the program was."""
        return self.delta or self.path


class CheckpointFolder:
    """Keeps the checkpoints of one job and knows which one it can go on from.

    Args:
        path: the folder; need not exist.
        owner: (uid, gid) whose it is to be, where this process is root; None: this process's.
    """

    def __init__(self, path: Path, owner: tuple[int, int] | None = None) -> None:
        self.path = path
        self.image = str(path / "image")
        self.delta = f"{self.image}.delta"
        self._previous = path / "previous"
        self._previous_delta = path / "previous.delta"
        self._next = (path / ".next-previous", path / ".next-previous-added")  # without an increment, and with one
        self._next_delta = path / ".next-previous.delta"
        self._owner = owner

    def make(self) -> None:
        """Make the folder.

        Raises:
            OSError: it cannot be made, or someone else's is there.
        """
        self.path.parent.mkdir(mode=0o755, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
        facts = self.path.lstat()
        uid = os.geteuid()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid not in (uid, self._owner[0] if self._owner else uid):
            raise PermissionError(1, "another user's folder lies there", str(self.path))
        if self._owner is not None and uid == 0:
            os.chown(self.path, *self._owner, follow_symlinks=False)

    def lists(self) -> list[ImageList]:
        """All lists of pieces that can be read, the newest first."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self.path.glob("*.list"), key=lambda each: -each.stat().st_mtime_ns):
                with contextlib.suppress(OSError, BadStream):
                    found.append(ImageList.from_bytes(path.read_bytes()))
        return found

    def newest(self, increment: bool = False) -> tuple[str, ImageList | None]:
        """The last image (or increment) and its list, unverified: what a new one may take pieces from."""
        path, lists = self.delta if increment else self.image, self.lists()
        with contextlib.suppress(OSError):
            size = os.stat(path).st_size
            return path, next((each for each in lists if each.size_bytes == size), None)
        return path, None

    def keep_list(self, pieces: ImageList) -> None:
        """Before the image or increment takes its place: remember what it consists of, and keep what is there.

        What is there becomes the one before when the new one has taken its place, and not sooner: one that never does
        must not cost the predecessor.

        Raises:
            OSError: the disk is full.
        """
        self._step_back()
        self._write_list(pieces)
        added = os.path.exists(self.delta)
        if added:
            os.link(self.delta, self._next_delta)
        with contextlib.suppress(FileNotFoundError):
            os.link(self.image, self._next[added])
        sync_folder(self.path)

    def _step_back(self) -> None:
        """What keep_list kept becomes the one before, if the new one is in its place; a crash may come at any time."""
        spare, added = next(((path, added) for added, path in enumerate(self._next) if path.exists()), (None, 0))
        if spare is None:
            self._next_delta.unlink(missing_ok=True)
            return
        if _same(str(spare), self.image) and (_same(str(self._next_delta), self.delta) if added
                                              else not os.path.exists(self.delta)):
            spare.unlink()
            self._next_delta.unlink(missing_ok=True)
            return
        if added:
            with contextlib.suppress(FileNotFoundError):  # it was done before the crash
                os.replace(self._next_delta, self._previous_delta)
                self._next_delta.unlink(missing_ok=True)  # renaming does nothing when both are the same file
        else:
            self._previous_delta.unlink(missing_ok=True)
        os.replace(spare, self._previous)
        spare.unlink(missing_ok=True)
        sync_folder(self.path)

    def _write_list(self, pieces: ImageList) -> None:
        target = self.path / f"{pieces.digest}.list"
        fresh = self.path / ".list.new"
        with _new_file(fresh) as stream:
            stream.write(pieces.to_bytes())
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(fresh, target)
        sync_folder(self.path)

    def settle(self, pieces: ImageList) -> None:
        """After the image has taken its place: the one it replaced is the one before; forget lists of images gone."""
        sync_folder(self.path)
        self._step_back()
        sizes = set()
        for path in (Path(self.image), Path(self.delta), self._previous, self._previous_delta):
            with contextlib.suppress(OSError):
                sizes.add(path.stat().st_size)
        kept: Counter[int] = Counter()
        for each in self.lists():
            kept[each.size_bytes] += 1  # the last whole one may be older than many increments
            if each.digest != pieces.digest and (each.size_bytes not in sizes or kept[each.size_bytes] > 3):
                with contextlib.suppress(OSError):
                    (self.path / f"{each.digest}.list").unlink()

    def good_image(self) -> tuple[GoodImage | None, str]:
        """The newest image that is what a list says, and why a newer one is not; reads all of it."""
        with contextlib.suppress(OSError):
            self._step_back()
        lists = self.lists()
        why = ""
        for path, delta, is_previous in ((self.image, self.delta, False),
                                         (str(self._previous), str(self._previous_delta), True)):
            if not os.path.exists(path):
                continue
            bad, (pieces, problem) = path, _verified(path, lists)
            added = None
            if pieces is not None and os.path.exists(delta) and _adds_to(delta, path):
                bad, (added, problem) = delta, _verified(delta, lists)
            if pieces is not None and not problem:
                return GoodImage(path, pieces, is_previous, why, delta if added is not None else "", added), ""
            why = why or f"{os.path.basename(bad)} is damaged: {problem}"
        return None, why

    def take_up(self, good: GoodImage) -> GoodImage:
        """Make what a program is to go on from the one in the first place; may be done again after a crash.

        Raises:
            OSError: the disk is full.
        """
        if not good.is_previous:
            return good
        if good.delta:  # first: beside an image that it does not belong to it does not count
            self._link(good.delta, self.delta)
        self._link(good.path, self.image)
        if not good.delta:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.delta)
        sync_folder(self.path)
        return attrs.evolve(good, path=self.image, delta=self.delta if good.delta else "")

    def _link(self, path: str, to: str) -> None:
        """Give a file a second name, in the place of what has it."""
        spare = str(self.path / ".taken-up")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spare)
        os.link(path, spare)
        os.rename(spare, to)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spare)  # renaming does nothing when both are the same file

    # ---- the end

    def say_ended(self, run_id: str, status: int) -> None:
        """The program has ended by itself: it must never be continued from a checkpoint again."""
        with contextlib.suppress(OSError):
            fresh = self.path / ".ended.new"
            with _new_file(fresh) as stream:
                stream.write(f"{run_id} {status}\n".encode())
            os.rename(fresh, self.path / "ended")
            sync_folder(self.path)

    def how_ended(self) -> tuple[str, int] | None:
        """(run id, exit status) of a program that has ended."""
        try:
            run_id, _, status = (self.path / "ended").read_text().strip().rpartition(" ")
            return run_id, int(status)
        except (OSError, ValueError):
            return None

    def drop_images(self) -> None:
        """No image is good: the program begins anew, and the journals bring its files back to how they were then."""
        for path in (Path(self.image), Path(self.delta), self._previous, self._previous_delta,
                     *self._next, self._next_delta, *self.path.glob("*.list")):
            with contextlib.suppress(OSError):
                path.unlink()

    def clear(self) -> None:
        """Forget everything: the program begins anew, or the job is gone."""
        remove_tree(str(self.path))

def _verified(path: str, lists: list[ImageList]) -> tuple[ImageList | None, str]:
    """The list that the file at ``path`` matches, or why it matches none."""
    problem = "nothing says what it should be"
    for pieces in lists:
        problem = verify_image(path, pieces)
        if not problem:
            return pieces, ""
    return None, problem


def _adds_to(delta: str, path: str) -> bool:
    """Whether an increment belongs to an image; one that cannot be read may."""
    try:
        return read_image(delta).base == read_image(path).generation
    except (ImageDamaged, OSError):
        return True


def _new_file(path: Path) -> BinaryIO:
    """A file that was not there before: where this process is root, the folder is a user's, who may have put a link in
    its place."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _same(one: str, other: str) -> bool:
    """Whether both are the same file."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
