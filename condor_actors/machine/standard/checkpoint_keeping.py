"""Checkpoints at a server: both ends of a stream that stores one, fetches one, or drops one (``condor checkpoint 1``).

Theory: it is the stream of a run without the run (:mod:`condor_actors.machine.standard.stream`): an image goes over it
in pieces, only those that the other side lacks.  ``K`` says whose and what for: the job's name and ``store``,
``fetch`` or ``drop``.  Its opener is known by certificate, and reaches only its own files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from condor_actors.machine.standard.checkpoint_folder import CheckpointFolder, GoodImage
from condor_actors.machine.standard.stream import ImageRefused, StandardStream
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.image_pieces import ImageList
from condor_actors.transfer.streams import BadStream

__all__ = ["CHECKPOINT_LINE", "CheckpointArchive", "CheckpointServerError", "ServerEnd", "ask_server"]

CHECKPOINT_LINE = b"condor checkpoint 1\n"
"""The first line of such a stream."""

WAYS = frozenset({"store", "fetch", "drop"})


class CheckpointServerError(Exception):
    """The server does not do it, or cannot be reached."""


@attrs.define
class CheckpointArchive:
    """All that a server keeps: ``<root>/<owner>/<job>/``, each with the date of its last use.

    Attributes:
        root: the folder; lease_s: what nobody has used for so long goes.
        quota_bytes: of one owner; total_bytes: of all (0: no limit).
    """

    root: Path
    lease_s: float
    quota_bytes: int = 0
    total_bytes: int = 0

    def folder(self, owner: str, job: str) -> CheckpointFolder:
        """Where a job's checkpoints are.

        Raises:
            BadStream: a name that cannot be one.
        """
        if not owner or not job or len(quote(owner, safe="")) > 200 or len(quote(job, safe="")) > 200:
            raise BadStream("a checkpoint without a name, or with too long a one")
        return CheckpointFolder(self.root / f"u-{quote(owner, safe='')}" / f"j-{quote(job, safe='')}")

    def used_bytes(self, owner: str = "") -> int:
        """What is kept of an owner, or of all; holes do not count."""
        start = self.root / f"u-{quote(owner, safe='')}" if owner else self.root
        return sum(path.lstat().st_blocks * 512 for path in start.rglob("*") if path.is_file())

    def room_problem(self, owner: str, size_bytes: int) -> int:
        """Why so much more cannot be kept (errno); 0: it can."""
        if self.quota_bytes and self.used_bytes(owner) + size_bytes > self.quota_bytes:
            return errno.EDQUOT
        if self.total_bytes and self.used_bytes() + size_bytes > self.total_bytes:
            return errno.ENOSPC
        return 0

    def sweep(self, now_s: float) -> int:
        """Remove what nobody has used within its lease; how many jobs' that was."""
        gone = 0
        for folder in self.root.glob("u-*/j-*"):
            with contextlib.suppress(OSError):
                if now_s - folder.stat().st_mtime > self.lease_s:
                    shutil.rmtree(folder)
                    gone += 1
        for owner in self.root.glob("u-*"):
            with contextlib.suppress(OSError):
                owner.rmdir()
        return gone


