"""Pools shared by the end-to-end tests of a module, and one of its own for tests that break things."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.namespaces import Wire, a_wire
from tests.pool_fixture import PersonalPool, fresh_folder


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    """A pool for all tests of a module that leave it in order."""
    with fresh_folder() as folder:
        made = PersonalPool(folder)
        yield made
        made.stop()


@pytest.fixture
def own_pool() -> Iterator[PersonalPool]:
    """A pool of the test's own, to be broken."""
    with fresh_folder() as folder:
        made = PersonalPool(folder)
        yield made
        made.stop()


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A wire to hang machines on."""
    with a_wire() as made:
        yield made
