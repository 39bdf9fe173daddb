"""Open pages: everybody hears everything or begins anew; slowness costs its page only."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.web.server import NOT_DONE_YET

from condor_actors.daemons.web.watchers import HEARTBEAT_S, PATIENCE_S, Watchers, event


class FakeTransport:
    """Is aborted or not."""

    aborted = False

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.aborted = True


class FakeRequest:
    """What a watcher does with a request."""

    method = b"GET"

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.headers: dict[bytes, bytes] = {}
        self.code = 200
        self.channel = self
        self.transport = FakeTransport()
        self.producer: Any = None
        self.end: Deferred[None] = Deferred()

    def setHeader(self, name: bytes, value: bytes) -> None:  # noqa: N802 - Twisted's name
        self.headers[name] = value

    def setResponseCode(self, code: int) -> None:  # noqa: N802 - Twisted's name
        self.code = code

    def notifyFinish(self) -> Deferred[None]:  # noqa: N802 - Twisted's name
        return self.end

    def registerProducer(self, producer: Any, streaming: bool) -> None:  # noqa: N802 - Twisted's name
        assert streaming
        self.producer = producer

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def names(self) -> list[str]:
        """The events it was sent."""
        return [text.partition(b"\n")[0].removeprefix(b"event: ").decode() for text in self.written
                if text.startswith(b"event: ")]


def made(most: int = 2) -> tuple[Clock, Watchers, list[int]]:
    clock, begun = Clock(), []

    def beginning() -> bytes:
        begun.append(1)
        return event("begin", {})

    return clock, Watchers(clock, beginning, lambda: most, lambda: None), begun


def test_a_page_begins_with_everything_and_hears_all_changes() -> None:
    _, watchers, begun = made()
    first, second = FakeRequest(), FakeRequest()
    assert watchers.render(first) is NOT_DONE_YET
    watchers.render(second)
    assert begun == [1], "what pages that come together begin with is made once"
    watchers.publish("slots", {"changed": []})
    assert first.names() == second.names() == ["begin", "slots"]
    assert json.loads(first.written[-1].split(b"data: ")[1]) == {"changed": []}


def test_a_slow_page_is_sent_nothing_and_begins_anew() -> None:
    _, watchers, _ = made()
    slow, quick = FakeRequest(), FakeRequest()
    watchers.render(slow)
    watchers.render(quick)
    slow.producer.pauseProducing()
    for number in range(1000):
        watchers.publish("slots", {"changed": [number]})
    assert len(slow.written) == 2
    assert len(quick.names()) == 1001
    slow.producer.resumeProducing()
    assert slow.names() == ["begin", "begin"]
    watchers.publish("summary", {})
    assert slow.names() == ["begin", "begin", "summary"]


def test_a_page_that_reads_nothing_is_let_go() -> None:
    clock, watchers, _ = made()
    dead, alive = FakeRequest(), FakeRequest()
    watchers.render(dead)
    watchers.render(alive)
    dead.producer.pauseProducing()
    clock.pump([HEARTBEAT_S] * int(PATIENCE_S / HEARTBEAT_S + 1))
    assert (dead.transport.aborted, alive.transport.aborted) == (True, False)
    assert alive.written[-1].startswith(b":")
    watchers.stop()
    assert not clock.getDelayedCalls()


def test_more_than_allowed_come_later_and_find_room_when_one_goes() -> None:
    _, watchers, _ = made(most=1)
    first, second = FakeRequest(), FakeRequest()
    watchers.render(first)
    assert b"WEB_MAX_WATCHERS" in watchers.render(second)
    assert (second.code, second.headers[b"retry-after"]) == (503, b"60")
    first.end.callback(None)
    assert len(watchers) == 0
    assert watchers.render(FakeRequest()) is NOT_DONE_YET


def test_text_cannot_break_out_of_an_event() -> None:
    sent = event("slots", {"name": "a\n\ndata: b\r\nevent: begin"})
    assert sent.count(b"\n") == 3
    assert b"\r" not in sent
