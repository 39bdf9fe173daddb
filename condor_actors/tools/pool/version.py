"""condor_version: which version this is, in the two lines that programs read.

The number names the release of HTCondor whose commands, ads and formats ours answer like; the words behind it say
that the program is Condor Actors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from condor_actors.tools.lib.flags import Flag, Given

COMPATIBLE_VERSION = "25.14.0"
DATE = "2026-11-21"


def version_line() -> str:
    """The first line: ``$CondorVersion: X.Y.Z DATE … $``."""
    return f"$CondorVersion: {COMPATIBLE_VERSION} {DATE} BuildID: Condor-Actors $"


def platform_line() -> str:
    """The second line: ``$CondorPlatform: ARCH-OS $``."""
    return f"$CondorPlatform: {os.uname().machine.upper()}-{_system()} $"


def _system() -> str:
    found: dict[str, str] = {}
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            for line in file:
                name, _, value = line.strip().partition("=")
                found[name] = value.strip('"')
    except OSError:
        return os.uname().sysname
    return f"{found.get('ID', 'linux').capitalize()}_{found.get('VERSION_ID', '').partition('.')[0]}".rstrip("_")


FLAGS = (Flag("help"), Flag("version"), Flag("arch"), Flag("opsys"),
         Flag("platform", idle="version and platform are printed without it"),
         Flag("syscall", idle="programs are not linked with a library of system calls"))


def main() -> int:
    """Entry of ``condor_version``."""
    from condor_actors.tools.lib.command import Words, run

    return run(FLAGS, "condor_version", _answer, words=Words(unknown="Error: unrecognized argument {word}"))


def _answer(given: Sequence[Given]) -> int:
    names = {item.name for item in given}
    words = {"arch": os.uname().machine.upper(), "opsys": os.uname().sysname.upper()}
    if names & words.keys():
        print(" ".join(word for name, word in words.items() if name in names))
    else:
        print(version_line(), platform_line(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
