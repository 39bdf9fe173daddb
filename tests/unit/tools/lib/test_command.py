"""The frame that all commands share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from condor_actors.tools.lib.command import ToolError, Words, help_of, operands_of, reminder_of, run, values_of
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.wire.blocking import Unreachable

USAGE = f"{help_of('condor_version')}\n"
REMINDER = reminder_of("condor_version")
FLAGS = (Flag("help"), Flag("version"), Flag("name", 1, 1))
Said = tuple[int, str, str]


def done(capsys: pytest.CaptureFixture[str], act: Callable[[Sequence[Given]], int], *arguments: str,
         words: Words | None = None) -> Said:  # fmt: skip
    status = run(FLAGS, "condor_version", act, arguments=arguments, words=words or Words())
    out = capsys.readouterr()
    return status, out.out, out.err


def raises(error: BaseException) -> Callable[[Sequence[Given]], int]:
    def act(_given: Sequence[Given]) -> int:
        raise error

    return act


def test_flags_and_operands_reach_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    def act(given: Sequence[Given]) -> int:
        print(values_of(given), operands_of(given))
        return 7

    assert done(capsys, act, "-n", "x", "a", "b") == (7, "{'name': 'x'} ['a', 'b']\n", "")


def test_help_and_version_do_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    never = raises(AssertionError("called"))
    assert done(capsys, never, "-help") == (0, USAGE, "")
    assert done(capsys, never, "-help", words=Words(help_stream="err")) == (0, "", USAGE)
    status, out, _ = done(capsys, never, "--version")
    assert (status, out.splitlines()[0][:15]) == (0, "$CondorVersion:")


def test_a_command_line_that_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    never = raises(AssertionError("called"))
    assert done(capsys, never, "-zap") == (1, "", f"Error: unrecognized argument -zap\n{REMINDER}\n")
    assert done(capsys, never, "-name") == (1, "", "Error: Argument -name requires another parameter\n")
    words = Words(unknown="{word}?", unknown_status=2, missing="-{flag}!")
    assert done(capsys, never, "-zap", words=words) == (2, "", "-zap?\n")
    assert done(capsys, never, "-na", words=words) == (1, "", "-name!\n")


@pytest.mark.parametrize(("error", "status", "said"), [
    (ToolError("no such job", 3), 3, "no such job\n"),
    (Unreachable("nobody is there"), 1, "Error: nobody is there\n"),
    (PermissionError(13, "Permission denied", "/a/b"), 1, "Error: /a/b: Permission denied\n"),
    (OSError(28, "No space left on device"), 1, "Error: standard output: No space left on device\n"),
    (KeyboardInterrupt(), 130, ""),
])
def test_every_failure_is_one_sentence(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, said: str
) -> None:
    assert done(capsys, raises(error)) == (status, "", said)


def test_a_failure_in_the_words_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = Words(failure="\nERROR: {text}")
    assert done(capsys, raises(ToolError("Error: it cannot")), words=words) == (1, "", "\nERROR: it cannot\n")


@pytest.mark.parametrize(("target", "said"), [("| head -1 > /dev/null", ""), ("> /dev/full", "No space left")])
def test_a_reader_that_leaves_and_a_full_disk(target: str, said: str) -> None:
    program = (
        "from condor_actors.tools.lib.command import run\n"
        "from condor_actors.tools.printing.ad_output import write\n"
        "raise SystemExit(run((), '', lambda given: write('x' * 99 + chr(10) for _ in range(100000)), arguments=()))"
    )
    line = f'set -o pipefail; "{sys.executable}" -c "$0" {target}'
    ended = subprocess.run(["bash", "-c", line, program], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert said in ended.stderr
