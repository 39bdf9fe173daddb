"""A stream of a run: what becomes of a checkpoint that cannot be written while its pieces are on their way."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from condor_actors.machine.standard.stream import StandardStream
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.image_pieces import ImageList, list_image
from tests.unit.transfer.test_image_pieces import image, noise


class End(StandardStream):
    """The end that takes checkpoints, at once and in this thread."""

    def __init__(self, place: Path) -> None:
        super().__init__(Clock(), local=True, in_thread=self._at_once)
        self._place = place
        self._descriptor = -1
        self.heard: list[tuple[int, str]] = []
        self.why_over = ""
        self.makeConnection(StringTransport())

    @staticmethod
    def _at_once(function: Any, *given: Any) -> Deferred[Any]:
        return maybeDeferred(function, *given)

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        self._descriptor = os.open(self._place, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        return self._descriptor, "", None

    def image_here(self, number: int, text: str) -> None:
        os.close(self._descriptor)
        self.heard.append((number, text))
        self.answer_image(number, text)

    def channel_data(self, member: int, data: bytes) -> None:
        raise AssertionError("no channel")

    def ended(self, reason: str) -> None:
        self.why_over = reason

    def hears(self, wanted: ImageList, source: Path, numbers: range) -> None:
        data = source.read_bytes()
        for number in numbers:
            piece = wanted.pieces[number]
            self.dataReceived(ss.frame(
                ss.PIECE, struct.pack("<I", number) + data[piece.offset : piece.offset + piece.length]))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return image(tmp_path / "source", [(0x400000, noise(2_000_000, 1))])


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A disk with so much room; the last write that finds any writes a part."""
    room = {"bytes": 300_000}
    real = os.pwrite

    def pwrite(file: int, data: Any, offset: int) -> int:
        fits = min(len(data), room["bytes"])
        if not fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room["bytes"] -= fits
        return real(file, memoryview(data)[:fits], offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    return room


def test_pieces_on_their_way_to_a_full_disk_do_not_end_the_run(tmp_path: Path, source: Path,
                                                              disk: dict[str, int]) -> None:
    """The sender hears why; the stream, and with it the program, goes on, and the next checkpoint is taken."""
    wanted = list_image(str(source))
    end = End(tmp_path / "target")
    end.dataReceived(ss.frame(ss.IMAGE, wanted.to_bytes()))
    end.hears(wanted, source, range(len(wanted.pieces)))
    assert end.heard == [(errno.ENOSPC, os.strerror(errno.ENOSPC))]
    assert not end.over, end.why_over
    disk["bytes"] = 1 << 30
    end.dataReceived(ss.frame(ss.IMAGE, wanted.to_bytes()))
    end.hears(wanted, source, range(len(wanted.pieces)))
    assert end.heard[1:] == [(0, "")]
    assert (tmp_path / "target").read_bytes() == source.read_bytes()


def test_nobody_sends_a_piece_twice_to_a_full_disk(tmp_path: Path, source: Path, disk: dict[str, int]) -> None:
    wanted = list_image(str(source))
    end = End(tmp_path / "target")
    end.dataReceived(ss.frame(ss.IMAGE, wanted.to_bytes()))
    end.hears(wanted, source, range(len(wanted.pieces)))
    end.hears(wanted, source, range(1))
    assert "nobody asked for" in end.why_over
