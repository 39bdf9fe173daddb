"""The defrag daemon of a real pool: a nibbled machine is drained, and comes back whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

CONFIG = """
DAEMON_LIST = $(DAEMON_LIST) DEFRAG
SLOT_TYPE_1 = cpus=2
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
NUM_SLOTS =
NUM_CPUS = 2
MACHINEMAXVACATETIME = 2
DEFRAG_INTERVAL = 1
DEFRAG_DRAINING_MACHINES_PER_HOUR = 3600
DEFRAG_DRAINING_SCHEDULE = quick
DEFRAG_REQUIREMENTS = NumDynamicSlots > 0
"""


@pytest.fixture
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1, config=CONFIG)
        yield made
        made.stop()


def test_a_nibbled_machine_is_drained_and_comes_back_whole(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\n"
                          "should_transfer_files = yes\nrequest_cpus = 1\nlog = job.log\nqueue\n")
    log = pool.dir / "log"
    until(lambda: any("is drained" in path.read_text() for path in log.glob("Defrag*")) or None, "a drain is asked for")
    until(lambda: "004 (" in (pool.work / "job.log").read_text() or None, "the job had to go")
    assert int(pool.run("condor_status", "-af", "ExpectedMachineQuickDrainingBadput").split()[0]) >= 0, "DEFRAG_RANK"
    pool.run("condor_rm", str(cluster))
    until(lambda: pool.run("condor_status", "-constraint", "PartitionableSlot", "-af", "Cpus", "Draining").split()
          == ["2", "false"] or None, "the machine is back, and whole")
