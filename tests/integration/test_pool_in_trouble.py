"""Five machines, jobs of every kind, and trouble: each job ends once, with the right bytes, and nothing is left."""

from __future__ import annotations

import pytest

from tests.harness.namespaces import NEED_NAMESPACES
from tests.harness.pool_in_trouble import in_trouble
from tests.harness.standard_jobs import NEED_RUNTIME

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_minute_of_trouble() -> None:
    """``benchmarks/chaos.py`` makes more of it."""
    assert in_trouble(jobs=100, minutes=1.0, seed=1) == []
