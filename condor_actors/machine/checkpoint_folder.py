"""The checkpoints of one job at home: the last good one, the one before it, and how the program ended.

::

    <folder>/image            the last checkpoint; the native shadow puts a new one in its place when it is whole
    <folder>/image.undo/      what the program changed at home since then (the native shadow's)
    <folder>/image.undo.1/    what it changed between the one before and that
    <folder>/previous         the one before it
    <folder>/<digest>.list    of which pieces an image consists, kept before the image takes its place
    <folder>/ended            run id and exit status of a program that has ended

Theory: an image counts when a list says so, piece by piece; whatever crash left the folder in whatever state, the
newest image that matches a list is the one to start from, and none that does not match is ever started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import attrs

from condor_actors.transfer.image_pieces import ImageList, verify_image
from condor_actors.transfer.streams import BadStream

__all__ = ["CheckpointFolder", "GoodImage"]


@attrs.frozen
class GoodImage:
    """A checkpoint that was verified.

    Attributes:
        path: the file; pieces: what it consists of.
        is_previous: the last one was damaged or is gone; ``why``: what is wrong with it.
    """

    path: str
    pieces: ImageList
    is_previous: bool = False
    why: str = ""


class CheckpointFolder:
    """See the module.

    Args:
        path: the folder; need not exist.
        owner: (uid, gid) whose it is to be, where this process is root; None: this process's.
    """

    def __init__(self, path: Path, owner: tuple[int, int] | None = None) -> None:
        self.path = path
        self.image = str(path / "image")
        self._previous = path / "previous"
        self._owner = owner

    def make(self) -> None:
        """Make the folder.

        Raises:
            OSError: it cannot be made, or somebody else's is there.
        """
        self.path.parent.mkdir(mode=0o755, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
        facts = self.path.lstat()
        uid = os.geteuid()
        if facts.st_uid not in (uid, self._owner[0] if self._owner else uid):
            raise PermissionError(1, "another user's folder lies there", str(self.path))
        if self._owner is not None and uid == 0:
            os.chown(self.path, *self._owner)

    def lists(self) -> list[ImageList]:
        """All lists of pieces that can be read, the newest first."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self.path.glob("*.list"), key=lambda each: -each.stat().st_mtime_ns):
                with contextlib.suppress(OSError, BadStream):
                    found.append(ImageList.from_bytes(path.read_bytes()))
        return found

    def newest(self) -> tuple[str, ImageList | None]:
        """The last image and its list, unverified: what a new one may take pieces from."""
        lists = self.lists()
        with contextlib.suppress(OSError):
            size = os.stat(self.image).st_size
            return self.image, next((each for each in lists if each.size_bytes == size), None)
        return self.image, None

    def keep_list(self, pieces: ImageList) -> None:
        """Before the image takes its place: remember what it consists of, and keep the one that is there.

        Raises:
            OSError: the disk is full.
        """
        target = self.path / f"{pieces.digest}.list"
        fresh = self.path / ".list.new"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(pieces.to_bytes())
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(fresh, target)
        spare = self.path / ".previous.new"
        with contextlib.suppress(FileNotFoundError):
            spare.unlink()
        with contextlib.suppress(FileNotFoundError):
            os.link(self.image, spare)
            os.rename(spare, self._previous)
            with contextlib.suppress(FileNotFoundError):  # rename does nothing when both are the same file
                spare.unlink()
        self._sync()

    def settle(self, pieces: ImageList) -> None:
        """After the image has taken its place: forget lists of images that are gone."""
        sizes = set()
        for path in (Path(self.image), self._previous):
            with contextlib.suppress(OSError):
                sizes.add(path.stat().st_size)
        for kept, each in enumerate(self.lists(), 1):
            if each.digest != pieces.digest and (each.size_bytes not in sizes or kept > 3):
                with contextlib.suppress(OSError):
                    (self.path / f"{each.digest}.list").unlink()

    def good_image(self) -> tuple[GoodImage | None, str]:
        """The newest image that is what a list says, and why a newer one is not; reads all of it."""
        lists = self.lists()
        why = ""
        for path, is_previous in ((Path(self.image), False), (self._previous, True)):
            if not path.exists():
                continue
            problem = "nothing says what it should be" if not lists else ""
            for pieces in lists:
                problem = verify_image(str(path), pieces)
                if not problem:
                    return GoodImage(str(path), pieces, is_previous, why), ""
            why = why or f"{path.name} is damaged: {problem}"
        return None, why

    # ---- the end

    def say_ended(self, run_id: str, status: int) -> None:
        """The program has ended by itself: it must never be continued from a checkpoint again."""
        with contextlib.suppress(OSError):
            fresh = self.path / ".ended.new"
            fresh.write_text(f"{run_id} {status}\n")
            os.rename(fresh, self.path / "ended")
            self._sync()

    def how_ended(self) -> tuple[str, int] | None:
        """(run id, exit status) of a program that has ended."""
        try:
            run_id, _, status = (self.path / "ended").read_text().strip().rpartition(" ")
            return run_id, int(status)
        except (OSError, ValueError):
            return None

    def drop_images(self) -> None:
        """No image is good: the program begins anew, and the journals bring its files back to how they were then."""
        for path in (Path(self.image), self._previous, *self.path.glob("*.list")):
            with contextlib.suppress(OSError):
                path.unlink()

    def clear(self) -> None:
        """Forget everything: the program begins anew, or the job is gone."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _sync(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
