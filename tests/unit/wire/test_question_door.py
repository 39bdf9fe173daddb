"""A stranger's one question: a line in time and of bounded length, and nothing after it."""

from __future__ import annotations

import json

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from condor_actors.wire.question_door import QuestionDoor


class Echo(QuestionDoor):
    """Says what it is asked, and stays."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, 10, 5.0)
        self.heard: list[bytes] = []

    def asked(self, line: bytes) -> None:
        self.heard.append(line)
        self.say({"heard": line.decode(), "at": self.address})


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(clock: Clock) -> tuple[Echo, StringTransport]:
    transport = StringTransport(peerAddress=IPv4Address("TCP", "192.0.2.7", 4000))
    door = Echo(clock)
    door.makeConnection(transport)
    return door, transport


def test_a_line_in_pieces_is_one_question(clock: Clock) -> None:
    door, transport = opened(clock)
    for piece in (b"ab", b"c", b"\n"):
        assert not door.heard
        door.dataReceived(piece)
    assert door.heard == [b"abc"]
    assert json.loads(transport.value()) == {"heard": "abc", "at": "192.0.2.7"}
    assert not transport.disconnecting


@pytest.mark.parametrize("pieces", [(b"a\nb\n",), (b"a\nb", b"\n"), (b"a\n", b"b"), (b"a\n", b"\n")])
def test_nothing_comes_after_it(clock: Clock, pieces: tuple[bytes, ...]) -> None:
    door, transport = opened(clock)
    for piece in pieces:
        door.dataReceived(piece)
    assert door.heard == [b"a"]
    assert transport.disconnecting


@pytest.mark.parametrize("data", [b"x" * 11, b"x" * 11 + b"\n"])
def test_it_has_a_longest_length(clock: Clock, data: bytes) -> None:
    door, transport = opened(clock)
    door.dataReceived(b"")
    assert not transport.disconnecting
    door.dataReceived(data)
    assert transport.disconnecting
    assert not door.heard


def test_it_has_to_come_in_time(clock: Clock) -> None:
    door, transport = opened(clock)
    clock.advance(4.0)
    door.dataReceived(b"slow")
    assert not transport.disconnecting
    clock.advance(1.0)
    assert transport.disconnecting


def test_what_may_last_longer_does(clock: Clock) -> None:
    door, transport = opened(clock)
    door.dataReceived(b"a\n")
    door.allow(60.0)
    clock.advance(59.0)
    assert not transport.disconnecting
    clock.advance(1.0)
    assert transport.disconnecting


def test_the_clock_stops_with_the_connection(clock: Clock) -> None:
    door, _ = opened(clock)
    assert clock.getDelayedCalls()
    door.connectionLost()
    assert not clock.getDelayedCalls()
