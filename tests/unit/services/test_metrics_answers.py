"""However many ask for metrics, the daemons are asked once for all of them."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.task import Clock

from condor_actors.services.telemetry.metrics import GAP_S, LONGEST_S, SharedAnswers


class Rounds:
    """Gathers when it is told to."""

    def __init__(self) -> None:
        self.rounds: list[Callable[[str], None]] = []
        self.clock = Clock()
        self.ask = SharedAnswers(self.rounds.append, self.clock)
        self.heard: list[str | None] = []

    def asked(self, count: int) -> None:
        for _ in range(count):
            self.ask(self.heard.append)


def test_who_asks_during_a_round_gets_the_next_one() -> None:
    daemons = Rounds()
    daemons.asked(1)
    daemons.asked(500)
    assert len(daemons.rounds) == 1
    daemons.rounds[0]("first")
    assert daemons.heard == ["first"]
    daemons.clock.advance(GAP_S)
    assert len(daemons.rounds) == 2
    daemons.rounds[1]("second")
    assert daemons.heard == ["first"] + ["second"] * 500
    daemons.clock.advance(10 * GAP_S)
    assert len(daemons.rounds) == 2


def test_a_flood_has_two_rounds_a_second() -> None:
    daemons = Rounds()
    for _ in range(100):
        daemons.asked(10)
        for answer in daemons.rounds[-1:]:
            answer("now")
        daemons.clock.advance(0.1)
    assert len(daemons.rounds) <= 10 / GAP_S + 1
    assert len(daemons.heard) >= 900


def test_a_round_that_is_lost_is_given_up_and_the_next_one_begins() -> None:
    daemons = Rounds()
    daemons.asked(2)
    daemons.clock.advance(LONGEST_S)
    assert daemons.heard == [None]
    daemons.clock.advance(GAP_S)
    daemons.rounds[0]("late")
    assert daemons.heard == [None]
    daemons.rounds[1]("second")
    assert daemons.heard == [None, "second"]
