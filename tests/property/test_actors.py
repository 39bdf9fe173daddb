"""Crashes at any moment: nobody ever hears of a state that the store does not have.

A counter keeps its number in a store; clients elsewhere tell it to add and ask it for the number.  Between any two
steps the process may be killed (what was not committed is gone) and started again from the store, the path between the
processes may break, and a commit may fail.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from condor_actors.actors import Actor
from condor_actors.messages.codec import message
from condor_actors.messages.envelope import Address, Delivery
from tests.harness.local_post import LocalNetwork

COUNTER = Address("<counter:1>", "counter")


@message
@attrs.frozen(kw_only=True)
class Add:
    KIND: ClassVar[str] = "test.Add"
    VERSION: ClassVar[int] = 1
    amount: int
    crash: bool = False


@message
@attrs.frozen(kw_only=True)
class Total:
    KIND: ClassVar[str] = "test.Total"
    VERSION: ClassVar[int] = 1
    total: int


class Store:
    """What is on disk."""

    def __init__(self) -> None:
        self.total = 0
        self.broken = False

    def commit(self, operations: Any) -> None:
        if self.broken:
            raise OSError("No space left on device")
        self.total = operations[-1]


class Counter(Actor):
    """Adds, persists, answers."""

    def __init__(self, store: Store) -> None:
        self.total = store.total

    def receive(self, delivery: Delivery) -> None:
        if not isinstance(delivery.message, Add):
            return
        self.total += delivery.message.amount
        if delivery.message.amount:
            self.context.persist(self.total)
        self.context.reply(delivery, Total(total=self.total))
        if delivery.message.crash:
            raise RuntimeError("asked to")


class Crashes(RuleBasedStateMachine):
    """Crashes actors at random turns and checks what they told and stored."""

    @initialize()
    def begin(self) -> None:
        self.net = LocalNetwork(latency_s=0.01)
        self.store = Store()
        self.known = 0
        self.asked = 0
        self.probe = self.net.probe(self.net.system("<client:1>"))
        self.up = False
        self.start()

    def start(self) -> None:
        system = self.net.system("<counter:1>", commit=self.commit)
        system.spawn("counter", lambda: Counter(self.store))
        self.up = True

    def commit(self, operations: Any) -> None:
        self.store.commit(operations)
        self.known = max(self.known, self.store.total)

    @rule(amount=st.integers(0, 3), crash=st.booleans(), count=st.integers(1, 4))
    def ask(self, amount: int, crash: bool, count: int) -> None:
        for _ in range(count):
            self.asked += 1
            self.probe.ask(COUNTER, Add(amount=amount, crash=crash), timeout_s=5.0)

    @rule(span_s=st.sampled_from([0.0, 0.005, 0.01, 0.02, 1.0]))
    def wait(self, span_s: float) -> None:
        self.net.run(span_s)

    @rule()
    def kill(self) -> None:
        if self.up:
            self.net.crash("<counter:1>")
            self.up = False

    @rule()
    def restart(self) -> None:
        if not self.up:
            self.start()

    @rule()
    def cut(self) -> None:
        self.net.cut("<client:1>", "<counter:1>")

    @rule()
    def heal(self) -> None:
        self.net.heal("<client:1>", "<counter:1>")

    @rule(broken=st.booleans())
    def disk(self, broken: bool) -> None:
        self.store.broken = broken

    @invariant()
    def nobody_heard_of_what_is_not_stored(self) -> None:
        if hasattr(self, "net"):
            for answer in self.probe.answers:
                assert not isinstance(answer, Total) or answer.total <= self.store.total

    def teardown(self) -> None:
        if not hasattr(self, "net"):
            return
        self.net.run(10.0)
        assert len(self.probe.answers) == self.asked, "each question was answered once"
        self.net.stop()


Crashes.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestCrashes = Crashes.TestCase
