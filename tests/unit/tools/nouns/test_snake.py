"""htcondor snake: the job that runs Snakemake, and which words are whose."""

from __future__ import annotations

import os

import pytest

from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.nouns import command, snake


@pytest.mark.parametrize(("words", "left", "folder"), [
    (["flow", "--jobdir", "d", "--", "--jobs", "4"], ["flow", "--", "--jobs", "4"], "d"),
    (["flow", "--", "--jobdir", "d"], ["flow", "--", "--jobdir", "d"], ""), ([], [], ""),
])
def test_the_folder_of_its_logs(words: list[str], left: list[str], folder: str) -> None:
    found, named = snake._words(list(words), None)
    assert found == left
    assert named == (folder or os.path.abspath("logs"))


def test_a_folder_without_a_name() -> None:
    with pytest.raises(ToolError, match="needs a folder"):
        snake._words(["--jobdir", "--", "x"], None)


def test_the_job() -> None:
    text = snake.description("/bin/snakemake", ["-s", "my flow", "--config", 'a="b"'], "/logs")
    lines = text.splitlines()
    assert "universe = local" in lines
    assert '''arguments = "-s my' 'flow --config a=""b"""''' in lines
    assert lines[-1] == "queue"


def test_without_snakemake(monkeypatch: pytest.MonkeyPatch, tmp_path: object,
                           capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert command.main(["snake", "submit", "nowhere"]) == 1
    assert "Could not find Snakefile: nowhere" in capsys.readouterr().err
    with open("flow", "w", encoding="utf-8") as file:
        file.write("rule all:\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main(["snake", "submit", "--jobdir", "x", "flow", "--", "--jobs", "2"]) == 1
    assert "snakemake-executor-plugin-htcondor" in capsys.readouterr().err
