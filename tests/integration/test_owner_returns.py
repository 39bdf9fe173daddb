"""The owner's key press on a real X server suspends the job; the owner's absence lets it go on; staying evicts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, until

pytestmark = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed")

POLICY = """
POLLING_INTERVAL = 0.5
CONSOLE_DEVICES =
OWNER_SENSORS =
START = True
WANT_SUSPEND = True
SUSPEND = ConsoleIdle < 5
CONTINUE = ConsoleIdle > 5
WANT_VACATE = True
MACHINEMAXVACATETIME = 2
"""

PRESS = """
import sys
from Xlib import X, display
from Xlib.ext import xtest
user = display.Display(sys.argv[1])
xtest.fake_input(user, X.KeyPress, 38)
xtest.fake_input(user, X.KeyRelease, 38)
user.sync()
"""


@pytest.fixture
def display() -> Iterator[str]:
    reading, writing = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(writing), "-nolisten", "tcp", "-noreset"],
                              pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as stream:
        name = f":{stream.readline().strip()}"
    yield name
    server.terminate()
    server.wait()


@pytest.fixture
def pool(tmp_path_factory: pytest.TempPathFactory, display: str) -> Iterator[PersonalPool]:
    made = PersonalPool(tmp_path_factory.mktemp("owner"), slots=1, config=POLICY)
    watcher = subprocess.Popen([sys.executable, "-m", "condor_actors.services", "kbdd"],
                               env={**made.environment, "DISPLAY": display}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    yield made
    watcher.terminate()
    watcher.wait()
    made.stop()


def test_a_key_press_suspends_and_absence_continues(pool: PersonalPool, display: str) -> None:
    until(lambda: "ConsoleIdle" in pool.run("condor_status", "-long") or None, "kbdd is heard")
    cluster = pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\n"
                          "should_transfer_files = yes\nlog = job.log\nqueue\n")
    pool.until_status(f"{cluster}.0", 2)
    subprocess.run([sys.executable, "-c", PRESS, display], check=True)
    until(lambda: "010 (" in (pool.work / "job.log").read_text() or None, "suspended")
    until(lambda: "011 (" in (pool.work / "job.log").read_text() or None, "continued")
    pool.run("condor_vacate", pool.run("condor_status", "-af", "Machine").strip())
    until(lambda: "004 (" in (pool.work / "job.log").read_text() or None, "evicted")
    pool.run("condor_rm", str(cluster))
    until(lambda: not pool.scratch() or None, "scratch directories freed")
