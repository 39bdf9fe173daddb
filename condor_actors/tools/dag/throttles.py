"""The limits of a run as its own job's ad has them: shown there, and taken from there when they change.

So ``htcondor dag throttle`` and ``condor_qedit`` change them while the DAG runs, and they outlive its process.

**Source**: the manual, job ClassAd attributes, ``DAGMan_MaxJobs`` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from condor_actors.classads import ClassAd
from condor_actors.dag.run_events import ThrottlesSet
from condor_actors.dag.run_state import RunSettings

__all__ = ["ATTRIBUTES", "SHOWN", "Throttles", "is_possible"]

ATTRIBUTES = {
    "idle": "DAGMan_MaxIdle", "jobs": "DAGMan_MaxJobs", "pre": "DAGMan_MaxPreScripts", "hold": "DAGMan_MaxHoldScripts",
    "post": "DAGMan_MaxPostScripts", "submits": "DAGMan_MaxSubmitsPerInterval",
}
SHOWN = {
    "DAGMan_MaxIdle": "Maximum Idle Jobs", "DAGMan_MaxJobs": "Maximum Submitted Nodes",
    "DAGMan_MaxPreScripts": "Maximum Pre Scripts", "DAGMan_MaxHoldScripts": "Maximum Hold Scripts",
    "DAGMan_MaxPostScripts": "Maximum Post Scripts", "DAGMan_MaxSubmitsPerInterval": "Maximum Submits Per Interval",
}
MOST, MOST_SUBMITS = 2**31 - 1, 1000


def is_possible(name: str, value: object) -> bool:
    """Whether VALUE can be the limit NAME, one of `ATTRIBUTES`; 0 is no limit, but for submissions."""
    low, high = (1, MOST_SUBMITS) if name == "submits" else (0, MOST)
    return type(value) is int and low <= value <= high


@attrs.frozen
class Throttles:
    """The limits: nodes with jobs, idle jobs, scripts of each kind, nodes that are submitted together."""

    jobs: int
    idle: int
    pre: int
    post: int
    hold: int
    submits: int

    @classmethod
    def of_settings(cls, settings: RunSettings, submits: int) -> Throttles:
        """Those that a run begins with."""
        return cls(settings.jobs, settings.idle, settings.pre, settings.post, settings.hold, submits)

    def as_in(self, ad: ClassAd) -> Throttles:
        """With what the ad says of them; what cannot be a limit is ignored."""
        said = {name: ad.evaluate(attribute) for name, attribute in ATTRIBUTES.items()}
        return attrs.evolve(self, **{name: value for name, value in said.items() if is_possible(name, value)})

    def attributes(self) -> Mapping[str, int]:
        """As the ad of the DAG's own job has them."""
        return {attribute: getattr(self, name) for name, attribute in ATTRIBUTES.items()}

    def event(self) -> ThrottlesSet:
        """What the run is told."""
        return ThrottlesSet(self.jobs, self.idle, self.pre, self.post, self.hold)

    def lines(self) -> list[str]:
        """What dagman.out says of them."""
        return ["Setting DAGMan throttles:", *shown(self.attributes())]


def shown(values: Mapping[str, int]) -> list[str]:
    """A line for each limit of an ad."""
    return [f"\t{text.ljust(30, '-')}: {values[attribute]}" for attribute, text in SHOWN.items() if attribute in values]
