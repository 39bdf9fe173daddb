"""condor_ssh_to_job: a shell, or a command, beside a running job, in its folder and with its environment.

The bytes travel over the pool's own links, so no ssh daemon and no keys are needed.  **Source**: the manual.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from condor_actors.tools.lib.command import ToolError, Words, operands_of, run, values_of
from condor_actors.tools.lib.contact import load, schedd
from condor_actors.tools.lib.flags import Flag, Given, match, parse
from condor_actors.tools.lib.job_ids import parse_id

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
    wrong = "condor_ssh_to_job: '{word}' is invalid or needs a value\n{usage}"
    return run(_split, USAGE, _answer, words=Words(unknown=wrong, missing=wrong, help_stream="err"))


def _answer(given: Sequence[Given]) -> int:
    values, words = values_of(given), operands_of(given)
    job = parse_id(words[0]) if words else None
    if job is None:
        raise ToolError(f"condor_ssh_to_job: expected a job id\n{USAGE}")
    from condor_actors.tools.lib.job_shell import NotRunning, run_shell

    with schedd(load(), name=values.get("name", ""), pool=values.get("pool", "")) as there:
        while True:
            try:
                return run_shell(there, (job[0], max(job[1], 0)), words[1:])
            except NotRunning as error:
                if "auto-retry" not in values:
                    raise
                print(error.text, file=sys.stderr)
                time.sleep(RETRY_S)


def _split(words: Sequence[str]) -> list[Given]:
    """Flags before the job id; everything behind it is the remote command, dashes and all."""
    end = 0
    while end < len(words) and words[end].startswith("-"):
        found = match(words[end], FLAGS)
        end += 1 + (found[0].takes if found is not None else 0)
    return [*parse(words[:end], FLAGS), *(Given("", (word,)) for word in words[end:])]


if __name__ == "__main__":
    sys.exit(main())
