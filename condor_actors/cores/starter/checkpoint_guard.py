"""What a starter holds the checkpoints of its run against: it seals those that leave, and verifies the one that comes.

See :mod:`condor_actors.cores.checkpoint_seals`.
"""

from __future__ import annotations

from condor_actors.cores.checkpoint_seals import Seal, floor_of, make_seal, seal_problem

__all__ = ["CheckpointGuard"]


class CheckpointGuard:
    """Of one run.

    Args:
        key: for the checkpoints of the owner, from the schedd; claim_id, run_id: of the run.
        ticket: what the shadow has shown, as the schedd made it.
    """

    def __init__(self, key: bytes, claim_id: str, run_id: str, ticket: bytes) -> None:
        self._key = key
        self._run_id = run_id
        self._floor = floor_of(key, claim_id, run_id, ticket)
        self._count = 0

    def seal(self, digest: str) -> Seal | None:
        """The seal of the run's next checkpoint; None where the schedd has given no key."""
        self._count += 1
        return make_seal(self._key, self._run_id, self._count, digest) if self._key else None

    def increment_problem(self, digest: str, seal: Seal | None) -> str:
        """Why nothing can go on from this increment; empty: nothing is wrong with it."""
        problem = seal_problem(self._key, self._run_id, digest, seal)
        if problem or seal is None:
            return problem
        if self._floor is None:
            return "the schedd has not said how old it may be"
        if seal.generation < self._floor:
            return f"it is an old one: {seal.generation}, where {self._floor} is the oldest that may be"
        return ""

    def image_problem(self, digest: str, seal: Seal | None, newer: Seal | None) -> str:
        """The same of a whole image; ``newer``: the seal of the increment that adds to it."""
        if newer is None:
            return self.increment_problem(digest, seal)
        return seal_problem(self._key, self._run_id, digest, seal)
