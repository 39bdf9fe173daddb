"""condor_submit -interactive: wait until the job runs, then open a shell in it; the job goes with the shell."""

from __future__ import annotations

import sys
import time

from condor_actors.messages.codes import HoldCode, JobStatus
from condor_actors.messages.queue import ActOnJobs, JobAction, QueryJobs
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import Schedd
from condor_actors.tools.lib.visits.job_shell import NotRunning, run_shell
from condor_actors.wire.blocking import WireError

LOOK_S = 1.0
PROJECTION = ("JobStatus", "HoldReason", "HoldReasonCode")


def enter_job(there: Schedd, cluster: int) -> int:
    """Be the terminal of a job that was just submitted.

    Returns:
        the exit status of its shell.

    Raises:
        ToolError: the job is held or gone.
    """
    from condor_actors.classads import ClassAd

    print("Waiting for job to start...", flush=True)
    try:
        while True:
            page = there.ask(QueryJobs(ids=((cluster, 0),), projection=PROJECTION))
            if not page.ads:
                raise ToolError(f"job {cluster}.0 has left the queue")
            ad = ClassAd.from_bytes(page.ads[0])
            status = ad.get_int("JobStatus")
            comes = status == JobStatus.HELD and ad.get_int("HoldReasonCode") == HoldCode.SPOOLING_INPUT
            if status in (JobStatus.REMOVED, JobStatus.COMPLETED, JobStatus.HELD) and not comes:
                raise ToolError(f"job {cluster}.0 does not run: {ad.get_str('HoldReason') or 'it was removed'}")
            if status == JobStatus.RUNNING:
                try:
                    return run_shell(there, (cluster, 0), ())
                except NotRunning:
                    pass  # it has a machine, but its files are still on the way
            time.sleep(LOOK_S)
    finally:
        _remove(there, cluster)


def _remove(there: Schedd, cluster: int) -> None:
    """The session has ended, maybe because the schedd hears us no more."""
    try:
        there.ask(ActOnJobs(action=JobAction.REMOVE, ids=((cluster, -1),), reason="The interactive session has ended"))
    except WireError as error:
        print(f"\r\nJob {cluster}.0 could not be removed ({error}): condor_rm {cluster} removes it.", file=sys.stderr)
