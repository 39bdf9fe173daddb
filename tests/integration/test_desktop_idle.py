"""What the desktop says of its session on a real D-Bus, and what a job beside it feels of that."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import defer, reactor, task

from condor_actors.machine.sensors.desktop_idle import DesktopIdle
from condor_actors.machine.sensors.readings import IdleNow
from tests.harness.desktop import SAVER, PlayedDesktop, session_bus, why_not
from tests.pool_fixture import PersonalPool, fresh_folder, until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture
def bus() -> Iterator[str]:
    with session_bus() as path:
        yield path


class Heard:
    """The readings so far, and a way to wait for one; the desktop is asked again and again meanwhile."""

    def __init__(self) -> None:
        self.words: list[IdleNow] = []

    @defer.inlineCallbacks
    def next(self, desktop: DesktopIdle, wanted: Callable[[IdleNow], bool]) -> Iterator[Any]:
        self.words.clear()
        end = time.monotonic() + 60
        while not any(wanted(word) for word in self.words):
            assert time.monotonic() < end, self.words
            desktop.poll(reactor)
            yield task.deferLater(reactor, 0.05)


@pytest_twisted.ensureDeferred
async def test_the_idle_monitor_counts_and_tells_of_the_return_at_once(bus: str) -> None:
    played, heard = PlayedDesktop(bus), Heard()
    desktop = DesktopIdle(heard.words.append, bus)
    try:
        played.tell("idle 500000")
        await heard.next(desktop, lambda word: word.source == "screensaver:gnome" and (word.idle_s or 0) >= 500)
        played.hear("watched")
        played.tell("touch")
        heard.words.clear()
        await task.deferLater(reactor, 0.0)
        while IdleNow("screensaver:gnome", 0.0) not in heard.words:  # an event: nobody asks
            await task.deferLater(reactor, 0.02)
        played.close()
        await heard.next(desktop, lambda word: word.idle_s is None and "gone" in word.text)
    finally:
        desktop.stop()
        played.close()


@pytest_twisted.ensureDeferred
async def test_a_screen_saver_in_whatever_unit_and_its_end(bus: str) -> None:
    played, heard = PlayedDesktop(bus, SAVER), Heard()
    desktop = DesktopIdle(heard.words.append, bus)
    try:
        played.tell("idle 500000")
        await heard.next(desktop, lambda word: word.source == "screensaver:freedesktop" and (word.idle_s or 9.9) < 1.0)
        await heard.next(desktop, lambda word: (word.idle_s or 0.0) >= 500.0)
        played.tell("wake")
        heard.words.clear()
        while IdleNow("screensaver:freedesktop", 0.0) not in heard.words:
            await task.deferLater(reactor, 0.02)
    finally:
        desktop.stop()
        played.close()


@pytest_twisted.ensureDeferred
async def test_a_bus_that_is_not_there_is_told_and_none_is_not() -> None:
    heard = Heard()
    absent, none = DesktopIdle(heard.words.append, "/nonexistent/bus"), DesktopIdle(heard.words.append, "")
    none.poll(reactor)
    assert heard.words == []
    await heard.next(absent, lambda word: word.source == "screensaver:" and word.idle_s is None and bool(word.text))
    absent.stop()


POLICY = """
POLLING_INTERVAL = 0.5
CONSOLE_DEVICES =
OWNER_SENSORS =
START = True
WANT_SUSPEND = True
SUSPEND = ConsoleIdle < 5
CONTINUE = ConsoleIdle > 5
MAXJOBRETIREMENTTIME = 0
"""


def test_who_returns_to_a_desktop_finds_the_jobs_frozen(bus: str) -> None:
    played = PlayedDesktop(bus)
    played.tell("idle 500000")
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=POLICY)
        session = {**pool.environment, "DISPLAY": "", "DBUS_SESSION_BUS_ADDRESS": f"unix:path={bus}"}
        watcher = subprocess.Popen([sys.executable, "-m", "condor_actors.services", "kbdd"], env=session,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            played.hear("watched")
            shown = until(lambda: text if "screensaver:gnome" in (text := pool.run("condor_who", "-owner")) else None,
                          "the desktop is heard")
            assert "1 s" in next(line for line in shown.splitlines() if "screensaver:gnome" in line)
            cluster = pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\n"
                                  "should_transfer_files = yes\nlog = job.log\nqueue\n")
            pool.until_status(f"{cluster}.0", 2)
            played.tell("touch")
            until(lambda: "010 (" in (pool.work / "job.log").read_text() or None, "suspended")
            played.tell("idle 500000")
            until(lambda: "011 (" in (pool.work / "job.log").read_text() or None, "continued")
            pool.run("condor_rm", str(cluster))
            until(lambda: not pool.scratch() or None, "nothing of it is left")
        finally:
            watcher.terminate()
            watcher.wait()
            pool.stop()
            played.close()
