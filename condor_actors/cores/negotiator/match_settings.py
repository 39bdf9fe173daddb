"""The expressions by which the negotiator judges slots and jobs."""

from __future__ import annotations

import attrs

from condor_actors.classads import Expr, is_true, parse_expression
from condor_actors.classads.language.expressions import Literal

__all__ = ["MatchSettings"]

PRE_JOB_RANK = "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory"
POST_JOB_RANK = (
    "(RemoteOwner =?= UNDEFINED) * (ifThenElse(isUndefined(KFlops), 1000, KFlops) - SlotID"
    " - 1.0e10 * (Offline =?= True))"
)


@attrs.frozen(kw_only=True)
class MatchSettings:
    """The expressions of the negotiator; None where one is not set.

    Attributes:
        pre_job_rank, post_job_rank: before and after the job's Rank.
        preemption_requirements, preemption_rank: of preemption by priority.
        slot_constraint, job_constraint, submitter_constraint: which of them are considered at all.
        consider_preemption: whether slots that someone has are candidates; early_preemption: also while the job that
            runs there is within the time it was promised.
    """

    pre_job_rank: Expr | None = attrs.field(factory=lambda: parse_expression(PRE_JOB_RANK))
    post_job_rank: Expr | None = attrs.field(factory=lambda: parse_expression(POST_JOB_RANK))
    preemption_requirements: Expr | None = None
    preemption_rank: Expr | None = None
    slot_constraint: Expr | None = None
    job_constraint: Expr | None = None
    submitter_constraint: Expr | None = None
    consider_preemption: bool = True
    early_preemption: bool = False

    @property
    def may_preempt_for_priority(self) -> bool:
        """Whether PREEMPTION_REQUIREMENTS can be true at all."""
        expression = self.preemption_requirements
        return expression is not None and not (isinstance(expression, Literal) and not is_true(expression.value))
