"""A queue that is read from the store stands as if its jobs had come one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.schedd.change_journal import Position
from condor_actors.cores.schedd.job_queue import JobQueue
from condor_actors.cores.schedd.queue_operations import QueueSnapshot, SaveCluster, SaveJob
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.cores.schedd.schedd_core import ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings

SHARED = ({}, {}, {"JobPrio": 3}, {"JobUniverse": 12}, {"DeferralTime": 9_999_999_999},
          {"AccountingGroup": "physics.ann"}, {"JobStatus": 5})
OWN = ({}, {}, {"ProcArgs": "x"}, {"JobPrio": 7}, {"RequestMemory": 5}, {"AccountingGroup": "chem"}, {"JobStatus": 5},
       {"JobStatus": 2}, {"JobUniverse": 12}, {"DeferralTime": 9_999_999_999}, {"PreJobPrio1": 1, "RequestCpus": 2},
       {"Wish": 1})


def snapshot(chance: Random) -> QueueSnapshot:
    """Some clusters whose jobs differ in what decides where they stand."""
    clusters, jobs = [], []
    for number in range(1, 9):
        owner = chance.choice(("ann", "bob"))
        ad = ClassAd({"Owner": owner, "User": f"{owner}@dom", "JobStatus": 1, "JobUniverse": 5, "RequestMemory": 1,
                      **chance.choice(SHARED)})
        ad.insert_text("Requirements", "TARGET.Memory > RequestMemory && Wish =!= 2")
        count = chance.randrange(1, 9)
        clusters.append(SaveCluster(number, owner, count, 1, ad.to_bytes()))
        jobs += [SaveJob(number, proc, ClassAd({"ProcId": proc, **chance.choice(OWN)}).to_bytes())
                 for proc in range(count) if proc == 0 or chance.random() < 0.8]
    return QueueSnapshot(counters={"next_cluster": 9}, clusters=tuple(clusters), jobs=tuple(jobs),
                         checkpoint_key=b"k" * 32)


def one_by_one(snapshot: QueueSnapshot, settings: ScheddSettings) -> ScheddCore:
    """The same queue, built as jobs come in."""
    core = ScheddCore(settings, QueueSnapshot(checkpoint_key=b"k" * 32), Random(1), 5.0, "v")
    queue = core.context.queue
    queue.next_cluster = 9
    for row in snapshot.clusters:
        ad = ClassAd.from_bytes(row.ad)
        queue.clusters[row.cluster] = Cluster(row.cluster, row.owner, ad, row.total, row.version)
    for each in snapshot.jobs:
        ad = ClassAd.from_bytes(each.ad)
        ad.parent = queue.clusters[each.cluster].ad
        queue.enter(queue.clusters[each.cluster], each.proc, ad)
    for job in queue.jobs():
        if job.status == 2:
            core.transitions.requeue(job)
        core.transitions.offer(job)
    return core


def standing(core: ScheddCore) -> dict[str, Any]:
    """Where everything stands."""
    queue, autoclusters = core.context.queue, core.context.autoclusters
    queue.validate()
    classes = {each.number: each for each in autoclusters.by_number.values()}
    return {
        "jobs": {job.name: (job.status, job.order, classes[job.autocluster].signature if job.order else None)
                 for job in queue.jobs()},
        "waiting": {each.signature: each.waiting for each in classes.values() if each.waiting},
        "first": {each: [(autocluster.signature, job.name) for autocluster, job in autoclusters.of_submitter(each)]
                  for each in sorted(queue.by_submitter)},
        "local": {kind: sorted(job.name for job in jobs)
                  for kind, jobs in core.transitions.local.waiting.items() if jobs},
        "counts": (queue.everybody, queue.by_owner, queue.by_submitter),
        "apart": {number: cluster.apart for number, cluster in queue.clusters.items()},
    }


@pytest.mark.parametrize("priority", [None, "JobPrio + RequestMemory"])
def test_restored_jobs_stand_where_they_would_stand_one_by_one(priority: str | None) -> None:
    expression = None if priority is None else parse_expression(priority)
    settings = ScheddSettings(name="s", uid_domain="dom", priority=expression)
    for seed in range(200):
        saved = snapshot(Random(seed))
        restored = ScheddCore(settings, saved, Random(1), 5.0, "v")
        assert standing(restored) == standing(one_by_one(saved, settings)), seed


def test_a_follower_of_an_earlier_life_begins_anew() -> None:
    queue = JobQueue()
    queue.restore(snapshot(Random(1)))
    assert not queue.changes.is_known(Position("0", 3))
    assert queue.changes.is_known(Position(queue.changes.life, queue.changes.number))
