"""Frames that are numbered, and kept until they have arrived."""

from __future__ import annotations

import pytest

from condor_actors.transfer.numbered_frames import TELL_BYTES, WINDOW_BYTES, NumberedFrames
from condor_actors.transfer.streams import BadStream


def test_what_has_not_arrived_is_kept_in_order() -> None:
    frames = NumberedFrames()
    for each in (b"one", b"two", b"three"):
        frames.sent(each)
    frames.acknowledged(2)
    assert frames.unacknowledged == (b"three",)
    frames.acknowledged(2)
    frames.acknowledged(3)
    assert frames.unacknowledged == ()


@pytest.mark.parametrize("number", [0, 3, 1 << 63])
def test_no_more_arrives_than_was_sent_and_nothing_goes_back(number: int) -> None:
    frames = NumberedFrames()
    frames.sent(b"one")
    frames.sent(b"two")
    frames.acknowledged(1)
    with pytest.raises(BadStream):
        frames.acknowledged(number)
    assert frames.unacknowledged == (b"two",)


def test_it_is_full_until_something_arrives() -> None:
    frames = NumberedFrames()
    frames.sent(bytes(WINDOW_BYTES - 1))
    assert not frames.full
    frames.sent(b"1")
    assert frames.full
    frames.acknowledged(1)
    assert not frames.full


def test_the_other_end_is_told_at_once_of_much() -> None:
    frames = NumberedFrames()
    assert not frames.came(TELL_BYTES - 1)
    assert frames.came(1)
    assert frames.told() == 2
    assert not frames.came(1)
    assert frames.received == 3
