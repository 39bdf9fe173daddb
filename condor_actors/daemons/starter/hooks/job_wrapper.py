"""A program of the site that starts each job in its place (USER_JOB_WRAPPER).

Theory: it gets the job's program and arguments as its own, has the job's account, limits and confinement, and becomes
the job by executing it.  One that cannot writes why into a file and ends: then what ended was not the job, which is run
again.  The job can write that file too, and gains no more by it than that.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import attrs

from condor_actors.cores.starter import job_run as jr
from condor_actors.machine.run.launch import LaunchFailure, LaunchPlan
from condor_actors.machine.run.sandbox import WRAPPER_FAILURE, Sandbox

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["failure_in", "start_failure", "wrapped", "wrapper_of"]

VARIABLE = "_CONDOR_WRAPPER_ERROR_FILE"
MOST_BYTES = 2000


def wrapper_of(starter: Starter) -> str:
    """The wrapper of a run's job; empty: it has none, since the site has none, or it runs in an image."""
    return starter.edges.settings.wrapper if starter.spec.container is None and not starter.spec.standard else ""


def wrapped(plan: LaunchPlan, wrapper: str, scratch: str) -> LaunchPlan:
    """The launch of a program by the wrapper; as it is, where there is none."""
    if not wrapper:
        return plan
    return attrs.evolve(plan, program=wrapper, arguments=(plan.program, *plan.arguments),
                        environment={**plan.environment, VARIABLE: f"{scratch}/{WRAPPER_FAILURE}"})


def failure_in(sandbox: Sandbox) -> str:
    """Why the wrapper did not start the job; empty: it did.  Blocks."""
    try:
        _, said, _ = sandbox.read(WRAPPER_FAILURE, 0, MOST_BYTES)
    except (OSError, ValueError) as error:
        missing = isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOTDIR)
        return "" if missing else f"its {WRAPPER_FAILURE} cannot be read"
    text = "".join(each if each.isprintable() else " " for each in said.decode(errors="replace"))
    return " ".join(text.split()) or "it did not say why"


def start_failure(starter: Starter, failure: LaunchFailure) -> jr.StartFailed:
    """What it means that the launcher could not start a run.

    A wrapper that is not there, a device that is gone or a control group that cannot be joined is no fault of the job.
    """
    slot, wrapper = starter.claim.slot_name, wrapper_of(starter)
    if wrapper and failure.reason.startswith(f"{wrapper}:"):
        return jr.StartFailed(f"Error from {slot}: USER_JOB_WRAPPER {failure}", 0)
    if failure.is_machines:
        return jr.StartFailed(f"Error from {slot}: {failure}", 0)
    program = os.path.basename(starter.spec.program)
    return jr.StartFailed(f"Error from {slot}: Failed to execute '{program}': {failure}")
