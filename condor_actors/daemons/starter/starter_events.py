"""What the starter host and its starters say to one another, within the process.

Theory: each starter is an actor of its own, and the starter host knows of a run what its starter has told it.  Beside
these, the host sends its starters events of :mod:`condor_actors.cores.starter.run_events` as they are.
"""

from __future__ import annotations

import attrs

from condor_actors.messages.envelope import Delivery
from condor_actors.messages.run import Usage

__all__ = ["EndAllRuns", "LowerRun", "RunActivity", "RunForgotten", "ShadowAsks", "TellActivity"]


# ---- host to starter


@attrs.frozen
class ShadowAsks:
    """A shadow has asked the host for the run again (``ActivateClaim`` or ``ReattachRun``) and may: answer it."""

    question: Delivery


@attrs.frozen
class LowerRun:
    """Make do with what nobody else wants, or have the usual share again."""

    on: bool


@attrs.frozen
class TellActivity:
    """The host was built anew: say again how the run is."""


# ---- starter to host


@attrs.frozen(kw_only=True)
class RunActivity:
    """How a run is: ``busy``, ``suspended``, or ``idle`` when nothing of it runs any more."""

    run_id: str
    activity: str
    job_id: str = ""
    job_ad: bytes = b""
    by_user: bool = False
    usage: Usage = attrs.field(factory=Usage)


@attrs.frozen
class RunForgotten:
    """Nothing of a run is left."""

    run_id: str


# ---- the process to the host


@attrs.frozen
class EndAllRuns:
    """The process is to end."""
