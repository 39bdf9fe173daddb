"""A link's life on a simulated clock: greeting, signs of life, silence, credit, batches."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.testing import StringTransportWithDisconnection

from condor_actors.messages.codec import encode
from condor_actors.messages.envelope import SELF, Done, Envelope, Identity
from condor_actors.wire import frames
from condor_actors.wire.link import GREETING_S, SIGN_OF_LIFE_S, SILENCE_S, Link
from tests.harness.clock import SteppingClock

BODY = encode(Done())


def envelope(number: int, **fields: Any) -> Envelope:
    return Envelope(kind="condor.Done", version=1, body=BODY, message_id=str(number), to="x", **fields)


class Owner:
    """The post office of one end."""

    def __init__(self) -> None:
        self.busy = False
        self.ready: list[Link] = []
        self.received: list[Envelope] = []
        self.batches = 0
        self.closed: list[str] = []

    def congested(self, link: Link) -> bool:
        return self.busy

    def identify(self, link: Link, transport: object) -> bool:
        return True

    def link_ready(self, link: Link) -> None:
        self.ready.append(link)

    def link_received(self, link: Link, envelopes: list[Envelope]) -> None:
        self.received += envelopes
        self.batches += 1

    def link_closed(self, link: Link, reason: str) -> None:
        self.closed.append(reason)


class Pair:
    """Two links joined in memory; :meth:`carry` moves bytes until nothing moves."""

    def __init__(self, server_hello: frames.Hello | None = None) -> None:
        self.clock = SteppingClock()
        self.owners = Owner(), Owner()
        hello = frames.Hello(boot_id="b", process="p")
        self.links = (Link(self.owners[0], "server", SELF, self.clock, hello, is_client=True),
                      Link(self.owners[1], "in:1", Identity(name="x@y"), self.clock, server_hello or hello,
                           is_client=False))
        self.transports = []
        for link in self.links:
            transport = StringTransportWithDisconnection()
            transport.protocol = link.broker
            transport.abortConnection = transport.loseConnection  # type: ignore[method-assign]
            self.transports.append(transport)
            link.broker.makeConnection(transport)
        first = self.transports[0].value()
        assert first.startswith(frames.ACTORS_LINE)
        self.transports[0].clear()
        self.transports[0].write(first[len(frames.ACTORS_LINE):])
        self.cut = False

    def carry(self) -> None:
        moved = True
        while moved and not self.cut:
            moved = False
            for one, other in ((0, 1), (1, 0)):
                data = self.transports[one].value()
                self.transports[one].clear()
                if data and self.transports[other].connected:
                    moved = True
                    self.links[other].broker.dataReceived(data)

    def run(self, span_s: float) -> None:
        for _ in range(max(1, int(span_s))):
            self.clock.run(min(1.0, span_s))
            self.carry()

    def close(self) -> None:
        for transport in self.transports:
            if transport.connected:
                transport.loseConnection()
        assert not self.clock.getDelayedCalls()


def test_greeting_and_batches() -> None:
    pair = Pair()
    pair.carry()
    client, server = pair.links
    assert client.up
    assert server.up
    for number in range(100):
        client.send(envelope(number))
    pair.run(0.0)
    assert [each.message_id for each in pair.owners[1].received] == [str(number) for number in range(100)]
    assert pair.owners[1].batches == 1, "what one iteration queued is one batch"
    assert len(client.under_way) == 100
    pair.run(1.0)
    assert not client.under_way, "acknowledged within half a second"
    pair.close()


def test_no_hello_in_time() -> None:
    pair = Pair()
    pair.cut = True
    pair.run(GREETING_S + 1)
    assert "no hello" in pair.owners[0].closed[0]
    pair.close()


def test_a_peer_of_another_protocol() -> None:
    pair = Pair(server_hello=frames.Hello(protocols=(99,), boot_id="b", process="future"))
    pair.carry()
    for owner in pair.owners:
        assert owner.closed == ["future speaks protocol 99, and its peer 1: they have different releases"]
    assert not pair.links[0].was_up
    pair.close()


def test_a_peer_that_speaks_another_protocol_as_well() -> None:
    pair = Pair(server_hello=frames.Hello(protocols=(99, 1), boot_id="b", process="future"))
    pair.carry()
    assert [link.up for link in pair.links] == [True, True]
    pair.close()


def test_signs_of_life_keep_a_quiet_link_and_silence_ends_it() -> None:
    pair = Pair()
    pair.carry()
    pair.run(10 * SILENCE_S)
    assert pair.links[0].up
    pair.cut = True
    pair.run(SILENCE_S + SIGN_OF_LIFE_S + 1)
    assert "silence" in pair.owners[0].closed[0]
    pair.close()


def test_no_more_than_the_window_is_under_way() -> None:
    pair = Pair(server_hello=frames.Hello(boot_id="b", process="small", window=10))
    pair.carry()
    client = pair.links[0]
    pair.owners[1].busy = True
    for number in range(25):
        client.send(envelope(number))
    pair.run(5.0)
    assert len(pair.owners[1].received) == 10
    assert len(client.unsent) == 15
    pair.owners[1].busy = False
    pair.run(5.0)
    assert len(pair.owners[1].received) == 25
    assert not client.under_way
    pair.close()


def test_large_messages_are_cut_into_batches() -> None:
    pair = Pair()
    pair.carry()
    body = encode(Done(text="x" * 400_000))
    for number in range(3):
        pair.links[0].send(Envelope(kind="condor.Done", version=1, body=body, message_id=str(number), to="x"))
    pair.run(0.0)
    assert pair.owners[1].batches == 3
    pair.close()


def test_goodbye_says_why() -> None:
    pair = Pair()
    pair.carry()
    pair.links[1].close("stopping", "the process is stopping")
    pair.carry()
    assert pair.owners[0].closed == ["the process is stopping"]
    pair.close()


def test_a_kind_the_peer_does_not_know() -> None:
    pair = Pair(server_hello=frames.Hello(boot_id="b", process="old", kinds=frozenset({("condor.Refused", 1)})))
    pair.carry()
    assert not pair.links[0].understands(envelope(1))
    assert pair.links[0].unknown(envelope(1)) == (
        "old at server has another release: it knows no such message, not condor.Done version 1")
    pair.close()


def test_a_version_that_the_peer_does_not_know() -> None:
    pair = Pair(server_hello=frames.Hello(boot_id="b", process="new", kinds=frozenset({("condor.Done", 2)})))
    pair.carry()
    assert pair.links[0].unknown(envelope(1)) == (
        "new at server has another release: it knows version 2, not condor.Done version 1")
    pair.close()


@pytest.mark.parametrize("count", [5, -1, 1 << 40])
def test_acknowledging_what_was_not_sent_ends_the_link(count: int) -> None:
    pair = Pair()
    pair.carry()
    with pytest.raises(frames.BadFrame):
        pair.links[0].frame_received(frames.pack_ack(count))
    pair.close()


def test_acknowledgements_do_not_go_backwards() -> None:
    pair = Pair()
    pair.carry()
    client = pair.links[0]
    for number in range(3):
        client.send(envelope(number))
    pair.run(3.0)
    assert not client.under_way
    with pytest.raises(frames.BadFrame):
        client.frame_received(frames.pack_ack(1))
    pair.close()


def test_nothing_is_taken_before_the_hello() -> None:
    pair = Pair()
    for frame in (frames.pack_batch(0, [envelope(1)]), frames.pack_ack(0)):
        with pytest.raises(frames.BadFrame):
            pair.links[1].frame_received(frame)
    assert pair.owners[1].received == []
    pair.carry()
    with pytest.raises(frames.BadFrame):
        pair.links[1].frame_received(frames.pack_hello(frames.Hello(boot_id="b", process="again")))
    pair.close()
