"""Lanes are fair: whatever others send and whatever it costs, each sender is served within its share, in its order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from condor_actors.actors.lanes import DEBT_S, OWN, OWN_RUN, QUANTUM_S, TURN_S, Lanes, Ledger, Turn

BACKLOG = 100
"""So many turns of a sender who floods wait at any time."""
COSTS = st.sampled_from([0.0, 0.0005, 0.003, 0.02])
STEPS = st.lists(st.one_of(
    st.tuples(st.just("add"), st.sampled_from(["", "a", "b", "c"]), st.integers(0, 5)),
    st.tuples(st.just("take"), COSTS),
    st.tuples(st.just("drop"), st.sampled_from(["a", "b", "c"]), st.integers(0, 3)),
), max_size=150)


def _turn(sender: str, number: int) -> Turn:
    return None, (sender, number), 0.0


@given(STEPS)
def test_nothing_is_lost_and_each_sender_keeps_its_order(steps: list[tuple[Any, ...]]) -> None:
    ledger = Ledger()
    mailbox = Lanes(ledger)
    expected: dict[str, list[int]] = {"": [], "a": [], "b": [], "c": []}
    number = 0
    for step in steps:
        if step[0] == "add":
            for _ in range(step[2]):
                number += 1
                mailbox.add(_turn(step[1], number), step[1], 10)
                expected[step[1]].append(number)
        elif step[0] == "drop":
            gone = ledger.drop(step[1], lambda turn, rest=step[2]: turn[1][1] % 4 == rest)
            assert {turn[1][1] for turn in gone} == {each for each in expected[step[1]] if each % 4 == step[2]}
            expected[step[1]] = [each for each in expected[step[1]] if each % 4 != step[2]]
        elif mailbox:
            sender, taken = mailbox.take()[1]
            mailbox.charge(step[1])
            assert taken == expected[sender].pop(0)
        assert len(mailbox) == sum(map(len, expected.values())) == len(list(mailbox))
        for sender in "abc":
            assert ledger.waiting(sender) == (len(expected[sender]), 10 * len(expected[sender]))
        assert len(ledger) == sum(bool(expected[sender]) for sender in "abc")


@given(st.lists(COSTS, min_size=2, max_size=8), st.integers(0, 200))
@settings(max_examples=50)
def test_each_of_many_is_served_within_its_share(costs: list[float], before: int) -> None:
    """A sender that begins to ask waits, between two of its turns, no longer than the others' shares of what its last
    turn has cost, whatever the others' backlog is and has been."""
    mailbox = Lanes(Ledger())
    flooders = [f"flooder{number}" for number in range(1, len(costs))]
    cost_of = dict(zip([*flooders, "new"], [*costs[1:], costs[0]], strict=True))
    for sender in flooders:
        for number in range(BACKLOG):
            mailbox.add(_turn(sender, number), sender)

    def serve() -> tuple[str, float]:
        sender, number = mailbox.take()[1]
        if sender != "new":
            mailbox.add(_turn(sender, number + BACKLOG), sender)
        mailbox.charge(cost_of[sender])
        return sender, max(cost_of[sender], TURN_S)

    for _ in range(before):
        serve()
    waited_s, own_s = 0.0, 0.0
    costliest_s = max(max(cost, TURN_S) for cost in costs)
    for number in range(20):
        mailbox.add(_turn("new", number), "new")
        waited_s = 0.0
        while True:
            sender, cost_s = serve()
            if sender == "new":
                own_s = cost_s
                break
            waited_s += cost_s
            rounds = max(own_s, QUANTUM_S) / QUANTUM_S + 2
            assert waited_s <= len(flooders) * (rounds * QUANTUM_S + costliest_s)


@given(st.integers(1, 20), COSTS)
@settings(max_examples=25)
def test_work_is_shared_by_time(senders: int, cost_s: float) -> None:
    """Anyone who asks expensive questions gets fewer of them answered, not more time."""
    mailbox = Lanes(Ledger())
    spent: dict[str, float] = {}
    for sender in range(senders):
        for number in range(BACKLOG):
            mailbox.add(_turn(str(sender), number), str(sender))
    total_s = 0.0
    while total_s < senders * 0.1:
        sender, number = mailbox.take()[1]
        mailbox.add(_turn(sender, number + BACKLOG), sender)
        this_s = max(cost_s if int(sender) % 2 else TURN_S, TURN_S)
        mailbox.charge(this_s)
        spent[sender] = spent.get(sender, 0.0) + this_s
        total_s += this_s
    if senders > 1:
        assert max(spent.values()) - min(spent.values()) <= 2 * QUANTUM_S + 2 * max(cost_s, TURN_S) + DEBT_S / 10


def test_own_turns_go_first_and_starve_nobody() -> None:
    mailbox = Lanes(Ledger())
    for number in range(10 * OWN_RUN):
        mailbox.add(_turn(OWN, number))
    mailbox.add(_turn("a", 0), "a")
    order = []
    while mailbox:
        order.append(mailbox.take()[1][0])
        mailbox.charge(0.0)
    assert order.index("a") == OWN_RUN


def test_an_idle_sender_costs_nothing() -> None:
    ledger = Ledger()
    mailbox = Lanes(ledger)
    for number in range(10_000):
        mailbox.add(_turn(str(number), 0), str(number))
        mailbox.take()
        mailbox.charge(1.0)
    assert len(ledger) == 0
    assert not mailbox._lanes
    assert not mailbox._order
