"""The expressions by which the negotiator judges slots and jobs."""

from __future__ import annotations

import attrs

from condor_actors.classads import Expr, is_true
from condor_actors.classads.language.expressions import Literal
from condor_actors.config.settings import setting

__all__ = ["MatchSettings"]


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

    pre_job_rank: Expr | None = setting("NEGOTIATOR_PRE_JOB_RANK")
    post_job_rank: Expr | None = setting("NEGOTIATOR_POST_JOB_RANK")
    preemption_requirements: Expr | None = None
    preemption_rank: Expr | None = setting("PREEMPTION_RANK")
    slot_constraint: Expr | None = setting("NEGOTIATOR_SLOT_CONSTRAINT")
    job_constraint: Expr | None = setting("NEGOTIATOR_JOB_CONSTRAINT")
    submitter_constraint: Expr | None = setting("NEGOTIATOR_SUBMITTER_CONSTRAINT")
    consider_preemption: bool = setting("NEGOTIATOR_CONSIDER_PREEMPTION")
    early_preemption: bool = setting("NEGOTIATOR_CONSIDER_EARLY_PREEMPTION")

    @property
    def may_preempt_for_priority(self) -> bool:
        """Whether PREEMPTION_REQUIREMENTS can be true at all."""
        expression = self.preemption_requirements
        return expression is not None and not (isinstance(expression, Literal) and not is_true(expression.value))
