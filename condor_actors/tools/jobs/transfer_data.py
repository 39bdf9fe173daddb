"""condor_transfer_data: fetch the results of spooled jobs.

Each file goes to the job's initial folder, under its own name or the one that ``transfer_output_remaps`` gives it.

**Source**: the manual, condor_transfer_data.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from condor_actors.classads import ClassAd, quote
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.spool import ListSpool, ReadSpool
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import Schedd, load, refused, schedd
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.lib.job_ids import parse_id
from condor_actors.tools.printing.ad_output import checked
from condor_actors.wire.blocking import WireError

FLAGS = (
    Flag("help"),
    Flag("version"),
    Flag("debug", 1, colon=True),
    Flag("constraint", 1, 1),
    Flag("addr", 2, 1),
    Flag("all", 2),
    Flag("name", 1, 1),
    Flag("pool", 1, 1),
)


def main() -> int:
    """Entry of ``condor_transfer_data``."""
    return run(FLAGS, USAGE, _answer, words=Words(
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
        raise ToolError(f"You did not specify any jobs\n{USAGE}")
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
    found = 0
    for question in asked:
        cursor = ""
        while True:
            page = there.ask(QueryJobs(ids=question.ids, constraint=question.constraint, cursor=cursor))
            for text in page.ads:
                _fetch_job(there, ClassAd.from_bytes(text))
                found += 1
            cursor = page.cursor
            if not cursor:
                break
    if not found:
        raise ToolError("\nno such job is in the queue\nERROR: Failed to spool job files.")
    return 0


def _fetch_job(there: Schedd, ad: ClassAd) -> None:
    cluster, proc = ad.get_int("ClusterId"), ad.get_int("ProcId")
    listing = there.ask(ListSpool(cluster_id=cluster, proc_id=proc))
    remaps = remaps_of(ad.get_str("TransferOutputRemaps") or ad.get_str("SUBMIT_TransferOutputRemaps"))
    mine = _inputs(ad)
    for name, size, mode in listing.files:
        if name in mine or name.partition("/")[0] in mine:
            continue
        target = os.path.join(listing.iwd, remaps.get(name, name))
        if os.path.isabs(name) or ".." in name.split("/"):
            raise ToolError(f"the schedd named a file outside the job's folder: {name}")
        if os.path.dirname(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
        _copy(there, (cluster, proc), name, size, target, mode)


def _inputs(ad: ClassAd) -> set[str]:
    """Names in the spool that were sent there and are no results: they would overwrite what may be newer at home."""
    names = {os.path.basename(ad.get_str(f"{prefix}Cmd")) for prefix in ("", "SUBMIT_")}
    for prefix in ("", "SUBMIT_"):
        listed = [ad.get_str(f"{prefix}{attribute}") for attribute in ("TransferInput", "In", "x509userproxy")]
        names |= {os.path.basename(name.strip()) for text in listed for name in text.split(",")}
    wanted = {name.strip().rstrip("/") for name in ad.get_str("TransferOutput").split(",")}
    return names - wanted - {""}


def _copy(there: Schedd, job: tuple[int, int], name: str, size: int, target: str, mode: int) -> None:
    fresh = target + ".condor-part"
    with open(fresh, "wb") as file:
        offset = 0
        while offset < size:
            data = there.ask(ReadSpool(cluster_id=job[0], proc_id=job[1], path=name, offset=offset)).data
            if not data:
                raise ToolError(f"{name} became shorter while it was fetched")
            file.write(data)
            offset += len(data)
    os.chmod(fresh, mode & 0o777 or 0o644)
    os.replace(fresh, target)


def remaps_of(text: str) -> dict[str, str]:
    """``name = new; name2 = new2``; a backslash protects ``;`` and ``=``."""
    out: dict[str, str] = {}
    key: str | None = None
    word = ""
    position = 0
    while position <= len(text):
        letter = text[position : position + 1]
        if letter == "\\" and position + 1 < len(text):
            word += text[position + 1]
            position += 2
            continue
        if letter == "=" and key is None:
            key, word = word.strip(), ""
        elif letter in (";", ""):
            if key:
                out[key] = word.strip()
            key, word = None, ""
        else:
            word += letter
        position += 1
    return out


USAGE = """Usage: condor_transfer_data [options] [constraints]
 where [options] is zero or more of:
  -help               Display this message and exit
  -version            Display version information and exit
  -name schedd_name   Connect to the given schedd
  -pool hostname      Use the given central manager to find daemons
  -addr <ip:port>     Connect directly to the given address
 and where [constraints] is one or more of:
  cluster.proc        transfer data for the given job
  cluster             transfer data for the given cluster of jobs
  user                transfer data for all jobs owned by user
  -constraint expr    transfer data for all jobs matching the boolean expression
  -all                transfer data for all jobs (cannot be used with other constraints)"""

if __name__ == "__main__":
    sys.exit(main())
