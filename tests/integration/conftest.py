"""Machines that are joined by a wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.namespaces import Wire, a_wire


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A wire to hang machines on."""
    with a_wire() as made:
        yield made
