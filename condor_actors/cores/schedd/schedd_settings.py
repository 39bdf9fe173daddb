"""What the schedd's core needs of the configuration, as one frozen value."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo

import attrs

from condor_actors.classads import Expr, parse_expression
from condor_actors.config import Config
from condor_actors.config.collectors import collector_nodes
from condor_actors.config.settings import setting
from condor_actors.config.transforms import read_transform
from condor_actors.cores.flock_lists import FlockLists
from condor_actors.cores.schedd.charging import ChargeRule, Charging, charge_rule
from condor_actors.cores.schedd.job_attributes import PRIVATE
from condor_actors.cores.schedd.job_transforms import JobTransforms

__all__ = ["ScheddSettings", "SubmitRequirement", "SystemPolicy", "schedd_settings"]


@attrs.frozen(kw_only=True)
class SystemPolicy:
    """One ``SYSTEM_PERIODIC_…`` expression, the name of its parameter, and its reason and subcode."""

    expression: Expr
    name: str = ""
    reason: Expr | None = None
    subcode: Expr | None = None


@attrs.frozen(kw_only=True)
class SubmitRequirement:
    """One SUBMIT_REQUIREMENT_: what a new job has to satisfy; ``reason``: what its submitter is told otherwise."""

    name: str
    expression: Expr
    reason: Expr | None = None
    is_warning: Expr | None = None


@attrs.frozen(kw_only=True)
class ScheddSettings:
    """The configuration of the schedd's core, as one frozen value.

    Attributes:
        name: the schedd's name in ads and job ids.
        machine: this host's full name.
        uid_domain: what follows the user's name in ``User``.
        super_users: who may act on everybody's jobs.
        max_jobs_running: runs at once.
        max_jobs_per_owner, max_jobs_submitted, max_jobs_per_submission: limits of the queue.
        uses_sets: whether jobs are gathered in sets.
        job_start_count, job_start_delay_s: so many starts per span; no span: no limit.
        max_start_gap_s: the longest time that a job may keep its owner's next one waiting (NextJobStartDelay).
        job_lease_s: how long a run lives without its shadow.
        claim_lease_s: how long a claim lives without us.
        keep_claim_idle_s: how long to keep a claim that no job fits.
        unused_claim_s: how long claims are gathered for a gang that is not whole.
        policy_interval_s: between two looks at the jobs' periodic expressions; 0: never.
        hold_policies, release_policies, remove_policies, vacate_policies: the system's, in the order they are asked.
        max_releases: a job that was held so often is not released by any policy; -1: no limit.
        priority: the PRIO expression; None: by the job's priority attributes.
        advertise_interval_s: between two ads when nothing changes.
        collectors: nodes of the collectors.
        spool: where spooled files lie.
        spare_hosts: shadow hosts kept warm.
        history_limit: jobs kept in the history; history_most: the most that one answer has of them.
        submit_requirements: over the schedd's ad and a new job's.
        transforms: what is changed in new jobs.
        secure: job attributes, lower case, that only the schedd sets; ``ignores_secure``: they are passed over where
            someone else does, and not refused.
        immutable, protected: further job attributes, lower case, that nobody or only a super user edits.
        private: job attributes, lower case, that only their owners and super users see.
        charging: who may charge whom.
        max_lost_runs: a job of which so many runs in a row were lost is held; 0: never.
        max_reserved: submissions that a user may have begun and not finished.
        trusts_everybody: every user may act on every job.
        start_local, start_scheduler: whether a job of that universe may start, over the schedd's ad and the job's.
        max_local_jobs, max_scheduler_jobs_per_owner: so many of them run at once.
        max_grid_jobs_per_owner: so many are in other batch systems.
        flock: pools that take the jobs which this one does not serve.
        alive_interval_s: the longest time between two renewals of a claim.
        more_significant, less_significant: job attributes, lower case, that always or never tell autoclusters apart;
            ``only_significant``: these and no others, where there are any.
        records_events: there is a log of the events of all jobs (EVENT_LOG); records_epochs: and one of all runs
            (JOB_EPOCH_HISTORY); transfer_attributes: of a job, that are in the records of its files' travels.
        zone: whose minutes and days the cron schedules of jobs mean.
        max_input_mb, max_output_mb: the most that travels for a job that does not say; below 0: any amount.
    """

    name: str = "schedd@localhost"
    machine: str = "localhost"
    uid_domain: str = attrs.field(default=attrs.Factory(lambda self: self.machine, takes_self=True))
    super_users: frozenset[str] = frozenset({"root", "condor"})
    max_jobs_running: int = setting("MAX_JOBS_RUNNING")
    max_jobs_per_owner: int = setting("MAX_JOBS_PER_OWNER")
    max_jobs_submitted: int = setting("MAX_JOBS_SUBMITTED")
    max_jobs_per_submission: int = setting("MAX_JOBS_PER_SUBMISSION")
    uses_sets: bool = setting("USE_JOBSETS")
    job_start_count: int = setting("JOB_START_COUNT")
    job_start_delay_s: float = setting("JOB_START_DELAY")
    max_start_gap_s: float = setting("MAX_NEXT_JOB_START_DELAY")
    job_lease_s: float = setting("JOB_DEFAULT_LEASE_DURATION")
    claim_lease_s: float = 2400.0
    keep_claim_idle_s: float = 0.0
    unused_claim_s: float = setting("UNUSED_CLAIM_TIMEOUT")
    policy_interval_s: float = setting("PERIODIC_EXPR_INTERVAL")
    hold_policies: tuple[SystemPolicy, ...] = ()
    release_policies: tuple[SystemPolicy, ...] = ()
    remove_policies: tuple[SystemPolicy, ...] = ()
    vacate_policies: tuple[SystemPolicy, ...] = ()
    max_releases: int = setting("SYSTEM_MAX_RELEASES")
    priority: Expr | None = None
    advertise_interval_s: float = setting("SCHEDD_INTERVAL")
    collectors: tuple[str, ...] = ()
    spool: str = ""
    submit_requirements: tuple[SubmitRequirement, ...] = ()
    transforms: JobTransforms = attrs.field(factory=JobTransforms)
    secure: frozenset[str] = frozenset()
    ignores_secure: bool = setting("IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS")
    immutable: frozenset[str] = frozenset()
    protected: frozenset[str] = frozenset()
    private: frozenset[str] = PRIVATE
    charging: Charging = attrs.field(default=attrs.Factory(lambda self: Charging(uid_domain=self.uid_domain),
                                                           takes_self=True))
    max_lost_runs: int = setting("MAX_LOST_RUNS")
    max_reserved: int = setting("MAX_RESERVED_CLUSTERS_PER_OWNER")
    trusts_everybody: bool = setting("QUEUE_ALL_USERS_TRUSTED")
    start_local: Expr | None = None
    start_scheduler: Expr | None = None
    max_local_jobs: int = setting("START_LOCAL_UNIVERSE_MAX")
    max_grid_jobs_per_owner: int = setting("GRIDMANAGER_MAX_SUBMITTED_JOBS_PER_RESOURCE")
    max_scheduler_jobs_per_owner: int = setting("MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER")
    alive_interval_s: float = setting("ALIVE_INTERVAL")
    flock: FlockLists = attrs.field(factory=FlockLists)
    more_significant: frozenset[str] = frozenset()
    less_significant: frozenset[str] = frozenset()
    only_significant: frozenset[str] = frozenset()
    records_events: bool = False
    records_epochs: bool = False
    transfer_attributes: tuple[str, ...] = ()
    max_input_mb: int = setting("MAX_TRANSFER_INPUT_MB")
    max_output_mb: int = setting("MAX_TRANSFER_OUTPUT_MB")
    zone: tzinfo = UTC
    spare_hosts: int = 1
    history_limit: int = setting("MAX_HISTORY_JOBS")
    history_most: int = setting("HISTORY_HELPER_MAX_HISTORY")


def schedd_settings(config: Config, *, machine: str, account: str = "condor",
                    zone: tzinfo = UTC) -> ScheddSettings:
    """Read them.

    Args:
        config: the configuration.
        machine: the name of this machine.
        zone: see :class:`ScheddSettings`.
        account: that of the schedd's process: who has it could read the schedd's memory, and may do all that it may.

    Raises:
        ConfigError: a value is not of its kind.
    """

    def expression(name: str) -> Expr | None:
        text = config.text(name)
        return parse_expression(text) if text is not None else None

    def policies(what: str) -> tuple[SystemPolicy, ...]:
        """Those that SYSTEM_PERIODIC_<what>_NAMES lists, then the one without a name."""
        named = [f"SYSTEM_PERIODIC_{what}_{name}" for name in config.list_of(f"SYSTEM_PERIODIC_{what}_NAMES")]
        return tuple(SystemPolicy(expression=found, name=name, reason=expression(f"{name}_REASON"),
                                  subcode=expression(f"{name}_SUBCODE"))
                     for name in (*named, f"SYSTEM_PERIODIC_{what}") if (found := expression(name)) is not None)

    def attributes(*parameters: str) -> frozenset[str]:
        return frozenset(word.lower() for parameter in parameters for word in config.list_of(parameter))

    def requirements() -> Iterator[SubmitRequirement]:
        for each in config.list_of("SUBMIT_REQUIREMENT_NAMES"):
            found = expression(f"SUBMIT_REQUIREMENT_{each}")
            if found is not None:
                yield SubmitRequirement(name=each, expression=found,
                                        reason=expression(f"SUBMIT_REQUIREMENT_{each}_REASON"),
                                        is_warning=expression(f"SUBMIT_REQUIREMENT_{each}_IS_WARNING"))

    wanted = config.text("SCHEDD_NAME") or ""
    name = machine if not wanted else wanted if "@" in wanted else f"{wanted}@{machine}"
    return config.settings(
        ScheddSettings, zone=zone, name=name, machine=machine, uid_domain=config.needed_text("UID_DOMAIN"),
        super_users=frozenset({"root", "condor", account, *config.list_of("QUEUE_SUPER_USERS")}),
        hold_policies=policies("HOLD"), release_policies=policies("RELEASE"), remove_policies=policies("REMOVE"),
        vacate_policies=policies("VACATE"),
        priority=expression("PRIO"),
        collectors=collector_nodes(config), spool=config.text("SPOOL") or "",
        submit_requirements=tuple(requirements()), transforms=job_transforms(config),
        secure=attributes("SYSTEM_SECURE_JOB_ATTRS", "SECURE_JOB_ATTRS"),
        immutable=attributes("SYSTEM_IMMUTABLE_JOB_ATTRS", "IMMUTABLE_JOB_ATTRS"),
        protected=attributes("SYSTEM_PROTECTED_JOB_ATTRS", "PROTECTED_JOB_ATTRS"),
        private=attributes("PRIVATE_JOB_ATTRS"), charging=_charging(config),
        start_local=expression("START_LOCAL_UNIVERSE"), start_scheduler=expression("START_SCHEDULER_UNIVERSE"),
        more_significant=attributes("ADD_SIGNIFICANT_ATTRIBUTES"),
        less_significant=attributes("REMOVE_SIGNIFICANT_ATTRIBUTES"),
        only_significant=attributes("SIGNIFICANT_ATTRIBUTES"),
        records_events=config.text("EVENT_LOG") is not None,
        records_epochs=bool(config.text("JOB_EPOCH_HISTORY")),
        transfer_attributes=tuple(config.list_of("TRANSFER_JOB_ATTRS")), flock=_flock_lists(config),
    )


def _flock_lists(config: Config) -> FlockLists:
    """Which other pools jobs may go to.

    Raises:
        ConfigError: a value is not of its kind.
    """
    return config.settings(FlockLists, permitted=tuple(config.list_of("FLOCK_TO")),
                           default=tuple(config.list_of("FLOCK_COLLECTOR_HOSTS")))


def _charging(config: Config) -> Charging:
    """Who may charge whom.

    Raises:
        ConfigError: a rule is none.
    """
    def rules(name: str) -> tuple[ChargeRule, ...]:
        try:
            return tuple(charge_rule(each) for each in config.list_of(name))
        except ValueError as error:
            raise config.unusable(name, str(error)) from None

    groups = rules("CHARGE_ALLOW_GROUPS")
    return Charging(uid_domain=config.needed_text("UID_DOMAIN"), users=rules("CHARGE_ALLOW_USERS"),
                    groups=groups or None)


def job_transforms(config: Config) -> JobTransforms:
    """Those that JOB_TRANSFORM_NAMES lists.

    Raises:
        ConfigError: one of them is not defined, or has a statement that is none.
    """
    found = []
    for name in config.list_of("JOB_TRANSFORM_NAMES"):
        raw = config.raw(f"JOB_TRANSFORM_{name}")
        if raw is None or not raw.strip():
            raise config.unusable(
                "JOB_TRANSFORM_NAMES", f"JOB_TRANSFORM_NAMES lists {name}, but there is no JOB_TRANSFORM_{name}",
                "names of transforms that are defined", value=name)
        found.append(read_transform(name, raw))
    return JobTransforms(transforms=tuple(found), lookup=config.raw, functions=config.macros.functions)
