"""Claim: a schedd obtains, keeps and gives up the right to use a slot; a startd opens and closes it.

A claim id is ``<address>#startd_birth#sequence``: public, good for logs and ads.  Its ``secret`` is the right to use
it and never appears in either.
"""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import message


@message
@records.frozen(kw_only=True)
class RequestClaim:
    """Schedd to startd: I was matched with your slot and want it for this job.

    Attributes:
        slot_name, capability: the slot and the proof that the negotiator meant us.
        job_ad: the job that will run first (Requirements, Rank and Request* are evaluated again).
        owner: whose job it is, the whole identity (``alice@dom``): the claim is good for her jobs alone, and only her
            shadows on the schedd's machine may activate it.
        submitter: in whose name it is charged for (``group.alice@dom``).
        schedd_name, lease_s: who keeps the claim alive, and for how long it lives without that.
        schedd_node: where the schedd listens; empty: nowhere.
        checkpoint_key: seals the checkpoints of the owner's jobs; no shadow learns it.
    """

    KIND: ClassVar[str] = "condor.claim.RequestClaim"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADVERTISE_SCHEDD"

    slot_name: str
    capability: str
    job_ad: bytes
    owner: str
    submitter: str
    schedd_name: str
    lease_s: float = 2400.0
    schedd_node: str = ""
    checkpoint_key: bytes = b""


MOST_JOINED = 100


@message
@records.frozen(kw_only=True)
class JoinClaims:
    """Schedd to startd: make one claim for this job out of claims of mine on parts of one partitionable slot.

    The startd waits until nothing runs on them.  Answer: :class:`ClaimGranted`, and they are over, or
    :class:`ClaimRefused`, and those that are left are given back.

    Attributes:
        claims: pairs (claim id, secret).
        job_ad: the job that will run first.
    """

    KIND: ClassVar[str] = "condor.claim.JoinClaims"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADVERTISE_SCHEDD"

    claims: tuple[tuple[str, str], ...]
    job_ad: bytes

    def __attrs_post_init__(self) -> None:
        if not 2 <= len(self.claims) <= MOST_JOINED:
            raise ValueError(f"2 to {MOST_JOINED} claims are joined, not {len(self.claims)}")


@message
@records.frozen(kw_only=True)
class ClaimGranted:
    """Startd to schedd: yours.

    Attributes:
        claim_id, secret: the claim.
        slot_name, slot_ad: the slot claimed (the dynamic slot carved from a partitionable one).
        starter_node: node of the starter host where shadows activate the claim (``<host:port>``).
        leftovers: True when the partitionable slot has resources left for another request.
    """

    KIND: ClassVar[str] = "condor.claim.ClaimGranted"
    VERSION: ClassVar[int] = 1

    claim_id: str
    secret: str
    slot_name: str
    slot_ad: bytes
    starter_node: str
    lease_s: float


@message
@records.frozen(kw_only=True)
class ClaimRefused:
    """Startd to schedd: no (the owner came back, someone better is there, not enough left, wrong capability)."""

    KIND: ClassVar[str] = "condor.claim.ClaimRefused"
    VERSION: ClassVar[int] = 1

    slot_name: str
    reason: str
    retry_after_s: float = 0.0


@message
@records.frozen(kw_only=True)
class RenewClaims:
    """Schedd to startd: these claims' leases start anew.  Answer: :class:`ClaimsRenewed`."""

    KIND: ClassVar[str] = "condor.claim.RenewClaims"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADVERTISE_SCHEDD"

    claims: tuple[tuple[str, str], ...]
    """Pairs (claim id, secret)."""
    schedd_node: str = ""
    """As in :class:`RequestClaim`."""


@message
@records.frozen(kw_only=True)
class ClaimsKept:
    """Startd to schedd, after the startd was started again: it keeps these claims of yours and is to be found here.

    Answer: :class:`ClaimsRenewed`; the claims that are gone are free again.
    """

    KIND: ClassVar[str] = "condor.claim.ClaimsKept"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADVERTISE_STARTD"

    claims: tuple[tuple[str, str], ...]
    """Pairs (claim id, secret)."""
    startd: str
    """The startd's node."""


@message
@records.frozen(kw_only=True)
class ClaimsRenewed:
    """The answer to both: the claim ids of the question that the process asked does not have (any more)."""

    KIND: ClassVar[str] = "condor.claim.ClaimsRenewed"
    VERSION: ClassVar[int] = 1

    gone: tuple[str, ...] = ()


@message
@records.frozen(kw_only=True)
class DeclineMatch:
    """Schedd to startd: I was matched with your slot and do not ask for it; another may have it at once.

    Attributes:
        slot_name, capability, submitter: as in :class:`RequestClaim`.
    """

    KIND: ClassVar[str] = "condor.claim.DeclineMatch"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADVERTISE_SCHEDD"

    slot_name: str
    capability: str
    submitter: str


