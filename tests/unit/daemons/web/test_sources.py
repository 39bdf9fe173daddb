"""Whose connection is whose, when connections to the page are counted; and what an attribute may do to a stream."""

from __future__ import annotations

import json

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from condor_actors.daemons.web.door import PATIENCE_S, CheckedSite, Door, source_of
from condor_actors.daemons.web.watchers import event


@pytest.mark.parametrize(("host", "source"), [
    ("127.0.0.1", "loopback"), ("127.9.8.7", "loopback"), ("192.0.2.7", "192.0.2.7"),
])
def test_an_ipv4_address_is_a_source_and_loopback_is_one(host: str, source: str) -> None:
    assert source_of(IPv4Address("TCP", host, 1)) == source


@pytest.mark.parametrize(("host", "source"), [
    ("::1", "loopback"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"), ("fe80::1%eth0", "fe80::"),
    ("::ffff:192.0.2.7", "192.0.2.7"), ("::ffff:127.0.0.1", "loopback"),
])
def test_an_ipv6_network_of_64_bits_is_a_source(host: str, source: str) -> None:
    assert source_of(IPv6Address("TCP", host, 1)) == source


def test_what_has_no_address_is_one_source() -> None:
    assert source_of(UNIXAddress(b"/x")) == ""


def test_a_source_has_its_share_and_gives_it_back() -> None:
    class Clock:
        def callLater(self, *_: object) -> None:  # noqa: N802 - Twisted's name
            raise AssertionError("no connection is made")

    site = CheckedSite(None, lambda: 1, lambda: 3, Clock())  # type: ignore[arg-type]
    one, other = IPv4Address("TCP", "192.0.2.1", 1), IPv4Address("TCP", "192.0.2.2", 1)
    made = [site.buildProtocol(one) for _ in range(3)]
    assert None not in made
    assert site.buildProtocol(one) is None
    assert site.buildProtocol(other) is not None
    made[0].connectionLost()
    assert site.buildProtocol(one) is not None
    assert dict(site.sources) == {"192.0.2.1": 3, "192.0.2.2": 1}


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
    door = Door(lambda path: None, set, "", False, {b"/p"})
    channel = CheckedSite(door, lambda: 1, lambda: 1, clock).buildProtocol(IPv4Address("TCP", "192.0.2.1", 1))
    transport = Transport()
    channel.makeConnection(transport)
    channel.dataReceived(sent)
    for _ in range(int(PATIENCE_S / 5)):
        assert not transport.aborted
        clock.advance(5)
        if b"\r\n\r\n" in sent:
            channel.dataReceived(b"x")
    assert transport.aborted
