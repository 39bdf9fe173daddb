"""condor_transfer_data: fetch the results of spooled jobs.

Each file goes to the job's initial folder, under its own name or the one that ``transfer_output_remaps`` gives it.

**Source**: the manual, condor_transfer_data.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.classads import quote
from condor_actors.messages.queue import QueryJobs
from condor_actors.tools.lib.command import ToolError, Words, reminder_of, run
from condor_actors.tools.lib.contact import Schedd, load, refused, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.job_ids import parse_id
from condor_actors.tools.lib.retrieval import fetch_jobs
from condor_actors.tools.printing.ad_output import checked
from condor_actors.wire.blocking import WireError

FLAGS = (
    Flag("help"),
    Flag("version"),
    Flag("debug", 1, colon=True, idle=NO_DEBUG),
    Flag("constraint", 1, 1),
    Flag("addr", 2, 1),
    Flag("all", 2),
    Flag("name", 1, 1),
    Flag("pool", 1, 1),
)


def main() -> int:
    """Entry of ``condor_transfer_data``."""
    return run(FLAGS, "condor_transfer_data", _answer, words=Words(
        unknown="Unrecognized option: {word}\n{usage}", help_stream="err",
        missing="condor_transfer_data: {word} requires another argument"))  # fmt: skip


def _answer(given: Sequence[Given]) -> int:
    values: dict[str, str] = {}
    ids: list[tuple[int, int]] = []
    constraints: list[str] = []
    for item in given:
        value = item.values[0] if item.values else ""
        if item.name == "constraint":
            constraints.append(checked(value))
        elif item.name == "all":
            constraints.append("ClusterId >= 0")
        elif item.name:
            values[item.name] = value
        elif (found := parse_id(value)) is not None:
            ids.append(found)
        else:
            constraints.append(f"Owner == {quote(value)}")
    if not ids and not constraints:
        raise ToolError(f"You did not specify any jobs\n{reminder_of('condor_transfer_data')}")
    with schedd(load(), name=values.get("name", ""), pool=values.get("pool", ""),
                address=values.get("addr", "")) as there:  # fmt: skip
        try:
            return _fetch(there, ids, " || ".join(f"({part})" for part in constraints))
        except WireError as error:
            raise ToolError(f"\n{refused(error)}\nERROR: Failed to spool job files.") from None
        except OSError as error:
            raise ToolError(f"\n{error.filename}: {error.strerror}\nERROR: Failed to spool job files.") from None


def _fetch(there: Schedd, ids: list[tuple[int, int]], constraint: str) -> int:
    print("Fetching data files...")
    asked = [QueryJobs(ids=tuple(ids))] if ids else []
    if constraint:
        asked.append(QueryJobs(constraint=f"({constraint}) && StageInFinish isnt undefined"))
    found = fetch_jobs(there, asked)
    if not found:
        raise ToolError("\nno such job is in the queue\nERROR: Failed to spool job files.")
    return 0



if __name__ == "__main__":
    sys.exit(main())
