"""Properties are tried with the same examples each time, and take the time they take.

A busy machine is no failure, and a search for new examples is not what decides whether a change is good:
``CONDOR_NEW_EXAMPLES=1`` looks for others.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=not os.environ.get("CONDOR_NEW_EXAMPLES"))
settings.load_profile("steady")

LOG_LINES = 60


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport,
                                                                                           pytest.TestReport]:
    """What failed on a pool of processes is shown with the ends of their logs, which go with the pool's folder."""
    report = yield
    if report.failed and report.when != "teardown":
        for name, value in getattr(item, "funcargs", {}).items():
            logs = getattr(value, "logs", None)
            if callable(logs):
                report.sections.append((f"logs of {name}", str(logs(LOG_LINES))))
    return report
