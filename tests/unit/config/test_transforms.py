"""The language of job transforms: what is read, and what is refused before any job comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.config import ConfigError, load_config
from condor_actors.config.transforms import Assignment, Step, read_transform


def test_statements_of_every_kind() -> None:
    read = read_transform("X", "\n".join([
        "NAME the first", "REQUIREMENTS JobUniverse == 5", "# a comment", "who = $(MY.Owner)",
        "EVALMACRO  n  1 + 1", "set A 1", "SET B = 2", "SET C, 3", "DEFAULT D 4", "EVALSET E time()", "COPY A F",
        r"COPY /Resource(.+)/ Original\1", "RENAME A G", r"RENAME /^x/i y\0", "DELETE B", "DELETE /^tmp_/",
        "if defined MY.A", "  SET A 2", "else", "  SET A $(n)", "endif",
    ]))  # fmt: skip
    assert (read.name, read.title, read.requirements) == ("X", "the first", "JobUniverse == 5")
    assert read.statements[0] == Assignment("who", "$(MY.Owner)")
    steps = [each for each in read.statements if isinstance(each, Step)]
    assert [(step.keyword, step.target, step.text) for step in steps[:6]] == [
        ("EVALMACRO", "n", "1 + 1"), ("SET", "A", "1"), ("SET", "B", "2"), ("SET", "C", "3"), ("DEFAULT", "D", "4"),
        ("EVALSET", "E", "time()"),
    ]  # fmt: skip
    assert [step.pattern.pattern for step in steps if step.pattern] == ["Resource(.+)", "^x", "^tmp_"]
    assert len(read.statements) == 18


@pytest.mark.parametrize(("text", "said"), [
    ("SETT A 1", "SETT is no statement"), ("SET A", "SET needs two arguments"), ("SET", "nothing behind it"),
    ("SET 1a 3", "needs the name of an attribute"), ("SET A 1 +", "1 + is no expression"),
    ("SET Owner \"bob\"", "cannot change Owner"), ("RENAME A ClusterId", "cannot change ClusterId"),
    ("DELETE A B", "DELETE takes one attribute"), ("COPY /a( B", "without its closing slash"),
    ("COPY /a(/ B", "is no regular expression"), ("DELETE /a/q", "q is no option"),
    ("COPY A b-c", "no name of an attribute"),
    ("if true\nSET A 1", "if without endif"), ("endif", "without an if"), ("[ set_A = 1; ]", "form of a ClassAd"),
    ("REQUIREMENTS a >", "is no expression"),
])
def test_what_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_transform("X", text)
    assert said in raised.value.problem


def test_a_configuration_with_a_bad_one_has_a_problem_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "condor_config"
    file.write_text("A = 1\nJOB_TRANSFORM_NAMES = X\nJOB_TRANSFORM_X @=end\n  SET A $INT(MY.B)\n  SETT C 1\n@end\n")
    (problem,) = load_config(files=[file], environ={}).problems()
    assert (problem.file, problem.line, problem.name) == (str(file), 3, "JOB_TRANSFORM_X")
    assert "SETT" in str(problem)
    file.write_text(file.read_text().replace("SETT", "SET"))
    config = load_config(files=[file], environ={})
    assert config.problems() == ()
    # The macros of a transform are those of a job.
    assert config.text("JOB_TRANSFORM_X") == "SET A $INT(MY.B)\nSET C 1"