class ServerEnd(StandardStream):
    """The server's end of one stream.

    Args:
        archive: what it keeps; owner: whose stream it is, as the transport proved it.
        note: called with a sentence for the log.
    """

    def __init__(self, reactor: Any, archive: CheckpointArchive, owner: str, note: Callable[[str], None]) -> None:
        super().__init__(reactor, local=False)
        self._archive = archive
        self._owner = owner
        self._note = note
        self._folder: CheckpointFolder | None = None
        self._way = ""
        self._fd = -1
        self._list: ImageList | None = None

    def take(self, letter: int, member: int, payload: bytes) -> None:
        """Beside the common frames: what is wanted."""
        if self._folder is None:
            if letter != ss.KEY:
                raise BadStream("a stream that does not say what for")
            job, self._way = ss.fields_of(letter, payload)
            if self._way not in WAYS:
                raise BadStream(f"nothing is known of {self._way!r}")
            self._folder = self._archive.folder(self._owner, job)
            self._begin(self._folder)
        elif letter == ss.IMAGE and self._way != "store":
            raise BadStream("an image that nobody asked for")
        else:
            super().take(letter, member, payload)

    def _begin(self, folder: CheckpointFolder) -> None:
        if self._way == "fetch":
            looking = self.in_thread(folder.good_image)
            looking.addCallbacks(self._found, lambda failure: self.cut(failure.getErrorMessage()))
            return
        if self._way == "drop":
            folder.clear()
        elif self._way == "store":
            folder.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.make()
        self._used()
        self.send(ss.frame(ss.READY))

    def _used(self) -> None:
        assert self._folder is not None
        with contextlib.suppress(OSError):
            os.utime(self._folder.path)

    def _found(self, result: tuple[GoodImage | None, str]) -> None:
        good, why = result
        if good is None:
            self.send(ss.message_frame(ss.NO, why or "there is no checkpoint of that job"))
            return
        self._used()
        self.send(ss.frame(ss.READY))
        self.send_image(good.path, good.pieces, lambda number, text: self.cut("fetched"))

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        """Beside the old one, if there is room."""
        assert self._folder is not None
        problem = self._archive.room_problem(self._owner, wanted.stored_bytes)
        if problem:
            self._note(f"{self._owner} stores no more here: {os.strerror(problem)}")
            raise ImageRefused(problem, os.strerror(problem))
        self._list = wanted
        self._fd = os.open(f"{self._folder.image}.new", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        return (self._fd, *self._folder.newest())

    def image_here(self, number: int, text: str) -> None:
        """Keep it, then say so."""
        folder, wanted, descriptor = self._folder, self._list, self._fd
        assert folder is not None
        assert wanted is not None
        self._fd = -1

        def keep() -> None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            folder.keep_list(wanted)
            os.rename(f"{folder.image}.new", folder.image)
            folder.settle(wanted)

        def kept(result: Any) -> None:
            problem = result.value if isinstance(result, Failure) else None
            self._used()
            self.answer_image(getattr(problem, "errno", 5) or 5 if problem else 0, str(problem or ""))

        if number:
            os.close(descriptor)
            self.answer_image(number, text)
        else:
            self.in_thread(keep).addBoth(kept)

    def channel_data(self, member: int, data: bytes) -> None:
        """There are no channels here."""
        raise BadStream("no program runs here")

    def ended(self, reason: str) -> None:
        """A half image is not kept."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._folder is not None:
            self._note(f"{self._way} {self._folder.path.name} of {self._owner}: {reason}")


class _ClientEnd(StandardStream):
    """The shadow's end: one errand."""

    def __init__(self, reactor: Any, job: str, way: str, folder: CheckpointFolder, pieces: ImageList | None) -> None:
        super().__init__(reactor, local=False)
        self.result: Deferred[None] = Deferred()
        self._errand = job, way
        self._folder = folder
        self._pieces = pieces
        self._fd = -1
        self._list: ImageList | None = None
        self._ready = self._told = False

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say what for."""
        super().connectionMade()
        self.send(CHECKPOINT_LINE)
        self.send(ss.message_frame(ss.KEY, *self._errand))

    def take(self, letter: int, member: int, payload: bytes) -> None:
        """Beside the common frames: the server's yes and no."""
        if letter == ss.NO and not self._ready:
            self._done(str(ss.fields_of(letter, payload)[0]) or "refused")
        elif letter == ss.READY and not self._ready:
            self._ready = True
            if self._errand[1] == "store" and self._pieces is not None:
                self.send_image(self._folder.image, self._pieces, self._sent)
            elif self._errand[1] != "fetch":
                self._done("")
        else:
            super().take(letter, member, payload)

    def _sent(self, number: int, text: str) -> None:
        self._done((text or os.strerror(number)) if number else "")

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        """The image of the job's folder at home."""
        self._folder.make()
        self._list = wanted
        self._fd = os.open(f"{self._folder.image}.new", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
        return (self._fd, *self._folder.newest())

    def image_here(self, number: int, text: str) -> None:
        """It has come."""
        assert self._list is not None
        os.close(self._fd)
        self._fd = -1
        try:
            if not number:
                self._folder.keep_list(self._list)
                os.rename(f"{self._folder.image}.new", self._folder.image)
        except OSError as error:
            number, text = error.errno or 5, str(error)
        self.answer_image(number, text)
        self._done(text or os.strerror(number) if number else "")

    def channel_data(self, member: int, data: bytes) -> None:
        """There are no channels here."""
        raise BadStream("a checkpoint server has no channels")

    def _done(self, problem: str) -> None:
        if self._told:
            return
        self._told = True
        if problem:
            self.result.errback(CheckpointServerError(problem))
        else:
            self.result.callback(None)
        transport: Any = self.transport
        if transport is not None and not self.over:
            transport.unregisterProducer()
            transport.loseConnection()

    def ended(self, reason: str) -> None:
        """The connection is gone."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._done(f"the checkpoint server went away: {reason}")


def ask_server(reactor: Any, endpoint: IStreamClientEndpoint, job: str, way: str, folder: CheckpointFolder,
               pieces: ImageList | None = None) -> Deferred[None]:
    """One errand at a checkpoint server.

    Args:
        reactor: Twisted's; endpoint: of the server.
        job: the name of the job, the same from its submission to its end.
        way: ``store`` (the folder's image, which consists of ``pieces``), ``fetch`` (into the folder), ``drop``.

    Returns:
        Fires when it is done; fails with :class:`CheckpointServerError`.
    """
    end = _ClientEnd(reactor, job, way, folder, pieces)

    def unreachable(failure: Failure) -> None:
        end.ended(failure.getErrorMessage())

    endpoint.connect(Factory.forProtocol(lambda: end)).addErrback(unreachable)
    return end.result


