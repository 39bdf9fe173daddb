"""The negotiator's configuration as the values its cores take."""

from __future__ import annotations

from collections.abc import Mapping

from condor_actors.config import Config
from condor_actors.cores.fair_share import FairShare, FairShareSettings
from condor_actors.cores.match_settings import MatchSettings
from condor_actors.cores.negotiation_cycle import CycleSettings
from condor_actors.cores.user_priority import PriorityPolicy, UserRecord

__all__ = ["cycle_settings", "match_settings", "priority_policy"]


def cycle_settings(config: Config) -> CycleSettings:
    """Times and sizes of the cycle."""
    return CycleSettings(
        interval_s=config.seconds("NEGOTIATOR_INTERVAL"), min_interval_s=config.seconds("NEGOTIATOR_MIN_INTERVAL"),
        delay_s=config.seconds("NEGOTIATOR_CYCLE_DELAY"), timeout_s=config.seconds("NEGOTIATOR_TIMEOUT"),
        list_size=config.integer("NEGOTIATOR_RESOURCE_REQUEST_LIST_SIZE"),
    )


def match_settings(config: Config) -> MatchSettings:
    """The expressions by which slots and jobs are judged."""
    return MatchSettings(
        pre_job_rank=config.expression("NEGOTIATOR_PRE_JOB_RANK"),
        post_job_rank=config.expression("NEGOTIATOR_POST_JOB_RANK"),
        preemption_requirements=config.expression("PREEMPTION_REQUIREMENTS"),
        preemption_rank=config.expression("PREEMPTION_RANK"),
        slot_constraint=config.expression("NEGOTIATOR_SLOT_CONSTRAINT"),
        job_constraint=config.expression("NEGOTIATOR_JOB_CONSTRAINT"),
        consider_preemption=config.boolean("NEGOTIATOR_CONSIDER_PREEMPTION"),
    )


def priority_policy(config: Config, users: Mapping[str, UserRecord]) -> PriorityPolicy:
    """The policy that PRIORITY_POLICY names, with the accountant's records."""
    return FairShare(fair_share_settings(config), users)


def fair_share_settings(config: Config) -> FairShareSettings:
    """Half-life and factors."""
    factors = {}
    for group in config.list_of("GROUP_NAMES"):
        factor = config.text(f"GROUP_PRIO_FACTOR_{group}")
        if factor is not None:
            factors[group.lower()] = float(factor)
    return FairShareSettings(
        half_life_s=config.seconds("PRIORITY_HALFLIFE"), default_factor=config.real("DEFAULT_PRIO_FACTOR"),
        nice_factor=config.real("NICE_USER_PRIO_FACTOR"), remote_factor=config.real("REMOTE_PRIO_FACTOR"),
        local_domain=config.text("ACCOUNTANT_LOCAL_DOMAIN") or "", group_factors=factors,
    )
