"""Every command as a newcomer meets it: what it says of itself, and to words and files that it does not know."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from condor_actors.tools.jobs import history, q, qedit
from condor_actors.tools.pool import status
from tests.harness.commands import COMMANDS


def said(name: str, words: list[str], monkeypatch: pytest.MonkeyPatch,
         capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:  # fmt: skip
    monkeypatch.setattr(sys, "argv", [name, *words])
    try:
        code = COMMANDS[name].load()()
    except SystemExit as ending:
        code = int(ending.code or 0)
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.mark.parametrize("name", COMMANDS)
def test_it_says_what_it_is_for(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(name, ["--help"], monkeypatch, capsys)
    assert code == 0
    assert name in (out or err)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_word_that_it_does_not_know_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    with_verbs = ("condor_simulate", "condor_personal", "condor_annex", "condor_store_cred")
    words = ["-zapzap"] if name not in with_verbs else ["zapzap"]
    code, out, err = said(name, words, monkeypatch, capsys)
    assert code != 0
    assert out == ""
    assert "zapzap" in err


@pytest.mark.parametrize(("module", "words", "expected"), [
    (q, ["-jobads", "{}"], "expected 'Name = expression'"), (q, ["-jobads", "/nope"], "/nope: No such file"),
    (q, ["-userlog", "{}"], "there is no event in it"), (q, ["-jobads", "/dev/null", "-pr", "{}"], "it is no text"),
    (q, ["-jobads", "/dev/null", "-better", "-slotads", "{}"], "expected 'Name = expression'"),
    (history, ["-file", "{}"], "expected 'Name = expression'"), (history, ["-file", "/tmp"], "/tmp: Is a directory"),
    (status, ["-ads", "{}"], "expected 'Name = expression'"), (qedit, ["1.0", "-edits", "{}"], "is no text"),
])
def test_a_file_of_another_kind(tmp_path: Path, module: object, words: list[str], expected: str,
                                monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\x02\x01\x01\x00\xd0\xff\n\xfe\n")
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    monkeypatch.setattr(sys, "argv", ["tool", *(word.format(program) for word in words)])
    assert module.main() == 1  # type: ignore[attr-defined]
    assert expected in capsys.readouterr().err


def test_without_a_pool_it_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    monkeypatch.setenv("_CONDOR_RUN", str(tmp_path))
    code, out, err = said("condor_q", [], monkeypatch, capsys)
    assert (code, out) == (1, "")
    assert err.startswith("Error: Can't find address of local schedd\n")
    assert str(tmp_path / "schedd.sock") in err
