"""The life of a dialled node under any order of events: nothing is forgotten, nothing is dialled twice at once."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError

from condor_actors.messages.envelope import Envelope
from condor_actors.wire.dialled import MAX_DELAY_S, Dialled
from condor_actors.wire.frames import Hello
from tests.harness.clock import SteppingClock


class FakeLink:
    """As much of a link as a dialled node sees."""

    def __init__(self) -> None:
        self.up = self.was_up = False
        self.peer: Hello | None = None
        self.unsent: deque[Envelope] = deque()
        self.under_way: deque[Envelope] = deque()


class FakeOffice:
    """The post office around the node; keeps what became of each envelope."""

    def __init__(self) -> None:
        self.clock = SteppingClock()
        self.random = Random(1)
        self.stopped = False
        self.attempts: list[Deferred[Any]] = []
        self.sent: list[Envelope] = []
        self.failed: list[tuple[Envelope, str]] = []
        self.down = 0
        self.first_sent_to: dict[str, str] = {}

    def connect(self, node: str) -> Deferred[Any]:
        attempt: Deferred[Any] = Deferred()
        self.attempts.append(attempt)
        return attempt

    def send_over(self, link: FakeLink, envelope: Envelope) -> None:
        assert link.up
        if len(link.under_way) < 3:  # its window
            assert link.peer is not None
            first = self.first_sent_to.setdefault(envelope.message_id, link.peer.boot_id)
            assert first == link.peer.boot_id, "sent again to a peer that may have acted on it before it was restarted"
            self.sent.append(envelope)
            link.under_way.append(envelope)
        else:
            link.unsent.append(envelope)

    def undeliverable(self, node: str, envelope: Envelope, reason: str, text: str) -> None:
        self.failed.append((envelope, reason))

    def report_down(self, node: str, reason: str) -> None:
        self.down += 1

    def forget(self, dialled: Dialled) -> None:
        assert dialled.link is None
        assert not dialled.watched


class Life(RuleBasedStateMachine):
    """Connects, breaks and closes an outgoing link in random order."""

    @initialize()
    def begin(self) -> None:
        self.office = FakeOffice()
        self.node = Dialled(self.office, "<n:1>")  # type: ignore[arg-type]
        self.link: FakeLink | None = None
        self.count = 0
        self.boot = 0

    @property
    def dialling(self) -> Deferred[Any] | None:
        open_ = [attempt for attempt in self.office.attempts if not attempt.called]
        assert len(open_) <= 1, "two attempts at once"
        return open_[0] if open_ else None

    @rule(question=st.booleans(), count=st.integers(1, 5))
    def send(self, question: bool, count: int) -> None:
        for _ in range(count):
            self.count += 1
            self.node.send(Envelope(kind="k", version=1, body=b"", message_id=str(self.count), to="x",
                                    deadline_s=5.0 if question else 0.0))

    @rule()
    def watch(self) -> None:
        self.node.watch()

    @rule()
    def unwatch(self) -> None:
        self.node.unwatch()

    @precondition(lambda self: self.dialling is not None)
    @rule(works=st.booleans())
    def attempt_ends(self, works: bool) -> None:
        attempt = self.dialling
        assert attempt is not None
        assert self.link is None, "dialled although there is a link"
        if works:
            self.link = FakeLink()
            self.node.made(self.link)  # type: ignore[arg-type]
            attempt.callback(None)
        else:
            attempt.errback(ConnectError(string="refused"))

    @precondition(lambda self: self.link is not None and not self.link.up)
    @rule(restarted=st.booleans())
    def greeting_ends(self, restarted: bool) -> None:
        assert self.link is not None
        self.boot += restarted
        self.link.peer = Hello(boot_id=f"boot {self.boot}")
        self.link.up = self.link.was_up = True
        self.node.ready(self.link)  # type: ignore[arg-type]

    @precondition(lambda self: self.link is not None)
    @rule(acknowledged=st.sampled_from([0, 1, 5]))
    def link_breaks(self, acknowledged: int) -> None:
        link = self.link
        assert link is not None
        for _ in range(min(acknowledged, len(link.under_way))):
            link.under_way.popleft()
        self.link, link.up = None, False
        self.node.lost(link, "broken")  # type: ignore[arg-type]

    @rule(span_s=st.sampled_from([MAX_DELAY_S, 1.0, 0.2, 0.0]))
    def time_passes(self, span_s: float) -> None:
        self.office.clock.run(span_s)

    @invariant()
    def whoever_is_watched_is_looked_after(self) -> None:
        if hasattr(self, "node") and self.node.watched:
            waiting = bool(self.office.clock.getDelayedCalls())
            assert self.link is not None or self.dialling is not None or waiting

    @invariant()
    def no_envelope_is_kept_without_an_end_in_sight(self) -> None:
        if not hasattr(self, "node") or not (self.node._waiting or self.node._again):
            return
        waiting = bool(self.office.clock.getDelayedCalls())
        assert self.link is not None or self.dialling is not None or waiting

    @invariant()
    def questions_fail_once_at_most(self) -> None:
        if hasattr(self, "office"):
            failed = [envelope.message_id for envelope, _ in self.office.failed]
            assert len(failed) == len(set(failed))

    def teardown(self) -> None:
        if not hasattr(self, "node"):
            return
        self.node.unwatch()
        for _ in range(100):
            attempt = self.dialling
            if attempt is not None:
                attempt.errback(ConnectError(string="refused"))
            elif self.link is not None and not self.link.up:
                self.link_breaks(0)
            elif self.office.clock.getDelayedCalls():
                self.office.clock.run(MAX_DELAY_S)
            else:
                break
        assert not self.node._waiting
        if self.link is not None:
            self.office.sent += self.link.unsent
        done = {envelope.message_id for envelope in self.office.sent}
        done |= {envelope.message_id for envelope, _ in self.office.failed}
        assert done == {str(number + 1) for number in range(self.count)}, "sent, or reported as not sent"


Life.TestCase.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
TestLife = Life.TestCase


def test_what_waits_is_sent_although_nobody_watches_any_more() -> None:
    life = Life()
    life.begin()
    life.send(question=False, count=1)
    life.attempt_ends(works=True)
    life.greeting_ends(restarted=True)
    life.send(question=False, count=5)
    life.link_breaks(acknowledged=0)
    life.unwatch()
    life.no_envelope_is_kept_without_an_end_in_sight()
    life.teardown()
