"""condor_submit -spool: the input of each job goes to the schedd's spool, then the jobs are released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd
from condor_actors.messages.spool import FinishSpooling
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.progress import CopyProgress
from condor_actors.transfer.spool_files import chunks_of, inputs_of
from condor_actors.wire.blocking import WireError

if TYPE_CHECKING:
    from condor_actors.tools.lib.contact import Schedd


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


def _send(there: Schedd, cluster_id: int, proc_id: int, local: str, name: str, progress: CopyProgress) -> None:
    with open(local, "rb") as file:
        for chunk in chunks_of(file, cluster_id, proc_id, name):
            there.ask(chunk)
            progress.add(len(chunk.data), name)
