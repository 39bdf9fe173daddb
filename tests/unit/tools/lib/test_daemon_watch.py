"""condor_who -wait-for-ready hears of daemons; it does not look again and again."""

from __future__ import annotations

import select
import subprocess
import threading
import time
from pathlib import Path

import pytest

from condor_actors.tools.lib.daemon_watch import DaemonWatch

LONG_S = 300.0


def wait(watch: DaemonWatch, *pids: int) -> None:
    """Fails by the limit of the whole test when nothing is heard."""
    began_s = time.monotonic()
    watch.wait(pids, LONG_S)
    assert time.monotonic() - began_s < LONG_S


def test_an_address_that_is_written_is_heard(tmp_path: Path) -> None:
    with DaemonWatch(tmp_path) as watch:
        writer = threading.Thread(target=lambda: (tmp_path / "schedd.address").write_text("<127.0.0.1:1>\n1\n"))
        writer.start()
        wait(watch)
        writer.join()


def test_what_happens_before_the_wait_is_not_missed(tmp_path: Path) -> None:
    with DaemonWatch(tmp_path) as watch:
        (tmp_path / "schedd.address").write_text("<127.0.0.1:1>\n1\n")
        wait(watch)


def test_a_folder_that_is_made_later_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "pool" / "run"
    with DaemonWatch(folder) as watch:
        folder.mkdir(parents=True)
        wait(watch)
        (folder / "master.address").write_text("<127.0.0.1:1>\n1\n")
        wait(watch)


def test_the_end_of_a_process_is_heard(tmp_path: Path) -> None:
    with DaemonWatch(tmp_path) as watch, subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        watch.wait([process.pid], 0.0)
        assert process.stdin is not None
        process.stdin.close()
        wait(watch, process.pid)


def test_nothing_is_looked_at_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[float] = []
    monkeypatch.setattr(select, "select", lambda *arguments: spans.append(arguments[3]))
    with DaemonWatch(tmp_path) as watch:
        watch.wait([], LONG_S)
    assert spans == [LONG_S]
