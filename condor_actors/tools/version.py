"""condor_version: which version this is, in the two lines that programs read.

The number names the release of HTCondor whose commands, ads and formats ours answer like; the words behind it say
that the program is Condor Actors.
"""

from __future__ import annotations

import os
import platform
import sys

COMPATIBLE_VERSION = "25.14.0"
DATE = "2026-11-21"


def version_line() -> str:
    """The first line: ``$CondorVersion: X.Y.Z DATE … $``."""
    return f"$CondorVersion: {COMPATIBLE_VERSION} {DATE} BuildID: Condor-Actors $"


def platform_line() -> str:
    """The second line: ``$CondorPlatform: ARCH-OS $``."""
    return f"$CondorPlatform: {platform.machine().upper()}-{_system()} $"


def _system() -> str:
    found: dict[str, str] = {}
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            for line in file:
                name, _, value = line.strip().partition("=")
                found[name] = value.strip('"')
    except OSError:
        return platform.system()
    return f"{found.get('ID', 'linux').capitalize()}_{found.get('VERSION_ID', '').partition('.')[0]}".rstrip("_")


def main() -> int:
    """Entry of ``condor_version``."""
    from condor_actors.tools.flags import Flag, UnknownFlag, parse

    try:
        given = parse(sys.argv[1:], (Flag("help"), Flag("version"), Flag("arch"), Flag("opsys"), Flag("platform"),
                                     Flag("syscall")))  # fmt: skip
    except UnknownFlag as error:
        print(f"Error: unrecognized argument {error.word}", file=sys.stderr)
        return 1
    names = {item.name for item in given}
    if "help" in names:
        print("Usage: condor_version [-arch] [-opsys]\n\n    -arch    name of this machine's processor architecture"
              "\n    -opsys   name of its operating system")  # fmt: skip
        return 0
    if names & {"arch", "opsys"}:
        words = []
        if "arch" in names:
            words.append(platform.machine().upper())
        if "opsys" in names:
            words.append(os.uname().sysname.upper())
        print(" ".join(words))
        return 0
    print(version_line())
    print(platform_line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
