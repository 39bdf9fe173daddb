"""kbdd's eyes on a real X server, with synthetic input."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from condor_actors.machine.sensors.x_idle import DisplayLost, XDisplay

pytestmark = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed")


class Loop:
    """As much of a reactor as a display needs."""

    def __init__(self) -> None:
        self.readers: list[Any] = []

    def addReader(self, reader: Any) -> None:  # noqa: N802 - Twisted's name
        self.readers.append(reader)

    def removeReader(self, reader: Any) -> None:  # noqa: N802 - Twisted's name
        if reader in self.readers:
            self.readers.remove(reader)

    def run_until(self, condition: Callable[[], bool], deadline_s: float = 30.0) -> None:
        while not condition():
            ready, _, _ = select.select([reader.fileno() for reader in self.readers], [], [], deadline_s)
            assert ready, "no event in time"
            for reader in tuple(self.readers):
                if reader.fileno() in ready:
                    reader.doRead()


@pytest.fixture
def server() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "640x480x8", "-nolisten", "tcp", "-noreset"],
        pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as stream:
        number = stream.readline().strip()
    yield f":{number}", process
    process.terminate()
    process.wait()


def press_a_key(name: str) -> None:
    from Xlib import X, display
    from Xlib.ext import xtest

    user = display.Display(name)
    xtest.fake_input(user, X.KeyPress, 38)
    xtest.fake_input(user, X.KeyRelease, 38)
    user.sync()
    user.close()


def test_a_key_press_is_an_event_and_ends_the_idle_time(server: tuple[str, subprocess.Popen[bytes]]) -> None:
    name, _ = server
    seen = XDisplay(name)
    assert seen.raw_events, "Xvfb has XInput 2"
    loop, touched = Loop(), []
    seen.watch(loop, lambda: touched.append(1), touched.append)
    press_a_key(name)
    loop.run_until(lambda: bool(touched))
    assert touched[0] == 1
    assert seen.idle_s() < 30.0
    seen.close()
    assert loop.readers == []


def test_a_server_that_goes_is_reported(server: tuple[str, subprocess.Popen[bytes]]) -> None:
    name, process = server
    seen = XDisplay(name)
    loop, lost = Loop(), []
    seen.watch(loop, lambda: None, lost.append)
    process.kill()
    process.wait()
    loop.run_until(lambda: bool(lost))
    assert loop.readers == []


def test_a_display_nobody_serves() -> None:
    with pytest.raises(DisplayLost, match=":9876"):
        XDisplay(":9876")
