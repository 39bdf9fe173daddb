"""A job's story: runs put together from lines."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.web.story import job_story, kind_of


@pytest.mark.parametrize(("text", "kind"), [
    ("submitted by ann", "submitted"), ("run 1 begins on slot1@m", "run"), ("run 1 ended: evicted", "end"),
    ("held (1): why", "held"), ("since then held: why", "held"), ("not matched: no", "refused"), ("whatever", "note"),
])
def test_kinds(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_runs_have_hosts_and_ends() -> None:
    lines = ((1.0, "submitted by ann"), (2.0, "run 1 began on slot1@a"), (2.0, "run 1 begins on slot1@a"),
             (5.0, "run 1 ended: evicted owner came"), (9.0, "run 2 begins on slot2@b"))
    told = job_story("s", ClassAd({"ClusterId": 3, "ProcId": 1, "JobStatus": 2, "Owner": "ann"}), lines, False)
    assert told["id"] == "3.1"
    assert told["runs"] == [
        {"number": 1, "host": "slot1@a", "began": 2.0, "ended": 5.0, "how": "evicted owner came"},
        {"number": 2, "host": "slot2@b", "began": 9.0, "ended": 0.0, "how": ""}]


def test_a_run_whose_end_nobody_remembers_ends_with_the_job() -> None:
    ad = ClassAd({"JobStatus": 4, "CompletionDate": 50})
    assert job_story("s", ad, ((9.0, "run 1 began on x"),), True)["runs"][0]["ended"] == 50.0
