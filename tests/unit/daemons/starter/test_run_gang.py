"""Members of a gang meet by a hub that dies, over a network that loses answers: what is sent arrives once.

The members' side and the hub are the real ones; what lies between them is played, by chance and without a clock.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from condor_actors.cores.chirp_protocol import ChirpError
from condor_actors.cores.shadow.gang_hub import GRACE_S, PATIENCE_S, GangHub
from condor_actors.daemons.starter.run_gang import MOST_UNHEARD, RunGang
from condor_actors.messages.envelope import AskFailed, Refused
from condor_actors.messages.run import GANG_DATA_BYTES, GANG_KEPT, GANG_KEPT_BYTES, NOT_JOINED, GangCall, GangResult


@attrs.define(eq=False)
class Asked:
    """A question on its way: whose, what, who gets the answer; the hub that it has reached, the answer on its way."""

    node: int
    call: GangCall
    then: Any
    hub: GangHub | None = None
    answer: Any = None
    order: float = 0.0


class World:
    """Some members, a hub, and what is between them."""

    def __init__(self, size: int, seed: int) -> None:
        self.random = Random(seed)
        self.size = size
        self.now_s = self._order = 0.0
        self.asked: list[Asked] = []
        self.timers: set[int] = set()
        self.members = [RunGang(self._starter(node)) for node in range(size)]  # type: ignore[arg-type]
        self.hub = self._new_hub()
        self.gone: set[int] = set()
        for member in self.members:
            member.join()

    def _starter(self, node: int) -> SimpleNamespace:
        def ask(_: Any, call: GangCall, *, timeout_s: float, then: Any) -> None:  # noqa: ARG001 - no clock here
            self.asked.append(Asked(node, call, lambda message: then(SimpleNamespace(message=message))))

        context = SimpleNamespace(ask=ask, set_timer=lambda *_: self.timers.add(node))
        return SimpleNamespace(run_id="1.0#1@s", shadow=None, core=SimpleNamespace(connected=True), context=context)

    def _new_hub(self) -> GangHub:
        def answer(ticket: Asked, result: GangResult) -> None:
            ticket.answer, ticket.order = result, self._next_order()

        return GangHub(self.size, self.now_s, answer)

    def _next_order(self) -> float:
        self._order += 1
        return self._order

    def kill_hub(self) -> None:
        """The shadows die: waiting members hear that nobody answers; others ask for their runs."""
        self.hub = self._new_hub()
        for each in self.asked:
            if each.answer is None:
                each.hub, each.answer, each.order = None, AskFailed(reason="link"), self._next_order()
        for member in self.members:
            member.shadow_is_back()

    def step(self, losses: float = 0.0) -> bool:
        """One thing happens; whether there was any."""
        self.now_s += 0.01
        ready: list[Any] = []
        for node in range(self.size):  # a link is in order
            mine = [each for each in self.asked if each.node == node]
            ready += [each for each in mine if each.hub is None and each.answer is None][:1]
            ready += sorted((each for each in mine if each.answer is not None), key=lambda each: each.order)[:1]
        choices: list[Any] = [*ready, *sorted(self.timers)]
        if not choices:
            return False
        chosen = self.random.choice(choices)
        if isinstance(chosen, int):
            self.timers.discard(chosen)
            self.members[chosen].go_on()
        elif chosen.answer is not None:
            self.asked.remove(chosen)
            lost = self.random.random() < losses
            chosen.then(AskFailed(reason="timeout") if lost else chosen.answer)
        elif self.random.random() < losses:
            self.asked.remove(chosen)
            chosen.then(Refused(code="busy", text=""))
        else:
            chosen.hub = self.hub
            self.hub.handle(chosen.node, chosen.call, chosen, self.now_s)
        self.hub.validate()
        return True

    def run(self) -> None:
        """Until nobody is answered for a long time."""
        idle = 0
        while idle < 8:
            while self.step():
                pass
            known = len(self.hub._wishes)
            self.now_s += GRACE_S
            self.hub.tick(self.now_s)
            while self.step():
                pass
            idle = idle + 1 if len(self.hub._wishes) == known else 0


@pytest.mark.parametrize("seed", range(60))
def test_what_is_sent_arrives_once(seed: int) -> None:
    world = World(4, seed)
    sent, received, done = [], [], []
    for index in range(24):
        node, name = world.random.randrange(4), world.random.choice("ab")
        sent.append((name, b"%d" % index))
        world.members[node].ask("send", (name,), b"%d" % index, done.append)
        names = ("a", "b") if index % 3 else (name,)
        world.members[(node + 1) % 4].ask("recv", names, b"", received.append)
    for turn in range(3000):
        if turn % 150 == 149:
            world.kill_hub()
        world.step(0.1)
    world.run()
    if len(received) < 24:  # a receiver of one name was overtaken by one of both: some more receive the rest
        for _ in range(24 - len(received)):
            world.members[0].ask("recv", ("a", "b"), b"", received.append)
        world.run()
    assert Counter((each.name, each.data) for each in received if each.value == 0) == Counter(sent)
    assert [each.value for each in done] == [0] * 24


@pytest.mark.parametrize("seed", range(20))
def test_what_the_receiver_left_goes_to_another(seed: int) -> None:
    world = World(3, seed)
    received: list[GangResult] = []
    done: list[GangResult] = []
    for index in range(10):
        number = world.members[1].ask("recv", ("a",), b"", lambda _: pytest.fail("nobody is there any more"))
        world.members[0].ask("send", ("a",), b"%d" % index, done.append)
        for _ in range(world.random.randrange(6)):
            if not any(each.call.verb == "recv" and isinstance(each.answer, GangResult) for each in world.asked):
                world.step(0.1)
        world.members[1].cancel(number)
        world.members[2].ask("recv", ("a",), b"", received.append)
    world.run()
    assert sorted(int(each.data) for each in received) == list(range(10))
    assert len(done) == 10


def test_values_outlive_the_hub_and_have_one_owner() -> None:
    world = World(3, 1)
    got: list[GangResult] = []
    world.members[2].ask("wait", ("key",), b"", got.append)
    world.members[0].ask("put", ("key",), b"one", got.append)
    world.run()
    assert [each.data for each in got if each.data] == [b"one"]
    world.members[1].ask("put", ("key",), b"two", got.append)
    world.run()
    assert got.pop().value == ChirpError.ALREADY_EXISTS
    world.members[0].ask("put", ("key",), b"three", got.append)
    world.run()
    world.kill_hub()
    world.members[2].ask("get", ("key",), b"", got.append)
    world.run()
    assert (got[-1].data, got[-1].member) == (b"three", 0)
    world.members[2].ask("get", ("nothing",), b"", got.append)
    world.run()
    assert got[-1].value == ChirpError.DOESNT_EXIST


class Hub:
    """A hub, and what it answers."""

    def __init__(self, size: int = 2) -> None:
        self.told: list[tuple[str, GangResult]] = []
        self.hub = GangHub(size, 0.0, lambda ticket, result: self.told.append((ticket, result)))

    def ask(self, node: int, verb: str, names: tuple[str, ...] = (), data: bytes = b"", number: int = 1,
            now_s: float = 0.0, **more: Any) -> list[tuple[str, int]]:
        """The answers that come of a call."""
        self.told.clear()
        call = GangCall(run_id="1.0#1@s", verb=verb, number=number, names=names, data=data, **more)
        self.hub.handle(node, call, f"{node}.{number}", now_s)
        self.hub.validate()
        return [(ticket, result.value) for ticket, result in self.told]


def test_nothing_changes_hands_before_all_are_there_or_a_while_has_passed() -> None:
    hub = Hub()
    hub.ask(0, "join")
    assert hub.ask(0, "get", ("key",)) == []
    assert hub.ask(0, "send", ("a",), b"x", 2) == []
    assert hub.ask(1, "get", ("key",)) == [("1.1", NOT_JOINED)]
    assert hub.ask(1, "join") == [("1.1", 0), ("0.1", ChirpError.DOESNT_EXIST)]
    late = Hub()
    late.ask(0, "join")
    late.ask(0, "get", ("key",))
    late.hub.tick(GRACE_S)
    assert [result.value for _, result in late.told] == [ChirpError.DOESNT_EXIST]


def test_who_waits_long_asks_again_and_keeps_its_place() -> None:
    hub = Hub()
    hub.ask(0, "join"), hub.ask(1, "join")
    hub.ask(0, "send", ("a",), b"first", 1)
    hub.ask(0, "send", ("a",), b"second", 2)
    hub.told.clear()
    hub.hub.tick(PATIENCE_S)
    assert [(ticket, result.value) for ticket, result in hub.told] == [
        ("0.1", ChirpError.TRY_AGAIN), ("0.2", ChirpError.TRY_AGAIN)]
    hub.ask(0, "send", ("a",), b"second", 2, PATIENCE_S)
    hub.ask(1, "recv", ("a",), number=7)
    assert hub.told[0][1].data == b"first"
    assert hub.ask(1, "took", number=7) == [("1.7", 0)]
    assert hub.ask(0, "send", ("a",), b"first", 1) == [("0.1", 0)]


def test_a_member_that_leaves_takes_its_wishes_along_and_leaves_its_values() -> None:
    hub = Hub()
    hub.ask(0, "join"), hub.ask(1, "join")
    hub.ask(1, "put", ("key",), b"x")
    hub.ask(1, "recv", ("a",), number=3)
    hub.ask(0, "send", ("a",), b"x", 4)
    hub.hub.leave(1)
    hub.hub.validate()
    assert hub.ask(0, "get", ("key",), number=5) == [("0.5", 0)]
    hub.ask(1, "join")
    hub.ask(1, "recv", ("a",), number=9)
    assert hub.told[0][1].data == b"x"


def test_a_member_that_says_it_has_what_it_still_waits_for_harms_nobody() -> None:
    """A machine joins anew and claims a message of its own: the hub is all gangs' of an owner, and goes on."""
    hub = Hub(1)
    hub.ask(0, "join")
    hub.ask(0, "send", ("c",), b"x", 1)
    hub.ask(0, "recv", ("c",), number=2)
    hub.ask(0, "join", number=3, taken=((0, 1),))
    assert hub.ask(0, "recv", ("c",), number=2) == []
    hub.hub.leave(0)
    hub.hub.validate()


