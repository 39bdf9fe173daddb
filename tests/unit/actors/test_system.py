"""The loop of an actor system: turns, persist-before-send, questions, supervision, the door."""

from __future__ import annotations

from typing import Any

import attrs
import msgpack
import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from condor_actors.actors import CoreActor
from condor_actors.effects import Answer, Ask, Effect, Note, Persist, Reply, Send, SetTimer
from condor_actors.messages.envelope import (
    Address,
    AskFailed,
    Delivery,
    Done,
    Envelope,
    Identity,
    Level,
    PeerDown,
    PeerUp,
    Refused,
    TimerFired,
)
from tests.harness.local_post import LocalNetwork, LocalPost
from tests.unit.actors.two_systems import HERE, THERE, Echo, Say, two


def test_ask_and_answer_within_a_process(net: LocalNetwork) -> None:
    system = net.system("<a:1>")
    system.spawn("echo", Echo)
    probe = net.probe(system)
    probe.ask(HERE, Say(text="hello"))
    net.run()
    assert probe.answers == [Say(text="HELLO")]


def test_ask_and_answer_between_processes(net: LocalNetwork) -> None:
    _, _, probe = two(net)
    probe.ask(THERE, Say(text="hello"))
    net.run()
    assert probe.answers == [Say(text="HELLO")]


def test_a_reply_to_a_told_message_goes_nowhere(net: LocalNetwork) -> None:
    _, b, probe = two(net)
    probe.tell(THERE, Say(text="hello"))
    net.run()
    assert probe.messages == []
    assert b.actor("echo").heard == ["hello"]
    assert len(net.carried) == 1


def test_a_listener_can_write_to_whoever_dialled(net: LocalNetwork) -> None:
    _, b, probe = two(net)
    listener = net.probe(b, "listener")
    probe.tell(Address("<b:1>", "listener"), Say(text="me"))
    net.run()
    sender = listener.deliveries[0].sender
    assert sender == Address("in:1", "probe")
    listener.tell(sender, Say(text="you"))
    net.run()
    assert probe.messages == [Say(text="you")]
    net.crash("<a:1>")
    listener.ask(sender, Say(text="there?"))
    net.run()
    assert isinstance(listener.answers[0], AskFailed)
    assert listener.answers[0].reason == "unreachable"


def test_stopping_stops_the_children_and_refuses_what_waits(net: LocalNetwork) -> None:
    system = net.system("<a:1>")
    probe = net.probe(system)
    stopped: list[str] = []

    class Parent(Echo):
        def started(self) -> None:
            self.context.spawn("leaf", Leaf)

        def stopped(self) -> None:
            stopped.append("parent")

    class Leaf(Echo):
        def stopped(self) -> None:
            stopped.append("leaf")

    system.spawn("parent", Parent)
    net.run()
    probe.ask(Address("", "parent"), Say(text="late"))
    system.stop_actor("parent")
    net.run()
    assert stopped == ["leaf", "parent"]
    assert probe.answers[0].code == "unknown-actor"
    assert [status.name for status in system.inspect()] == ["probe"]


def test_a_question_times_out_once(net: LocalNetwork) -> None:
    a, b = net.system("<a:1>"), net.system("<b:1>")
    silent, probe = net.probe(b, "echo"), net.probe(a)
    probe.ask(THERE, Say(text="?"), timeout_s=3.0)
    net.run(2.9)
    assert probe.answers == []
    net.run(0.2)
    assert probe.answers[0].reason == "timeout"
    silent.context.reply(silent.deliveries[0], Done())
    net.run(10.0)
    assert len(probe.answers) == 1


def test_a_lost_link_fails_its_questions(net: LocalNetwork) -> None:
    a, b = net.system("<a:1>"), net.system("<b:1>")
    net.probe(b, "echo")
    probe = net.probe(a)
    probe.ask(THERE, Say(text="?"))
    net.run()
    net.cut("<a:1>", "<b:1>")
    net.run()
    assert probe.answers[0].reason == "link-lost"
    probe.ask(THERE, Say(text="?"))
    net.run()
    assert probe.answers[1].reason == "unreachable"


def test_watching(net: LocalNetwork) -> None:
    _, _, probe = two(net)
    probe.context.watch("<b:1>")
    net.run()
    net.crash("<b:1>")
    net.run()
    net.system("<b:1>")
    net.run(6.0)
    assert [type(each) for each in probe.messages] == [PeerUp, PeerDown, PeerUp]


