"""How long the owner is away, from sensors that may be silent, blind or lying."""

from __future__ import annotations

from condor_actors.cores.startd.idleness import MAX_SENSORS, Idleness


def test_the_least_of_what_is_known_counts_and_grows() -> None:
    idle = Idleness()
    assert idle.keyboard_idle_s(0.0) is None
    idle.report("tty:pts/1", 100.0, 1000.0)
    assert idle.report("x11::0", 20.0, 1000.0)
    assert (idle.keyboard_idle_s(1005.0), idle.console_idle_s(1005.0)) == (25.0, 25.0)
    idle.forget("x11::0")
    assert (idle.keyboard_idle_s(1005.0), idle.console_idle_s(1005.0)) == (105.0, None)


def test_only_fresh_input_is_news() -> None:
    idle = Idleness()
    idle.report("x11::0", 20.0, 1000.0)
    assert not idle.report("x11::0", 25.0, 1005.0)
    assert idle.report("x11::0", 0.0, 1010.0)
    assert not idle.report("x11::1", None, 1010.0, "no access")


def test_a_blind_or_silent_sensor_is_unknown_not_idle() -> None:
    idle = Idleness(stale_s=60.0)
    idle.report("x11::0", None, 1000.0, "no access")
    idle.report("tty:pts/1", 5.0, 1000.0)
    assert idle.keyboard_idle_s(1001.0) == 6.0
    assert idle.keyboard_idle_s(1061.0) is None
    assert idle.unknown(1061.0) == ("x11::0: no access", "tty:pts/1: no word for too long")


def test_made_up_sensors_do_not_fill_the_memory() -> None:
    idle = Idleness()
    for number in range(3 * MAX_SENSORS):
        idle.report(f"made-up:{number}", 1.0, 1000.0 + number)
    assert len(idle.reports) <= MAX_SENSORS
