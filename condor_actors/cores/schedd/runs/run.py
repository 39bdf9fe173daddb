"""One run of a job, as its schedd knows it."""

from __future__ import annotations

import attrs

from condor_actors.cores.schedd.claims.held_claim import HeldClaim
from condor_actors.cores.schedd.gangs.gang import Gang
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.messages.run import ContinueRun, StopRun, SuspendRun

__all__ = ["Run"]


@attrs.define(eq=False)
class Run:
    """One run; ``claim`` is None in the local universes.

    ``run_id`` is ``cluster.proc#start@schedd``: machines that run the jobs of several schedds tell them apart.
    """

    run_id: str
    job: Job
    owner: str
    claim: HeldClaim | None
    began_s: float
    stop: StopRun | None = None
    """It is to end, which a host that takes it up may not have heard."""
    asked: SuspendRun | ContinueRun | None = None
    """What its user asked for last, to stand still or to go on; it may not have happened yet."""
    recorded: bool = False
    node: int = 0
    gang: Gang | None = None
    """What it is a member of, as that node."""
