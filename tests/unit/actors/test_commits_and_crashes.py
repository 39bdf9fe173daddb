"""What is committed, what leaves afterwards, and what a crash takes back."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from twisted.internet.defer import Deferred

from condor_actors.actors import Actor, ChildDown
from condor_actors.messages.envelope import (
    Address,
    Delivery,
    Refused,
)
from tests.harness.local_post import LocalNetwork
from tests.unit.actors.two_systems import HERE, THERE, Echo, Say, two


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