def test_whoever_dialled_is_watched_until_it_hangs_up(net: LocalNetwork) -> None:
    _, b, probe = two(net)
    listener = net.probe(b, "listener")
    probe.tell(Address("<b:1>", "listener"), Say(text="me"))
    net.run()
    node = listener.deliveries[0].sender.node
    listener.context.watch(node)
    net.run()
    net.crash("<a:1>")
    net.run()
    assert [type(each) for each in listener.messages] == [Say, PeerUp, PeerDown]
    assert b.watches.nodes == ()


def test_a_full_mailbox_is_busy(net: LocalNetwork) -> None:
    a, b = net.system("<a:1>"), net.system("<b:1>")
    b.spawn("echo", Echo, inbox_limit=2)
    probe = net.probe(a)
    b.loop.stop()
    b.loop._pump_call = b.clock.callLater(1.0, b.loop.pump)  # the loop is late
    for _ in range(4):
        probe.ask(THERE, Say(text="x"))
    net.run(2.0)
    assert sorted(type(each).__name__ for each in probe.answers) == ["Refused", "Refused", "Say", "Say"]
    refused = next(each for each in probe.answers if isinstance(each, Refused))
    assert refused.code == "busy"
    assert refused.retry_after_s > 0


def test_the_door_asks_for_the_level_and_knows_kinds_and_actors(net: LocalNetwork) -> None:
    asked: list[tuple[str, Level]] = []

    def authorize(identity: Identity, level: Level) -> bool:
        asked.append((identity.name, level))
        return level is Level.READ

    a = net.system("<a:1>", identity=Identity(name="eve@net"))
    b = net.system("<b:1>", authorize=authorize)
    b.spawn("echo", Echo)
    probe = net.probe(a)
    probe.ask(THERE, Say(text="x"))
    probe.ask(THERE, Done())
    probe.ask(Address("<b:1>", "nobody"), Say(text="x"))
    net.run()
    assert {getattr(each, "code", "yes") for each in probe.answers} == {"yes", "denied", "unknown-actor"}
    assert ("eve@net", Level.READ) in asked


def test_a_repeat_has_no_effect(net: LocalNetwork) -> None:
    _, b, probe = two(net)
    probe.tell(THERE, Say(text="once"))
    net.run()
    identity = net.posts["<a:1>"].identity
    b.inbound.arrived("in:1", identity, net.carried[0][2])
    net.run()
    assert b.actor("echo").heard == ["once"]  # type: ignore[union-attr]


def test_an_answer_from_elsewhere_is_not_believed(net: LocalNetwork) -> None:
    a, b = net.system("<a:1>"), net.system("<b:1>")
    net.probe(b, "echo")
    c = net.system("<c:1>")
    thief, probe = net.probe(c), net.probe(a)
    probe.ask(THERE, Say(text="secret?"))
    net.run()
    question = net.carried[0][2]
    forged = Delivery(message=None, sender=Address("<a:1>", "probe"), message_id=question.message_id)
    thief.context.reply(forged, Say(text="forged"))
    net.run()
    assert probe.answers == []


def test_timers(net: LocalNetwork) -> None:
    probe = net.probe(net.system("<a:1>"))
    probe.context.set_timer("x", 5.0)
    probe.context.set_timer("y", 1.0)
    probe.context.set_timer("x", 2.0)
    net.run(1.5)
    assert probe.messages == [TimerFired(key="y")]
    probe.context.cancel_timer("x")
    net.run(9.0)
    assert len(probe.messages) == 1


def test_results_of_io_come_as_turns(net: LocalNetwork) -> None:
    system = net.system("<a:1>")
    probe = net.probe(system)
    results: list[Any] = []
    good: Deferred[int] = Deferred()
    bad: Deferred[int] = Deferred()
    probe.context.defer_to_turn(good, results.append)
    probe.context.defer_to_turn(bad, results.append)
    good.callback(7)
    assert results == []
    bad.errback(OSError("gone"))
    net.run()
    assert results[0] == 7
    assert isinstance(results[1], Failure)


def test_an_oversized_answer_is_refused_not_lost(net: LocalNetwork) -> None:
    a, b = net.system("<a:1>"), net.system("<b:1>")
    big = net.probe(b, "echo")
    big.on_message = lambda delivery: big.context.reply(delivery, Say(data=bytes(600_000)))
    probe = net.probe(a)
    probe.ask(THERE, Say())
    probe.ask(THERE, Say(data=bytes(600_000)))
    net.run()
    assert [each.code for each in probe.answers] == ["invalid", "invalid"]


