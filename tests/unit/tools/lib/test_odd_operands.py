"""Words and files on command lines that no one means: none is a traceback, none hangs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from condor_actors.tools.lib import job_actions
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.flags import Given
from condor_actors.tools.lib.job_ids import parse_id
from condor_actors.tools.printing.ad_output import ads_of_file
from condor_actors.written_text import open_written


@pytest.mark.parametrize("word", ["", "9" * 20, f"1.{'9' * 20}", "1.2.3.4", "-1.-1", "1.0x", "caf\udce9", "\x1b[31m"])
def test_what_is_no_job_is_none(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_id(word) is None
    wanted = job_actions._understand([Given("", (word,))])
    assert wanted.ids == []
    if not word or word[0].isdecimal():
        assert "unrecognized" in capsys.readouterr().err
        assert not wanted.terms


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
