"""The loop of an actor system: turns, persist-before-send, questions, supervision, the door."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from condor_actors.actors import Actor, ActorSystem, ChildDown, CoreActor
from condor_actors.effects import Answer, Ask, Effect, Note, Persist, Reply, Send, SetTimer
from condor_actors.messages.codec import message
from condor_actors.messages.envelope import (
    Address,
    AskFailed,
    Delivery,
    Done,
    Identity,
    Level,
    PeerDown,
    PeerUp,
    Refused,
    TimerFired,
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


@pytest.fixture
def net() -> Any:
    network = LocalNetwork()
    yield network
    network.stop()
    assert not network.clock.getDelayedCalls()


def two(net: LocalNetwork, **options: Any) -> tuple[ActorSystem, ActorSystem, Probe]:
    a, b = net.system("<a:1>"), net.system("<b:1>", **options)
    b.spawn("echo", Echo)
    return a, b, net.probe(a)


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


def test_nothing_leaves_before_the_commit(net: LocalNetwork) -> None:
    log: list[Any] = []

    def commit(operations: Any) -> None:
        assert not [each for each in net.carried if each[0] == "<b:1>"], "an answer left before the commit"
        log.append(tuple(operations))

    _, _, probe = two(net, commit=commit)
    for number in range(3):
        probe.ask(THERE, Say(text=f"store {number}"))
    net.run()
    assert log == [("store 0", "store 1", "store 2")], "one commit for the turns of an iteration"
    assert len(probe.answers) == 3


def test_a_failed_commit_takes_everything_back(net: LocalNetwork) -> None:
    broken = True

    def commit(operations: Any) -> None:
        if broken:
            raise OSError("No space left on device")

    _, _, probe = two(net, commit=commit)
    made = Echo.made
    probe.ask(THERE, Say(text="store it"))
    net.run(1.0)
    assert probe.answers[0].code == "internal"
    assert "No space left" in probe.answers[0].text
    assert Echo.made == made + 1, "rebuilt from the store"
    broken = False
    probe.ask(THERE, Say(text="store it"))
    net.run()
    assert probe.answers[1] == Say(text="STORE IT")


def test_a_crash_drops_the_turn_and_rebuilds_the_actor(net: LocalNetwork) -> None:
    _, _, probe = two(net)
    made = Echo.made
    probe.ask(THERE, Say(text="crash"))
    probe.ask(THERE, Say(text="next"))
    net.run(1.0)
    assert [type(answer) for answer in probe.answers] == [Refused, Say]
    assert probe.answers[0].code == "internal"
    assert probe.answers[0].incident
    assert Echo.made == made + 1


def test_crash_after_crash_ends_the_process(net: LocalNetwork) -> None:
    _, _, probe = two(net)
    for _ in range(6):
        probe.ask(THERE, Say(text="crash"))
        net.run(5.0)
    assert net.exhausted == ["echo"]


def test_the_parent_hears_of_a_temporary_child(net: LocalNetwork) -> None:
    system = net.system("<a:1>")
    probe = net.probe(system)
    probe.context.spawn("child", Echo, restart="temporary")
    probe.tell(Address("", "child"), Say(text="crash"))
    net.run()
    assert probe.messages == [ChildDown(name="child", reason="asked to")]
    assert system.actor("child") is None


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


def test_what_an_actor_persists_at_its_end_is_committed(net: LocalNetwork) -> None:
    stored: list[Any] = []

    class Last(Actor):
        def stopped(self) -> None:
            self.context.persist("last words")

    system = net.system("<a:1>", commit=stored.extend)
    system.spawn("last", Last)
    net.run()
    system.stop_actor("last")
    net.run()
    assert stored == ["last words"]


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


def test_nobody_is_told_of_what_was_not_stored(net: LocalNetwork) -> None:
    done: list[str] = []

    class Teller(Actor):
        def receive(self, delivery: Delivery) -> None:
            self.context.persist("something")
            self.context.tell(Address("<a:1>", "probe"), Say(text="it is stored"))
            self.context.after_commit(lambda: done.append("acted"))

    def commit(operations: Any) -> None:
        raise OSError("No space left on device")

    a, b = net.system("<a:1>"), net.system("<b:1>", commit=commit)
    probe = net.probe(a)
    b.spawn("teller", Teller)
    probe.tell(Address("<b:1>", "teller"), Say())
    net.run(1.0)
    assert (probe.messages, done) == ([], [])


def test_what_a_turn_stored_before_it_raised_is_forgotten(net: LocalNetwork) -> None:
    stored: list[Any] = []

    class Storing(Actor):
        def receive(self, delivery: Delivery) -> None:
            self.context.persist(delivery.message.text)
            if delivery.message.text == "half":
                raise RuntimeError("asked to")

    system = net.system("<a:1>", commit=stored.extend)
    system.spawn("storing", Storing)
    for text in ("half", "whole"):
        system.tell(Address("", "storing"), Say(text=text))
        net.run(1.0)
    assert stored == ["whole"]


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


def test_a_result_that_a_crash_overtakes_is_not_heard(net: LocalNetwork) -> None:
    results: list[Any] = []
    begun: Deferred[str] = Deferred()

    class Worker(Actor):
        def receive(self, delivery: Delivery) -> None:
            if delivery.message.text == "crash":
                raise RuntimeError("asked to")
            self.context.defer_to_turn(begun, results.append)

    system = net.system("<a:1>")
    system.spawn("worker", Worker)
    system.tell(Address("", "worker"), Say(text="begin"))
    net.run()
    system.tell(Address("", "worker"), Say(text="crash"))
    begun.callback("of the former life")
    net.run(1.0)
    assert results == []

class Edged(Actor):
    """Calls edges after the commit; the one that is called ``bad`` raises."""

    started_times = 0

    def started(self) -> None:
        Edged.started_times += 1

    def receive(self, delivery: Delivery) -> None:
        text = delivery.message.text
        if text.startswith("store"):
            self.context.persist(text)
        if text.endswith("bad"):
            self.context.after_commit([].pop)
        self.context.reply(delivery, Say(text=text.upper()))


@pytest.mark.parametrize("text", ["bad", "store bad"])
def test_an_edge_that_raises_after_the_commit_rebuilds_its_actor_only(net: LocalNetwork, text: str) -> None:
    stored: list[Any] = []
    system = net.system("<a:1>", commit=stored.extend)
    Edged.started_times = 0
    system.spawn("edged", Edged)
    system.spawn("echo", Echo)
    probe = net.probe(system)
    probe.ask(Address("", "edged"), Say(text=text))
    probe.ask(HERE, Say(text="hello"))
    net.run()
    assert sorted(answer.text for answer in probe.answers) == sorted([text.upper(), "HELLO"]), "what was decided leaves"
    assert stored == ([text] if text.startswith("store") else [])
    assert Edged.started_times == 2
    probe.ask(Address("", "edged"), Say(text="store again"))
    net.run()
    assert probe.answers[-1] == Say(text="STORE AGAIN"), "it goes on"


class Family(Actor):
    """Has a child that survives it and one that does not."""

    found: ClassVar[list[tuple[str, ...]]] = []

    def started(self) -> None:
        Family.found.append(self.context.children)
        if not self.context.children:
            self.context.spawn("strong", Echo, restart="temporary", survives=True)
            self.context.spawn("weak", Echo, restart="temporary")

    def receive(self, delivery: Delivery) -> None:
        if isinstance(delivery.message, ChildDown):
            Family.found.append((f"{delivery.message.name} is down",))
        else:
            raise RuntimeError("asked to")


def test_a_child_that_survives_is_the_rebuilt_parents(net: LocalNetwork) -> None:
    system = net.system("<a:1>")
    Family.found.clear()
    system.spawn("family", Family)
    net.run()
    strong = system.actor("strong")
    probe = net.probe(system)
    probe.tell(Address("", "family"), Say(text="crash"))
    net.run()
    assert Family.found == [(), ("strong",)]
    assert system.actor("strong") is strong
    assert system.actor("weak") is None
    probe.tell(Address("", "strong"), Say(text="crash"))
    net.run()
    assert Family.found[2:] == [("strong is down",)], "its fall is the rebuilt parent's to know"
    system.stop_actor("family")
    assert system.actor("family") is None


class Edge(Actor):
    """Gives its edge away."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def started(self) -> None:
        self.call = self.context.as_turn(self.hear)

    def hear(self, *arguments: Any) -> None:
        if arguments == ("crash",):
            raise RuntimeError("asked to")
        self.heard.append(arguments)


