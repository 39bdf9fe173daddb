"""``condor_compile``: runs a link command unchanged and says whether its program can run in the standard universe.

``condor_compile gcc -o sim sim.c`` once linked a program with a library of its own.  Programs need no such library
any more: the command is run as it is given, and the verdict of ``condor_checkpoint preflight`` on what it made follows
on standard error.  The exit status is the command's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from condor_actors.machine.native.preflight import examine
from condor_actors.tools.lib.command import framed, help_of

USAGE = 1
NOT_FOUND = 127


def output_of(words: Sequence[str]) -> str | None:
    """Return the program that the compiler's command line WORDS makes, or None when it only compiles."""
    if {"-c", "-S", "-E"} & set(words):
        return None
    for index, word in enumerate(words):
        if word == "-o" and index + 1 < len(words):
            return _as_path(words[index + 1])
        if word.startswith("-o") and len(word) > 2:
            return _as_path(word[2:])
    return "./a.out"


def _as_path(name: str) -> str:
    return name if "/" in name else f"./{name}"


@framed
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and print the verdict; return the command's status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "-help", "--help"):
        print(help_of("condor_compile"))
        return 0 if words else USAGE
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"condor_compile: {words[0]}: {error.strerror}\n")
        return NOT_FOUND
    made = None if status else output_of(words[1:])
    if made:
        verdict = examine(made)
        sys.stderr.write(f"condor_compile: {made}: {verdict.summary}\n")
        sys.stderr.writelines(f"  {remark}\n" for remark in verdict.remarks)
    return status


if __name__ == "__main__":
    sys.exit(main())
