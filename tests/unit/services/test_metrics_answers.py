"""However many ask for metrics, the daemons are asked once for all of them."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.task import Clock

from condor_actors.services.telemetry.metrics import GAP_S, LONGEST_S, SharedAnswers


class Desk:
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
    desk = Desk()
    desk.asked(1)
    desk.asked(500)
    assert len(desk.rounds) == 1
    desk.rounds[0]("first")
    assert desk.heard == ["first"]
    desk.clock.advance(GAP_S)
    assert len(desk.rounds) == 2
    desk.rounds[1]("second")
    assert desk.heard == ["first"] + ["second"] * 500
    desk.clock.advance(10 * GAP_S)
    assert len(desk.rounds) == 2


def test_a_flood_has_two_rounds_a_second() -> None:
    desk = Desk()
    for _ in range(100):
        desk.asked(10)
        for answer in desk.rounds[-1:]:
            answer("now")
        desk.clock.advance(0.1)
    assert len(desk.rounds) <= 10 / GAP_S + 1
    assert len(desk.heard) >= 900


def test_a_round_that_is_lost_is_given_up_and_the_next_one_begins() -> None:
    desk = Desk()
    desk.asked(2)
    desk.clock.advance(LONGEST_S)
    assert desk.heard == [None]
    desk.clock.advance(GAP_S)
    desk.rounds[0]("late")
    assert desk.heard == [None]
    desk.rounds[1]("second")
    assert desk.heard == [None, "second"]
