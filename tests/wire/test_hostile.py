"""Bytes that no honest peer sends, at each layer; and a stock Perspective Broker client."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.spread import banana as twisted_banana
from twisted.spread import jelly, pb

from condor_actors.messages.codec import encode
from condor_actors.messages.envelope import Done, Envelope
from condor_actors.wire import banana, frames
from condor_actors.wire.broker import LinkBroker, NothingAllowed
from tests.wire.conftest import Process
from tests.wire.raw import Raw

Make = Callable[..., Process]
HELLO = frames.pack_hello(frames.Hello(boot_id="b", process="hostile"))
GREETING = frames.ACTORS_LINE + banana.CHOSEN_DIALECT + banana.VERSION


def call(frame: bytes, request: int = 1) -> bytes:
    return banana.encode_call(request, frame)


def pb_encoded(expression: Any) -> bytes:
    """An expression as Twisted encodes it."""
    written: list[bytes] = []
    encoder = twisted_banana.Banana(isClient=1)
    encoder.setPrefixLimit(64)
    encoder.currentDialect = b"pb"
    encoder._encode(expression, written.append)
    return b"".join(written)


def deep(levels: int) -> bytes:
    return b"\x01\x80" * levels + b"\x00\x81"


ENVELOPE = Envelope(kind="condor.Done", version=1, body=encode(Done()), message_id="m", to="echo")
ROW = ["condor.Done", 1, b"\x80", "m", "echo", "", "", 0.0, ""]


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"condor actors 2\n",
        b"condor enrol 1\n",
        b"x" * 100,
        frames.ACTORS_LINE + b"\xff" * 100,
        frames.ACTORS_LINE + banana.GREETING_DIALECTS,
        frames.ACTORS_LINE + call(HELLO),
        GREETING + deep(1000),
        GREETING + b"\x7f" * 20,
        GREETING + b"\x7f\x7f\x7f\x80",
        GREETING + b"\x7f\x7f\x7f\x7f\x82",
        GREETING + b"\x84" + bytes(8),
        GREETING + pb_encoded([b"version", 5]),
        GREETING + pb_encoded([b"message", 1, b"root", b"login", 1, [b"tuple"], [b"dictionary"]]),
        GREETING + pb_encoded([b"message", 1, b"link", b"deliver", 0, [b"tuple"], [b"dictionary"]]),
        GREETING + pb_encoded([b"message", 1, b"link", b"deliver", 0, [b"tuple", b"a", b"b"], [b"dictionary"]]),
        GREETING + pb_encoded([b"message", 1, b"link", b"deliver", 0, [b"tuple", [b"persistent", 1]], [b"dictionary"]]),
        GREETING + pb_encoded([b"message", 1, b"link", b"__init__", 0, [b"tuple", b"a"], [b"dictionary"]]),
        GREETING + pb_encoded([b"cachemessage", 1, 1, b"x", 0, [b"tuple"], [b"dictionary"]]),
        GREETING + pb_encoded([b"answer", 1, [b"None"]]),
        GREETING + pb_encoded([b"error", 1, [b"None"]]),
        GREETING + pb_encoded([b"decref", 1]),
        GREETING + pb_encoded([b"decache", 1]),
        GREETING + pb_encoded([b"didNotUnderstand", b"x"]),
        GREETING + call(b""),
        GREETING + call(b"\xc1"),
        GREETING + call(frames.pack_ack(0)),
        GREETING + call(HELLO) + call(HELLO),
        GREETING + call(HELLO) + call(frames.pack_ack(1)),
        GREETING + call(HELLO) + call(msgpack.packb([1, 0, [ROW[:-1]]])),
        GREETING + call(HELLO) + call(msgpack.packb([1, -1, []])),
        GREETING + call(HELLO) + call(msgpack.packb([9])),
        GREETING + call(msgpack.packb([0, [99], "b", "p", "", [], 10])),
        GREETING + call(msgpack.packb([0, [1], "b", "p", "", [["k"]], 10])),
        GREETING + call(msgpack.packb([0, [1], "b", "p", "", [], 0])),
    ],
)
@pytest_twisted.ensureDeferred
async def test_hostile_bytes_end_the_connection(processes: Make, short_dir: Path, data: bytes) -> None:
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))
    raw = Raw(data)
    await connectProtocol(UNIXClientEndpoint(reactor, str(short_dir / "s")), raw)
    raw.ended.addTimeout(60, reactor)
    got = await raw.ended
    assert b"Traceback" not in got
    assert b"Error" not in got
    answer = await processes("honest").box.ask(f"unix:{short_dir}/s", "echo", Done())
    assert isinstance(answer.message, Done), "the server serves on"


@pytest_twisted.ensureDeferred
async def test_a_flood_beyond_the_window_ends_the_connection(processes: Make, short_dir: Path) -> None:
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))
    rows = [frames.pack_batch(0, [ENVELOPE] * 1000)] * 6
    raw = Raw(GREETING + call(HELLO) + b"".join(map(call, rows)))
    original = type(server.office).congested
    try:
        type(server.office).congested = lambda self, link: True  # type: ignore[method-assign]
        await connectProtocol(UNIXClientEndpoint(reactor, str(short_dir / "s")), raw)
        raw.ended.addTimeout(60, reactor)
        await raw.ended
    finally:
        type(server.office).congested = original  # type: ignore[method-assign]


@pytest_twisted.ensureDeferred
async def test_a_stock_perspective_broker_client_can_deliver(processes: Make, short_dir: Path) -> None:
    """What we speak is Perspective Broker: its own classes reach our actors."""
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))
    received: list[bytes] = []
    arrived: Deferred[None] = Deferred()

    class Link(pb.Referenceable):
        def remote_deliver(self, frame: bytes) -> None:
            received.append(frame)
            if frames.unpack(frame)[0] == frames.BATCH:
                arrived.callback(None)

    class Stock(pb.Broker):
        def connectionMade(self) -> None:
            self.transport.write(frames.ACTORS_LINE)
            super().connectionMade()

        def connectionReady(self) -> None:
            self.factory = type("F", (), {"clientConnectionMade": lambda *_: None})()
            super().connectionReady()
            self.setNameForLocal(b"link", Link())
            remote = self.remoteForName(b"link")
            remote.callRemote("deliver", HELLO).addErrback(lambda _: None)
            question = Envelope(kind="condor.Done", version=1, body=encode(Done(text="pb")), message_id="x",
                                to="echo", reply_to="me", deadline_s=20.0)
            remote.callRemote("deliver", frames.pack_batch(0, [question])).addErrback(lambda _: None)

    broker = Stock(isClient=1)
    await connectProtocol(UNIXClientEndpoint(reactor, str(short_dir / "s")), broker)
    arrived.addTimeout(60, reactor)
    await arrived
    assert frames.unpack(received[0])[0] == frames.HELLO
    answer = frames.unpack(received[1])[2][0]
    assert answer.in_reply_to == "x"
    assert answer.to == "me"
    broker.transport.loseConnection()


def test_nothing_can_be_unjellied() -> None:
    options = NothingAllowed()
    for hostile in ([b"module", b"os"], [b"function", b"os.system"], [b"class", b"os.PathLike"],
                    [b"tests.wire.Thing", [b"dictionary"]], [b"unicode", b"x"], [b"reference", 1, [b"list"]]):
        with pytest.raises(jelly.InsecureJelly):
            jelly.unjelly(hostile, options)
    assert issubclass(LinkBroker, pb.Broker)


@given(st.integers(0, 2**31 - 1), st.binary(max_size=3000), st.data())
def test_our_encoding_is_twisteds_however_it_is_cut(request: int, frame: bytes, data: st.DataObject) -> None:
    frame = b"\x93" + frame  # frames are arrays of MessagePack, never a word of the vocabulary
    expected = pb_encoded([b"message", request, b"link", b"deliver", 0, [b"tuple", frame], [b"dictionary"]])
    ours = banana.encode_call(request, frame)
    assert ours == expected
    stream = ours * 2 + banana.VERSION
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    decoder = banana.Decoder()
    found: list[Any] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += decoder.feed(stream[begin:end])
    assert found == [(request, False, frame)] * 2 + [[b"version", 6]]


@given(st.binary(max_size=400))
def test_the_decoder_survives_anything(data: bytes) -> None:
    try:
        banana.Decoder().feed(data)
    except banana.BadBanana:
        pass


@given(st.binary(max_size=400))
def test_frames_survive_anything(data: bytes) -> None:
    try:
        frames.unpack(data)
    except frames.BadFrame:
        pass


def test_large_frames_in_small_chunks_take_linear_work() -> None:
    frame = os.urandom(600_000)
    stream = banana.encode_call(1, frame)
    decoder = banana.Decoder()
    found = []
    for position in range(0, len(stream), 65536):
        found += decoder.feed(stream[position : position + 65536])
    assert found == [(1, False, frame)]
    with pytest.raises(banana.BadBanana):
        banana.Decoder().feed(banana.encode_call(1, bytes(700_000)))


def test_an_expression_that_is_deeper_than_any_of_ours_is_refused() -> None:
    def nested(depth: int) -> bytes:
        return b"\x01\x80" * depth + b"\x05\x81"

    assert banana.Decoder().feed(nested(banana.MAX_DEPTH)) != []
    with pytest.raises(banana.BadBanana):
        banana.Decoder().feed(nested(banana.MAX_DEPTH + 1))