@message
@records.frozen(kw_only=True)
class ReleaseClaim:
    """Schedd to startd: I need it no longer (idempotent)."""

    KIND: ClassVar[str] = "condor.claim.ReleaseClaim"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADVERTISE_SCHEDD"

    claim_id: str
    secret: str
    reason: str = ""


@message
@records.frozen(kw_only=True)
class ClaimRevoked:
    """Startd to schedd: the claim is ending or has ended.

    ``final`` False: it is being vacated, activate nothing more on it; True: it is gone.  ``lost`` True: the starter
    host died, so that what ran on the claim is dead and its outputs are gone.
    """

    KIND: ClassVar[str] = "condor.claim.ClaimRevoked"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADVERTISE_STARTD"

    claim_id: str
    reason: str
    final: bool
    lost: bool = False


# --- startd and its starter host (UNIX socket) ---------------------------------------------------------------------


@message
@records.frozen(kw_only=True)
class StarterHostHello:
    """Starter host to startd on every (re)connect: where shadows reach me, and what still runs here."""

    KIND: ClassVar[str] = "condor.claim.StarterHostHello"
    VERSION: ClassVar[int] = 1

    node: str
    pid: int
    active: tuple[tuple[str, str], ...] = ()
    """Pairs (claim id, run id) of living runs."""
    suspended: tuple[str, ...] = ()
    """The claims whose runs are frozen because the startd wanted it."""
    closing: tuple[tuple[str, float], ...] = ()
    """Pairs (claim id, seconds since) of claims whose runs the startd asked to go."""
    idle: tuple[str, ...] = ()
    """The claims that are open and on which nothing runs."""


@message
@records.frozen(kw_only=True)
class OpenClaim:
    """Startd to starter host: shadows of ``owner`` that show ``secret`` may activate this claim.

    ``owner`` is what the schedd said when it asked for the claim, ``hosts`` the names of that schedd's machine as its
    certificate has them (empty: it was a process of this machine).  ``slot_ad`` tells the starter cpus, memory, disk,
    slot user, cgroup share; ``assigned`` its devices, for instance ``("GPUs", "GPU-1,GPU-2")``.  ``checkpoint_key`` as
    in :class:`RequestClaim`.
    """

    KIND: ClassVar[str] = "condor.claim.OpenClaim"
    VERSION: ClassVar[int] = 1

    claim_id: str
    secret: str
    slot_name: str
    slot_ad: bytes
    owner: str
    hosts: tuple[str, ...]
    submitter: str
    assigned: tuple[tuple[str, str], ...] = ()
    checkpoint_key: bytes = b""


@message
@records.frozen(kw_only=True)
class CloseClaim:
    """Startd to starter host: end what runs on the claim, then forget it.

    ``vacate_s`` seconds of grace after the job's soft-kill signal (0: kill at once); ``reason`` goes to the shadow;
    ``hold`` True asks the shadow to put the job on hold (WANT_HOLD) with the given code and subcode.
    """

    KIND: ClassVar[str] = "condor.claim.CloseClaim"
    VERSION: ClassVar[int] = 1

    claim_id: str
    vacate_s: float
    reason: str
    hold: bool = False
    hold_code: int = 0
    hold_subcode: int = 0


@message
@records.frozen(kw_only=True)
class CheckpointClaim:
    """Startd to starter host: a standard-universe job is due for its periodic checkpoint."""

    KIND: ClassVar[str] = "condor.claim.CheckpointClaim"
    VERSION: ClassVar[int] = 1

    claim_id: str


@message
@records.frozen(kw_only=True)
class SuspendClaim:
    """Startd to starter host: freeze the whole process tree of the claim's run."""

    KIND: ClassVar[str] = "condor.claim.SuspendClaim"
    VERSION: ClassVar[int] = 1

    claim_id: str


@message
@records.frozen(kw_only=True)
class ContinueClaim:
    """Startd to starter host: thaw it."""

    KIND: ClassVar[str] = "condor.claim.ContinueClaim"
    VERSION: ClassVar[int] = 1

    claim_id: str


@message
@records.frozen(kw_only=True)
class LowerClaim:
    """Startd to starter host: the claim's run gets only idle processor and disk time, or its
    share again (``on`` False)."""

    KIND: ClassVar[str] = "condor.claim.LowerClaim"
    VERSION: ClassVar[int] = 1

    claim_id: str
    on: bool


@message
@records.frozen(kw_only=True)
class ClaimActivity:
    """Starter host to startd: what a claim's slot does now.

    ``activity`` is ``busy``, ``idle`` (ready for the next activation), ``suspended`` or ``closed`` (the claim is closed
    and nothing of it is left).  ``job_id`` and usage are those of the current or last run; ``by_user``: its user wants
    it to stand still; ``begun``: the jobs of which runs began since the last report, of short ones many.
    """

    KIND: ClassVar[str] = "condor.claim.ClaimActivity"
    VERSION: ClassVar[int] = 1

    claim_id: str
    activity: str
    job_id: str = ""
    job_ad: bytes = b""
    by_user: bool = False
    cpu_s: float = 0.0
    memory_mib: int = 0
    disk_kib: int = 0
    begun: tuple[str, ...] = ()
