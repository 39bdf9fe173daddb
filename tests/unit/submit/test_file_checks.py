"""Files are looked at before anything is queued, as far as the submitter wants that."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from condor_actors.submit import Description, Options, SubmitError
from condor_actors.tools.lib.submit_files import LocalFiles
from tests.unit.submit.worlds import SETTINGS, World

CHECKED = {**SETTINGS, "SUBMIT_SKIP_FILECHECKS": "False"}


def read(folder: Path, text: str, settings: dict[str, str] | None = None, **options: object) -> Description:
    """A description that was read in ``folder``, a real one."""
    world = World(settings=settings or CHECKED)
    around = attrs.evolve(world.environment(), cwd=str(folder), files=LocalFiles())
    made = Description(around, lambda: 5, Options(**options))  # type: ignore[arg-type]  # tests name real ones
    made.read(text, "job.sub")
    return made


def refusal(folder: Path, text: str, settings: dict[str, str] | None = None) -> tuple[SubmitError, str]:
    world = World(settings=settings or CHECKED)
    made = Description(attrs.evolve(world.environment(), cwd=str(folder), files=LocalFiles()), lambda: 5, Options())
    with pytest.raises(SubmitError) as caught:
        made.read(text, "job.sub")
    return caught.value, made.blamed(caught.value)


@pytest.mark.parametrize(("line", "said"), [
    ("output = nosuch/out", 'nosuch/out"  for writing (No such file or directory)'),
    ("stderr = nosuch/err", 'nosuch/err"  for writing (No such file or directory)'),
    ("log = nosuch/log", 'nosuch/log"  for writing (No such file or directory)'),
    ("output = folder", 'folder"  for writing (Is a directory)'),
    ("input = nothing", 'nothing"  for reading (No such file or directory)'),
    ("transfer_input_files = here, nothing", 'nothing"  for reading (No such file or directory)'),
    ("initialdir = nosuch", "No such directory:"),
])
def test_what_is_not_there_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "here").write_text("x")
    (tmp_path / "folder").mkdir()
    text = f"executable = /bin/true\n\n{line}\nqueue\n"
    error, place = refusal(tmp_path, text)
    assert said in error.problem
    assert place == f"job.sub, line 3: {line}"
    assert error.remedy


def test_an_empty_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program").touch()
    error, place = refusal(tmp_path, "executable = program\nqueue\n")
    assert "has zero length" in error.problem
    assert place == "job.sub, line 1: executable = program"


def test_by_default_only_the_log_and_the_program_are_looked_at(tmp_path: Path) -> None:
    read(tmp_path, "executable = /bin/true\noutput = nosuch/out\ninput = nothing\nqueue\n", dict(SETTINGS))
    error, _ = refusal(tmp_path, "executable = /bin/true\nlog = nosuch/log\nqueue\n", dict(SETTINGS))
    assert "nosuch/log" in error.problem


BAD = "executable = /bin/true\noutput = nosuch/out\nlog = nosuch/log\n"


@pytest.mark.parametrize(("text", "options"), [
    (BAD, {"disable": True}), (BAD, {"spool": True}), (BAD + "skip_filechecks = true\n", {}),
])
def test_checks_can_be_switched_off(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    assert read(tmp_path, text + "queue\n", **options).warnings == []


def test_checks_can_warn_only(tmp_path: Path) -> None:
    made = read(tmp_path, BAD + "skip_filechecks = warn\nqueue\n")
    assert len(made.warnings) == 2


def test_the_program_on_the_execute_machine_is_not_looked_for(tmp_path: Path) -> None:
    read(tmp_path, "executable = /no/such\ntransfer_executable = false\nqueue\n")
