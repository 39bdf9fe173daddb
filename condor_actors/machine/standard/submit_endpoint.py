"""The submit endpoint of a standard-universe job's stream: beside the native shadow."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from functools import partial
from typing import Any

from condor_actors.cores.checkpoint_seals import FIRST, job_and_run
from condor_actors.machine.standard.resumable import ResumableStream
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.image_pieces import ImageList
from condor_actors.transfer.streams import BadStream

__all__ = ["SubmitEndpoint"]

MEMBERS = 1000


class SubmitEndpoint(ResumableStream):
    """The end beside the native shadow.

    Args:
        run_id, key: what is shown to the starter host.
        ready: called with an empty text when the starter takes the run, else with why not.
        image_kept: called in place of keeping an image: (list, done(errno, text)); the file is complete by then.
        old_image: where the last image (or increment) is and what it consists of.
        image: where the native shadow puts checkpoints.
        vacating: called when the next image is to be the last.
        lost: called with the reason when the stream is over.
        interrupted: called when its connection has ended and the stream goes on over another, which is the callee's to
            dial; None: the stream ends with its connection.
    """

    def __init__(self, reactor: Any, *, local: bool, run_id: str, key: str, ready: Callable[[str], None],
                 image_kept: Callable[[ImageList, Callable[[int, str], None]], None],
                 old_image: Callable[[bool], tuple[str, ImageList | None]], image: str, vacating: Callable[[], None],
                 lost: Callable[[str], None], interrupted: Callable[[], None] | None = None) -> None:
        super().__init__(reactor, local=local)
        self._run = run_id, key
        self._ready: Callable[[str], None] | None = ready
        self._image_kept = image_kept
        self._old_image = old_image
        self._image = image
        self._vacating = vacating
        self._lost = lost
        self._interrupted = interrupted
        self._born = 0
        self._image_fd = -1
        self._list: ImageList | None = None
        self._last = FIRST

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say whose stream it is."""
        super().connectionMade()
        self.send(ss.STANDARD_LINE)
        self.send(ss.message_frame(ss.KEY, *self._run))

    def take(self, letter: int, member: int, payload: bytes) -> None:
        """Beside the common frames: the starter's yes and no, and that it makes way."""
        if letter in (ss.READY, ss.NO) and self._ready is not None:
            ready, self._ready = self._ready, None
            if payload == ss.OFFER and letter == ss.READY and self._interrupted is not None:
                self.last()
                self.tell()
            ready("" if letter == ss.READY else ss.fields_of(letter, payload)[0] or "refused")
        elif letter == ss.VACATE:
            self._vacating()
        else:
            super().take(letter, member, payload)

    def serve(self, sock: socket.socket) -> None:
        """Relay the channel of the first process, whose other end the native shadow has."""
        self.add_member(0, sock, partial(self._answers, 0))

    def _answers(self, member: int, data: bytes, passed_fds: list[int]) -> None:
        for passed_fd in passed_fds:
            try:
                sock = socket.socket(fileno=passed_fd)
            except OSError:  # no socket: the file of an image
                self._drop_image()
                self._image_fd = passed_fd
                continue
            if len(self.members) >= MEMBERS:
                sock.close()
                continue
            number = self._free_number()
            self.send(ss.frame(ss.MEMBER, b"", number))
            self.add_member(number, sock, partial(self._answers, number))
        self.forward(member, data)

    def member_born(self, sock: socket.socket, child: int) -> None:
        """Relay the channel of a helper that a process with a channel of its own straight home has started."""
        if len(self.members) >= MEMBERS or self.over:
            sock.close()
            return
        number = self._free_number()
        self.send(ss.frame(ss.BORN, child.to_bytes(8, "little"), number))
        self.add_member(number, sock, partial(self._answers, number))

    def member_straight(self, child: int, label: int) -> None:
        """A helper has a channel of its own, straight home: the connection with that label."""
        self.send(ss.frame(ss.STRAIGHT, child.to_bytes(8, "little") + label.to_bytes(8, "little")))

    def _free_number(self) -> int:
        self._born = self._born % 65535 + 1
        while self._born in self.members:
            self._born = self._born % 65535 + 1
        return self._born

    def channel_data(self, member: int, data: bytes) -> None:
        """Requests for the native shadow."""
        channel = self.members.get(member)
        if channel is not None:
            channel.write(data)

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        """The file that the native shadow has made."""
        run, seal = job_and_run(self._run[0])[1], wanted.seal
        if seal is None or seal.generation.run != run or not self._last < seal.generation:
            raise BadStream("a checkpoint that the starter has not sealed for this run")
        self._last = seal.generation
        if self._image_fd < 0:
            self._image_fd = self._open_image()
        self._list = wanted
        return (self._image_fd, *self._old_image(self.increment_comes))

    def _open_image(self) -> int:
        """The file that did not come along, because the channel goes straight to the native shadow."""
        place = f"{self._image}.delta.new" if self.increment_comes else f"{self._image}.new"
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            raise BadStream("a checkpoint that nobody began") from None
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            os.close(descriptor)
            raise BadStream("the place of the checkpoint is taken")
        return descriptor

    def image_here(self, number: int, text: str) -> None:
        """Whole: its list is kept first, then the shadow hears of it."""
        wanted, self._list = self._list, None
        self._drop_image()
        if number or wanted is None:
            self.answer_image(number or 5, text)
        else:
            self._image_kept(wanted, self.answer_image)

    def _drop_image(self) -> None:
        if self._image_fd >= 0:
            os.close(self._image_fd)
            self._image_fd = -1

    def broken(self, reason: str) -> None:
        """It goes on over another connection."""
        if self._interrupted is not None:
            self._interrupted()

    def ended(self, reason: str) -> None:
        """Nothing comes any more."""
        self._drop_image()
        if self._ready is not None:
            ready, self._ready = self._ready, None
            ready(f"the stream ended: {reason}")
        self._lost(reason)
