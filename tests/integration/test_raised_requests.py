"""A job that uses more memory than it asked for asks for more, in a real pool of one partitionable slot."""

from __future__ import annotations

from tests.pool_fixture import PersonalPool, fresh_folder

CONFIG = """
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = true
STARTER_INITIAL_UPDATE_INTERVAL = 1
"""
HUNGRY = """
executable = /usr/bin/python3
transfer_executable = false
arguments = "-c 'import time; x = bytearray(300 << 20); time.sleep(3)'"
request_memory = 100MB
retry_request_memory = 200MB, 600MB
log = hungry.log
queue
"""


def test_a_job_that_needs_more_memory_gets_it_at_last() -> None:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, config=CONFIG)
        try:
            cluster = pool.submit(HUNGRY)
            pool.wait("hungry.log")
            (ad,) = pool.history(str(cluster))
            assert (ad["ExitCode"], ad["RequestMemory"], ad["NumJobStarts"]) == (0, 600, 3)
            log = (pool.work / "hungry.log").read_text()
            assert log.count("it asks for RequestMemory = ") == 2
            assert "012 (" not in log
        finally:
            pool.stop()
