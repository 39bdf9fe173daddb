"""What a machine keeps of the files that jobs of the standard universe read, in a real pool."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import PersonalPool, fresh_folder, until

pytestmark = NEED_RUNTIME


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    """One pool for all."""
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        yield made
        made.stop()


def test_what_was_read_once_is_not_sent_again(pool: PersonalPool) -> None:
    """The third run, or a later one, has the libraries where it runs."""
    def hits() -> int:
        job = Job(pool, "read-once", "", "print(1)")
        job.wait()
        assert job.text("out") == "1\n"
        ad = pool.history(job.id)[0]
        assert ad["LibraryCacheBytes"] >= ad["LibraryCacheHits"]
        return int(ad["LibraryCacheBytes"])

    until(lambda: hits() > 1_000_000, lambda: "no run was told digests", 60.0)


def test_programs_that_a_script_starts_have_them_too(pool: PersonalPool) -> None:
    def hits() -> int:
        job = Job(pool, "script", "", "/usr/bin/python3 -c 'print(1)'; /usr/bin/python3 -c 'print(2)'\n",
                  executable="/bin/sh")
        job.wait()
        assert job.text("out") == "1\n2\n"
        return int(pool.history(job.id)[0]["LibraryCacheBytes"])

    until(lambda: hits() > 15_000_000, lambda: "helpers were sent all of it", 60.0)  # twice an interpreter


def test_a_job_that_is_shut_in_has_nothing_of_other_runs(pool: PersonalPool) -> None:
    for _ in range(3):
        job = Job(pool, "shut", "", "print(1)", job_root=str(pool.work / "shut"))
        job.wait()
        assert job.text("out") == "1\n"
        assert pool.history(job.id)[0]["LibraryCacheHits"] == 0
