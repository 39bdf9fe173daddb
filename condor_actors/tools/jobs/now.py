"""condor_now: run a job now, in the place of another one, or of several.

**Source**: the manual, condor_now.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.messages.queue import RunNow
from condor_actors.tools.lib.command import ToolError, Words, run, values_of
from condor_actors.tools.lib.contact import ACTION_TIMEOUT_S, load, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.job_ids import ALL_PROCS, parse_id
from condor_actors.wire.blocking import RequestRefused

FLAGS = (
    Flag("help"),
    Flag("version", 1),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("pool", 1, 1),
    Flag("name", 1, 1),
)


def main() -> int:
    """Entry of ``condor_now``."""
    return run(FLAGS, "condor_now", _run_now, words=Words.of("condor_now"))


def _run_now(given: Sequence[Given]) -> int:
    values = values_of(given)
    ids = [_job(item.values[0]) for item in given if not item.name]
    if len(ids) < 2:
        raise ToolError("condor_now: name the job to run, and those in whose place it is to run, as CLUSTER.PROC")
    config = load()
    with schedd(config, name=values.get("name", ""), pool=values.get("pool", "")) as there:
        try:
            there.ask(RunNow(job=ids[0], vacate=tuple(ids[1:])), ACTION_TIMEOUT_S)
        except RequestRefused as error:
            raise ToolError(f"condor_now: {error}") from None
    wanted, *leaving = (f"{cluster}.{proc}" for cluster, proc in ids)
    left = "has left its slot" if len(leaving) == 1 else "have left their slots, which are joined"
    print(f"Job {wanted} runs as soon as job{'s' * (len(leaving) > 1)} {', '.join(leaving)} {left}")
    return 0


def _job(word: str) -> tuple[int, int]:
    found = parse_id(word)
    if found is None or found[1] == ALL_PROCS:
        raise ToolError(f"condor_now: {word} is no job; name it as CLUSTER.PROC")
    return found


if __name__ == "__main__":
    sys.exit(main())
