"""condor_dag_checker shows every mistake, and its status says whether there are any."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.tools.dag.dag_checker import main

Checker = Callable[..., tuple[int, str, str]]
GOOD = "JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n"


@pytest.fixture
def checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Checker:
    (tmp_path / "config").write_text(f"LOCAL_DIR = {tmp_path}\n")
    monkeypatch.setenv("CONDOR_CONFIG", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def called(text: str, *words: str, name: str = "x.dag") -> tuple[int, str, str]:
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(sys, "argv", ["condor_dag_checker", *words, name])
        status = main()
        said = capsys.readouterr()
        return status, said.out, said.err

    return called


def test_a_good_one(checker: Checker) -> None:
    assert checker(GOOD) == (0, "No issues detected in x.dag\n", "")


def test_each_mistake_has_its_line(checker: Checker) -> None:
    status, out, _ = checker(GOOD + "RETRY C 1\nPARENT B CHILD A\n")
    assert status == 1
    assert "x.dag, line 4: there is no node C (define it with JOB, or correct the name)" in out
    assert "there is a cycle: " in out
    assert "x.dag, line 5" in out
    assert "x.dag, line 3" in out


def test_json_and_figures(checker: Checker) -> None:
    status, out, _ = checker(GOOD + "REJECT\n", "-json")
    (found,) = json.loads(out)
    assert status == 1
    assert found["Errors"][0]["SourceLine"] == 4
    assert (found["TotalNodes"], found["GraphHeight"], found["GraphWidth"], found["IsCyclic"]) == (2, 2, 1, False)
    status, out, _ = checker(GOOD, "-stat")
    assert "NumArcs = 1" in out
    assert status == 0


def test_files_outside(checker: Checker, tmp_path: Path) -> None:
    text = GOOD + "SCRIPT PRE A no-such-program\nSUBDAG EXTERNAL S in.dag\n"
    (tmp_path / "a.sub").write_text("executable = /bin/true\narguments = $(JOB)\nwrong = $(\nrequest_cpus = many(\n")
    (tmp_path / "in.dag").write_text("JOB A\n")
    status, out, _ = checker(text, "-CheckExternalFiles")
    assert status == 1
    assert "the script no-such-program of node A is no program" in out
    assert "in.dag, line 1: JOB: something is missing" in out
    assert "the description of node B" in out
    assert checker(text)[0] == 0
    (tmp_path / "in.dag").unlink()
    assert "in.dag of node S does not exist" in checker(text, "-CheckSubDags", "-strict")[1]
    assert checker(text, "-CheckSubDags")[0] == 0


def test_its_own_failures(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checker(GOOD, "-what")[0] == 2
    monkeypatch.setattr(sys, "argv", ["condor_dag_checker"])
    assert main() == 2
