"""Jobs of the local universes begin when something has changed for them, within their limits."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.schedd.local_jobs import SOME, LocalJobs, LocalStarts
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.effects import SetTimer
from condor_actors.messages.codes import JobStatus, Universe


class Bench:
    """Jobs that wait, and those that began."""

    def __init__(self, **settings: str) -> None:
        environ = {f"_CONDOR_{name}": value for name, value in settings.items()}
        self.context = ScheddContext(schedd_settings(load_config(files=[], environ=environ), machine="here"))
        self.jobs = LocalJobs()
        self.began: list[Job] = []
        self.looked = 0
        self.starts = LocalStarts(self.context, self.jobs, self._begin, self.jobs.remove)
        self.starts.schedd_ad = self._ad

    def _ad(self) -> ClassAd:
        self.looked += 1
        return ClassAd({"Name": "s"})

    def _begin(self, job: Job) -> None:
        self.jobs.remove(job)
        self.began.append(job)
        self.starts.began(f"{job.cluster.owner} {job.proc}", job)

    def add(self, count: int, universe: int = Universe.LOCAL, owner: str = "alice", **attributes: object) -> None:
        ad = ClassAd({"ClusterId": 1, "Owner": owner, "User": f"{owner}@here", "JobUniverse": int(universe)})
        cluster = Cluster(1, owner, ad, count)
        for proc in range(count):
            own = ClassAd({"ProcId": proc, **attributes})
            own.parent = ad
            self.jobs.add(Job(cluster, proc, own, JobStatus.IDLE))


def test_all_begin_where_nothing_limits_them() -> None:
    bench = Bench()
    bench.add(3 * SOME)
    for _ in range(3):
        bench.starts.round()
    assert [job.proc for job in bench.began] == list(range(3 * SOME))
    assert not bench.jobs


def test_those_that_may_not_begin_are_looked_at_again_when_something_changed() -> None:
    bench = Bench(START_LOCAL_UNIVERSE="TotalLocalJobsRunning < 2")
    bench.add(5)
    for _ in range(10):
        bench.starts.round()
    assert len(bench.began) == 2
    assert bench.looked == 1
    assert any(isinstance(effect, SetTimer) and effect.key == ("locals",) for effect in bench.context.out)
    bench.starts.ended("alice 0")
    bench.starts.round()
    assert [job.proc for job in bench.began] == [0, 1, 2]
    bench.starts.ended("no run of ours")
    bench.starts.round()
    assert bench.looked == 2


def test_one_that_is_refused_keeps_no_other_from_beginning() -> None:
    bench = Bench(START_LOCAL_UNIVERSE="TARGET.Welcome")
    bench.add(2 * SOME, Welcome=False)
    bench.add(3, Welcome=True)
    for _ in range(4):
        bench.starts.again()
        bench.starts.round()
    assert len(bench.began) == 3


def test_each_owner_has_as_many_of_the_scheduler_universe_as_are_allowed() -> None:
    bench = Bench(START_SCHEDULER_UNIVERSE="true", MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER="2")
    bench.add(5, Universe.SCHEDULER)
    bench.add(5, Universe.SCHEDULER, "bob")
    bench.starts.round()
    assert [job.cluster.owner for job in bench.began] == ["alice", "alice", "bob", "bob"]
    bench.starts.validate(["alice 0", "alice 1", "bob 0", "bob 1"])
    with pytest.raises(InvariantBroken):
        bench.starts.validate(["alice 0"])
