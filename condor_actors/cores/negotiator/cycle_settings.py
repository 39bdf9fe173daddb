"""What a negotiation cycle is told by the configuration: times, sizes, and the limits of users."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from condor_actors.config.settings import setting
from condor_actors.cores.negotiator.group_quotas import GroupTree
from condor_actors.cores.negotiator.time_budget import SLICE_S

__all__ = ["CycleRules", "CycleSettings"]


@attrs.frozen(kw_only=True)
class CycleSettings:
    """Times and sizes of a cycle; see the parameters of the same names.

    Attributes:
        soft_delay_s: how long a change that only may matter waits for a cycle.
        patience_s: how long the decision waits for a schedd that does not answer.
        most_requests: of one submitter in one cycle.
        inform_startd: whether startds hear of matches from the negotiator too.
        trace_cycles: for how many cycles a request's fate is kept.
        longest_s: how long a cycle may go on; submitter_s: how much time of it one submitter's requests may take,
            slice_s: and how much of one turn.
        use_counts: whether a request may get a slot for each of its jobs in one cycle, or for the first alone.
    """

    interval_s: float = setting("NEGOTIATOR_INTERVAL")
    min_interval_s: float = setting("NEGOTIATOR_MIN_INTERVAL")
    delay_s: float = setting("NEGOTIATOR_CYCLE_DELAY")
    soft_delay_s: float = 1.0
    timeout_s: float = setting("NEGOTIATOR_TIMEOUT")
    patience_s: float = 2.0
    list_size: int = setting("NEGOTIATOR_RESOURCE_REQUEST_LIST_SIZE")
    most_requests: int = 100_000
    inform_startd: bool = True
    trace_cycles: int = setting("NEGOTIATOR_TRACE_CYCLES")
    use_counts: bool = setting("USE_RESOURCE_REQUEST_COUNTS")
    longest_s: float = setting("NEGOTIATOR_MAX_TIME_PER_CYCLE")
    submitter_s: float = setting("NEGOTIATOR_MAX_TIME_PER_SUBMITTER")
    slice_s: float = SLICE_S


@attrs.frozen(kw_only=True)
class CycleRules:
    """What limits users beside their priority: accounting groups, and the size of each concurrency limit."""

    groups: GroupTree = attrs.field(factory=GroupTree)
    limit_of: Callable[[str], float] = lambda name: float("inf")
