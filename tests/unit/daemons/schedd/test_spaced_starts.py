"""``next_job_start_delay``: a job keeps its owner's next one waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.submit_side import SubmitPool


def started(pool: SubmitPool) -> int:
    return sum(job.get_int("NumShadowStarts") for job in pool.jobs())


def test_one_job_after_the_other(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path)
    pool.submit(b"NextJobStartDelay = 100\n", procs=3)
    assert pool.match() == 3
    assert started(pool) == 1
    pool.run(98.0)
    assert started(pool) == 1
    pool.run(2.0)
    assert started(pool) == 2
    pool.run(100.0)
    assert started(pool) == 3


def test_beside_a_limit_of_all_starts(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path, job_start_count=2, job_start_delay_s=10.0)
    pool.submit(b"NextJobStartDelay = 30\n", procs=3)
    pool.match()
    pool.run(28.0)
    assert started(pool) == 1
    pool.run(32.0)
    assert started(pool) == 3


@pytest.mark.parametrize("value", [b"0", b"-5", b"true", b'"x"', b"error", b"undefined"])
def test_what_is_no_time_keeps_nobody_waiting(tmp_path: Path, value: bytes) -> None:
    pool = SubmitPool(tmp_path)
    pool.submit(b"NextJobStartDelay = " + value + b"\n", procs=3)
    pool.match()
    assert started(pool) == 3


def test_the_administrator_sets_the_longest_time(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path, max_start_gap_s=5.0)
    pool.submit(b"NextJobStartDelay = 1.0e9\n", procs=2)
    pool.match()
    pool.run(6.0)
    assert started(pool) == 2
