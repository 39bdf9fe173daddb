"""A machine measures its speed while it has nothing else to do."""

from __future__ import annotations

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

POLICY = """
START = True
RunBenchmarks = LastBenchmark == 0
"""


@pytest.mark.quiet
@pytest.mark.timeout(900)
def test_the_machine_has_measured_its_speed() -> None:
    """Benchmarks take what nobody else wants: on a busy machine that is little, and they take long."""
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=POLICY)
        try:
            mips, kflops, when = until(
                lambda: words if (words := pool.run("condor_status", "-af", "Mips", "KFlops", "LastBenchmark").split())
                and int(words[2]) > 0 else None, "the benchmarks are done", 800.0)
        finally:
            pool.stop()
    assert int(mips) > 100
    assert int(kflops) > 10_000
    assert int(when) > 0
