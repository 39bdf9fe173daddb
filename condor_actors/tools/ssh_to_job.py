"""condor_ssh_to_job: a shell, or a command, beside a running job, in its folder and with its environment.

The bytes travel over the pool's own links, so no ssh daemon and no keys are needed.  **Source**: the manual.
"""

from __future__ import annotations

import sys
import time

from condor_actors.tools.contact import ToolError, load, refused, schedd
from condor_actors.tools.flags import Flag, MissingValue, UnknownFlag, match
from condor_actors.tools.job_ids import parse_id
from condor_actors.wire.blocking import WireError

RETRY_S = 5.0
FLAGS = (
    Flag("help"),
    Flag("version", 4),
    Flag("debug", 1),
    Flag("name", 1, 1),
    Flag("pool", 1, 1),
    Flag("ssh", 2, 1),
    Flag("keygen-options", 1, 1),
    Flag("shells", 2, 1),
    Flag("auto-retry", 1),
    Flag("remove-on-interrupt", 1),
    Flag("x", 1),
)
USAGE = """Usage: condor_ssh_to_job [OPTIONS] cluster.proc [remote-command]

OPTIONS:
-name schedd-name
-pool pool-name
-auto-retry
-remove-on-interrupt"""


def main() -> int:
    """Entry of ``condor_ssh_to_job``."""
    try:
        values, words = _split(sys.argv[1:])
    except (UnknownFlag, MissingValue) as error:
        print(f"condor_ssh_to_job: '{error.word}' is invalid or needs a value\n{USAGE}", file=sys.stderr)
        return 1
    if "help" in values:
        print(USAGE, file=sys.stderr)
        return 0
    if "version" in values:
        from condor_actors.tools.version import platform_line, version_line

        print(f"{version_line()}\n{platform_line()}")
        return 0
    job = parse_id(words[0]) if words else None
    if job is None:
        print(f"condor_ssh_to_job: expected a job id\n{USAGE}", file=sys.stderr)
        return 1
    from condor_actors.tools.job_shell import NotRunning, run_shell

    try:
        with schedd(load(), name=values.get("name", ""), pool=values.get("pool", "")) as there:
            while True:
                try:
                    return run_shell(there, (job[0], max(job[1], 0)), words[1:])
                except NotRunning as error:
                    if "auto-retry" not in values:
                        raise
                    print(error.text, file=sys.stderr)
                    time.sleep(RETRY_S)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except WireError as error:
        print(refused(error), file=sys.stderr)
    except KeyboardInterrupt:
        pass
    return 1


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Flags before the job id; everything behind it is the remote command, dashes and all."""
    values: dict[str, str] = {}
    position = 0
    while position < len(words) and words[position].startswith("-"):
        found = match(words[position], FLAGS)
        if found is None:
            raise UnknownFlag(words[position])
        flag, _ = found
        if position + flag.takes >= len(words) and flag.takes:
            raise MissingValue(flag, words[position])
        values[flag.name] = words[position + 1] if flag.takes else ""
        position += 1 + flag.takes
    return values, words[position:]


if __name__ == "__main__":
    sys.exit(main())
