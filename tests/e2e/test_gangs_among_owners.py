"""Many gangs on few machines whose owner returns: none waits for another, each runs as a whole, and ends once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.test_gangs import program
from tests.e2e.test_vanilla import folder
from tests.pool_fixture import PersonalPool, fresh_folder, until

MEMBER = """#!/bin/sh
# A member ends when all members of its gang have begun: of a part of a gang it never does.
echo $_CONDOR_PROCNO >> began.$1.$_CONDOR_PROCNO
while [ $(ls began.$1.* | wc -l) -lt $_CONDOR_NPROCS ]; do sleep 0.1; done
sleep $2
"""
FEWEST, MOST = 2, 8
"""Nodes of a gang."""


@pytest.fixture
def pool(request: pytest.FixtureRequest) -> Iterator[PersonalPool]:
    with fresh_folder() as made:
        pool = PersonalPool(made, slots=request.param)
        yield pool
        pool.stop()


@pytest.mark.parametrize(("pool", "gangs", "visits"), [
    pytest.param(8, 6, 2, id="small"), pytest.param(16, 200, 20, id="many", marks=pytest.mark.soak)], indirect=["pool"])
def test_gangs_on_slots_whose_owner_returns(pool: PersonalPool, gangs: int, visits: int) -> None:
    here, chance = folder(pool, "gangs"), random.Random(gangs)
    program(here, MEMBER)
    sizes = {}
    for _ in range(gangs):
        size, seconds = chance.randint(FEWEST, MOST), chance.uniform(0.5, 2.0)
        sizes[pool.submit(f"""
            universe = parallel
            machine_count = {size}
            initialdir = {here}
            executable = member.sh
            arguments = $(Cluster) {seconds:.2f}
            should_transfer_files = no
            request_memory = 50
            log = gangs.log
            +ParallelShutdownPolicy = "WAIT_FOR_ALL"
            queue
        """)] = size

    def begun() -> int:
        return len(list(here.glob("began.*")))

    for visit in range(visits):
        last = sum(sizes.values()) * visit // (2 * visits)
        until(lambda last=last: begun() > last, "gangs go on")
        pool.run("condor_owner", "pause", "1h")
        until(lambda: not pool.scratch(), "the machine is its owner's")
        pool.run("condor_owner", "resume")
    until(lambda: (here / "gangs.log").read_text().count("\n005 (") == gangs, "all have ended", 900.0)
    ended = pool.history()
    assert Counter((ad["JobStatus"], ad["ExitCode"]) for ad in ended) == {(4, 0): gangs}
    assert {ad["ClusterId"]: ad["MinHosts"] for ad in ended} == sizes
    assert begun() == sum(sizes.values())
    starts = Counter(ad["NumShadowStarts"] for ad in ended)
    print(f"{gangs} gangs, {visits} visits: by starts {dict(sorted(starts.items()))}")
