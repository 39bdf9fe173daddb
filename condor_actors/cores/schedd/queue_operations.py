"""What the schedd makes durable: the values that its core persists and :mod:`condor_actors.store` writes.

Each is a whole row, rendered when the core decided, so that a later change of the same turn cannot leak into it.
"""

from __future__ import annotations

import attrs

__all__ = [
    "ENTERING", "ArchiveJob", "DropClaim", "DropCluster", "DropCounters", "DropHost", "DropItems", "DropNotices",
    "DropRun", "InsertJobs", "QueueOperation", "QueueSnapshot", "SaveClaim", "SaveCluster", "SaveCounter",
    "SaveFactory", "SaveHost", "SaveItems", "SaveJob", "SaveNotice", "SaveRun",
]


ENTERING = "entering "
"""How the counter of a cluster begins whose rows are not all stored; its value is the cluster's number.  The last of
them takes the counter back: without it there is no such cluster."""


@attrs.frozen
class SaveCounter:
    """A number that must never be given twice."""

    name: str
    value: int


@attrs.frozen
class DropCounters:
    """Numbers that mean nothing any more."""

    names: tuple[str, ...]


@attrs.frozen
class SaveCluster:
    """A cluster is new or its common ad changed."""

    cluster: int
    owner: str
    total: int
    version: int
    ad: bytes


@attrs.frozen
class DropCluster:
    """The last job of a cluster has left the queue; with it goes what its jobs would have been made of."""

    cluster: int


@attrs.frozen
class SaveFactory:
    """How far a cluster has come whose jobs are made as they are needed.

    Attributes:
        next_proc: the number of the next job; all before it were made.
        mode: a :class:`~condor_actors.messages.codes.FactoryMode`.
        reason: why it is paused.
        edited: attributes of which the cluster's value counts, whatever the items say; in small letters, with spaces.
    """

    cluster: int
    next_proc: int
    mode: int
    reason: str
    edited: str


@attrs.frozen
class SaveItems:
    """What the jobs ``first`` to ``first + count - 1`` of a cluster are to be made of.

    Attributes:
        is_template: whether ``data`` is one text for them all, else one for each.
        data: the texts, with a zero byte between them, compressed.
    """

    cluster: int
    first: int
    count: int
    is_template: bool
    data: bytes


@attrs.frozen
class DropItems:
    """A submission came to nothing."""

    cluster: int


@attrs.frozen
class InsertJobs:
    """New jobs of a cluster: (proc, ad) with what is their own."""

    cluster: int
    rows: tuple[tuple[int, bytes], ...]


@attrs.frozen
class SaveJob:
    """A job's own attributes changed."""

    cluster: int
    proc: int
    ad: bytes


@attrs.frozen
class ArchiveJob:
    """A job leaves the queue for the history, once; ``cluster_ad`` is that of ``version``."""

    cluster: int
    proc: int
    owner: str
    version: int
    ended_s: float
    ad: bytes
    cluster_ad: bytes


@attrs.frozen
class SaveClaim:
    """A claim was granted to this schedd."""

    claim_id: str
    secret: str = attrs.field(repr=False)
    startd: str
    starter_node: str
    slot_name: str
    slot_ad: bytes
    submitter: str
    lease_s: float
    owner: str
    """Whose jobs may run on it: the whole identity."""


@attrs.frozen
class DropClaim:
    """A claim is no longer ours."""

    claim_id: str


@attrs.frozen
class SaveRun:
    """A run is about to begin on a claim."""

    run_id: str
    cluster: int
    proc: int
    owner: str
    claim_id: str
    began_s: float


@attrs.frozen
class DropRun:
    """A run is over."""

    run_id: str


@attrs.frozen
class SaveHost:
    """A shadow host was started or adopted; ``birth`` tells its process from a later one with the same pid."""

    host_id: str
    owner: str
    pid: int
    birth: str


@attrs.frozen
class DropHost:
    """A shadow host is gone."""

    host_id: str


@attrs.frozen
class SaveNotice:
    """An event is due in a user log; ``ad`` has all that its text needs."""

    notice_id: str
    owner: str
    cluster: int
    proc: int
    last_proc: int
    event: int
    when_s: float
    ad: bytes


@attrs.frozen
class DropNotices:
    """These events are written and synced."""

    notice_ids: tuple[str, ...]


QueueOperation = (
    SaveCounter | SaveCluster | DropCluster | InsertJobs | SaveJob | ArchiveJob | SaveClaim | DropClaim | SaveRun
    | DropRun | SaveHost | DropHost | SaveNotice | DropNotices | SaveFactory | SaveItems | DropItems | DropCounters
)


@attrs.frozen(kw_only=True)
class QueueSnapshot:
    """Everything the schedd finds when it starts.

    Attributes:
        checkpoint_key: made once with the file; the checkpoints of the queue's jobs are sealed with keys made of it.
    """

    counters: dict[str, int] = attrs.field(factory=dict)
    clusters: tuple[SaveCluster, ...] = ()
    jobs: tuple[SaveJob, ...] = ()
    claims: tuple[SaveClaim, ...] = ()
    runs: tuple[SaveRun, ...] = ()
    hosts: tuple[SaveHost, ...] = ()
    notices: tuple[SaveNotice, ...] = ()
    factories: tuple[SaveFactory, ...] = ()
    checkpoint_key: bytes = attrs.field(default=b"", repr=False)
