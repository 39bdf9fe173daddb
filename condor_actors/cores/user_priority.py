"""Who is served first: what the three priority policies have in common, and the record kept of each user.

Theory: a policy is a pure core.  It hears who holds how much (:meth:`PriorityPolicy.holds`) and who wants more, moves
its index as time passes, and answers with one number per user: the *effective priority*, of which less is better, as
in HTCondor.  Shares are inversely proportional to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

__all__ = ["PriorityPolicy", "UserRecord"]


@attrs.define(eq=False)
class UserRecord:
    """What the accountant knows of one user (or group).

    Attributes:
        name: the accounting name, ``alice@domain`` or ``group.alice@domain``.
        priority: the real priority (FAIR_SHARE), the index (UP_DOWN) or the priority (UPDATE_PRIO).
        factor: set by an administrator; None: the default of its kind.
        weighted_usage_s, usage_s: slot weight and slots held, times time.
        begin_s, last_s: since when and until when the user held something; 0: never.
        ceiling, floor: bounds on the weight held; negative: none.
        holding, slots: weight and number of slots held now.
        wanting: whether something more was wanted in the last cycle.
        updated_s: the moment that the numbers above are for.
    """

    name: str
    priority: float = 0.5
    factor: float | None = None
    weighted_usage_s: float = 0.0
    usage_s: float = 0.0
    begin_s: float = 0.0
    last_s: float = 0.0
    ceiling: float = -1.0
    floor: float = -1.0
    holding: float = 0.0
    slots: int = 0
    wanting: bool = False
    updated_s: float = 0.0


class PriorityPolicy(Protocol):
    """How priorities move; see the module."""

    users: dict[str, UserRecord]

    def holds(self, held: Mapping[str, tuple[float, int]], now_s: float) -> None:
        """Who holds which weight and how many slots from now on; who is not named holds nothing."""

    def wants(self, names: set[str], now_s: float) -> None:
        """Who wanted more and did not get it."""

    def effective(self, name: str, now_s: float) -> float:
        """The effective priority; the least is served first."""

    def factor(self, name: str) -> float:
        """The factor in force."""

    def advance(self, now_s: float) -> None:
        """Bring every record up to the hour."""

    def restart(self, name: str) -> None:
        """Set a user's priority back to that of a new one."""
