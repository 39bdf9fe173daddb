"""What an attribute may do to a stream, and requests that do not come to their end."""

from __future__ import annotations

import json

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from condor_actors.daemons.web.door import LONGEST_BODY, Door
from condor_actors.daemons.web.watchers import event
from condor_actors.wire.http_room import PATIENCE_S, BoundedSite


@pytest.mark.parametrize("hostile", [
    "x\n\nevent: begin\ndata: {}\n\n", "\r\revent: x\r", "\u2028data: x", "\0", "</script>",
])
def test_no_name_of_a_slot_begins_an_event_of_its_own(hostile: str) -> None:
    said = event("slots", {"changed": [{"name": hostile}]})
    head, data = said.removesuffix(b"\n\n").split(b"\n")
    assert head == b"event: slots"
    assert b"\r" not in data
    assert json.loads(data.removeprefix(b"data: ")) == {"changed": [{"name": hostile}]}


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: ", b"POST /p HTTP/1.1\r\nHost: localhost\r\n"
                                  b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"])
def test_a_request_that_does_not_come_to_its_end_is_not_waited_for(sent: bytes) -> None:
    """Also not while a letter of its body comes now and then."""

    class Transport(StringTransport):
        aborted = False

        def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
            self.aborted = True

    clock = Clock()
    door = Door(lambda path: None, set, None, False, {b"/p"})
    address = IPv4Address("TCP", "192.0.2.1", 1)
    channel = BoundedSite(door, lambda: 1, lambda: 1, clock, longest_body=LONGEST_BODY).buildProtocol(address)
    transport = Transport(address, address)
    channel.makeConnection(transport)
    channel.dataReceived(sent)
    for _ in range(int(PATIENCE_S / 5)):
        assert not transport.aborted
        clock.advance(5)
        if b"\r\n\r\n" in sent:
            channel.dataReceived(b"x")
    assert transport.aborted
