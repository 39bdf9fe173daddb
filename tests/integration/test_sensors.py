"""The startd's own sensors on real terminals, a real logind, and pipes in place of input devices."""

from __future__ import annotations

import os
import pty
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from inotify_simple import flags
from twisted.internet import defer, reactor
from twisted.internet.task import Clock

from condor_actors.machine.sensors.input_devices import InputDevices, is_for_hands
from condor_actors.machine.sensors.logind import Logind
from condor_actors.machine.sensors.readings import HostReadings, IdleNow
from condor_actors.machine.sensors.sensors import HostSensors, own_terminals
from condor_actors.machine.sensors.terminals import TerminalWatch
from tests.harness.logind import RealLogind, real_logind, why_not


class Heard:
    """What a sensor told, and a way to wait for it."""

    def __init__(self) -> None:
        self.words: list[Any] = []
        self._waiting: list[tuple[Callable[[Any], bool], defer.Deferred[Any]]] = []

    def __call__(self, word: Any) -> None:
        self.words.append(word)
        for item in tuple(self._waiting):
            if item[0](word):
                self._waiting.remove(item)
                item[1].callback(word)

    def next(self, wanted: Callable[[Any], bool]) -> defer.Deferred[Any]:
        answer: defer.Deferred[Any] = defer.Deferred()
        self._waiting.append((wanted, answer))
        return answer.addTimeout(30, reactor)


class Timers(Clock):
    """The reactor, but for its time, which is the test's."""

    addReader, removeReader = staticmethod(reactor.addReader), staticmethod(reactor.removeReader)


def turn(seconds: float = 0.0) -> defer.Deferred[None]:
    from twisted.internet.task import deferLater

    return deferLater(reactor, seconds)


@defer.inlineCallbacks
def until_turns(condition: Callable[[], Any], what: str) -> Iterator[Any]:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, f"not within 30 s: {what}"
        yield turn(0.02)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int, str]]:
    ours, theirs = pty.openpty()
    yield ours, theirs, "tty:" + os.ttyname(theirs).removeprefix("/dev/")
    os.close(ours)
    os.close(theirs)


@pytest_twisted.ensureDeferred
async def test_what_is_typed_at_a_terminal_is_an_event_and_output_is_none(terminal: tuple[int, int, str]) -> None:
    ours, theirs, source = terminal
    heard = Heard()
    watch = TerminalWatch(heard)
    watch.start(reactor)
    try:
        if not watch.watches(source):
            pytest.skip(f"may not be watched: {watch.refused.get(source)}")
        os.write(theirs, b"output\n")
        os.read(ours, 100)
        waiting = heard.next(lambda word: word == source)
        os.write(ours, b"x\n")
        os.read(theirs, 10)
        await waiting
        assert heard.words.count(source) == 1
    finally:
        watch.stop()


@pytest_twisted.ensureDeferred
async def test_a_terminal_that_comes_later_is_watched(terminal: tuple[int, int, str]) -> None:
    heard = Heard()
    watch = TerminalWatch(heard)
    watch.start(reactor)
    ours, theirs = pty.openpty()
    source = "tty:" + os.ttyname(theirs).removeprefix("/dev/")
    try:
        if watch.refused:
            pytest.skip("this user may not watch terminals")
        await until_turns(lambda: watch.watches(source), "the new terminal is watched")
        waiting = heard.next(lambda word: word == source)
        os.write(ours, b"x\n")
        os.read(theirs, 10)
        await waiting
    finally:
        watch.stop()
        os.close(ours)
        os.close(theirs)


@pytest_twisted.ensureDeferred
async def test_a_terminal_that_takes_the_number_of_one_that_has_gone_is_watched_once() -> None:
    heard = Heard()
    watch = TerminalWatch(heard)
    timers = Clock()
    watch.start(reactor)
    watch._reactor = timers
    number, (source, path) = -7, ("tty:pts/9999", "/nonexistent")
    try:
        for _ in range(2):
            watch._sources[number] = (source, path)
            watch._heard(number, flags.ACCESS, "")
        timers.advance(10)  # two timers of one name were one too many
        assert not watch.watches(source)
    finally:
        watch._reactor = reactor
        watch.stop()


def test_the_terminals_of_jobs_are_not_the_owners() -> None:
    script = "import pty, sys, time; pty.spawn(['sh', '-c', 'tty; exec sleep 1000'])"
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    name = parent.stdout.readline().decode().strip().removeprefix("/dev/")
    assert own_terminals(os.getpid()) >= {f"tty:{name}"}
    sensors = HostSensors((), memory=None)
    sensors._jobs_below = os.getpid
    words = sensors.idle([IdleNow(f"tty:{name}", 1.0), IdleNow("tty:pts/9999", 2.0)])
    assert [word.source for word in words] == ["tty:pts/9999"]
    for child in (parent,):
        child.kill()
        child.wait()
    parent.stdout.close()


