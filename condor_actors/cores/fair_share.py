"""FAIR_SHARE: priority as decayed usage.

Theory: the real priority follows what the user holds, with a half-life:

    pi(t + dt) = beta * pi(t) + (1 - beta) * rho,    beta = 0.5 ** (dt / PRIORITY_HALFLIFE)

where rho is the weight held.  Between two changes rho is constant, so the law is applied exactly, when somebody asks
or something changes, however far apart that is.  It never falls below 0.5.  The effective priority is the real one
times a factor: that of the user when an administrator set one, else that of its group, of nice users, of users of
other domains, or the default.

Source: HTCondor's manual, "User Priorities and Negotiation".
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from condor_actors.cores.user_priority import UserRecord

__all__ = ["FLOOR", "FairShare", "FairShareSettings", "NICE_PREFIX"]

FLOOR = 0.5
NICE_PREFIX = "nice-user."


@attrs.frozen(kw_only=True)
class FairShareSettings:
    """The half-life and the factors.

    Attributes:
        half_life_s: PRIORITY_HALFLIFE.
        default_factor, nice_factor, remote_factor: by kind of user.
        local_domain: users of other domains are remote; empty: nobody is.
        group_factors: GROUP_PRIO_FACTOR_<group>, by lower-case group name.
    """

    half_life_s: float = 86400.0
    default_factor: float = 1000.0
    nice_factor: float = 1e10
    remote_factor: float = 1e7
    local_domain: str = ""
    group_factors: Mapping[str, float] = attrs.field(factory=dict)


class FairShare:
    """See the module; a :class:`condor_actors.cores.user_priority.PriorityPolicy`.

    Args:
        settings: the half-life and the factors.
        users: what the accountant had stored.
    """

    def __init__(self, settings: FairShareSettings, users: Mapping[str, UserRecord] | None = None) -> None:
        self.settings = settings
        self.users: dict[str, UserRecord] = dict(users or {})

    def user(self, name: str, now_s: float) -> UserRecord:
        """The record of a user, made when there is none, up to the hour."""
        record = self.users.get(name)
        if record is None:
            record = self.users[name] = UserRecord(name, updated_s=now_s)
        elif record.updated_s < now_s:
            self._move(record, now_s)
        return record

    def _move(self, record: UserRecord, now_s: float) -> None:
        span_s = now_s - record.updated_s
        beta = 0.5 ** (span_s / self.settings.half_life_s)
        record.priority = max(FLOOR, beta * record.priority + (1.0 - beta) * record.holding)
        if record.slots:
            record.weighted_usage_s += record.holding * span_s
            record.usage_s += record.slots * span_s
            record.last_s = now_s
        record.updated_s = now_s

    def holds(self, held: Mapping[str, tuple[float, int]], now_s: float) -> None:
        """Who holds which weight and how many slots from now on; who is not named holds nothing."""
        for record in self.users.values():
            if record.name not in held and record.slots:
                self._move(record, now_s)
                record.holding, record.slots = 0.0, 0
        for name, (weight, slots) in held.items():
            record = self.user(name, now_s)
            record.holding, record.slots = weight, slots
            if slots:
                record.begin_s = record.begin_s or now_s
                record.last_s = now_s

    def wants(self, names: set[str], now_s: float) -> None:
        """Note who wants more; it does not move this policy."""
        for record in self.users.values():
            record.wanting = record.name in names

    def factor(self, name: str) -> float:
        """The factor in force."""
        record = self.users.get(name)
        if record is not None and record.factor is not None:
            return record.factor
        settings = self.settings
        if name.lower().startswith(NICE_PREFIX):
            return settings.nice_factor
        account, _, domain = name.partition("@")
        group = account.lower()
        while "." in group:
            group = group.rpartition(".")[0]
            if group in settings.group_factors:
                return settings.group_factors[group]
        if settings.local_domain and domain and domain.lower() != settings.local_domain.lower():
            return settings.remote_factor
        return settings.default_factor

    def effective(self, name: str, now_s: float) -> float:
        """Real priority times factor."""
        record = self.users.get(name)
        if record is None:
            return FLOOR * self.factor(name)
        if record.updated_s < now_s:
            self._move(record, now_s)
        return record.priority * self.factor(name)

    def advance(self, now_s: float) -> None:
        """Bring every record up to the hour."""
        for record in self.users.values():
            if record.updated_s < now_s:
                self._move(record, now_s)

    def restart(self, name: str) -> None:
        """As good as new."""
        record = self.users.get(name)
        if record is not None:
            record.priority = FLOOR
