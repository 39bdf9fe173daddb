"""What ``grid_resource`` and ``remote_…`` may say: to which other batch systems jobs are handed, and how."""

from __future__ import annotations

from condor_actors.messages.codes import Universe

__all__ = ["REMOTE", "REMOTE_UNIVERSES", "is_remote", "remote_problem", "resource_problem", "schedd_of"]

REMOTE = "remote_"
"""Before the name of an attribute that a job is to have at another schedd."""

REMOTE_UNIVERSES = {"vanilla": Universe.VANILLA, "scheduler": Universe.SCHEDULER, "local": Universe.LOCAL}

_OURS = frozenset("""
    clusterid procid owner user osuser qdate globaljobid jobstatus cmd in out err iwd transferinput transferexecutable
    transferin leavejobinqueue userlog dagmannodeslog submitterid submitterglobaljobid submitterrun holdreason
    holdreasoncode holdreasonsubcode streamout streamerr
    """.split())  # noqa: SIM905


def schedd_of(resource: object) -> tuple[str, str] | None:
    """The name of the schedd and its pool in ``condor SCHEDD POOL``; None: it is something else."""
    words = resource.split() if isinstance(resource, str) else []
    return (words[1], words[2]) if len(words) == 3 and words[0].lower() == "condor" else None


def resource_problem(resource: object) -> str:
    """Why a ``grid_resource`` cannot be used, a clause; empty: it can."""
    words = resource.lower().split() if isinstance(resource, str) else []
    if words == ["batch", "slurm"] or schedd_of(resource) is not None:
        return ""
    if words[:1] == ["condor"]:
        return "another schedd is named by two words, its name and the central manager of its pool"
    if words[:2] == ["batch", "slurm"]:
        return "jobs are handed to the Slurm that this machine's own sbatch speaks to"
    return "jobs are handed to Slurm and to other schedds alone, of other batch systems and clouds"


def is_remote(name: str) -> bool:
    """Whether an attribute of a job is one that it is to have at another schedd."""
    return name.lower().startswith(REMOTE) and len(name) > len(REMOTE)


def remote_problem(name: str, value: object) -> str:
    """Why an attribute ``remote_…`` cannot be used, a clause; empty: it can.

    Args:
        name: with its prefix.
        value: of the attribute, a constant; anything else where it is none.
    """
    key = name.lower().removeprefix(REMOTE)
    if key.startswith(REMOTE) or key in {"gridresource", "grid_resource"}:
        return "a job is handed on once: the schedd that it is handed to runs it"
    if key == "jobuniverse" and value not in REMOTE_UNIVERSES.values():
        return f"the other schedd is given jobs of the universes {', '.join(REMOTE_UNIVERSES)}"
    if key in _OURS or key.startswith("submit_"):
        return "that is said to the other schedd by the grid manager, which brings the files there and back"
    return ""
