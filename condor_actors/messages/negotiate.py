"""Negotiate: the negotiator asks schedds what they want, and tells both sides of a match."""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import message


@message
@records.frozen(kw_only=True)
class RequestCycle:
    """Start a cycle soon (condor_reschedule; a schedd whose demand changed)."""

    KIND: ClassVar[str] = "condor.negotiate.RequestCycle"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"


MOST_LIMITS = 4096
"""Letters of a job's ConcurrencyLimits, which go into the ad of its slot."""


@message
@records.frozen(kw_only=True)
class NegotiateRequests:
    """Negotiator to schedd: what does this submitter want, best first?  Answer: :class:`ResourceRequests`.

    ``limit`` bounds the number of requests (autoclusters); ``cursor`` continues.
    """

    KIND: ClassVar[str] = "condor.negotiate.NegotiateRequests"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "NEGOTIATOR"

    cycle: int
    submitter: str
    significant_attributes: tuple[str, ...] = ()
    limit: int = 200
    cursor: str = ""


@records.frozen(kw_only=True)
class ResourceRequest:
    """``count`` idle jobs that are alike in all significant attributes; ``job_ad`` is the first of them."""

    autocluster: int
    job_id: str
    count: int
    job_ad: bytes


@message
@records.frozen(kw_only=True)
class ResourceRequests:
    """Answer to :class:`NegotiateRequests`; slots of the startds ``avoided`` (nodes, out of reach) and ``disbelieved``
    (what they grant cannot be true) are of no use to it now."""

    KIND: ClassVar[str] = "condor.negotiate.ResourceRequests"
    VERSION: ClassVar[int] = 1

    submitter: str
    requests: tuple[ResourceRequest, ...]
    cursor: str = ""
    avoided: tuple[str, ...] = ()
    disbelieved: tuple[str, ...] = ()


@records.frozen(kw_only=True)
class Match:
    """Permission to claim a slot for a request.

    Attributes:
        autocluster, job_id: the request it was made for.
        slot_name, startd_address, slot_ad: the slot (for a partitionable slot, the whole of it).
        capability: the slot's capability, the right to ask its startd for a claim; secret.
        preempting: True when the claim displaces a running one.
    """

    autocluster: int
    job_id: str
    slot_name: str
    startd_address: str
    slot_ad: bytes
    capability: str
    preempting: bool = False


@message
@records.frozen(kw_only=True)
class MatchesMade:
    """Negotiator to schedd: go and claim these."""

    KIND: ClassVar[str] = "condor.negotiate.MatchesMade"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "NEGOTIATOR"

    cycle: int
    submitter: str
    matches: tuple[Match, ...]


@records.frozen(kw_only=True)
class Rejection:
    """Why (the rest of) a request found nothing: a sentence and the number of slots per cause."""

    autocluster: int
    job_id: str
    reason: str
    causes: tuple[tuple[str, int], ...] = ()


@message
@records.frozen(kw_only=True)
class RequestsRejected:
    """Negotiator to schedd: these requests stay unserved in this cycle."""

    KIND: ClassVar[str] = "condor.negotiate.RequestsRejected"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "NEGOTIATOR"

    cycle: int
    submitter: str
    rejections: tuple[Rejection, ...]


@message
@records.frozen(kw_only=True)
class MatchNotice:
    """Negotiator to startd: your slot was matched with this submitter's schedd; expect a claim.

    Attributes:
        cost: of a match for another pool: what the claim may take at most, by the resources that the slot counts.
    """

    KIND: ClassVar[str] = "condor.negotiate.MatchNotice"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "NEGOTIATOR"

    slot_name: str
    submitter: str
    schedd_address: str
    cost: tuple[tuple[str, int], ...] = ()


@message
@records.frozen(kw_only=True)
class QueryPriorities:
    """condor_userprio: the accountant's records as ads.  Answer: ``AdsPage`` (kind Accounting)."""

    KIND: ClassVar[str] = "condor.negotiate.QueryPriorities"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    cursor: str = ""


@message
@records.frozen(kw_only=True)
class SetPriority:
    """condor_userprio -set…: ``what`` is ``factor priority usage begin last ceiling floor reset delete reset-all``.

    ``duration_s`` above 0: factor, ceiling or floor are so for that long, and then as before; ``cancel-ceiling`` and
    its kin end that at once.
    """

    KIND: ClassVar[str] = "condor.negotiate.SetPriority"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    submitter: str
    what: str
    value: float = 0.0
    duration_s: float = 0.0


@message
@records.frozen(kw_only=True)
class MakeReservation:
    """condor_reserve make: machines for a user in advance; ``constraint`` over slots.  Answer: Done or Refused."""

    KIND: ClassVar[str] = "condor.negotiate.MakeReservation"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    name: str
    submitter: str
    machines: int
    from_s: float
    until_s: float
    constraint: str = ""
    ahead_s: float = 3600.0


@message
@records.frozen(kw_only=True)
class CancelReservation:
    """condor_reserve cancel.  Answer: Done or Refused(not-found)."""

    KIND: ClassVar[str] = "condor.negotiate.CancelReservation"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    name: str


@message
@records.frozen(kw_only=True)
class QueryReservations:
    """condor_reserve list.  Answer: ``AdsPage`` of reservation ads."""

    KIND: ClassVar[str] = "condor.negotiate.QueryReservations"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    cursor: str = ""


@message
@records.frozen(kw_only=True)
class QueryLending:
    """condor_flock report: what do partners have here, and on which terms?  Answer: ``AdsPage`` of lending ads."""

    KIND: ClassVar[str] = "condor.negotiate.QueryLending"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    cursor: str = ""


@message
@records.frozen(kw_only=True)
class QueryTrace:
    """Why did this job (or its autocluster) get nothing in the last cycle?  Answer: ``AdsPage`` of trace ads."""

    KIND: ClassVar[str] = "condor.negotiate.QueryTrace"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    submitter: str = ""
    job_id: str = ""
    cursor: str = ""
