"""What a run uses, and what follows when that is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.cores.starter.run_events import Measured, Tell
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.run import RunProgress

if TYPE_CHECKING:
    from condor_actors.cores.starter.job_run import JobRun

__all__ = ["usage", "usage_limit"]


def usage(run: JobRun, event: Measured) -> None:
    """Tell what it uses."""
    run.usage = event.usage
    run.out.append(Tell(RunProgress(run_id=run.run_id, usage=event.usage, streams=event.streams,
                                    image_digest=run.image_digest, ports=run.ports)))


def usage_limit(run: JobRun, event: Measured) -> None:
    """Tell what it uses; too much ends it."""
    if not event.limit:
        usage(run, event)
        return
    run.usage, run.reason = event.usage, event.limit
    if event.limit_subcode:
        run.hold, run.cause = (HoldCode.JOB_OUT_OF_RESOURCES, event.limit_subcode), "hold"
    else:
        run.cause = "evicted"
    run.kill()
