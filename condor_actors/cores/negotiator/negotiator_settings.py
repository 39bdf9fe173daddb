"""The negotiator's configuration as the values its cores take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from condor_actors.classads import Expr, parse_expression
from condor_actors.config import Config
from condor_actors.cores.negotiator.cycle_settings import CycleRules, CycleSettings
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.group_quotas import NO_GROUP, Group, GroupTree
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.up_down import UpDown, UpDownSettings
from condor_actors.cores.negotiator.update_prio import UpdatePrio, UpdatePrioSettings
from condor_actors.cores.negotiator.user_priority import PriorityPolicy, UserRecord

__all__ = ["cycle_rules", "cycle_settings", "match_settings", "priority_policy"]

_GROUP = re.compile(r"[A-Za-z0-9_.]+")
"""A name that may stand in those of parameters (``GROUP_QUOTA_<GROUP>``)."""


def cycle_settings(config: Config) -> CycleSettings:
    """Times and sizes of the cycle."""
    return config.settings(CycleSettings)


def match_settings(config: Config) -> MatchSettings:
    """The expressions by which slots and jobs are judged."""
    return config.settings(MatchSettings, preemption_requirements=preemption_requirements(config))


def priority_policy(config: Config, users: Mapping[str, UserRecord]) -> PriorityPolicy:
    """The policy that PRIORITY_POLICY names, with the accountant's records."""
    name = config.value("PRIORITY_POLICY")
    if name == UpDown.NAME:
        return UpDown(config.settings(UpDownSettings), users)
    if name == UpdatePrio.NAME:
        return UpdatePrio(config.settings(UpdatePrioSettings), users)
    return FairShare(fair_share_settings(config), users)


def preemption_requirements(config: Config) -> Expr | None:
    """PREEMPTION_REQUIREMENTS; the policies of the papers, which live by preemption, have it true unless it is set."""
    if config.value("PRIORITY_POLICY") != FairShare.NAME and config.where("PREEMPTION_REQUIREMENTS")[1] == 0:
        return parse_expression("true")
    return config.expression("PREEMPTION_REQUIREMENTS")


def cycle_rules(config: Config) -> CycleRules:
    """Accounting groups and concurrency limits."""
    return CycleRules(groups=group_tree(config), limit_of=partial(limit_of, config))


def group_tree(config: Config) -> GroupTree:
    """GROUP_NAMES with the quotas of each."""
    groups = []
    for name in config.list_of("GROUP_NAMES"):
        if name == NO_GROUP:
            continue
        if not _GROUP.fullmatch(name):
            raise config.unusable("GROUP_NAMES", f"{name[:200]!r} is no name of a group",
                                  "names of letters, digits, _ and dots, with commas between")
        own = [word for word in (f"GROUP_ACCEPT_SURPLUS_{name}", f"GROUP_AUTOREGROUP_{name}") if config.text(word)]
        quota, fraction = config.value(f"GROUP_QUOTA_{name}"), config.value(f"GROUP_QUOTA_DYNAMIC_{name}")
        groups.append(Group(
            name=name, quota=float(quota) if isinstance(quota, (int, float)) else None,
            fraction=float(fraction) if isinstance(fraction, (int, float)) else None,
            accept_surplus=config.boolean("GROUP_ACCEPT_SURPLUS") or config.boolean("GROUP_AUTOREGROUP")
            if not own else any(config.boolean(word) for word in own),
        ))
    return GroupTree.of(groups, config.expression("GROUP_SORT_EXPR"),
                        allow_oversubscription=config.boolean("NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION"))


def limit_of(config: Config, name: str) -> float:
    """The size of the concurrency limit ``name``."""
    for parameter in (f"{name}_LIMIT", f"CONCURRENCY_LIMIT_DEFAULT_{name.partition('.')[0]}",
                      "CONCURRENCY_LIMIT_DEFAULT"):
        text = config.text(parameter.upper())
        if text is not None:
            try:
                return float(text)
            except ValueError:
                continue
    return float("inf")


def fair_share_settings(config: Config) -> FairShareSettings:
    """Half-life and factors."""
    factors = {}
    for group in config.list_of("GROUP_NAMES"):
        factor = config.text(f"GROUP_PRIO_FACTOR_{group}")
        if factor is not None:
            factors[group.lower()] = float(factor)
    return config.settings(
        FairShareSettings, local_domain=config.text("ACCOUNTANT_LOCAL_DOMAIN") or "", group_factors=factors,
    )
