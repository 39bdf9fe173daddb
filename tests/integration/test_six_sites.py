"""The worldwide flock of 1994 with real pools, far from one another, and in trouble: ``make sites``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.namespaces import NEED_NAMESPACES
from tests.harness.sites_in_trouble import sites_in_trouble
from tests.harness.standard_jobs import NEED_RUNTIME

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_every_job_of_six_sites_ends_once_and_only_gateways_meet() -> None:
    """As many jobs as SITES_JOBS says, in trouble by SITES_SEED; SITES_KEEP: where logs go if anything is wrong."""
    keep = os.environ.get("SITES_KEEP")
    assert sites_in_trouble(int(os.environ.get("SITES_JOBS", "100")), int(os.environ.get("SITES_SEED", "1")),
                            Path(keep) if keep else None) == []
