"""The frame of a command: its flags read, ``-help`` and ``-version`` answered, every failure said on standard error.

===================  ================================================================  ======
what happens          what is said                                                      status
===================  ================================================================  ======
``-help``             what the command's description makes                              0
``-version``          version and platform, as ``condor_version`` says them             0
an unknown flag       `Words.unknown`                                                   1
a value is missing    `Words.missing`                                                   1
a refused flag        why, and what comes nearest                                       1
a flag without effect why, beside what the command does                                 0
`ToolError`           its text                                                          its own
a daemon refuses      its sentence, or that it does not answer                          1
a file, the output    the file's name and the system's reason, or that it is no text    1
the reader left       nothing                                                           1
Control-C             nothing                                                           130
===================  ================================================================  ======

**Source**: the manual, "Command Reference Manual (man pages)".
"""

from __future__ import annotations

import atexit
import errno
import functools
import gc
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence

from condor_actors import records
from condor_actors.tools import YOUNG_OBJECTS
from condor_actors.tools.lib.flags import Flag, Given, MissingValue, RefusedFlag, UnknownFlag, parse

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import ParamSpec

    _P = ParamSpec("_P")

INTERRUPTED = 130
WRITING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO, errno.EAGAIN, errno.EINVAL})
"""What can be wrong with a file that is written."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NO_TOPICS: Mapping[str, Callable[[], str]] = {}


class ToolError(Exception):
    """What a tool cannot do: the sentence for standard error, and the exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        self.text = text
        self.status = status
        super().__init__(text)


@records.frozen(kw_only=True)
class Words:
    """How a command says what is wrong with its command line; ``{word}``, ``{flag}`` and ``{usage}`` are filled in.

    Attributes:
        unknown: for a word with a dash that is no flag; ``unknown_status``: its exit status.
        missing: for a flag without its value.
        help_stream: where ``-help`` goes: ``out`` or ``err``.
        failure: what stands around the text of a failure.
    """

    unknown: str = "Error: unrecognized argument {word}\n{usage}"
    unknown_status: int = 1
    missing: str = "Error: Argument {word} requires another parameter"
    help_stream: str = "out"
    failure: str = "{text}"

    @classmethod
    def of(cls, name: str) -> Words:
        """The words of most of HTCondor's commands for administrators."""
        wrong = name + ": {word} is not a valid option\n{usage}"
        return cls(unknown=wrong, missing=wrong)


Read = Callable[[Sequence[str]], Sequence[Given]]


def run(
    flags: Sequence[Flag] | Read, name: str, act: Callable[[Sequence[Given]], int], *,
    words: Words = Words(), arguments: Sequence[str] | None = None,  # noqa: B008 - it is frozen
    topics: Mapping[str, Callable[[], str]] = NO_TOPICS,
) -> int:  # fmt: skip
    """Read a command line and do what it says.

    Args:
        flags: what the command knows, or a reader of its own.
        name: the command, or the command and its verb, as `condor_actors.tools.manual` describes it.
        act: does it; returns the exit status.
        arguments: the words behind the command's name; the process's by default.
        topics: what ``-help TOPIC`` prints below the help, by the topic's name in lower case.

    Returns:
        the exit status.
    """
    given_words = sys.argv[1:] if arguments is None else arguments
    if arguments is None:  # the process is the command's
        gc.set_threshold(YOUNG_OBJECTS)
        atexit.register(gc.freeze)
    _mind_terminal()
    try:
        given = flags(given_words) if callable(flags) else parse(given_words, flags)
        names = {item.name for item in given}
        if "help" in names:
            more = [topics[word.lower()]() for word in operands_of(given) if word.lower() in topics]
            stream = sys.stderr if words.help_stream == "err" else sys.stdout
            print(help_of(name), *more, sep="\n\n", file=stream, flush=True)
            return 0
        if "version" in names:
            from condor_actors.tools.pool.version import platform_line, version_line

            print(version_line(), platform_line(), sep="\n", flush=True)
            return 0
        for item in given:
            if item.idle:
                print(f"Note: {item.word} has no effect: {item.idle}", file=sys.stderr)
        status = act(given)
        sys.stdout.flush()
        return status
    except UnknownFlag as error:
        print(words.unknown.format(word=error.word, usage=reminder_of(name)), file=sys.stderr)
        return words.unknown_status
    except MissingValue as error:
        print(words.missing.format(word=error.word, flag=error.flag.name, usage=reminder_of(name)), file=sys.stderr)
    except RefusedFlag as error:
        return _failed(words, f"Error: {error}")
    except ToolError as error:
        return _failed(words, error.text, error.status)
    except _wire_error() as error:
        return _failed(words, _refused(error))
    except BrokenPipeError:
        quiet()
    except UnicodeDecodeError as error:
        return _failed(words, f"Error: a file that was given is no text: {error.reason} at byte {error.start}")
    except OSError as error:
        return _failed(words, f"Error: {_where(error)}{error.strerror or error}")
    except KeyboardInterrupt:
        return INTERRUPTED
    return 1


