"""condor_personal with real daemons: start, start again, side by side, after a crash, stop."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_actors.tools.lib.personal_setup import PersonalFiles
from tests.harness.proc_files import proc_file
from tests.integration.masters import tool, until_gone
from tests.pool_fixture import PersonalPool, ToolFailed, fresh_folder

NOWHERE = Path("/nonexistent/condor_config")


class Pool:
    """A personal pool in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.files = PersonalFiles(folder)

    def run(self, command: str, *arguments: str, expect: int = 0) -> str:
        done = tool("personal", command, "--dir", str(self.files.folder), *arguments, config=NOWHERE, expect=expect)
        return done.stdout + done.stderr

    def pids(self) -> dict[str, int]:
        content = json.loads(self.files.record.read_text())
        return {name: entry["pid"] for name, entry in content.items()}

    def master(self) -> int:
        return int((self.files.run / "master.address").read_text().split()[-1])


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    made = Pool(tmp_path / "p")
    yield made
    made.run("stop")


def test_a_pool_from_nothing_to_nothing(pool: Pool) -> None:
    assert "No personal pool runs" in pool.run("status", expect=3)
    said = pool.run("start", "--slots", "3")
    assert "It serves 3 slots" in said
    assert "condor_personal env --dir" in said
    assert set(pool.pids()) == {"COLLECTOR", "NEGOTIATOR", "SCHEDD", "STARTD", "WEB"}
    assert f"Its page:               {pool.files.page}\n" in said
    status = pool.run("status")
    assert all(f"pid {pid}" in status for pid in pool.pids().values())
    environment = dict(
        line.removeprefix("export ").rstrip(";").split("=", 1) for line in pool.run("env").splitlines()
    )
    assert shlex.split(environment["CONDOR_CONFIG"]) == [str(pool.files.config)]
    shown = tool("status", "-af", "Name", config=pool.files.config).stdout.split()
    assert len(shown) == 3
    everybody = [*pool.pids().values(), pool.master()]
    assert "has stopped" in pool.run("stop")
    for pid in everybody:
        until_gone(pid)
    assert "No personal pool runs" in pool.run("stop")


def test_starting_twice_changes_nothing(pool: Pool) -> None:
    pool.run("start", "--slots", "2")
    before = pool.pids()
    assert "runs already, with 2 slots" in pool.run("start")
    assert "stop it first" in pool.run("start", "--slots", "3")
    assert pool.pids() == before