def test_a_core_is_driven_through_its_effects(net: LocalNetwork) -> None:
    seen: list[Any] = []
    stored: list[Any] = []

    class Core:
        def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
            seen.append(event)
            if isinstance(event, Say):
                return (Persist("op"), Reply(Done()), SetTimer("t", 1.0),
                        Note("a {note}", fields=(("x", 1), ("level", 2))),
                        Send(Address("", "probe"), Done(text="told")))
            if isinstance(event, TimerFired):
                return (Ask(Address("", "nobody"), Say(), 1.0, "tag"),)
            return ()

    system = net.system("<a:1>", commit=stored.extend)
    system.spawn("echo", lambda: CoreActor(Core()))
    probe = net.probe(system)
    probe.ask(HERE, Say(text="go"))
    net.run(2.0)
    assert probe.answers == [Done()]
    assert probe.messages == [Done(text="told")]
    assert stored == ["op"]
    assert isinstance(seen[-1], Answer)
    assert seen[-1].tag == "tag"
    assert seen[-1].message.code == "unknown-actor"

# ---- what waits too long, and what a fault leaves behind


class Slow(Echo):
    """Its turns take two seconds each."""

    def __init__(self, net: LocalNetwork) -> None:
        super().__init__()
        self._net = net

    def receive(self, delivery: Delivery) -> None:
        self._net.clock.rightNow += 2.0
        super().receive(delivery)


@pytest.mark.parametrize("node", ["", "<b:1>"])
def test_a_question_whose_asker_has_given_up_gets_no_turn(net: LocalNetwork, node: str) -> None:
    a, b = net.system("<a:1>"), net.system("<b:1>")
    probe = net.probe(a)
    busy = b if node else a
    busy.spawn("slow", lambda: Slow(net))
    net.run()
    for number in range(4):
        probe.ask(Address(node, "slow"), Say(text=str(number)), timeout_s=3.0)
    net.run(30.0)
    assert busy.actor("slow").heard == ["0", "1"], "the others were given up before their turn came"
    probe.tell(Address(node, "slow"), Say(text="told"))
    net.run(30.0)
    assert busy.actor("slow").heard[-1] == "told", "what is told has no deadline"


def test_the_newest_messages_of_a_busy_peer_are_remembered(net: LocalNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condor_actors.actors.inbound.SEEN_PER_IDENTITY", 2)
    _, b, probe = two(net)
    for number in range(5):
        probe.tell(THERE, Say(text=str(number)))
    net.run()
    identity = net.posts["<a:1>"].identity
    for _, _, envelope in net.carried[-2:]:
        b.inbound.arrived("in:1", identity, envelope)
    net.run()
    assert b.actor("echo").heard == ["0", "1", "2", "3", "4"]


def test_a_timer_cancelled_in_the_moment_it_runs_out_is_not_heard(net: LocalNetwork) -> None:
    system = net.system("<a:1>", commit=lambda operations: None)
    probe = net.probe(system)
    net.clock.callLater(1.0, system.tell, Address("", "probe"), Say(text="cancel"))
    probe.context.set_timer("x", 1.0)
    probe.on_message = lambda delivery: probe.context.cancel_timer("x")
    net.run(5.0)
    assert probe.messages == [Say(text="cancel")]


@pytest.mark.parametrize("is_answer", [False, True])
@pytest.mark.parametrize(("change", "said"), [
    ({"version": 2}, "unknown message 'test.Say' version 2: this process knows version 1"),
    ({"kind": "test.New"}, "unknown message 'test.New' version 1: this process knows no such message"),
    ({"body": msgpack.packb({"text": "new", "data": b"", "since_s": 1.0})}, "unknown field 'since_s'"),
    ({"body": msgpack.packb({"text": 7, "data": b""})}, "test.Say.text")])
def test_what_a_peer_of_another_version_says_is_refused_by_itself(
        net: LocalNetwork, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str, is_answer: bool) -> None:
    """The link stays, and what both understand is answered before and after."""
    _, b, probe = two(net)
    carry = net.carry

    def altered(link: Any, sender: LocalPost, envelope: Envelope) -> None:
        carry(link, sender, attrs.evolve(envelope, **change) if bool(envelope.in_reply_to) is is_answer else envelope)

    for text in ("before", "new", "after"):
        with monkeypatch.context() as patch:
            if text == "new":
                patch.setattr(net, "carry", altered)
            probe.ask(THERE, Say(text=text))
            net.run()
    first, refused, last = probe.answers
    assert (first, last) == (Say(text="BEFORE"), Say(text="AFTER"))
    assert (refused.code, said in refused.text) == ("malformed", True), refused
    assert b.actor("echo").heard == (["before", "new", "after"] if is_answer else ["before", "after"])
    assert list(net.posts["<b:1>"].links) == ["in:1"]
