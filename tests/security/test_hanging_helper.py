"""A helper whose process stands still, and one whose user database hangs: no reactor waits for either."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from condor_actors.machine.privilege import helper as orders
from condor_actors.machine.privilege.helper import PATIENCE_S, RootHelper, process_helper, start_helper
from tests.harness.root_helper import ALICE, POOL
from tests.integration.test_slow_user_database import SLOW
from tests.pool_fixture import fresh_folder, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: without it nothing of a pool has root's rights")
SLEEP = ["--program", "sleep", "user", "-", "/bin/sleep", "600", ";"]


@contextmanager
def a_helper(monkeypatch: pytest.MonkeyPatch, *policy: str) -> Iterator[RootHelper]:
    """The real one, started as a daemon starts it; ends with the test."""
    monkeypatch.setattr(orders, "_helpers", [])
    start_helper(["--pool", str(POOL), str(POOL), *policy])
    made = process_helper()
    assert made is not None
    try:
        yield made
    finally:
        with suppress(ProcessLookupError):
            os.kill(made.pid, signal.SIGKILL)
        made._socket.close()
        with suppress(ChildProcessError):
            os.waitpid(made.pid, 0)


def children() -> set[int]:
    """This process's, by their numbers."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


@pytest.fixture
def output() -> Iterator[int]:
    descriptor = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
    yield descriptor
    os.close(descriptor)


def took_s(function: object, *arguments: object, **more: object) -> tuple[float, OSError | None]:
    """How long a call took, and what it raised."""
    began_s = time.monotonic()
    try:
        function(*arguments, **more)  # type: ignore[operator]
    except OSError as error:
        return time.monotonic() - began_s, error
    return time.monotonic() - began_s, None


def test_a_reactor_does_not_wait_for_one_that_stands_still(monkeypatch: pytest.MonkeyPatch, output: int) -> None:
    """Once for a moment, then not at all; a start that was given up leaves nothing behind."""
    account = ["--account", str(ALICE), str(ALICE)]
    with a_helper(monkeypatch, "--orders", "program,signal", *account, *SLEEP) as helper:
        sleeper = helper.program("sleep", output, uid=ALICE)
        before = children()
        monkeypatch.setattr(orders, "isInIOThread", lambda: True)
        os.kill(helper.pid, signal.SIGSTOP)
        first_s, refused = took_s(helper.program, "sleep", output, uid=ALICE)
        assert refused is not None
        assert (refused.errno, "does not answer" in str(refused)) == (errno.ETIMEDOUT, True)
        assert first_s < 2 * PATIENCE_S
        assert [took_s(helper.program, "sleep", output, uid=ALICE)[0] < 0.2 for _ in range(5)] == [True] * 5
        assert [took_s(helper.signal, sleeper, 0)[0] < 0.2 for _ in range(5)] == [True] * 5
        helper.signal(sleeper, signal.SIGKILL)
        os.kill(helper.pid, signal.SIGCONT)
        assert os.waitpid(sleeper, 0)[1] == signal.SIGKILL
        until(lambda: not helper._given_up and children() == before - {sleeper}, "the late program to be ended")
        again = helper.program("sleep", output, uid=ALICE)
        os.kill(again, signal.SIGKILL)
        os.waitpid(again, 0)


def test_a_full_channel_is_no_wait(monkeypatch: pytest.MonkeyPatch, output: int) -> None:
    """Signals pile up before a helper that stands still, as far as there is room."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with a_helper(monkeypatch, "--orders", "signal", "--account", str(ALICE), str(ALICE)) as helper:
        monkeypatch.setattr(orders, "isInIOThread", lambda: True)
        os.kill(helper.pid, signal.SIGSTOP)
        began_s = time.monotonic()
        refused = next(error for _ in range(5_000) if (error := took_s(helper.signal, child.pid, 0)[1]) is not None)
        assert isinstance(refused, PermissionError)
        assert "does not answer" in str(refused)
        assert time.monotonic() - began_s < 5.0
        os.kill(helper.pid, signal.SIGCONT)
        until(lambda: not helper._given_up, "all answers to be read")
    child.kill()
    child.wait()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_user_database_that_hangs_holds_up_nothing_but_its_own_order(monkeypatch: pytest.MonkeyPatch,
                                                                       output: int) -> None:
    """The helper begins, starts programs and sends signals; what needs the account's groups waits on its own."""
    with fresh_folder() as folder:
        hangs, library = folder / "hangs", folder / "slow.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), "-xc", "-", "-ldl"], input=SLOW, text=True,
                       check=True)
        hangs.touch()
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("DIRECTORY_HANGS", str(hangs))
        nobody = 65534
        with a_helper(monkeypatch, "--orders", "program,signal,open", "--account", str(nobody), str(nobody),
                      *SLEEP) as helper:
            monkeypatch.delenv("LD_PRELOAD")
            opened: list[int] = []
            opening = threading.Thread(target=lambda: opened.append(helper.open(nobody, "/etc/passwd", os.O_RDONLY)))
            opening.start()
            with monkeypatch.context() as on_reactor:
                on_reactor.setattr(orders, "isInIOThread", lambda: threading.current_thread() is not opening)
                taken_s, refused = took_s(lambda: helper.program("sleep", output, uid=nobody))
            assert (refused, taken_s < PATIENCE_S) == (None, True)
            assert opening.is_alive()
            hangs.unlink()
            opening.join(30)
            assert len(opened) == 1
            os.close(opened[0])
