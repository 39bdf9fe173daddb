"""What is in a schedd's spool comes home: each file to its job's initial folder, under its own name or the one that
``transfer_output_remaps`` gives it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd
from condor_actors.cores.output_destinations import remaps_of
from condor_actors.cores.output_names import OutputNames
from condor_actors.durable import open_beside
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.spool import ListSpool, ReadSpool
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.progress import CopyProgress
from condor_actors.transfer.spool_files import sent_names

if TYPE_CHECKING:
    from condor_actors.tools.lib.contact import Schedd


def fetch_jobs(there: Schedd, questions: list[QueryJobs]) -> int:
    """Fetch the files of all jobs that some questions find.

    Returns:
        how many jobs there are.

    Raises:
        ToolError: the schedd says what cannot be.
        WireError: it refuses or is silent.
        OSError: a file cannot be written.
    """
    found, progress = 0, CopyProgress("fetched")
    try:
        for question in questions:
            cursor = ""
            while True:
                page = there.ask(QueryJobs(ids=question.ids, constraint=question.constraint, cursor=cursor))
                for text in page.ads:
                    _fetch_job(there, ClassAd.from_bytes(text), progress)
                    found += 1
                cursor = page.cursor
                if not cursor:
                    break
    finally:
        progress.end()
    return found


def _fetch_job(there: Schedd, ad: ClassAd, progress: CopyProgress) -> None:
    cluster, proc = ad.get_int("ClusterId"), ad.get_int("ProcId")
    listing = there.ask(ListSpool(cluster_id=cluster, proc_id=proc))
    remaps = remaps_of(ad.get_str("TransferOutputRemaps") or ad.get_str("SUBMIT_TransferOutputRemaps"))
    mine, names = sent_names(ad), OutputNames(ad)
    is_home = os.path.isdir(listing.iwd) and os.path.realpath(listing.iwd) == os.path.realpath(os.path.expanduser("~"))
    for name, size, mode in listing.files:
        if name in mine or name.partition("/")[0] in mine:
            continue
        if is_home and names.hide(name):
            print(f"WARNING: {name} of job {cluster}.{proc} is left in the spool: {listing.iwd} is your home "
                  "directory, and the job does not name the file in transfer_output_files", file=sys.stderr)
            continue
        target = os.path.join(listing.iwd, remaps.get(name, name))
        if os.path.isabs(name) or ".." in name.split("/"):
            raise ToolError(f"the schedd named a file outside the job's folder: {name}")
        root = names.root_of(name)
        if "/" in name and name not in remaps and root != name:
            target = _beneath(os.path.join(listing.iwd, root or name.partition("/")[0]), target, is_said=root != "")
        if os.path.dirname(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
        _copy(there, (cluster, proc), name, size, target, mode, progress)


def _beneath(root: str, target: str, *, is_said: bool) -> str:
    """The place of a file in an output that is a folder, which may be a link where the job says its name.

    Raises:
        ToolError: a link there leads out of it.
    """
    from condor_actors.transfer.beneath import LeadsOut, place_beneath

    try:
        return place_beneath(root, target, follow=is_said)
    except LeadsOut:
        raise ToolError(f"{target}: a link on its way leads out of {root}; remove the link, or fetch the job's files "
                        "into another folder") from None


def _copy(there: Schedd, job: tuple[int, int], name: str, size: int, target: str, mode: int,
          progress: CopyProgress) -> None:
    file, fresh = open_beside(target, "fetched")
    with file:
        offset = 0
        while offset < size:
            data = there.ask(ReadSpool(cluster_id=job[0], proc_id=job[1], path=name, offset=offset)).data
            if not data:
                raise ToolError(f"{name} became shorter while it was fetched")
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest):]
            offset += len(data)
            progress.add(len(data), name)
        os.fchmod(file.fileno(), mode & 0o777 or 0o644)
        os.replace(fresh, target)