def test_a_member_that_leaves_with_a_message_to_itself() -> None:
    hub = Hub(1)
    hub.ask(0, "join")
    hub.ask(0, "send", ("c",), b"x", 1)
    hub.ask(0, "recv", ("c",), number=2)
    hub.hub.leave(0)
    hub.hub.validate()


@pytest.mark.parametrize("call", [
    {"verb": "put", "names": ("a b",)}, {"verb": "put", "names": ("",)}, {"verb": "put", "names": ("x" * 201,)},
    {"verb": "put", "names": ("a", "b")}, {"verb": "put", "names": ()}, {"verb": "recv", "names": ()},
    {"verb": "send", "names": ("a\n",)}, {"verb": "took", "names": ("a",)},
])
def test_calls_that_no_starter_makes(call: dict[str, Any]) -> None:
    hub = Hub()
    hub.ask(0, "join")
    assert hub.ask(0, **call)[0][1] == ChirpError.INVALID_REQUEST


def test_what_a_member_may_have_is_bounded() -> None:
    hub = Hub()
    assert hub.ask(5, "join") == [("5.1", ChirpError.NOT_AUTHORIZED)]
    hub.ask(0, "join")
    for number in range(GANG_KEPT):
        assert hub.ask(0, "put", (f"k{number}",))[0][1] == 0
    assert hub.ask(0, "put", ("more",))[0][1] == ChirpError.NO_SPACE
    hub.ask(1, "join")
    for number in range(GANG_KEPT_BYTES // GANG_DATA_BYTES - 1):
        assert hub.ask(1, "put", (f"big{number}",), b"x" * GANG_DATA_BYTES)[0][1] == 0
    assert hub.ask(1, "put", ("big",), b"x" * GANG_DATA_BYTES)[0][1] == ChirpError.NO_SPACE
    answers = [hub.ask(1, "recv", ("a",), number=100 + number) for number in range(65)]
    assert (answers[63], answers[64]) == ([], [("1.164", ChirpError.BUSY)])


class Agreeing:
    """A hub that agrees to everything, or is silent about some verbs: a hostile shadow's."""

    def __init__(self, *silent: str) -> None:
        self.joined: list[GangCall] = []
        self._silent = silent
        context = SimpleNamespace(ask=self._ask, set_timer=lambda *_: None)
        self.member = RunGang(SimpleNamespace(  # type: ignore[arg-type]
            run_id="1.0#1@s", shadow=None, core=SimpleNamespace(connected=True), context=context))
        self.member.join()

    def _ask(self, _: Any, call: GangCall, *, timeout_s: float, then: Any) -> None:  # noqa: ARG002 - no clock here
        if call.verb == "join":
            self.joined.append(call)
        if call.verb not in self._silent:
            then(SimpleNamespace(message=GangResult(value=0, member=0, number=call.number)))


def test_a_hub_that_takes_everything_fills_no_machine() -> None:
    hub = Agreeing()
    done: list[GangResult] = []
    for index in range(GANG_KEPT + 5):
        hub.member.ask("put", (f"key{index}",), b"", done.append)
    assert [each.value for each in done] == [0] * GANG_KEPT + [ChirpError.NO_SPACE] * 5
    hub.member.ask("put", ("key0",), b"anew", done.append)
    assert done[-1].value == 0
    hub.member.shadow_is_back()
    assert len(hub.joined[-1].kept) == GANG_KEPT
    assert hub.joined[-1].kept[0] == ("key0", b"anew")
    large = Agreeing()
    done.clear()
    for name in ("one", "two", "three", "one"):
        large.member.ask("put", (name,), b"x" * (GANG_DATA_BYTES - len(name)), done.append)
    assert [each.value for each in done] == [0, 0, ChirpError.NO_SPACE, 0]
    large.member.shadow_is_back()
    assert sum(len(name) + len(data) for name, data in large.joined[-1].kept) == GANG_KEPT_BYTES


def test_a_hub_that_answers_nothing_of_what_it_is_told_is_asked_no_more() -> None:
    hub = Agreeing("took", "cancel", "wait")
    received: list[GangResult] = []
    for _ in range(MOST_UNHEARD - 1):
        assert hub.member.ask("recv", ("a",), b"", received.append)
    number = hub.member.ask("wait", ("key",), b"", lambda _: pytest.fail("nobody waits any more"))
    hub.member.cancel(number)
    assert len(received) == MOST_UNHEARD - 1
    assert hub.member.ask("recv", ("a",), b"", received.append) == 0
    assert hub.member.ask("put", ("key",), b"", received.append) == 0
    assert len(received) == MOST_UNHEARD - 1
