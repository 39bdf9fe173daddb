"""condor_config_val and condor_config check, as commands and towards living daemons."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.masters import Master, tool


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/10-site").write_text("SPOOL = $(LOCAL_DIR)/queue\nNEGOTIATOR_INTERVALL = 5\n")
    file = tmp_path / "condor_config"
    file.write_text(f"LOCAL_DIR = {tmp_path}\nLOCAL_CONFIG_DIR = {tmp_path}/d\n\nMyMacro = 5\nSCHEDD.MyMacro = 6\n")
    return file


def test_a_value(config: Path) -> None:
    assert tool("config_val", "SPOOL", config=config).stdout == f"{config.parent}/queue\n"
    assert tool("config_val", "spool", "mymacro", config=config).stdout == f"{config.parent}/queue\n5\n"
    assert tool("config_val", "-subsystem", "schedd", "MYMACRO", config=config).stdout == "6\n"
    assert tool("config_val", "-raw", "SPOOL", config=config).stdout == "$(LOCAL_DIR)/queue\n"
    assert tool("config_val", "-default", "NEGOTIATOR_INTERVAL", config=config).stdout == "60\n"
    assert tool("config_val", "-macro", "$(MyMacro)-$INT(MyMacro,%03d)", config=config).stdout == "5-005\n"


def test_what_is_not_defined(config: Path) -> None:
    done = tool("config_val", "NOPE", config=config, expect=1)
    assert (done.stdout, done.stderr) == ("", "Not defined: NOPE\n")
    done = tool("config_val", "nope", "SPOOL", "Not_Either", config=config, expect=1)
    assert (done.stdout, done.stderr) == (f"{config.parent}/queue\n", "Not defined: NOPE\nNot defined: NOT_EITHER\n")


def test_where_it_stands(config: Path) -> None:
    assert tool("config_val", "-v", "SPOOL", config=config).stdout.splitlines()[:4] == [
        f"SPOOL = {config.parent}/queue",
        f" # at: {config.parent}/d/10-site, line 1",
        " # raw: SPOOL = $(LOCAL_DIR)/queue",
        " # default: $(LOCAL_DIR)/spool",
    ]


def test_everything(config: Path) -> None:
    text = tool("config_val", "-dump", config=config).stdout
    assert text.startswith("# Configuration from machine: ")
    assert "\nMYMACRO = 5\n" in text
    assert text.endswith(f"# Contributing configuration file(s):\n#\t{config}\n#\t{config.parent}/d/10-site\n")
    one = tool("config_val", "-dump", "-expand", "^spool$", config=config).stdout
    assert f"\nSPOOL = {config.parent}/queue\n" in one
    assert "LOG =" not in one
    summary = tool("config_val", "-summary", config=config).stdout
    assert f"# from {config.parent}/d/10-site\n#\nSPOOL = $(LOCAL_DIR)/queue\n" in summary
    done = tool("config_val", "-config", config=config)
    assert done.stdout == f"\t{config}\n\t{config.parent}/d/10-site\n"


def test_what_only_a_living_daemon_can_tell(config: Path) -> None:
    assert "ask a living daemon" in tool("config_val", "-evaluate", "SPOOL", config=config, expect=1).stderr
    assert "ask a living daemon" in tool("config_val", "-dump", "-used", config=config, expect=1).stderr


def test_slips_of_the_finger(config: Path) -> None:
    assert "NEGOTIATOR_INTERVALL" in tool("config_val", "-unused", config=config).stdout
    assert "did you mean NEGOTIATOR_INTERVAL?" in tool("config_val", "-unused", config=config).stdout
    assert "did you mean SPOOL?" in tool("config_val", "-help", "SPOOOL", config=config, expect=1).stderr
    assert "when a job may start" in tool("config_val", "-help", "start", config=config).stdout.lower()


def test_templates(config: Path) -> None:
    assert tool("config_val", "use", config=config).stdout == "use accepts\n  ROLE\n  FEATURE\n  POLICY\n  SECURITY\n"
    assert "  Execute\n" in tool("config_val", "use", "role", config=config).stdout
    assert "SCHEDD" in tool("config_val", "use", "ROLE:submit", config=config).stdout
    assert "did you mean Submit?" in tool("config_val", "use", "ROLE:submti", config=config, expect=1).stderr


def test_the_whole_in_one_file(config: Path, tmp_path: Path) -> None:
    written = tmp_path / "written"
    tool("config_val", "-writeconfig:upgrade", str(written), config=config)
    assert tool("config_val", "SPOOL", config=written).stdout == f"{config.parent}/queue\n"


def test_a_change_is_judged_before_it_is_made(config: Path, tmp_path: Path) -> None:
    change = tmp_path / "change"
    change.write_text("SPOOL = /elsewhere\nNEGOTIATOR_INTERVAL = 30\n")
    said = tool("config", "check", str(change), config=config).stdout
    assert "change: SPOOL = /elsewhere (was" in said
    assert "needs a restart of every daemon" in said
    assert "change: NEGOTIATOR_INTERVAL = 30 (was 60); takes effect on condor_reconfig" in said
    change.write_text("NEGOTIATOR_INTERVAL = often\n")
    said = tool("config", "check", str(change), config=config, expect=1).stdout
    assert f"error: {change}, line 1: NEGOTIATOR_INTERVAL = often is not possible" in said


def test_an_edit_that_is_wrong_is_not_kept(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "NEGOTIATOR_INTERVAL = $TO" >> "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    target = config.parent / "d/10-site"
    before = target.read_text()
    environment = {"EDITOR": str(editor), "VISUAL": ""}
    from tests.integration.masters import CLEAN

    monkeypatch.setitem(CLEAN, "EDITOR", environment["EDITOR"])
    monkeypatch.setitem(CLEAN, "TO", "often")
    assert "stays as it was" in tool("config_val", "-edit", config=config, expect=1).stderr
    assert target.read_text() == before
    monkeypatch.setitem(CLEAN, "TO", "30")
    tool("config_val", "-edit", config=config)
    assert tool("config_val", "NEGOTIATOR_INTERVAL", config=config).stdout == "30\n"


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    made = Master(tmp_path, settings="use FEATURE : Remote_Config(MAX_JOBS*)\nMyLimit = Total + 5\nTotal = 2")
    made.start()
    yield made
    made.end()


def test_a_living_daemon_is_asked_and_changed(master: Master) -> None:
    def ask(*words: str, expect: int = 0) -> str:
        done = tool("config_val", "-schedd", *words, config=master.config, expect=expect)
        return done.stdout + done.stderr

    assert ask("MAX_JOBS_RUNNING") == "10000\n"
    assert ask("NOPE", expect=1) == "Not defined: NOPE\n"
    assert "# at: <Default>" in ask("-verbose", "MAX_JOBS_RUNNING")
    assert "MAX_JOBS_RUNNING = 10000\n" in ask("-dump", "MAX_JOBS")
    assert "MYLIMIT = Total + 5\n" in ask("-dump")
    assert ask("-evaluate", "MAX_JOBS_RUNNING") == "10000\n"
    assert ask("-evaluate", "MyLimit") == "undefined\n"
    used, unused = ask("-used", "-dump"), ask("-unused")
    assert "\nMAX_JOBS_RUNNING = 10000\n" in used
    assert "\nTOTAL = 2\n" in used
    assert "NEGOTIATOR_INTERVAL" not in used
    assert "MYLIMIT = Total + 5\n" in unused
    assert "MAX_JOBS" not in unused
    assert 'Successfully set configuration "MAX_JOBS_RUNNING = 500" on schedd' in ask("-set", "MAX_JOBS_RUNNING = 500")
    assert ask("MAX_JOBS_RUNNING") == "10000\n"
    tool("reconfig", config=master.config)
    assert ask("MAX_JOBS_RUNNING") == "500\n"
    assert "may not be set remotely" in ask("-set", "SPOOL = /tmp", expect=1)
    ask("-unset", "MAX_JOBS_RUNNING")
    tool("reconfig", config=master.config)
    assert ask("MAX_JOBS_RUNNING") == "10000\n"
    ask("-rset", "MAX_JOBS_RUNNING = 400")
    tool("reconfig", config=master.config)
    assert ask("MAX_JOBS_RUNNING") == "400\n"
    tool("restart", "-daemon", "schedd", config=master.config)
    master.hear("STATUS=SCHEDD is up")
    assert ask("MAX_JOBS_RUNNING") == "10000\n"


def test_a_set_value_that_is_wrong_is_refused_by_the_reconfig(master: Master) -> None:
    tool("config_val", "-schedd", "-set", "MAX_JOBS_RUNNING = many", config=master.config)
    assert "MAX_JOBS_RUNNING = many is not possible" in tool("reconfig", config=master.config, expect=1).stderr
    assert tool("config_val", "-schedd", "MAX_JOBS_RUNNING", config=master.config).stdout == "10000\n"
    assert os.path.exists(master.folder / "run/schedd.sock")
