"""Words and files on command lines that no one means: none is a traceback, none hangs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.config import load_config
from condor_actors.tools.admin import drain
from condor_actors.tools.lib import job_actions
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.daemon_lines import line_to
from condor_actors.tools.lib.flags import Given
from condor_actors.tools.lib.job_ids import parse_id
from condor_actors.tools.pool import token_requests, tokens
from condor_actors.tools.printing.ad_output import ads_of_file
from condor_actors.wire.blocking import WireError
from condor_actors.written_text import open_written


@pytest.mark.parametrize("word", ["", "9" * 20, f"1.{'9' * 20}", "1.2.3.4", "-1.-1", "1.0x", "caf\udce9", "\x1b[31m"])
def test_what_is_no_job_is_none(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_id(word) is None
    wanted = job_actions._understand([Given("", (word,))])
    assert wanted.ids == []
    if not word or word[0].isdecimal():
        assert "unrecognized" in capsys.readouterr().err
        assert not wanted.terms


def test_an_empty_constraint_is_no_word_for_all_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    """``condor_rm -constraint "$WHICH"`` with a variable that is not set removed the whole queue."""
    for empty in ("", "  "):
        with pytest.raises(SystemExit):
            job_actions._understand([Given("constraint", (empty,))])
        assert "-all is the word" in capsys.readouterr().err


@pytest.mark.parametrize(("main", "words"), [
    (drain.main, [""]), (tokens.fetch, ["word"]), (tokens.list_tokens, ["word"]), (token_requests.request, ["word"]),
    (token_requests.list_requests, ["word"])])
def test_words_without_a_meaning_are_refused(main: Callable[[], int], words: list[str],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty name passed for this machine; others had no effect."""
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    monkeypatch.setattr(sys, "argv", ["tool", *words])
    assert main() != 0


@pytest.mark.parametrize(("name", "why"), [
    ("/dev/zero", "it is a device"), ("fifo", "nothing writes to it"), ("/tmp", "Is a directory"),
    ("/nonexistent", "No such file")])
def test_what_is_no_file_of_ads_is_refused(name: str, why: str, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("condor_actors.written_text.NO_WRITER_S", 0.1)
    os.mkfifo("fifo")
    with pytest.raises(ToolError, match=why):
        ads_of_file(name)
    os.close(open_written("/dev/null"))


@pytest.mark.parametrize("empty", [{"pool": ""}, {"name": ""}, {"name": "", "pool": ""}])
def test_an_empty_pool_is_the_one_of_the_configuration(empty: dict[str, str], tmp_path: Path) -> None:
    """``condor_token_fetch -pool ""`` ended in a traceback."""
    for name in ("collector", "schedd"):
        with pytest.raises((ToolError, WireError)):
            line_to(load_config(files=[], environ={}, overrides={"LOCAL_DIR": str(tmp_path),
                                                                 "COLLECTOR_HOST": "127.0.0.1:1"}), empty, name)
