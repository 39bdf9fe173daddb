"""In which order an owner's jobs run: by their priorities, or by the expression PRIO."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.schedd_settings import schedd_settings


@pytest.mark.parametrize(("text", "order"), [
    ("", [3, 2, 1, 0]),
    ("PRIO = UserPrio * 10 - QDate / 1000000000.0\n", [3, 2, 1, 0]),
    ("PRIO = -UserPrio\n", [0, 1, 2, 3]),
    ("PRIO = RequestMemory\n", [1, 2, 3, 0]),
    ("PRIO = NoSuchAttribute\n", [0, 1, 2, 3]),
])
def test_the_order_of_an_owners_jobs(tmp_path: Path, text: str, order: list[int]) -> None:
    file = tmp_path / "condor_config"
    file.write_text(text)
    context = ScheddContext(schedd_settings(load_config(files=[file], environ={}), machine="here"))
    cluster = Cluster(1, "alice", ClassAd({"ClusterId": 1, "QDate": 1_700_000_000}), 4)
    for proc in range(4):
        ad = ClassAd({"ProcId": proc, "JobPrio": proc, "RequestMemory": 100 if proc else 1})
        ad.parent = cluster.ad
        context.autoclusters.add(context.queue.enter(cluster, proc, ad))
    ran = []
    while wanting := list(context.autoclusters.of_submitter(cluster.submitter)):
        job = wanting[0][1]
        ran.append(job.proc)
        context.autoclusters.remove(job)
    assert ran == order
