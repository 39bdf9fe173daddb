"""What becomes of messages when the link to a dialled node breaks; ``tests/property`` has the life of such a node."""

from __future__ import annotations

import pytest

from condor_actors.messages.envelope import Envelope
from condor_actors.wire.dialled import MAX_DELAY_S, Dialled
from condor_actors.wire.frames import Hello
from tests.property.test_dialled import FakeLink, FakeOffice


class Node:
    """A dialled node with a link that comes and goes."""

    def __init__(self) -> None:
        self.office = FakeOffice()
        self.dialled = Dialled(self.office, "<n:1>")  # type: ignore[arg-type]

    def send(self, name: str, *, deadline_s: float = 0.0, in_reply_to: str = "") -> None:
        self.dialled.send(Envelope(kind="k", version=1, body=b"", message_id=name, to="x", deadline_s=deadline_s,
                                   in_reply_to=in_reply_to))

    def up(self, boot_id: str) -> FakeLink:
        link = FakeLink()
        attempt = self.office.attempts[-1]
        assert not attempt.called
        self.dialled.made(link)  # type: ignore[arg-type]
        attempt.callback(None)
        link.peer = Hello(boot_id=boot_id)
        link.up = link.was_up = True
        self.dialled.ready(link)  # type: ignore[arg-type]
        return link

    def breaks(self, link: FakeLink) -> None:
        link.up = False
        self.dialled.lost(link, "broken")  # type: ignore[arg-type]
        self.office.clock.run(MAX_DELAY_S)

    def sent(self) -> list[str]:
        return [envelope.message_id for envelope in self.office.sent]


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.mark.parametrize(("boot_id", "sent"), [("first", ["told", "told"]), ("second", ["told"])])
def test_what_was_told_is_sent_again_only_to_who_remembers_it(node: Node, boot_id: str, sent: list[str]) -> None:
    """A peer that was restarted may have acted on it before it died."""
    node.send("told")
    node.breaks(node.up("first"))
    node.up(boot_id)
    assert node.sent() == sent
    assert node.office.failed == []


def test_what_was_never_sent_goes_to_whoever_is_there(node: Node) -> None:
    node.send("one")
    link = node.up("first")
    for name in ("two", "three", "beyond its window"):
        node.send(name)
    assert node.sent() == ["one", "two", "three"]
    node.breaks(link)
    node.up("second")
    assert node.sent() == ["one", "two", "three", "beyond its window"]


def test_questions_and_answers_are_not_sent_again(node: Node) -> None:
    node.send("question", deadline_s=5.0)
    link = node.up("first")
    node.send("answer", in_reply_to="theirs")
    node.send("told")
    node.breaks(link)
    node.up("first")
    assert node.sent() == ["question", "answer", "told", "told"]
    assert [(envelope.message_id, why) for envelope, why in node.office.failed] == [("question", "link-lost")]


def test_a_watched_node_is_dialled_again_and_again(node: Node) -> None:
    node.dialled.watch()
    node.breaks(node.up("first"))
    assert len(node.office.attempts) == 2
    node.breaks(node.up("first"))
    assert len(node.office.attempts) == 3
    node.dialled.unwatch()
    node.dialled.stop()
