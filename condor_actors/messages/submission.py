"""Submission: condor_submit and a schedd.

A job is its submitter's: identity comes from the link, never from the message.
"""

from __future__ import annotations

from condor_actors import records
from condor_actors.messages.codec import message

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import ClassVar


@message
@records.frozen(kw_only=True)
class ReserveCluster:
    """I want to submit; which cluster numbers may I use?  Answer: :class:`ClusterReserved`; no number comes twice.

    ``count``: how many, 1 to 1000, one after the other.
    """

    KIND: ClassVar[str] = "condor.submission.ReserveCluster"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    count: int = 1


@message
@records.frozen(kw_only=True)
class ClusterReserved:
    """Answer to :class:`ReserveCluster`: ``cluster_id`` is the first number."""

    KIND: ClassVar[str] = "condor.submission.ClusterReserved"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    cluster_id: int
    schedd_name: str
    now_s: float
    uid_domain: str = ""


@message
@records.frozen(kw_only=True)
class SubmitPage:
    """A part of a submission; nothing is queued before the page with ``last`` is committed as one transaction.

    Attributes:
        cluster_id: as reserved.
        page: 0, 1, 2 …
        cluster_ad: attributes common to all procs (first page only).
        procs: one ad text per proc with what differs from the cluster ad (often empty or one line).
        first_proc: number of the first proc of this page.
        spool: True: jobs are held for input spooling (HoldReasonCode 16) until ``FinishSpooling``.

    Answer to each page: ``Done``, to the last :class:`Submitted`, or ``Refused(code="invalid")`` and nothing queued.
    """

    KIND: ClassVar[str] = "condor.submission.SubmitPage"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    page: int
    cluster_ad: bytes
    procs: tuple[bytes, ...]
    first_proc: int
    last: bool
    spool: bool = False


@message
@records.frozen(kw_only=True)
class SubmitItems:
    """A part of a submission whose jobs are made as they are needed; what they are made of is stored as it comes.

    Attributes:
        cluster_id: as reserved.
        page: 0, 1, 2 …
        cluster_ad: attributes common to all jobs (first page only).
        items: one ad text per job with what differs from the cluster ad.
        repeat: more than 0: ``items`` is one text for so many jobs, in which ``\\0P`` stands for the number of the job
            and ``\\0S`` for how many of these come before it.

    Answer to each page: ``Done``, to the last :class:`Submitted`, or ``Refused(code="invalid")`` and nothing stays.
    """

    KIND: ClassVar[str] = "condor.submission.SubmitItems"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    page: int
    cluster_ad: bytes
    items: tuple[bytes, ...]
    last: bool
    repeat: int = 0


@message
@records.frozen(kw_only=True)
class Submitted:
    """The jobs are in the queue, on disk."""

    KIND: ClassVar[str] = "condor.submission.Submitted"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    cluster_id: int
    first_proc: int
    last_proc: int
