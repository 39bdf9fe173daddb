"""What a pool keeps of jobs that have ended does not grow with their number, but for what has a bound of its own."""

from __future__ import annotations

import gc
from collections import Counter

from condor_actors.daemons.shadow.shadow import _slot_ad
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, run

JOBS_A_CLUSTER = 10
EVERY_S = 60.0
BOUNDED = {"ArchiveJob", "AdRecord", "Times"}
"""The history, which is on the simulated disk; the collector's records of slots that are gone, without their ads, as
many as it has others and a thousand; one for each kind of turn."""


def kept_after(clusters: int) -> Counter[str]:
    """How many objects of each class of the pool's daemons, and ads, are there when so many clusters have ended.

    Leases and timeouts of the last runs are over by then; all else is as long after the start as in any other run.
    """
    result = run(Scenario(
        seed=7, checks=False, machines=(
            MachineSpec("m0", central=True, submits=True, executes=False), MachineSpec("m1", cpus=4, memory_mib=8192)),
        submissions=tuple(Submission(when_s=30.0 + EVERY_S * number, owner="alice", machine="m0", count=JOBS_A_CLUSTER,
                                     cpu_s=5.0) for number in range(clusters)),
        span_s=7200.0, quiet_s=3600.0))
    assert result.completed == clusters * JOBS_A_CLUSTER
    assert not result.violations
    _slot_ad.cache_clear()  # the ads of the last claims, as many as it is told to keep
    gc.collect()
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in map(type, gc.get_objects())
                   if str(kind.__module__).startswith("condor_actors.") and kind.__qualname__ not in BOUNDED
                   and not kind.__module__.startswith("condor_actors.simulation."))


def test_twice_as_many_jobs_leave_no_more_objects() -> None:
    kept_after(1)  # what is made once: caches of modules
    few, many = kept_after(6), kept_after(12)
    grown = {name: (few[name], count) for name, count in many.items() if count > few[name] + JOBS_A_CLUSTER // 2}
    assert few["condor_actors.classads.ad.ClassAd"] > 0
    assert not grown, "objects of ended jobs are kept: name, after 60 jobs, after 120"
