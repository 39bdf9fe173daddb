"""What ended jobs asked for and did not use."""

from __future__ import annotations

import math

import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.answers.oversized import Requests, advice_for


def ended(memory: float = 900, asked: object = 8192, busy: float = 0.97, cpus: object = 1,
          wall: float = 600) -> ClassAd:
    return ClassAd({"MemoryUsage": memory, "RequestMemory": asked, "CpusUsage": busy, "RequestCpus": cpus,
                    "RemoteWallClockTime": wall})


def test_too_much_memory() -> None:
    assert advice_for(ended()) == ("It asked for 8 GB and used 900 MB; request_memory = 1.2GB would have let up to "
                                   "6 times as many run at a time.")


def test_too_many_processors_and_both() -> None:
    assert advice_for(ended(4000, 4096, cpus=4)) == (
        "It asked for 4 processors and kept 1.0 busy; request_cpus = 1 would have let up to 4 times as many run at a "
        "time.")
    both = advice_for(ended(cpus=4))
    assert both.startswith("It asked for 8 GB and used 900 MB, for 4 processors and kept 1.0 busy; "
                           "request_memory = 1.2GB ")
    assert "and request_cpus = 1 would have let up to 4 times" in both


def test_the_largest_of_a_cluster_counts() -> None:
    requests = Requests()
    for used in (100, 3000, 900):
        requests.take(ended(used), 600)
    assert requests.advice().startswith("asked for 8 GB and used 2.9 GB at most; request_memory = 3.9GB ")
    requests.take(ended(7000), 600)
    assert requests.advice() == ""


@pytest.mark.parametrize("ad", [
    ended(asked=1024), ended(100, 256), ended(0), ended(-1), ended(math.inf), ended(math.nan), ended(asked=1e300),
    ended(asked="lots"), ended(4000, 4096, cpus=4, wall=5), ended(4000, 4096, cpus=4, busy=2.2),
    ended(4000, 4096, 0.01), ClassAd(), ClassAd({"RequestMemory": 8192}),
])
def test_what_suits_or_is_not_known(ad: ClassAd) -> None:
    assert advice_for(ad) == ""


def test_the_default_request_is_what_is_used() -> None:
    ad = ended(600)
    ad["RequestMemory"] = parse_expression("ifThenElse(MemoryUsage =!= undefined, MemoryUsage, 128)")
    assert advice_for(ad) == ""
