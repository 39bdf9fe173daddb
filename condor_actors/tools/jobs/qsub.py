"""condor_qsub: submit what was written for the qsub of PBS, Torque or SGE.

The command line, and the lines ``#PBS …``, ``#SGE …`` or ``#$ …`` of the script, become a submit description; the
command line wins.  What has no counterpart is refused, so that a job runs as its author meant, or not at all.

**Source**: the manual, condor_qsub; POSIX, qsub.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Sequence

from condor_actors.submit import Description, SubmitError
from condor_actors.tools.jobs.qsub_description import QsubJob, description_of
from condor_actors.tools.lib.command import ToolError, reminder_of, run
from condor_actors.tools.lib.contact import load, schedd
from condor_actors.tools.lib.flags import Flag, Given, MissingValue, RefusedFlag, UnknownFlag, is_flag, match, parse
from condor_actors.tools.lib.submission import Submission, environment, make_logs

WORDS = (
    Flag("help", 2), Flag("version", 4), Flag("print", 2), Flag("test", 2), Flag("cwd", 2), Flag("wd", 2, 1, alias="d"),
    Flag("condor-keep-files", 8, idle="there are no temporary files; -print shows the description"),
    Flag("hold_jid", 5, 1, refused="no job waits for another by itself; a DAG file says which waits for which, and "
                                   "condor_submit_dag runs it"),
    Flag("shell", 2, 1, idle="-S names the shell that reads the script"),
    Flag("sync", 2, 1, refused="condor_run runs a command as a job and waits for it, and condor_wait waits for a log"),
)
ONE_QUEUE = "a pool has no queues; -l says which machines may run the job"
LETTERS = (
    *(Flag(name, 1, int(name not in "hV")) for name in "aAbdefhijlmMNoprStvVW"),
    Flag("c", 1, 1, refused="programs are checkpointed in the standard universe, which condor_submit has"),
    Flag("I", 1, refused="condor_submit -interactive opens a shell on a machine"),
    Flag("q", 1, 1, idle=ONE_QUEUE),
    Flag("z", 1, refused="the number of the job is what condor_qsub prints"),
)
"""Options of one letter, whose case counts."""
FLAGS = (*WORDS, *LETTERS)
COMMAND_LINE_ONLY = ("b", "f", "help", "print", "test", "version")
DIRECTIVE = re.compile(r"^#(?:PBS|SGE|\$)[ \t]+(-.*)$", re.MULTILINE)
"""A line of a script that has options."""
MOST_SCRIPT_BYTES = 16 << 20


def main() -> int:
    """Entry of ``condor_qsub``."""
    return run(read, "condor_qsub", _answer)


def read(words: Sequence[str]) -> list[Given]:
    """Options as far as the script; what follows it are its arguments.

    Raises:
        UnknownFlag, MissingValue, RefusedFlag: as `parse` has them.
    """
    given: list[Given] = []
    position = 0
    while position < len(words) and is_flag(words[position]):
        word = words[position]
        letter = next((each for each in LETTERS if each.name == word.lstrip("-")), None)
        found = letter or (match(word, WORDS) or (None,))[0]
        if found is None:
            raise UnknownFlag(word)
        if found.refused:
            raise RefusedFlag(found, word)
        end = position + 1 + found.takes
        if end > len(words):
            raise MissingValue(found, word)
        if letter is None:
            given += parse(words[position:end], WORDS)
        else:
            given.append(Given(letter.name, tuple(words[position + 1:end]), "", word, letter.idle))
        position = end
    return [*given, *(Given("", (word,), "", word) for word in words[position:])]


def _answer(given: Sequence[Given]) -> int:
    operands = [item.values[0] for item in given if not item.name]
    if not operands:
        raise ToolError(f"Error: condor_qsub needs the script of the job\n{reminder_of('condor_qsub')}")
    options = _values(given)
    is_program = _yes(options.get("b", "n"))
    script = (shutil.which(operands[0]) or operands[0]) if is_program else operands[0]
    text = "" if is_program else _script(script)
    further = _script(options["f"]) if "f" in options else ""
    options = {**_directives(script, text), **_directives(options.get("f", ""), further), **options}
    job = QsubJob(script=os.path.abspath(script), arguments=operands[1:], is_program=is_program,
                  is_runnable=text.startswith("#!") and os.access(script, os.X_OK), options=options,
                  variables=os.environ, folder=os.getcwd())
    description = description_of(job, time.time())
    if "print" in options:
        print(description, end="")
    if "test" in options:
        return 0
    print(f'Your job {_submit(description)} ("{job.name}") has been submitted')
    return 0


def _yes(text: str) -> bool:
    if text.lower() not in ("y", "yes", "n", "no"):
        raise ToolError(f"condor_qsub: -b {text}: it has the form y or n")
    return text.lower().startswith("y")


def _values(given: Sequence[Given]) -> dict[str, str]:
    """The options by name; the last of each counts, but for those that add up."""
    options: dict[str, str] = {}
    for item in given:
        if not item.name or item.idle:
            continue
        if item.name == "cwd":
            options["d"] = "."
            continue
        value = item.values[0] if item.values else ""
        adds = item.name in "lvW" and item.name in options
        options[item.name] = f"{options[item.name]},{value}" if adds else value
    return options


def _script(path: str) -> str:
    """The text of a script.

    Raises:
        ToolError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_SCRIPT_BYTES + 1)
    except OSError as error:
        raise ToolError(f"condor_qsub: {path}: {error.strerror}") from None
    if len(data) > MOST_SCRIPT_BYTES or b"\0" in data:
        raise ToolError(f"condor_qsub: {path} is no script; -b y submits a program")
    return data.decode("utf-8", "surrogateescape")


def _directives(path: str, text: str) -> dict[str, str]:
    """The options in the lines of a script.

    Raises:
        ToolError: one is wrong; names its line.
    """
    given: list[Given] = []
    for found in DIRECTIVE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        try:
            here = read(shlex.split(found[1], comments=True))
        except (RefusedFlag, ValueError) as error:
            what = {UnknownFlag: "unknown option ", MissingValue: "no value after "}.get(type(error), "")
            raise ToolError(f"condor_qsub: {path}, line {line}: {what}{error}") from None
        if any(not item.name for item in here):
            raise ToolError(f"condor_qsub: {path}, line {line}: only options can stand in {found[0]!r}")
        for item in here:
            if item.name in COMMAND_LINE_ONLY:
                raise ToolError(f"condor_qsub: {path}, line {line}: {item.word} belongs on the command line")
            if item.idle:
                print(f"WARNING: {path}, line {line}: {item.word} has no effect: {item.idle}", file=sys.stderr)
        given += here
    return _values(given)


def _submit(text: str) -> int:
    """Submit the description; the number of its cluster.

    Raises:
        ToolError: it was not taken.
    """
    config = load("SUBMIT")
    with schedd(config) as there:
        submission = Submission(there, lambda: schedd(config), spool=False)
        description = Description(environment(config), submission.reserve)
        try:
            clusters = description.read(text, "condor_qsub")
        except SubmitError as error:
            notes = filter(None, (error.problem, description.blamed(error), error.remedy))
            raise ToolError("\n    ".join(["Failed to submit the job:", *notes])) from None
        for sentence in description.warnings:
            print(f"WARNING: {sentence}", file=sys.stderr)
        submission.send(clusters)
    make_logs(clusters)
    return clusters[0].cluster_id


if __name__ == "__main__":
    sys.exit(main())