def test_settings_are_kept_from_start_to_start(pool: Pool, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.write_text("MAX_JOBS_RUNNING = 17\n")
    pool.run("start", "--slots", "2", "--config", str(extra))
    ask = ("-schedd", "MAX_JOBS_RUNNING")
    assert tool("config_val", *ask, config=pool.files.config).stdout == "17\n"
    port = pool.files.load().text("COLLECTOR_HOST")
    pool.run("stop")
    assert "It serves 2 slots" in pool.run("start")
    assert tool("config_val", *ask, config=pool.files.config).stdout == "17\n"
    assert pool.files.load().text("COLLECTOR_HOST") == port


def test_a_setting_that_is_wrong_is_told_and_nothing_is_started(pool: Pool, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.write_text("\nNEGOTIATOR_INTERVAL = sixty\n")
    said = pool.run("start", "--config", str(extra), expect=1)
    assert "config.d/10-given, line 2: NEGOTIATOR_INTERVAL = sixty is not possible" in said
    assert not list(pool.files.run.iterdir())


def test_two_pools_side_by_side(pool: Pool, tmp_path: Path) -> None:
    other = Pool(tmp_path / "q")
    try:
        pool.run("start", "--slots", "2")
        other.run("start", "--slots", "1")
        assert not set(pool.pids().values()) & set(other.pids().values())
        pool.run("stop")
        assert "A personal pool runs" in other.run("status")
    finally:
        other.run("stop")


def test_stop_ends_daemons_whose_master_was_killed(pool: Pool) -> None:
    pool.run("start", "--slots", "2")
    daemons = pool.pids()
    master = pool.master()
    os.kill(master, signal.SIGKILL)
    until_gone(master)
    assert "Daemons without a master" in pool.run("status", expect=3)
    assert "has stopped" in pool.run("stop")
    for pid in daemons.values():
        until_gone(pid)


def test_start_takes_up_daemons_whose_master_was_killed(pool: Pool) -> None:
    pool.run("start", "--slots", "2")
    before = pool.pids()
    port = pool.files.load().text("COLLECTOR_HOST")
    master = pool.master()
    os.kill(master, signal.SIGKILL)
    until_gone(master)
    assert "It serves 2 slots" in pool.run("start", "--slots", "5")
    assert pool.pids() == before
    assert pool.files.load().text("COLLECTOR_HOST") == port


def test_a_start_that_fails_leaves_what_ran(pool: Pool) -> None:
    """The master was killed and one daemon with it, which cannot start again: the others, and the jobs, go on."""
    pool.run("start", "--slots", "2")
    before = pool.pids()
    for pid in (pool.master(), before["STARTD"]):
        os.kill(pid, signal.SIGKILL)
        until_gone(pid)
    door = pool.files.run / "startd.sock"
    door.unlink(missing_ok=True)
    (door / "in the way").mkdir(parents=True)
    assert "a daemon does not start" in pool.run("start", expect=1)
    for name in ("COLLECTOR", "NEGOTIATOR", "SCHEDD"):
        os.kill(before[name], 0)
    assert "Daemons without a master" in pool.run("status", expect=3)
    shutil.rmtree(door)
    assert "It serves 2 slots" in pool.run("start")
    assert pool.pids()["SCHEDD"] == before["SCHEDD"]


def test_a_start_beside_a_master_that_does_not_answer_leaves_it(pool: Pool) -> None:
    pool.run("start", "--slots", "2")
    before = pool.pids()
    master = pool.master()
    os.kill(master, signal.SIGSTOP)
    try:
        assert "does not answer; the pool is left as it is" in pool.run("start", expect=1)
    finally:
        os.kill(master, signal.SIGCONT)
    assert "runs already, with 2 slots" in pool.run("start")
    assert pool.pids() == before


@pytest.mark.parametrize("arguments", [("--slots", "0"), ("--slots", "100000")])
def test_numbers_of_slots_that_cannot_be(pool: Pool, arguments: tuple[str, ...]) -> None:
    assert "expected 1 to 10000" in pool.run("start", *arguments, expect=1)


def test_a_folder_with_a_blank_is_refused(tmp_path: Path) -> None:
    assert "choose another folder" in Pool(tmp_path / "a b").run("start", expect=1)


def test_daemons_find_their_modules_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1)
        logs = {path.name: path.read_text() for path in (pool.dir / "log").iterdir()}
        pool.stop()
    for name in ("CollectorLog.stderr", "NegotiatorLog.stderr", "ScheddLog.stderr", "StartdLog.stderr",
                 "StarterHostLog.err", "ShadowHostErrors"):
        lines = [line for line in logs[name].splitlines() if line.startswith("import time:")]
        loaded = [line.rpartition("|")[2].strip() for line in lines]
        assert "twisted.internet.reactor" in loaded, name
        assert len(loaded) < 40, (name, loaded)


class Unfinished(PersonalPool):
    """A pool whose daemons run, and which fails on the last step of being made."""

    began: dict[int, str]

    def run(self, *command: str, **how: Any) -> str:
        """As ever, but for what comes after the start."""
        if command[1] == "env":
            type(self).began = self.processes()
            raise ToolFailed("env")
        return super().run(*command, **how)


def test_a_pool_of_the_tests_that_cannot_be_made_leaves_nothing_running() -> None:
    with fresh_folder() as folder:
        with pytest.raises(ToolFailed, match="env"):
            Unfinished(folder, slots=1)
        assert len(Unfinished.began) > 4
        assert not [pid for pid in Unfinished.began if proc_file(pid, "cmdline")]
