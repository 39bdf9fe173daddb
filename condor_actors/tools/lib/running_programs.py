"""What runs in the slots of this machine: the program and process of each job, as far as the caller may know.

Root sees a job's processes by the mark in their environment; an ordinary user those of jobs that run as that user.
Where the process cannot be seen, this machine's schedd says what the program of a job of its queue is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd
from condor_actors.machine.run.sandbox_root import places_of_sandboxes
from condor_actors.machine.supervisor.process_marks import all_processes, command_line, environment_of, start_ticks

if TYPE_CHECKING:
    from condor_actors.config import Config

__all__ = ["add_programs"]

RUN_MARK = b"_CONDOR_RUN_MARK="
LAUNCHER = "condor_launcher"

Whose = tuple[str, str]
"""A job: its schedd's name and its id there."""


def add_programs(config: Config, ads: list[ClassAd]) -> None:
    """Give each slot's ad ``JobPid`` and ``JobProgram``, where they can be found out."""
    first = _first_processes(tuple(map(os.fsencode, places_of_sandboxes(str(config.path("EXECUTE"))))))
    missing: dict[Whose, list[ClassAd]] = {}
    for ad in ads:
        job = ad.get_str("RemoteScheddName"), ad.get_str("JobId")
        pid = first.get(job)
        if pid is not None:
            ad["JobPid"] = pid
            ad["JobProgram"] = _program_of(pid)
        elif job[1]:
            missing.setdefault(job, []).append(ad)
    if missing:
        for job, program in _programs_of_queue(config, tuple(dict.fromkeys(job_id for _, job_id in missing))).items():
            for ad in missing.get(job, ()):
                ad["JobProgram"] = program


def _first_processes(executes: tuple[bytes, ...]) -> dict[Whose, int]:
    """The process of each run of these EXECUTE folders that began first."""
    found: dict[Whose, tuple[int, int]] = {}
    for pid in all_processes():
        for item in environment_of(pid):
            execute, _, run = item.removeprefix(RUN_MARK).rpartition(b":")
            if item.startswith(RUN_MARK) and execute in executes:
                job_id, _, start = os.fsdecode(run).partition("#")
                job = start.partition("@")[2], job_id
                began = start_ticks(pid)
                if began is not None and _program_of(pid) not in ("", LAUNCHER):
                    found[job] = min(found.get(job, (began, pid)), (began, pid))
    return {job: pid for job, (_, pid) in found.items()}


def _program_of(pid: int) -> str:
    """What a process was started as; empty when it has ended, :data:`LAUNCHER` when it only stands for a job."""
    name = next(iter(command_line(pid)), "")
    return LAUNCHER if os.path.basename(name) == LAUNCHER else name


def _programs_of_queue(config: Config, jobs: tuple[str, ...]) -> dict[Whose, str]:
    from condor_actors.messages.queue import QueryJobs
    from condor_actors.tools.lib.command import ToolError
    from condor_actors.tools.lib.contact import schedd
    from condor_actors.tools.lib.job_ids import parse_id
    from condor_actors.wire.blocking import WireError

    ids = tuple(found for job in jobs if (found := parse_id(job)) is not None)
    try:
        with schedd(config) as there:
            page = there.ask(QueryJobs(ids=ids, projection=("ClusterId", "ProcId", "GlobalJobId", "Cmd")))
    except (ToolError, WireError):
        return {}
    ads = [ClassAd.from_bytes(text) for text in page.ads]
    return {(ad.get_str("GlobalJobId").partition("#")[0], f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}"):
            ad.get_str("Cmd") for ad in ads}
