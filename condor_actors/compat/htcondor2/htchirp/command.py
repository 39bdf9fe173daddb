"""The words of ``condor_chirp``, as calls of `HTChirp`."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from typing import Any

from condor_actors.compat.htcondor2.htchirp.htchirp import HTChirp

OPTIONS = {"-mode": 1, "-perm": 1, "-offset": 1, "-stride": 2, "-r": 0, "-l": 0, "-s": 0}
PRINTS_NOTHING = ("fetch", "put", "write")
NUMBERS = {"chmod": (1, 8), "truncate": (1, 10), "utime": (1, 10), "chown": (1, 10), "lchown": (1, 10), "read": (1, 10)}
"""From which argument on they are numbers, and with what base."""
COMMANDS = (
    "access", "chmod", "chown", "fetch", "get_job_attr", "get_job_attr_delayed", "getdir", "lchown", "link", "lstat",
    "put", "read", "readlink", "remove", "rmdir", "set_job_attr", "set_job_attr_delayed", "stat", "statfs", "truncate",
    "ulog", "utime", "whoami", "whoareyou", "write")


def condor_chirp(chirp_args: str | Sequence[str], return_exit_code: bool = False) -> Any:
    """Do what a command line of ``condor_chirp`` says.

    Args:
        chirp_args: the command line, or its words.
        return_exit_code: print the result as the command does, and return its exit status.

    Returns:
        what the method of `HTChirp` returns, or the exit status.
    """
    words = shlex.split(chirp_args) if isinstance(chirp_args, str) else list(chirp_args)
    if not words or words[0] not in COMMANDS:
        said = f"the command is one of {', '.join(COMMANDS)}"
        if not return_exit_code:
            raise TypeError(said)
        sys.stderr.write(f"condor_chirp: {said}\n")
        return 1
    try:
        arguments, named = _call(words[0], words[1:])
        with HTChirp() as chirp:
            result = getattr(chirp, words[0])(*arguments, **named)
    except Exception as error:
        if not return_exit_code:
            raise
        sys.stderr.write(f"condor_chirp {words[0]}: {error}\n")
        return 1
    if not return_exit_code:
        return result
    if words[0] not in PRINTS_NOTHING:
        _print(result)
    return 0


def _call(command: str, words: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of the method, from those of the command."""
    options: dict[str, list[str]] = {}
    plain: list[Any] = []
    while words:
        word = words.pop(0)
        if word in OPTIONS:
            options[word] = [words.pop(0) for _ in range(min(OPTIONS[word], len(words)))]
            if len(options[word]) < OPTIONS[word]:
                raise ValueError(f"{word} needs {OPTIONS[word]} more")
        else:
            plain.append(word)
    named: dict[str, Any] = {}
    if command == "put":
        named["flags"] = options["-mode"][0] if "-mode" in options else None
        named["mode"] = int(options["-perm"][0], 8) if "-perm" in options else None
    elif command in ("read", "write"):
        named["offset"] = int(options["-offset"][0]) if "-offset" in options else None
        if "-stride" in options:
            named["stride_length"], named["stride_skip"] = map(int, options["-stride"])
    for option, name, of in (("-r", "recursive", "rmdir"), ("-l", "stat_dict", "getdir"), ("-s", "symbolic", "link")):
        if command == of:
            named[name] = option in options
    if command == "write" and len(plain) >= 2:
        if len(plain) > 2:
            named["length"] = int(plain.pop(2))
        with open(plain[1], "rb") as file:
            plain = [file.read(), plain[0]]
    elif command in NUMBERS:
        first, base = NUMBERS[command]
        plain[first:] = [int(word, base) for word in plain[first:]]
    return plain, named


def _print(result: Any, indent: str = "") -> None:
    """Print what a method returned."""
    if isinstance(result, dict):
        for name, value in result.items():
            if isinstance(value, dict):
                sys.stdout.write(f"{indent}{name}\n")
                _print(value, indent + "\t")
            else:
                shown = time.ctime(value) if name in ("atime", "mtime", "ctime") else value
                sys.stdout.write(f"{indent}{name}: {shown}\n")
    elif isinstance(result, list):
        for each in result:
            sys.stdout.write(f"{indent}{each}\n")
    elif result is not None:
        sys.stdout.write(f"{result.decode(errors='replace') if isinstance(result, bytes) else result}\n")
