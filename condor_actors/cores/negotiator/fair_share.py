"""FAIR_SHARE: priority as decayed usage.

Theory: the real priority follows what the user holds, with a half-life:

    pi(t + dt) = beta * pi(t) + (1 - beta) * rho,    beta = 0.5 ** (dt / PRIORITY_HALFLIFE)

where rho is the weight held.  Between two changes rho is constant, so the law is applied exactly, when someone asks
or something changes, however far apart that is.  It never falls below 0.5.  The effective priority is the real one
times a factor: that of the user when an administrator set one, else that of its group, of nice users, of users of
other domains, or the default.

Source: HTCondor's manual, "User Priorities and Negotiation".
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from condor_actors.config.settings import setting
from condor_actors.cores.negotiator.user_priority import PriorityPolicy, UserRecord
from condor_actors.messages.realm import MARK

__all__ = ["FLOOR", "NICE_PREFIX", "FairShare", "FairShareSettings"]

FLOOR = 0.5
NICE_PREFIX = "nice-user."
MARGIN = 1.2
"""A priority must be better by this factor to preempt for."""


@attrs.frozen(kw_only=True)
class FairShareSettings:
    """The half-life and the factors.

    Attributes:
        half_life_s: PRIORITY_HALFLIFE.
        default_factor, nice_factor, remote_factor: by kind of user.
        local_domain: users of other domains are remote; empty: nobody is.
        group_factors: GROUP_PRIO_FACTOR_<group>, by lower-case group name.
    """

    half_life_s: float = setting("PRIORITY_HALFLIFE")
    default_factor: float = setting("DEFAULT_PRIO_FACTOR")
    nice_factor: float = setting("NICE_USER_PRIO_FACTOR")
    remote_factor: float = setting("REMOTE_PRIO_FACTOR")
    local_domain: str = ""
    group_factors: Mapping[str, float] = attrs.field(factory=dict)


class FairShare(PriorityPolicy):
    """Orders submitters by their decayed usage.

    Args:
        settings: the half-life and the factors.
        users: what the accountant had stored.
    """

    NAME = "FAIR_SHARE"
    INITIAL = FLOOR
    BY_SHARES = True

    def __init__(self, settings: FairShareSettings, users: Mapping[str, UserRecord] | None = None) -> None:
        super().__init__(users)
        self.settings = settings

    def move(self, record: UserRecord, now_s: float) -> None:
        """Apply the law over the time since the last move."""
        beta = 0.5 ** ((now_s - record.updated_s) / self.settings.half_life_s)
        record.priority = max(FLOOR, beta * record.priority + (1.0 - beta) * record.holding)
        record.updated_s = now_s

    def value_of(self, record: UserRecord) -> float:
        """Real priority times factor."""
        return record.priority * self.factor(record.name)

    def beats(self, wanting: float, holding: float) -> bool:
        """Better by a fifth, so that two users do not take slots from each other in turn."""
        return holding > wanting * MARGIN

    def factor(self, name: str) -> float:
        """The factor in force."""
        record = self.users.get(name)
        if record is not None and record.factor is not None:
            return record.factor
        settings = self.settings
        if name.lower().startswith(NICE_PREFIX):
            return settings.nice_factor
        if MARK in name:
            return settings.remote_factor
        account, _, domain = name.partition("@")
        group = account.lower()
        while "." in group:
            group = group.rpartition(".")[0]
            if group in settings.group_factors:
                return settings.group_factors[group]
        if settings.local_domain and domain and domain.lower() != settings.local_domain.lower():
            return settings.remote_factor
        return settings.default_factor