@pytest_twisted.ensureDeferred
async def test_an_input_device_tells_of_each_touch_once_a_second(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "event0")
    keyboard = os.open(tmp_path / "event0", os.O_RDWR)
    heard, timers = Heard(), Timers()
    devices = InputDevices(heard, str(tmp_path), str(tmp_path / "no-facts"))
    devices.start(timers)
    try:
        assert devices.unknown() == (IdleNow("input:event0", None, "no event since it is watched"),)
        event = struct.pack("llHHi", 0, 0, 1, 30, 1)
        waiting = heard.next(lambda word: word == "input:event0")
        os.write(keyboard, event * 3)
        await waiting
        os.write(keyboard, event)
        await turn(0.1)
        assert len(heard.words) == 1, "it rests"
        assert devices.unknown() == ()
        waiting = heard.next(lambda word: True)
        timers.advance(1.0)
        os.write(keyboard, event)
        await waiting
        (tmp_path / "event0").unlink()
        devices.refresh()
    finally:
        devices.stop()
        os.close(keyboard)


def test_which_devices_are_for_hands() -> None:
    assert is_for_hands("402000000 3803078f800d001 feffffdfffefffff fffffffffffffffe")
    assert is_for_hands("70000 0 0 0 0")
    assert not is_for_hands("10000000000000 0")
    assert not is_for_hands("0")


def test_a_startd_that_starts_again_knows_when_somebody_was_here(tmp_path: Path) -> None:
    memory = tmp_path / "owner_seen"
    first = HostSensors((), memory=memory)
    first._touched("x11::0")
    first.remember(100.0)
    seen = {word.source: word.idle_s for word in HostSensors((), memory=memory).idle([])}
    assert seen["seen:"] is not None
    assert seen["seen:"] < 30.0


def test_readings_and_events_are_one_sensor(terminal: tuple[int, int, str]) -> None:
    _, _, source = terminal
    sensors = HostSensors((), memory=None)
    os.utime(f"/dev/{source.partition(':')[2]}", (time.time() - 500, time.time()))
    before = {word.source: word.idle_s for word in sensors.idle(HostReadings().idle())}
    assert before[source] is not None
    assert before[source] > 400.0
    sensors._touched(source)
    after = {word.source: word.idle_s for word in sensors.idle(HostReadings().idle())}
    assert after[source] is not None
    assert after[source] < 30.0


# ---- logind


@pytest.fixture(scope="module")
def logind() -> Iterator[RealLogind]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with real_logind() as made:
        yield made


@pytest_twisted.ensureDeferred
async def test_sessions_idle_hints_and_locks_of_a_real_logind(logind: RealLogind) -> None:
    heard = Heard()
    sensor = Logind(heard, logind.path)
    sensor.start(reactor)
    try:
        await until_turns(lambda: sensor.is_there, "logind answers")
        waiting = heard.next(lambda word: word.startswith("login:"))
        name = logind.log_in("wayland")
        assert await waiting == f"login:{name}"
        now_s = time.time()
        words = {word.source: word for word in sensor.readings(now_s)}
        assert words[f"logind:{name}"].idle_s is None, "it has never said whether it is idle"
        assert "never says" in words[f"logind:{name}"].text
        assert sensor.screen_locked() is False

        logind.tell(name, "SetIdleHint", True)
        await until_turns(lambda: sensor.sessions[name].idle, "idle")
        idle = {word.source: word for word in sensor.readings(time.time() + 60.0)}[f"logind:{name}"]
        assert idle.idle_s is not None
        assert idle.idle_s >= 60.0
        waiting = heard.next(lambda word: word == f"logind:{name}")
        logind.tell(name, "SetIdleHint", False)
        await waiting
        assert {word.source: word for word in sensor.readings(time.time())}[f"logind:{name}"].idle_s == 0.0

        waiting = heard.next(lambda word: word == f"lock:{name}")
        logind.tell(name, "SetLockedHint", True)
        await waiting
        assert sensor.screen_locked() is True
        logind.log_out(name)
        await until_turns(lambda: name not in sensor.sessions, "the session is gone")
    finally:
        sensor.stop()


@pytest_twisted.ensureDeferred
async def test_who_sits_at_the_console_and_who_came_from_elsewhere(logind: RealLogind) -> None:
    sensor = Logind(lambda word: None, logind.path)
    sensor.start(reactor)
    try:
        remote = logind.log_in("tty", remote_host="far.example")
        local = logind.log_in("tty", uid=65534, seat="seat0", vt=9, tty="tty9")
        await until_turns(lambda: {remote, local} <= sensor.sessions.keys(), "both sessions are seen")
        assert sensor.console_users() == {65534}
        assert sensor.sessions[remote].remote_host == "far.example"
        logind.log_out(local)
        logind.log_out(remote)
    finally:
        sensor.stop()


@pytest_twisted.ensureDeferred
async def test_without_a_bus_the_sensor_says_so(tmp_path: Path) -> None:
    sensors = HostSensors(("logind",), bus=str(tmp_path / "no-bus"))
    sensors.start(reactor, lambda word: None, lambda: 0)
    try:
        assert sensors.logind is not None
        await until_turns(lambda: sensors.logind.problem != "not asked yet", "the bus was tried")
        (word,) = [word for word in sensors.idle([]) if word.source == "logind:"]
        assert word.idle_s is None
        assert word.text
    finally:
        sensors.stop()
