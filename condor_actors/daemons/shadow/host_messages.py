"""What the shadow host and its shadows say to one another, within the process.

Beside these the host hands its shadows the schedd's messages as they are, and ``Settled`` and ``ScheddBack`` of
:mod:`condor_actors.cores.shadow.shadow_events`.
"""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.messages.envelope import Address

__all__ = ["SHADOW_HOST", "AskSchedd", "RunLogged", "ShadowReport"]

SHADOW_HOST = Address("", "shadow-host")


@attrs.frozen
class ShadowReport:
    """A shadow has a message for the schedd about its run (``RunUpdated``, ``RunEnded``, ``ShellData`` …)."""

    run_id: str
    message: Any


@attrs.frozen
class RunLogged:
    """To the host itself: all events of a run that has ended are in the user log, or were given up."""

    run_id: str


@attrs.frozen
class AskSchedd:
    """A shadow has a question for the schedd about its run; the answer is the schedd's, or Refused ``busy``."""

    message: Any
