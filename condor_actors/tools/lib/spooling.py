"""condor_submit -spool: the input of each job goes to the schedd's spool, then the jobs are released."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd
from condor_actors.messages.spool import FinishSpooling, SpoolChunk
from condor_actors.messages.urls import local_path, travels_as_url
from condor_actors.submit.build_context import listed
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.progress import CopyProgress
from condor_actors.wire.blocking import WireError

if TYPE_CHECKING:
    from condor_actors.tools.lib.contact import Schedd

CHUNK_BYTES = 256 * 1024


def spool_inputs(there: Schedd, cluster_id: int, cluster_ad: bytes, procs: Sequence[bytes]) -> None:
    """Send executable, standard input and input files of every job.

    Raises:
        ToolError: a file cannot be read, or the schedd refuses.
    """
    common = ClassAd.from_bytes(cluster_ad)
    progress = CopyProgress("sent to the schedd")
    try:
        for proc_id, text in enumerate(procs):
            ad = ClassAd.from_bytes(text)
            ad.parent = common
            for local, name in inputs_of(ad):
                _send(there, cluster_id, proc_id, local, name, progress)
        there.ask(FinishSpooling(cluster_id=cluster_id))
    except OSError as error:
        raise ToolError(f"{error.filename}: {error.strerror}\nERROR: Failed to spool job files.") from None
    except WireError as error:
        raise ToolError(f"{error}\nERROR: Failed to spool job files.") from None
    finally:
        progress.end()


def inputs_of(ad: ClassAd) -> Iterator[tuple[str, str]]:
    """(path here, name in the spool) of every input file of a job; folders are given file by file."""
    iwd = ad.get_str("Iwd")
    names = listed(ad.get_str("TransferInput"))
    if ad.get_bool("TransferExecutable", True) and ad.get_str("Cmd"):
        names.insert(0, ad.get_str("Cmd"))
    if ad.get_bool("TransferIn", True) and ad.get_str("In") not in ("", "/dev/null"):
        names.append(ad.get_str("In"))
    proxy = ad.get_str("x509userproxy")
    if proxy:
        names.append(proxy)
    for name in names:
        if travels_as_url(name):
            continue
        path = os.path.join(iwd, local_path(name))
        if not os.path.isdir(path):
            yield path, os.path.basename(path)
            continue
        top = "" if name.endswith("/") else os.path.basename(path.rstrip("/"))
        for folder, _, files in os.walk(path):
            below = os.path.relpath(folder, path)
            for file in files:
                yield os.path.join(folder, file), os.path.normpath(os.path.join(top, below, file))


def _send(there: Schedd, cluster_id: int, proc_id: int, local: str, name: str, progress: CopyProgress) -> None:
    with open(local, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        offset = 0
        while True:
            data = file.read(CHUNK_BYTES)
            if not data and offset:
                return
            there.ask(
                SpoolChunk(cluster_id=cluster_id, proc_id=proc_id, path=name, offset=offset, data=data, mode=mode)
            )
            offset += len(data)
            progress.add(len(data), name)
            if len(data) < CHUNK_BYTES:
                return
