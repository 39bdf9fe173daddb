"""A network in memory for the tests of a module."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.local_post import LocalNetwork


@pytest.fixture
def net() -> Any:
    network = LocalNetwork()
    yield network
    network.stop()
    assert not network.clock.getDelayedCalls()
