"""Seals: what says that a checkpoint was made by a machine of the pool, for this job, and which one it is.

Theory: a checkpoint lies in its owner's folder and on checkpoint servers, so neither its bytes nor its list of pieces
say where it comes from.  The schedd's database has a key that no owner can read.  Of it the schedd makes one for each
owner, and gives that to the startd with each request for a claim; so the starter host has it, which runs as nobody's
owner, and the shadow never.  The starter host seals each checkpoint before it goes home: the job, its generation, the
digest of its list of pieces, whose digests bind the content.  The starter host of a later run verifies the seal before
it takes a byte, and holds the generation against a ticket, in which the schedd says for that run on that claim how old
a checkpoint may be.

Generations are ordered: number of the run, number of the checkpoint in it.
"""

from __future__ import annotations

import hmac
import struct
from hashlib import blake2b

import attrs

__all__ = ["FIRST", "KEY_BYTES", "SEAL_BYTES", "Generation", "Seal", "floor_of", "job_and_run", "key_of_owner",
           "make_seal", "make_ticket", "seal_problem"]

KEY_BYTES = 32
_FORM = struct.Struct("<QQ32s")
SEAL_BYTES = _FORM.size


@attrs.frozen(order=True)
class Generation:
    """Which checkpoint of a job: the ``count``-th of run number ``run``."""

    run: int
    count: int

    def __str__(self) -> str:
        return f"{self.run}.{self.count}"

    @classmethod
    def from_text(cls, text: str) -> Generation:
        """The opposite of ``str``; what is no generation is older than all."""
        run, _, count = text.partition(".")
        whole = all(part.isascii() and part.isdecimal() and len(part) < 19 for part in (run, count))
        return cls(int(run), int(count)) if whole else FIRST


FIRST = Generation(0, 0)
"""Older than every checkpoint."""


@attrs.frozen
class Seal:
    """A generation and what proves it; also the form of a ticket."""

    generation: Generation
    mac: bytes

    def to_bytes(self) -> bytes:
        """48 bytes."""
        return _FORM.pack(self.generation.run, self.generation.count, self.mac)

    @classmethod
    def from_bytes(cls, data: bytes) -> Seal | None:
        """The opposite; None: it is no seal."""
        if len(data) != SEAL_BYTES:
            return None
        run, count, mac = _FORM.unpack(data)
        return cls(Generation(run, count), mac)


def job_and_run(run_id: str) -> tuple[str, int]:
    """The job (``cluster.proc@schedd``) and the number of a run (``cluster.proc#number@schedd``)."""
    job, _, rest = run_id.partition("#")
    number, _, schedd = rest.partition("@")
    return f"{job}@{schedd}", int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else 0


def key_of_owner(key: bytes, owner: str) -> bytes:
    """The key for one owner's jobs; without the schedd's key there is none."""
    return blake2b(owner.encode(), key=key, digest_size=KEY_BYTES, person=b"condor owner").digest() if key else b""


def _mac(key: bytes, what: bytes, generation: Generation, *words: str) -> bytes:
    text = b"".join(len(word.encode()).to_bytes(4, "little") + word.encode() for word in words)
    numbers = struct.pack("<QQ", generation.run, generation.count)
    return blake2b(numbers + text, key=key, digest_size=32, person=what).digest()


def make_seal(key: bytes, run_id: str, count: int, digest: str) -> Seal:
    """The seal of the ``count``-th checkpoint of a run, whose list of pieces has this digest."""
    job, number = job_and_run(run_id)
    generation = Generation(number, count)
    return Seal(generation, _mac(key, b"condor image", generation, job, digest))


def seal_problem(key: bytes, run_id: str, digest: str, seal: Seal | None) -> str:
    """Why a checkpoint is none of the job's whose run that is; empty: it is one."""
    if seal is None:
        return "nobody has sealed it"
    if not key:
        return "the schedd has given no key for its seal"
    right = _mac(key, b"condor image", seal.generation, job_and_run(run_id)[0], digest)
    return "" if hmac.compare_digest(right, seal.mac) else "its seal is none of this job and schedd"


def make_ticket(key: bytes, claim_id: str, run_id: str, floor: Generation) -> bytes:
    """What lets a run on a claim go on from a checkpoint that is no older than ``floor``."""
    return Seal(floor, _mac(key, b"condor ticket", floor, claim_id, run_id)).to_bytes() if key else b""


def floor_of(key: bytes, claim_id: str, run_id: str, ticket: bytes) -> Generation | None:
    """The oldest generation that a ticket permits; None: it is no ticket for this run on this claim."""
    found = Seal.from_bytes(ticket)
    if found is None or not key:
        return None
    right = _mac(key, b"condor ticket", found.generation, claim_id, run_id)
    return found.generation if hmac.compare_digest(right, found.mac) else None
