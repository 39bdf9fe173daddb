"""Which clusters belong together: the sets that ``jobset`` names.

Theory: a set is what the ads of its clusters say (``JobSetName``, ``JobSetId``), so there is none that a restart could
lose.  It begins with the first cluster of its name, whose number is its own, and ends with the last one.  Only what has
left the queue is counted apart, in counters that are kept with the same commit as the job's end.

**Source**: HTCondor's manual, "Job Sets"; the attributes are those that its ``condor_q -jobset`` prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.queue_operations import DropCounters, QueueOperation, SaveCounter
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.codes import JobStatus, Universe

if TYPE_CHECKING:
    from condor_actors.cores.schedd.queued_job import Cluster

__all__ = ["JobSet", "JobSets", "name_objection"]

LONGEST_NAME = 200
_PREFIX = "jobset "
_LIVE = (("Idle", (JobStatus.IDLE,)), ("Running", (JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT)),
         ("Held", (JobStatus.HELD,)), ("Suspended", (JobStatus.SUSPENDED,)))
_ENDED = {JobStatus.COMPLETED: "Completed", JobStatus.REMOVED: "Removed"}
_OF_SCHEDULER = (Universe.SCHEDULER,)
_COUNTED = tuple(prefix + name for prefix in ("", "Scheduler") for name in _ENDED.values())


def name_objection(common: ClassAd, jobs: Iterable[ClassAd], *, is_on: bool = True) -> str:
    """Why the jobs of a submission cannot be in the set that they name; empty: they can, or name none.

    Args:
        common: the ad of their cluster.
        jobs: their own ads.
        is_on: whether there are sets here (USE_JOBSETS).
    """
    if any("jobsetname" in ad.own for ad in jobs):
        return "JobSetName differs from job to job: all jobs of a cluster are in one set"
    value = common.own.get("jobsetname")
    if value is None:
        return ""
    if not is_on:
        return ("JobSetName: jobs are not gathered in sets here (USE_JOBSETS = false); leave jobset out, and use "
                "batch_name to see them together")
    if type(value) is not str or not value.strip():
        return "JobSetName: a job set has a name, in quotes"
    if len(value) > LONGEST_NAME or not value.isprintable():
        return f"JobSetName: the name of a job set has at most {LONGEST_NAME} printable characters"
    return ""


@attrs.define(eq=False)
class JobSet:
    """One set.

    Attributes:
        number: its JobSetId, the number of its first cluster.
        name: as it was given first.
        owner, user: whose.
        clusters: by number, those in the queue.
        ended: how many of its jobs have left the queue, by how (``Completed``, ``SchedulerRemoved`` …).
    """

    number: int
    name: str
    owner: str
    user: str
    clusters: dict[int, Cluster] = attrs.field(factory=dict)
    ended: dict[str, int] = attrs.field(factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others: names of sets are an owner's own, and differ by more than case."""
        return self.owner, self.name.lower()

    def ad(self) -> ClassAd:
        """It as HTCondor shows it."""
        ad = ClassAd({"MyType": "JobSet", "JobSetId": self.number, "JobSetName": self.name, "Owner": self.owner,
                      "User": self.user, "NumClusters": len(self.clusters)})
        for prefix in ("", "Scheduler"):
            counts = [0] * 8
            for cluster in self.clusters.values():
                if _prefix(cluster) == prefix:
                    counts = list(map(int.__add__, counts, cluster.counts))
            numbers = {name: sum(counts[status] for status in statuses) for name, statuses in _LIVE}
            for status, name in _ENDED.items():
                numbers[name] = self.ended.get(prefix + name, 0) + counts[status]
            ad[f"Num{prefix}Jobs"] = sum(numbers.values())
            for name, number in numbers.items():
                ad[f"Num{prefix}{name}"] = number
        return ad


def _prefix(cluster: Cluster) -> str:
    return "Scheduler" if cluster.ad.get_int("JobUniverse") in _OF_SCHEDULER else ""


class JobSets:
    """All of them.

    Attributes:
        by_number: by JobSetId.
    """

    def __init__(self) -> None:
        self.by_number: dict[int, JobSet] = {}
        self._by_name: dict[tuple[str, str], JobSet] = {}

    def join(self, cluster: Cluster) -> None:
        """A new cluster whose ad names a set is in it from now on, and says so."""
        name = cluster.ad.get_str("JobSetName")
        if name:
            known = self._by_name.get((cluster.owner, name.lower()))
            cluster.ad.store("JobSetId", known.number if known is not None else cluster.number)
            self.restore(cluster, {})

    def restore(self, cluster: Cluster, counters: Mapping[str, int]) -> None:
        """A cluster that says in which set it is.

        Args:
            counters: of the store.
        """
        number = cluster.ad.get_int("JobSetId")
        if not number:
            return
        found = self.by_number.get(number)
        if found is None:
            found = JobSet(number, cluster.ad.get_str("JobSetName"), cluster.owner, cluster.user)
            begin = f"{_PREFIX}{number} "
            found.ended = {name: counters[begin + name] for name in _COUNTED if begin + name in counters}
            self.by_number[number] = self._by_name[found.key] = found
        found.clusters[cluster.number] = cluster

    def left(self, cluster: Cluster, status: JobStatus) -> tuple[QueueOperation, ...]:
        """A job of a cluster leaves the queue; returns what is to be persisted."""
        found = self.by_number.get(cluster.ad.get_int("JobSetId")) if self.by_number else None
        if found is None or status not in _ENDED:
            return ()
        name = _prefix(cluster) + _ENDED[status]
        found.ended[name] = found.ended.get(name, 0) + 1
        return (SaveCounter(f"{_PREFIX}{found.number} {name}", found.ended[name]),)

    def forget(self, cluster: Cluster) -> tuple[QueueOperation, ...]:
        """A cluster has gone, and with the last one its set; returns what is to be persisted."""
        found = self.by_number.get(cluster.ad.get_int("JobSetId")) if self.by_number else None
        if found is None or found.clusters.pop(cluster.number, None) is None or found.clusters:
            return ()
        del self.by_number[found.number], self._by_name[found.key]
        return (DropCounters(tuple(f"{_PREFIX}{found.number} {name}" for name in found.ended)),) if found.ended else ()

    def validate(self, clusters: Mapping[int, Cluster]) -> None:
        """Check that the sets are what the ads of the clusters say.

        Raises:
            InvariantBroken: they are not.
        """
        said: dict[int, set[int]] = {}
        for number, cluster in clusters.items():
            if cluster.ad.get_int("JobSetId"):
                said.setdefault(cluster.ad.get_int("JobSetId"), set()).add(number)
        kept = {number: set(each.clusters) for number, each in self.by_number.items()}
        if said != kept or set(self._by_name.values()) != set(self.by_number.values()):
            raise InvariantBroken(f"the clusters say that the job sets are {said}; kept are {kept}")
