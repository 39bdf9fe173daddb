"""Pools shared by the end-to-end tests of a module, and one of its own for tests that break things."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PersonalPool]:
    """A pool for all tests of a module that leave it in order."""
    made = PersonalPool(tmp_path_factory.mktemp("pool"))
    yield made
    made.stop()


@pytest.fixture
def own_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PersonalPool]:
    """A pool of the test's own, to be broken."""
    made = PersonalPool(tmp_path_factory.mktemp("own"))
    yield made
    made.stop()
