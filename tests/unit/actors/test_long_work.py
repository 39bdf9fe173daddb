"""Work that is too long for one turn goes on in the lane of the identity that asked: others' turns come between."""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.actors import CoreActor
from condor_actors.actors.lanes import QUANTUM_S, TURN_S
from condor_actors.effects import Effect, GoOn, Persist, Reply
from condor_actors.messages.envelope import Address, Delivery, Identity, Refused
from tests.harness.local_post import LocalNetwork
from tests.unit.actors.two_systems import Say

LONG = Address("<b:1>", "long")


@attrs.frozen
class Rest:
    """The event with which the work goes on."""

    pieces: int
    question: Delivery


class Long:
    """A core that works on ``long`` for a hundred turns."""

    log: list[str]

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        message = event.message
        if isinstance(message, Say) and message.text != "long":
            if message.text == "crash":
                raise RuntimeError("asked to")
            self.log.append(message.text)
            return (Reply(Say(text=message.text)),)
        rest = message if isinstance(message, Rest) else Rest(100, event)
        self.log.append(f"long {rest.pieces}")
        if rest.pieces == 1:
            return (Reply(Say(text="done"), rest.question),)
        return (Persist(rest.pieces), GoOn(Rest(rest.pieces - 1, rest.question)))


class LongActor(CoreActor):
    def event(self, delivery: Delivery) -> Delivery:
        return delivery


def pool(net: LocalNetwork) -> tuple[Any, Any, list[str], list[Any]]:
    log: list[str] = []
    stored: list[Any] = []
    first = net.probe(net.system("<a:1>", identity=Identity(name="ann@dom", method="tls")))
    other = net.probe(net.system("<c:1>", identity=Identity(name="bob@dom", method="tls")))
    net.system("<b:1>", commit=stored.extend).spawn("long", lambda: LongActor(Long(log)))
    return first, other, log, stored


def test_another_user_does_not_wait_for_it(net: LocalNetwork) -> None:
    first, other, log, stored = pool(net)
    first.ask(LONG, Say(text="long"))
    first.ask(LONG, Say(text="mine"))
    other.ask(LONG, Say(text="hers"))
    net.run(1.0)
    assert first.answers == [Say(text="mine"), Say(text="done")]
    assert other.answers == [Say(text="hers")]
    assert [line for line in log if line.startswith("long")] == [f"long {left}" for left in range(100, 0, -1)]
    assert log.index("hers") <= QUANTUM_S / TURN_S + 1
    assert stored == list(range(100, 1, -1))


def test_who_waits_for_it_hears_that_it_was_interrupted(net: LocalNetwork) -> None:
    first, other, log, _ = pool(net)
    first.ask(LONG, Say(text="long"))
    other.ask(LONG, Say(text="crash"))
    net.run(1.0)
    assert 1 <= len(log) < 100
    (answer,) = first.answers
    assert isinstance(answer, Refused)
    assert (answer.code, "interrupted" in answer.text) == ("internal", True)
