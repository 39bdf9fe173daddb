"""What the kbdd tells the startd, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from condor_actors.config import load_config
from condor_actors.daemons.kbdd import Kbdd
from condor_actors.messages.admin import IdleReading
from condor_actors.messages.envelope import Address
from condor_actors.simulation.world.machine import NoDesktop
from tests.harness.local_post import LocalNetwork, Probe

STARTD = "<m:1>"


class Screen:
    """A display whose last input the test sets."""

    raw_events = True

    def __init__(self, screens: Screens) -> None:
        self.screens = screens

    def idle_s(self) -> float:
        return self.screens.now_s() - self.screens.input_s

    def watch(self, clock: Any, touched: Callable[[], None], lost: Callable[[str], None]) -> None:
        self.screens.touched = touched

    def close(self) -> None:
        """Nothing."""


class Screens:
    """One display."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.input_s = 0.0
        self.touched: Callable[[], None] = lambda: None

    def names(self) -> tuple[str, ...]:
        return (":0",)

    def open(self, name: str) -> Screen:
        return Screen(self)

    def desktop(self, told: Callable[[Any], None]) -> NoDesktop:
        return NoDesktop()


@pytest.fixture
def net() -> Any:
    network = LocalNetwork()
    yield network
    network.stop()
    network.run(30.0)
    assert not network.clock.getDelayedCalls()


@pytest.fixture
def screens(net: LocalNetwork) -> Screens:
    screens = Screens(net.clock.seconds)
    config = load_config(environ={"CONDOR_CONFIG": "ONLY_ENV"}, files=(), overrides={"RUN": "/run"})
    kbdd = Kbdd(config, net.world("<k:1>", readings=screens))
    kbdd.startd = Address(STARTD, "startd")
    net.adopt("<k:1>", kbdd.system)
    kbdd.start()
    return screens


def readings(startd: Probe) -> list[float]:
    return [each.idle_s for each in startd.messages if isinstance(each, IdleReading)]


def test_an_idle_display_is_told_of_once_a_minute_and_input_at_the_next_look(net: LocalNetwork,
                                                                             screens: Screens) -> None:
    startd = net.probe(net.system(STARTD), "startd")
    net.run(1.0)
    startd.deliveries.clear()
    net.run(600.0)
    assert len(readings(startd)) == 10
    startd.deliveries.clear()
    screens.input_s = net.clock.seconds()
    net.run(5.0)
    assert len(readings(startd)) == 1
    assert readings(startd)[0] <= 5.0


def test_input_that_the_display_reports_is_told_at_once(net: LocalNetwork, screens: Screens) -> None:
    startd = net.probe(net.system(STARTD), "startd")
    net.run(2.0)
    startd.deliveries.clear()
    screens.input_s = net.clock.seconds()
    screens.touched()
    net.run(0.001)
    assert readings(startd) == [0.0]
    net.run(20.0)
    assert readings(startd) == [0.0]


def test_a_startd_that_comes_up_is_told_what_there_is(net: LocalNetwork, screens: Screens) -> None:
    net.probe(net.system(STARTD), "startd")
    net.run(2.0)
    net.crash(STARTD)
    net.run(2.0)
    startd = net.probe(net.system(STARTD), "startd")
    net.run(6.0)
    assert readings(startd)
