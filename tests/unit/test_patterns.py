"""Regular expressions that are compiled late, or with the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from condor_actors import patterns
from condor_actors.config import loader
from condor_actors.patterns import encoded_programs, late
from condor_actors.tools.bundle import programs


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of programs that this process reads when it compiles its next pattern."""
    path = tmp_path / "programs"
    path.write_bytes(encoded_programs([r"(?P<word>a+|\w{2,3})\s*([^\d\u20ac-\u20af]?)"]))
    monkeypatch.setattr(patterns, "PROGRAMS", str(path))
    monkeypatch.setattr(patterns, "_PROGRAMS", patterns._Programs())
    return path


TEXTS = ("aaa", "ab \u20ac", "Abc-", "", "a b", "use FEATURE : GPUs", "NAME_1 = $(X) y", "-12.5e3", "# x", "queue 3")


def test_a_program_finds_what_its_pattern_finds(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(re, "compile", lambda *words: pytest.fail("it was compiled again"))
    text = r"(?P<word>a+|\w{2,3})\s*([^\d\u20ac-\u20af]?)"
    of_program, compiled = late(text), re._compiler.compile(text)  # type: ignore[attr-defined]
    for subject in TEXTS:
        ours, theirs = of_program.match(subject), compiled.match(subject)
        assert (ours and (ours.groups(), ours.groupdict())) == (theirs and (theirs.groups(), theirs.groupdict()))
    assert (of_program.flags, of_program.groups, dict(of_program.groupindex)) == (
        compiled.flags, compiled.groups, dict(compiled.groupindex))


def test_every_program_of_the_modules_is_that_of_its_pattern(written: Path) -> None:
    known = patterns._PROGRAMS._read()
    assert (loader._ASSIGNMENT.text_, "s") in known  # type: ignore[attr-defined]
    for text, letters in known:
        found = patterns._PROGRAMS.of(text, letters)
        wanted = re.compile(text, patterns._flags_of(letters))
        assert (found.flags, found.groups, dict(found.groupindex)) == (
            wanted.flags, wanted.groups, dict(wanted.groupindex))
        for subject in TEXTS:
            given = subject.encode() if isinstance(text, bytes) else subject
            ours, theirs = found.search(given), wanted.search(given)
            assert (ours and (ours.span(), ours.groups())) == (theirs and (theirs.span(), theirs.groups())), text


@pytest.mark.parametrize("content", [None, b"", b"12345678", b"\0" * 100])
def test_programs_of_another_python_are_left_alone(written: Path, content: bytes | None) -> None:
    if content is None:
        written.unlink()
    else:
        written.write_bytes(content)
    assert late(r"a(b)").fullmatch("ab")
    assert late(r"\d+", "a").findall("12 3") == ["12", "3"]


def test_the_letters_of_flags_are_those_of_python() -> None:
    for letter, flag in patterns._FLAGS.items():
        assert flag == re.RegexFlag[letter.upper()]


def test_what_is_written_beside_the_bundle_has_the_patterns_of_the_commands() -> None:
    content = programs()
    assert content.startswith(patterns._MARK)
    assert loader._ASSIGNMENT.text_.encode() in content  # type: ignore[attr-defined]
    assert b"rpmsave" in content  # the files that LOCAL_CONFIG_DIR leaves out by default


def test_a_python_with_another_compiler_gets_no_programs(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.delattr(re._compiler, "_code")  # type: ignore[attr-defined]
        written.write_bytes(encoded_programs([r"c(d)"]))
    assert late(r"c(d)").fullmatch("cd")