def test_what_an_edge_calls_is_a_turn(net: LocalNetwork) -> None:
    system = net.system("<a:1>")
    system.spawn("edge", Edge)
    net.run()
    actor: Any = system.actor("edge")
    actor.call(1, "two")
    assert actor.heard == [], "not now"
    net.run()
    assert actor.heard == [(1, "two")]
    actor.call("crash")
    actor.call("late")
    net.run()
    rebuilt: Any = system.actor("edge")
    assert rebuilt is not actor
    assert rebuilt.heard == []
    actor.call("very late")
    net.run()
    assert rebuilt.heard == []


class Watchful(Edge):
    """Its edge has to act at once."""

    dropped_times = 0

    def started(self) -> None:
        self.call = self.context.guarded(self.hear)

    def dropped(self) -> None:
        Watchful.dropped_times += 1
        raise OSError("nothing can be closed")


def test_what_an_edge_raises_is_its_actors_crash(net: LocalNetwork) -> None:
    system = net.system("<a:1>")
    Watchful.dropped_times = 0
    system.spawn("edge", Watchful)
    net.run()
    actor: Any = system.actor("edge")
    actor.call("at once")
    assert actor.heard == [("at once",)]
    actor.call("crash")
    net.run()
    rebuilt: Any = system.actor("edge")
    assert rebuilt is not actor
    assert Watchful.dropped_times == 1
    actor.call("crash")
    net.run()
    assert system.actor("edge") is rebuilt, "what a former one's edge raises is nobody's crash"
