"""A claim: the right of one schedd to use one slot for as long as it renews its lease.

Theory: the public id names a claim in logs and ads, the secret is the right to use it, the capability of a slot is the
right to ask for one.  What must outlive the startd is a :class:`ClaimRecord`; what it is used for just now is told
again by the starter host.
"""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.cores.startd.slot_resources import Custom, Share
from condor_actors.messages.envelope import Address

__all__ = ["Claim", "ClaimRecord", "DropClaim", "SaveClaim", "SaveFact", "share_from_plain", "share_to_plain"]


def share_to_plain(share: Share) -> dict[str, Any]:
    """A share as numbers, strings and lists."""
    return {"cpus": share.cpus, "memory_mib": share.memory_mib, "disk_kib": share.disk_kib,
            "swap_mib": share.swap_mib,
            "custom": {name: [have.amount, list(have.ids)] for name, have in share.custom.items()}}


def share_from_plain(plain: dict[str, Any]) -> Share:
    """The opposite of :func:`share_to_plain`."""
    custom = {name: Custom(amount, tuple(ids)) for name, (amount, ids) in plain["custom"].items()}
    return Share(cpus=plain["cpus"], memory_mib=plain["memory_mib"], disk_kib=plain["disk_kib"],
                 swap_mib=plain["swap_mib"], custom=custom)


@attrs.frozen(kw_only=True)
class ClaimRecord:
    """What of a claim is kept on disk.

    Attributes:
        claim_id, secret: the claim.
        slot_name, share: the slot; a dynamic one is carved again from these.
        submitter, schedd_name, lease_s: who holds it; schedd_node: where that schedd listens.
        owner: whose jobs may run on it; hosts: the names of the schedd's machine, as in OpenClaim.
        starter_node: where it is activated; a starter host elsewhere makes it void.
        job_ad: the job it was granted for.
        rank: how much the machine liked that job.
        granted_s: when.
        checkpoint_key: as in OpenClaim.
    """

    claim_id: str
    secret: str
    slot_name: str
    share: Share
    submitter: str
    schedd_name: str
    lease_s: float
    starter_node: str
    job_ad: bytes
    rank: float
    granted_s: float
    schedd_node: str = ""
    owner: str = ""
    hosts: tuple[str, ...] = ()
    checkpoint_key: bytes = b""

    def to_plain(self) -> dict[str, Any]:
        """As numbers, strings and bytes."""
        plain = attrs.asdict(self, recurse=False)
        plain["share"] = share_to_plain(self.share)
        return plain

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> ClaimRecord:
        """The opposite of :meth:`to_plain`."""
        return cls(**{**plain, "share": share_from_plain(plain["share"]), "hosts": tuple(plain.get("hosts", ()))})


@attrs.frozen
class SaveClaim:
    """Operation: keep this claim."""

    record: ClaimRecord


@attrs.frozen
class DropClaim:
    """Operation: forget this claim."""

    claim_id: str


@attrs.frozen
class SaveFact:
    """Operation: keep something else under a name (numbers, strings, lists, dicts); None: forget it."""

    name: str
    value: Any


@attrs.define(eq=False, kw_only=True)
class Claim:
    """A claim in use.

    Attributes:
        record: what is kept.
        schedd: where its schedd was last heard; None when that is not known.
        renewed_s: when the lease began anew.
        open: whether the starter host has opened it: a shadow may activate it.
        heard: whether it is known what runs on it; not yet, of a claim that a startd finds when it is started again.
        job_id, job_ad, job_began_s: the run on it; empty: none.
        checkpoint_s: when it was last asked for a checkpoint; 0: never.
        cpu_s, memory_mib, disk_kib: the run's usage as last told.
        jobs: runs begun on it.
        lost: what ran on it is gone with the starter host, with all it had done.
    """

    record: ClaimRecord
    schedd: Address | None
    renewed_s: float
    open: bool = False
    heard: bool = True
    job_id: str = ""
    job_ad: bytes = b""
    job_began_s: float = 0.0
    checkpoint_s: float = 0.0
    cpu_s: float = 0.0
    memory_mib: int = 0
    disk_kib: int = 0
    jobs: int = 0
    lost: bool = False

    @property
    def claim_id(self) -> str:
        """The public id."""
        return self.record.claim_id
