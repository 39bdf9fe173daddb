"""How far a cluster is whose jobs are made as they are needed, and what its jobs are made of.

Theory: such a cluster has its common ad in the queue and, on disk, one text for each job (or one for all of them) with
what is that job's own.  The number of the next job is all that changes; it is saved in the transaction in which the
jobs before it are.

==========  =====================================================  ========================================
mode        the cluster                                            leaves it by
==========  =====================================================  ========================================
RUNNING     makes jobs while its limits allow                      hold, a job that cannot be made, the last
HELD        makes none                                             release, remove
INVALID     makes none: what jobs are made of cannot be read       remove
DONE        has made them all                                      the end of its last job
REMOVED     makes no more                                          the end of its last job
==========  =====================================================  ========================================
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.queue_operations import SaveFactory, SaveItems
from condor_actors.messages.codes import FactoryMode, JobStatus
from condor_actors.numerals import whole

if TYPE_CHECKING:
    from condor_actors.cores.schedd.queued_job import Cluster

__all__ = ["ITEMS_A_ROW", "NO_LIMIT", "Factory", "factory_ad", "factory_objection", "limits", "pack", "texts"]

ITEMS_A_ROW = 500
"""Jobs whose texts are stored together: so many are read to make one."""
NO_LIMIT = 1 << 60


@attrs.define(eq=False)
class Factory:
    """How far a cluster is that makes its jobs as they are needed.

    Attributes:
        next_proc: the number of the next job.
        mode, reason: whether it makes jobs, and why not.
        edited: attributes, in small letters, of which the cluster's value counts whatever the items say.
    """

    next_proc: int = 0
    mode: FactoryMode = FactoryMode.RUNNING
    reason: str = ""
    edited: set[str] = attrs.field(factory=set)

    @property
    def may_make_more(self) -> bool:
        """Whether there may be jobs of it that were not made yet."""
        return self.mode in (FactoryMode.RUNNING, FactoryMode.HELD, FactoryMode.INVALID)

    def row(self, cluster: int) -> SaveFactory:
        """As it is stored."""
        return SaveFactory(cluster, self.next_proc, int(self.mode), self.reason, " ".join(sorted(self.edited)))

    @classmethod
    def of(cls, row: SaveFactory) -> Factory:
        """As it was stored."""
        return cls(row.next_proc, FactoryMode(row.mode), row.reason, set(row.edited.split()))


def pack(cluster: int, first: int, items: Sequence[bytes]) -> Iterator[SaveItems]:
    """The rows in which texts of jobs are stored, the first of them that of the job ``first``."""
    for start in range(0, len(items), ITEMS_A_ROW):
        part = items[start:start + ITEMS_A_ROW]
        yield SaveItems(cluster, first + start, len(part), False, zlib.compress(b"\0".join(part), 1))


def texts(row: SaveItems, proc: int, most: int) -> Iterator[bytes]:
    """The texts of a job and of those behind it, as far as the row has them.

    Raises:
        ValueError: the row is damaged.
    """
    last = min(proc + most, row.first + row.count)
    try:
        data = zlib.decompress(row.data)
    except zlib.error as error:
        raise ValueError(f"what the jobs from {row.first} on are made of is damaged: {error}") from None
    if row.is_template:
        for number in range(proc, last):
            yield data.replace(b"\0P", b"%d" % number).replace(b"\0S", b"%d" % (number - row.first))
        return
    found = data.split(b"\0")
    if len(found) != row.count:
        raise ValueError(f"what the jobs from {row.first} on are made of is damaged: {len(found)} for {row.count} jobs")
    yield from found[proc - row.first:last - row.first]


def limits(ad: ClassAd) -> tuple[int, int]:
    """Of a cluster's ad: how many of its jobs may be in the queue, and how many of these may wait or be on hold."""
    found = []
    for name in ("JobMaterializeLimit", "JobMaterializeMaxIdle"):
        value = ad.evaluate(name)
        number = whole(value, -1) if not isinstance(value, bool) else -1
        found.append(number if number >= 0 else NO_LIMIT)
    return found[0], found[1]


def factory_objection(cluster: Cluster) -> str:
    """What does not hold of the jobs that a cluster has and those it is to make; empty: all is well."""
    factory, last = cluster.factory, max(cluster.jobs, default=-1)
    if not cluster.jobs and not cluster.may_make_more:
        return "has no job, and is still in the queue"
    if factory is not None and not last < factory.next_proc <= cluster.total:
        return f"has job {last}, makes {factory.next_proc} next, and {cluster.total} in all"
    if factory is not None and (factory.next_proc == cluster.total) != (factory.mode is FactoryMode.DONE) \
            and factory.mode is not FactoryMode.REMOVED:
        return f"makes {factory.next_proc} of {cluster.total} next and is {factory.mode.name}"
    return ""


def factory_ad(cluster: Cluster, factory: Factory, shown: ClassAd, store: str) -> ClassAd:
    """The ad of a factory for those who ask.

    Args:
        shown: of the cluster's ad, what the asker sees.
        store: the file in which it is kept.
    """
    ad, counts = shown.copy(), cluster.counts
    for name in ("ProcId", "JobStatus", "GlobalJobId"):
        if name in ad:
            del ad[name]
    ad.update({
        "ClusterId": cluster.number, "JobMaterializeDigestFile": store, "JobMaterializeItemCount": cluster.total,
        "JobMaterializeNextProcId": factory.next_proc, "JobMaterializeNextRow": factory.next_proc,
        "JobMaterializePaused": int(factory.mode), "JobsPresent": sum(counts),
        "JobsRunning": counts[JobStatus.RUNNING] + counts[JobStatus.TRANSFERRING_OUTPUT] + counts[JobStatus.SUSPENDED],
        "JobsIdle": counts[JobStatus.IDLE], "JobsHeld": counts[JobStatus.HELD],
    })
    if "JobMaterializeLimit" not in ad:
        ad["JobMaterializeLimit"] = cluster.total
    if factory.reason:
        ad["JobMaterializePauseReason"] = factory.reason
    return ad
