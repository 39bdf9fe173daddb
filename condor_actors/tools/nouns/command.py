"""htcondor: a noun, then a verb, in front of what the other commands do.

Sentences go to standard error and what was asked for (a job's output, a table of an event log) to standard output, as
HTCondor's ``htcondor`` has it.  The exit status is 0, 1 when it could not be done, 2 for a command line that makes no
sense.

**Source**: the manual, htcondor.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from condor_actors.tools.lib.command import ToolError, quiet
from condor_actors.tools.nouns.table import NOUNS, NOUNS_OF, Noun, Verb
from condor_actors.tools.nouns.words import fall_silent, tell

NO_SENSE = 2
INTERRUPTED = 130
ABOUT = "A tool for managing HTCondor jobs and resources."
HELP = ("-h", "-help", "--help")


class _Unclear(Exception):
    """A command line that makes no sense; the text says why."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Unclear(f"{self.format_help()}\n{message}")


def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``htcondor``; the exit status."""
    try:
        try:
            return _noun(list(sys.argv[1:] if words is None else words))
        finally:
            sys.stdout.flush()
    except _Unclear as why:
        print(str(why), file=sys.stderr)
        return NO_SENSE
    except BrokenPipeError:
        quiet()
        return 1
    except OSError as error:
        quiet()
        print(f"Error: standard output: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _noun(words: list[str]) -> int:
    while words and words[0] in ("-v", "--verbose", "-q", "--quiet"):
        if words.pop(0) in ("-q", "--quiet"):
            fall_silent()
        else:
            tell("-v has no effect: every command says all it knows.")
    if words[:1] and words[0] in ("-V", "--version", "-version"):
        from condor_actors.tools.pool.version import platform_line, version_line

        print(version_line(), platform_line(), sep="\n")
        return 0
    if not words:
        raise _Unclear(overview())
    if words[0] in HELP:
        print(overview())
        return 0
    noun = NOUNS.get(words[0])
    if noun is None:
        raise _Unclear(f"{overview()}\ninvalid choice: {words[0]!r} (choose from {', '.join(NOUNS)})")
    if len(words) == 1:
        raise _Unclear(verbs_of(noun))
    if words[1] in HELP:
        print(verbs_of(noun))
        return 0
    verb = next((verb for verb in noun.verbs if verb.name == words[1]), None)
    if verb is None:
        raise _Unclear(f"{verbs_of(noun)}\ninvalid choice: {words[1]!r} "
                       f"(choose from {', '.join(verb.name for verb in noun.verbs)})")
    return _verb(noun, verb, words[2:])


def _verb(noun: Noun, verb: Verb, words: list[str]) -> int:
    if verb.command:
        return _ours(verb, words)
    parser = parser_of(noun, verb)
    if set(words) & set(HELP):
        print(parser.format_help(), end="")
        return 0
    if verb.refused:
        return _failed(noun, verb, f"{noun.name} {verb.name} is not available: {verb.refused}")
    given = vars(parser.parse_args(words))
    try:
        module, _, function = verb.act.partition(":")
        status: int = getattr(import_module(NOUNS_OF + module), function)(given)
        return status
    except ToolError as error:
        return _failed(noun, verb, error.text)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _failed(noun, verb, f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else str(error))
    except Exception as error:
        from condor_actors.tools.lib.contact import refused
        from condor_actors.wire.blocking import WireError

        if not isinstance(error, WireError):
            raise
        return _failed(noun, verb, refused(error))


def _failed(noun: Noun, verb: Verb, text: str) -> int:
    sys.stdout.flush()
    print(f"Error while trying to run {noun.name} {verb.name}:\n{text}", file=sys.stderr)
    return 1


def _ours(verb: Verb, words: list[str]) -> int:
    """Run one of our own commands, as if it had been called by its name."""
    from importlib.metadata import entry_points

    name, first = verb.command
    (entry,) = entry_points(group="condor_actors.commands", name=name)
    sys.argv = [name, first, *words]
    status: int = entry.load()()
    return status


def parser_of(noun: Noun, verb: Verb) -> argparse.ArgumentParser:
    """The reader of a verb's words."""
    parser = _Parser(prog=f"htcondor {noun.name} {verb.name}", description=f"{verb.text}.", allow_abbrev=False)
    for operand in verb.operands:
        parser.add_argument(operand.name, nargs=operand.count or None, help=operand.text)
    for option in verb.options:
        if not option.takes:
            parser.add_argument(*option.words, action="store_true", help=option.text)
        elif option.is_number:
            parser.add_argument(*option.words, metavar=option.takes, type=int, help=option.text)
        else:
            parser.add_argument(*option.words, metavar=option.takes, help=option.text)
    return parser


def overview() -> str:
    """What ``htcondor -h`` says."""
    lines = ["usage: htcondor [-h] [-v] [-q] [-V] NOUN VERB ...", "", ABOUT,
             "-q prints data and errors alone; -v has no effect.", "", "nouns:"]
    lines += [f"  {noun.name:<12} {noun.text}: {', '.join(verb.name for verb in noun.verbs)}"
              for noun in NOUNS.values()]
    return "\n".join([*lines, "", "htcondor NOUN -h lists a noun's verbs, htcondor NOUN VERB -h a verb's options."])


def verbs_of(noun: Noun) -> str:
    """What ``htcondor NOUN -h`` says."""
    lines = [f"usage: htcondor {noun.name} [-h] VERB ...", "", f"{noun.text[0].upper()}{noun.text[1:]}.", "", "verbs:"]
    return "\n".join(lines + [f"  {verb.name:<12} {verb.text}" + ("  (not available)" if verb.refused else "")
                              for verb in noun.verbs])


if __name__ == "__main__":
    sys.exit(main())