def help_of(name: str) -> str:
    """What ``-help`` prints; looked up only then."""
    from condor_actors.tools.manual.help_text import help_text

    return help_text(name)


def reminder_of(name: str) -> str:
    """How a command is called, for behind a mistake."""
    from condor_actors.tools.manual.help_text import reminder

    return reminder(name)


def senseless(name: str) -> str:
    """What a command says that reads its words itself and can make nothing of them."""
    return f"{name}: cannot make sense of '{' '.join(sys.argv[1:])}'\n{reminder_of(name)}"


def framed(main: Callable[_P, int]) -> Callable[_P, int]:
    """The same frame for a command that reads its command line itself."""

    @functools.wraps(main)
    def command(*args: _P.args, **kwargs: _P.kwargs) -> int:
        _mind_terminal()
        try:
            try:
                return main(*args, **kwargs)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            quiet()
        except ToolError as error:
            return _failed(Words(), error.text, error.status)
        except OSError as error:
            return _failed(Words(), f"Error: {_where(error)}{error.strerror or error}")
        except KeyboardInterrupt:
            return INTERRUPTED
        return 1

    return command


def _mind_terminal() -> None:
    """Where a person reads, what other people have written does nothing."""
    if any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)):
        from condor_actors.tools.printing.terminal import safe_terminal

        safe_terminal()


def _failed(words: Words, text: str, status: int = 1) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        quiet()
    if words.failure != "{text}":
        text = text.removeprefix("Error: ").removeprefix("ERROR: ")
    printable = text.encode(errors="backslashreplace").decode()  # bytes of a file that is no text
    print(words.failure.format(text=printable), file=sys.stderr)
    return status


def _wire_error() -> type[Exception]:
    """Looked up only once something went wrong: half of the commands never talk to a daemon."""
    from condor_actors.wire.blocking import WireError

    return WireError


def _refused(error: Exception) -> str:
    from condor_actors.tools.lib.contact import refused

    return refused(error)


def _where(error: OSError) -> str:
    """Whose failure it was.  Of writing to standard output Python says no name; of other calls it may not either."""
    if error.filename:
        return f"{os.fsdecode(error.filename)}: "
    if error.errno in WRITING:
        return "standard output: " if _may_be_of_output(error) else "a file that it writes: "
    try:
        os.getcwd()
    except OSError:
        return "the working directory has been removed, or cannot be entered: "
    return ""


def _may_be_of_output(error: OSError) -> bool:
    """Whether standard output can have an error like this: a terminal or a pipe is never full."""
    try:
        mode = os.fstat(1).st_mode
    except OSError:
        return True
    return error.errno not in FULL or stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(1))


def quiet() -> None:
    """Nobody takes what standard output still holds back: it is dropped."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def values_of(given: Sequence[Given]) -> dict[str, str]:
    """The first value of each flag (empty where it takes none); of a flag given twice the last one counts."""
    return {item.name: item.values[0] if item.values else "" for item in given if item.name}


def operands_of(given: Sequence[Given]) -> list[str]:
    """The words that are no flags."""
    return [item.values[0] for item in given if not item.name]


__all__ = ["INTERRUPTED", "ToolError", "Words", "framed", "help_of", "operands_of", "quiet", "reminder_of", "run",
           "senseless", "values_of"]
