"""Where the checkpoints of a job are that it sends to a URL (``CheckpointDestination``).

Theory: each has a folder of its own there::

    DESTINATION/GLOBAL_JOB_ID/NUMBER.RUN/FILE

So the jobs of a cluster, and of a DAG, may name one destination; and a run that was believed lost, and still sends,
never writes over what the next one has sent.
"""

from __future__ import annotations

from condor_actors import records
from condor_actors.classads import ClassAd
from condor_actors.messages.references.urls import FETCHED, scheme_of, travels_as_url

__all__ = ["NUMBER", "USED", "CheckpointDestination", "destination_of", "url_below"]

DESTINATION = "CheckpointDestination"
NUMBER = "CheckpointNumber"
"""Of the job's last checkpoint there; 0: it has none."""
USED = "CheckpointUsed"
"""Of the one that a run goes on from."""


@records.frozen(kw_only=True)
class CheckpointDestination:
    """A job's place there.

    Attributes:
        place: the URL of the folder that has all of the job's; it ends with a slash.
    """

    place: str

    def base(self, run_id: str, number: int) -> str:
        """The URL of the folder of one checkpoint, with a slash at its end.

        Args:
            run_id: of the run that makes it; number: of the job's checkpoints.
        """
        run = "".join(filter(str.isdigit, run_id.partition("#")[2].partition("@")[0]))
        return f"{self.place}{number:04d}.{run}/"


def destination_of(job: ClassAd) -> CheckpointDestination | None:
    """Where a job's checkpoints go; None: to its submit machine."""
    url = job.get_str(DESTINATION)
    if not travels_as_url(url) or "SuccessCheckpointExitCode" not in job:
        return None
    name = job.get_str("GlobalJobId").replace("#", "_") or f"{job.get_int('ClusterId')}.{job.get_int('ProcId')}"
    return CheckpointDestination(place=f"{url.rstrip('/')}/{_quoted(url, name)}/")


def url_below(base: str, path: str) -> str:
    """The URL of a file of a checkpoint.

    Args:
        base: as `CheckpointDestination.base`; path: in the job's folder.
    """
    return base + _quoted(base, path)


def _quoted(url: str, path: str) -> str:
    """A path as the URL's scheme has it; object stores quote when they sign, and plugins get it as it is."""
    from urllib.parse import quote

    return quote(path, errors="surrogateescape") if scheme_of(url) in FETCHED else path
