"""Two actor systems on a wire, and an actor that answers."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from condor_actors.actors import Actor, ActorSystem
from condor_actors.messages.codec import message
from condor_actors.messages.envelope import (
    Address,
    Delivery,
)
from tests.harness.local_post import LocalNetwork, Probe


@message
@attrs.frozen(kw_only=True)
class Say:
    """A message for tests."""

    KIND: ClassVar[str] = "test.Say"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"
    text: str = ""
    data: bytes = b""


HERE = Address("", "echo")
THERE = Address("<b:1>", "echo")


class Echo(Actor):
    """Answers what it hears; some words have effects."""

    made = 0

    def __init__(self) -> None:
        Echo.made += 1
        self.heard: list[str] = []

    def receive(self, delivery: Delivery) -> None:
        text = getattr(delivery.message, "text", "")
        self.heard.append(text)
        if text.startswith("store"):
            self.context.persist(text)
        self.context.reply(delivery, Say(text=text.upper()))
        if text == "crash":
            raise RuntimeError("asked to")


def two(net: LocalNetwork, **options: Any) -> tuple[ActorSystem, ActorSystem, Probe]:
    a, b = net.system("<a:1>"), net.system("<b:1>", **options)
    b.spawn("echo", Echo)
    return a, b, net.probe(a)
