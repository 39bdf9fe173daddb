"""Which HTTP connections there is room for, whose they are, and how long they may say nothing."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from condor_actors.wire.http_room import PATIENCE_S, BoundedSite, http_source

OWN = IPv4Address("TCP", "192.0.2.1", 80)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(("peer", "source"), [
    (IPv4Address("TCP", "192.0.2.7", 1), "192.0.2.7"),
    (IPv6Address("TCP", "2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2::"),
    (IPv6Address("TCP", "fe80::1%eth0", 1), "fe80::"),
    (IPv6Address("TCP", "::ffff:192.0.2.7", 1), "192.0.2.7"),
    (UNIXAddress(b"/x"), ""),
])
def test_an_address_or_a_network_of_64_bits_is_a_source(peer: Any, source: str) -> None:
    assert http_source(peer, OWN) == source


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7"])
def test_what_the_kernel_does_not_know_on_loopback_is_one_source(host: str) -> None:
    assert http_source(IPv4Address("TCP", host, 1), IPv4Address("TCP", "127.0.0.1", 2)) == "loopback"


class Page(Resource):
    """Answers when it is told to."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked: list[Any] = []

    def render_GET(self, request: Any) -> int:  # noqa: N802 - Twisted's name
        self.asked.append(request)
        request.notifyFinish().addErrback(lambda _: None)
        return NOT_DONE_YET


class Transport(StringTransport):
    """One that says whether it is open."""

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.disconnecting = True


class Server:
    """A site of ten connections, four of a source."""

    def __init__(self) -> None:
        self.page, self.clock = Page(), Clock()
        self.site = BoundedSite(self.page, lambda: 10, lambda: 4, self.clock)

    def connect(self, host: str, said: bytes = b"") -> Transport:
        transport = Transport(OWN, IPv4Address("TCP", host, 1))
        channel = self.site.buildProtocol(None)
        channel.makeConnection(transport)
        transport.channel = channel  # type: ignore[attr-defined]
        if said and not transport.disconnecting:
            channel.dataReceived(said)
        return transport

    @property
    def sources(self) -> dict[str, int]:
        return dict(self.site.connections.sources)


def is_open(transport: Transport) -> bool:
    return not transport.disconnecting


def test_a_new_one_takes_the_place_of_the_one_that_has_been_silent_longest() -> None:
    server = Server()
    held = [server.connect("a") for _ in range(4)]
    other = server.connect("b")
    fresh = server.connect("a", GET)
    assert [is_open(each) for each in (*held, other, fresh)] == [False, True, True, True, True, True]
    assert server.sources == {"a": 4, "b": 1}
    assert len(server.page.asked) == 1


def test_requests_under_way_are_not_cut_off_by_more_of_them() -> None:
    server = Server()
    held = [server.connect("a", GET) for _ in range(4)]
    refused = server.connect("a", GET)
    assert [is_open(each) for each in (*held, refused)] == [True] * 4 + [False]
    assert server.sources == {"a": 4}
    server.page.asked[0].finish()
    assert is_open(server.connect("a", GET))
    assert not is_open(held[0])


def test_where_all_is_taken_the_source_with_the_most_makes_room() -> None:
    server = Server()
    a, b, c = ([server.connect(name) for _ in range(count)] for name, count in (("a", 4), ("b", 3), ("c", 3)))
    assert is_open(server.connect("d", GET))
    assert [is_open(each) for each in a] == [False, True, True, True]
    assert all(is_open(each) for each in (*b, *c))
    assert server.sources == {"a": 3, "b": 3, "c": 3, "d": 1}


def test_where_all_are_at_work_who_has_many_makes_room_for_who_has_fewer() -> None:
    server = Server()
    held = [server.connect(name, GET) for name in "aaaabbbccc"]
    assert is_open(server.connect("d", GET))
    assert [is_open(each) for each in held] == [False] + [True] * 9
    assert is_open(server.connect("d", GET))
    assert server.sources == {"a": 2, "b": 3, "c": 3, "d": 2}
    assert not is_open(server.connect("d", GET)), "nobody has more than it would have"
    assert sum(is_open(each) for each in held) == 8


def test_a_request_that_comes_a_letter_at_a_time_ends_in_time() -> None:
    server = Server()
    slow = server.connect("a")
    for letter in GET[:40]:
        server.clock.advance(PATIENCE_S / 20)
        if is_open(slow):
            slow.channel.dataReceived(bytes([letter]))  # type: ignore[attr-defined]
    assert not is_open(slow)
    assert server.sources == {}
    assert server.page.asked == []


def test_one_that_does_not_go_on_after_its_answer_ends() -> None:
    server = Server()
    done = server.connect("a", GET)
    server.clock.advance(10 * PATIENCE_S)
    assert is_open(done), "its answer takes as long as it takes"
    server.page.asked[0].finish()
    assert b"200 OK" in done.value()
    server.clock.advance(PATIENCE_S + 1)
    assert not is_open(done)


def test_one_that_ends_gives_its_place_back_once() -> None:
    server = Server()
    held = [server.connect("a") for _ in range(4)]
    for each in held[:2]:
        each.channel.connectionLost()  # type: ignore[attr-defined]
    assert server.sources == {"a": 2}
    server.connect("a"), server.connect("a"), server.connect("a")
    held[2].channel.connectionLost()  # type: ignore[attr-defined]
    assert server.sources == {"a": 4}


@pytest.mark.parametrize("head", [b"Content-Length: 5", b"Content-Length: 999999999999", b"Transfer-Encoding: chunked"])
def test_a_body_is_not_read(head: bytes) -> None:
    server = Server()
    connection = server.connect("a", b"POST / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
    assert connection.value().startswith(b"HTTP/1.1 413 ")
    assert not is_open(connection)
    assert connection.producer is None, "what may write more keeps a connection with TLS open"
    server.clock.advance(PATIENCE_S + 1)
    assert server.sources == {}, "also when its peer does not let it go"


@pytest.mark.parametrize("head", [b"X: " + b"x" * 20_000, b"X: x\r\n" * 600, b"X" * 70_000])
def test_heads_have_an_end(head: bytes) -> None:
    server = Server()
    connection = server.connect("a", b"GET / HTTP/1.1\r\nHost: x\r\n" + head)
    assert not is_open(connection)
    assert server.page.asked == []
