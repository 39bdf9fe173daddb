"""The commands that ask one thing for jobs: ``condor_rm``, ``condor_hold``, ``condor_release`` and the like.

``python -m condor_actors.tools.jobs.job_commands NAME …`` runs one without its entry point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from condor_actors.messages.queue import JobAction
from condor_actors.tools.lib import job_actions
from condor_actors.tools.lib.flags import Flag

__all__ = ["COMMANDS", "continue_job", "hold", "release", "rm", "suspend", "vacate_job"]

COMMANDS: dict[str, tuple[JobAction, tuple[Flag, ...]]] = {
    "condor_rm": (JobAction.REMOVE, (
        Flag("forcex", 1),
        Flag("transfer", 2, refused="what a removed job has written is not brought home; condor_vacate_job does that "
                                    "first, for jobs with when_to_transfer_output = ON_EXIT_OR_EVICT"))),
    "condor_hold": (JobAction.HOLD, (Flag("subcode", 1, 1),)),
    "condor_release": (JobAction.RELEASE, ()),
    "condor_suspend": (JobAction.SUSPEND, ()),
    "condor_continue": (JobAction.CONTINUE, ()),
    "condor_vacate_job": (JobAction.VACATE, (Flag("fast", 1),)),
}
"""What each asks for, and the flags that it alone has."""
TABLES: Mapping[str, tuple[Flag, ...]] = {name: (*own, *job_actions.COMMON) for name, (_, own) in COMMANDS.items()}


def _entry(name: str) -> Callable[[], int]:
    action, flags = COMMANDS[name]
    return lambda: job_actions.run(name, action, flags)


rm = _entry("condor_rm")
hold = _entry("condor_hold")
release = _entry("condor_release")
suspend = _entry("condor_suspend")
continue_job = _entry("condor_continue")
vacate_job = _entry("condor_vacate_job")


if __name__ == "__main__":
    sys.exit(_entry(sys.argv.pop(1))())
