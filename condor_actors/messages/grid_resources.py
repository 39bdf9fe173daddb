"""What ``grid_resource`` may say: to which other batch systems jobs are handed."""

from __future__ import annotations

__all__ = ["resource_problem"]


def resource_problem(resource: object) -> str:
    """Why a ``grid_resource`` cannot be used, a clause; empty: it can."""
    words = resource.lower().split() if isinstance(resource, str) else []
    if words == ["batch", "slurm"]:
        return ""
    if words[:2] == ["batch", "slurm"]:
        return "jobs are handed to the Slurm that this machine's own sbatch speaks to"
    return "jobs are handed to Slurm alone, of other batch systems, pools and clouds"
