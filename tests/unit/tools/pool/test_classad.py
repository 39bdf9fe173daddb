"""The command condor_classad."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from condor_actors.tools.pool.classad import answer, main

JOB = (
    '[ Requirements = TARGET.Memory >= RequestMemory && TARGET.Arch == "X86_64"; RequestMemory = 2048; Rank = Memory ]'
)
SLOT = 'Memory = 1024\nArch = "x86_64"\nRequirements = Owner =!= "eve"\n'


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A job's ad and a slot's, in files of two forms."""
    job, slot = tmp_path / "job.ad", tmp_path / "slot.ad"
    job.write_text(JOB)
    slot.write_text(SLOT)
    return str(job), str(slot)


def test_eval(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    job, slot = files
    assert main(["eval", "-my", job, "-target", slot, "RequestMemory * 2", "{TARGET.Memory, 1.5}"]) == 0
    assert capsys.readouterr().out == "4096\n{ TARGET.Memory,1.500000000000000E+00 }\n"
    assert main(["eval", "-my", "[a=1]", "a + time()", "-now", "9"]) == 0
    assert capsys.readouterr().out == "10\n"
    assert main(["eval", "1 +"]) == 1
    assert "line 1, column 4" in capsys.readouterr().err
    assert main(["eval", "-my", "/no/such/file", "1"]) == 1
    assert "/no/such/file: No such file" in capsys.readouterr().err


def test_match_and_explain(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    job, slot = files
    assert main(["match", job, slot]) == 1
    assert capsys.readouterr().out.startswith("no match\nrank of the right ad for the left one: 1024\n")
    assert main(["explain", job, slot]) == 1
    said = capsys.readouterr().out
    assert "would pass if TARGET.Memory >= 2048 (it is 1024) or MY.RequestMemory <= 1024" in said
    assert said.endswith("they do not match: 1 clause failed\n")
    better = SLOT.replace("1024", "4096")
    Path(slot).write_text(better)
    assert main(["match", job, slot]) == 0
    assert main(["explain", job, slot]) == 0
    capsys.readouterr()
    Path(slot).write_text(better + "\n" + SLOT)
    assert main(["explain", job, slot]) == 0
    assert capsys.readouterr().out.endswith("1 accepted\n")


def test_format_and_lint(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, slot = files
    assert main(["format", "-to", "json", slot]) == 0
    text = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["format", "-to", "long"]) == 0
    assert capsys.readouterr().out == SLOT + "\n"
    assert main(["lint", slot]) == 0
    assert main(["lint", "-expr", "a == undefined"]) == 1
    assert "=?= undefined" in capsys.readouterr().out
    Path(slot).write_text("A = (\n")
    assert main(["lint", slot]) == 1
    assert f"{slot}: expected an operand" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ('{"expr": "a + b", "my": "[a=1]", "target": {"b": 2}}', "3"),
        ('{"expr": "{a, b}", "my": "a = 1\\n"}', "{ a,b }"),
        ('{"expr": "time()", "now": 5}', "5"),
        ('{"expr": "a +"}', "!syntax error: expected an operand, found the end (line 1, column 4)"),
        (
            '{"expr": "1", "my": "[a"}',
            "!syntax error: expected '=' after the attribute name a, found the end (line 1, column 3)",
        ),
        ('{"my": "[]"}', '!bad request: expected an object with a string "expr"'),
        ("nonsense", "!bad request: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_line_mode(line: str, result: str) -> None:
    assert answer(line) == result


def test_line_mode_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"expr": "1+1"}\n\n{"expr": "\\"é\\""}\n'))
    assert main(["--jsonl"]) == 0
    assert capsys.readouterr().out == '2\n"\\303\\251"\n'
    assert main([]) == 2
