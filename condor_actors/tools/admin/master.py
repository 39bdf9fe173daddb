"""``condor_master [-f] [-n NAME]``: start the master of this machine, in the background unless ``-f`` is given.

In the background it waits until the master listens, so that a configuration that cannot be used is told here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from condor_actors.machine.supervisor.process_titles import ROOM
from condor_actors.tools.lib import contact
from condor_actors.tools.lib.command import framed, help_of, reminder_of
from condor_actors.tools.lib.flags import Flag, MissingValue, RefusedFlag, UnknownFlag, parse
from condor_actors.tools.lib.ready_channel import ReadyChannel

__all__ = ["main"]

START_S = 60.0
FLAGS = (
    Flag("help"), Flag("version"), Flag("f"), Flag("foreground", 2, alias="f"), Flag("b"),
    Flag("t", refused="a daemon writes to its log; -f keeps the master in the foreground, and tail -f shows the log"),
    Flag("n", takes=1), Flag("local-name", 2, takes=1), Flag("config", takes=1),
)  # fmt: skip


@framed
def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_master``; the exit status."""
    try:
        given = {item.name: item.values for item in parse(sys.argv[1:] if words is None else words, FLAGS)}
    except (UnknownFlag, MissingValue) as error:
        print(f"condor_master: cannot read {error.word}\n{reminder_of('condor_master')}", file=sys.stderr)
        return 1
    except RefusedFlag as error:
        print(f"condor_master: {error}", file=sys.stderr)
        return 1
    if {"b", "f"} <= given.keys():
        print("condor_master: -b is the opposite of -f", file=sys.stderr)
        return 1
    if "help" in given or "" in given:
        print(help_of("condor_master"))
        return 0 if "help" in given else 1
    if "version" in given:
        from condor_actors.tools.pool.version import platform_line, version_line

        print(version_line(), platform_line(), sep="\n")
        return 0
    environ = dict(os.environ)
    if "config" in given:
        environ["CONDOR_CONFIG"] = os.path.abspath(given["config"][0])
    elif not environ.get("CONDOR_CONFIG") and (beside := contact.config_beside_tools()):
        environ["CONDOR_CONFIG"] = beside
    if "n" in given:
        environ["_CONDOR_MASTER_NAME"] = given["n"][0]
    command = [sys.executable, "-P", "-m", "condor_actors.services", "master"]
    if "local-name" in given:
        command += ["--local-name", given["local-name"][0]]
    command += ROOM
    if "f" in given:
        os.execve(command[0], command, environ)
    return _in_background(command, environ)


def _in_background(command: list[str], environ: dict[str, str]) -> int:
    """Start it and wait for its first word; what it says before that is shown."""
    with ReadyChannel("condor-master") as channel:
        process = subprocess.Popen(
            command, env={**environ, "NOTIFY_SOCKET": channel.address}, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )
        assert process.stderr is not None
        try:
            channel.lines(os.pidfd_open(process.pid), time.monotonic() + START_S)
            return 0
        except ProcessLookupError:
            said = process.stderr.read().decode(errors="replace").strip()
            print(said or f"condor_master: it ended with status {process.wait()}; see its log", file=sys.stderr)
            return process.wait() or 1
        except TimeoutError:
            pass
    print(f"condor_master: it did not listen within {START_S:g} s; see its log", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
