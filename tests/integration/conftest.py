"""Machines that are joined by a wire, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.namespaces import Wire, a_wire
from tests.harness.web_page import a_browser


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A wire to hang machines on."""
    with a_wire() as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium; each test opens windows of its own."""
    with a_browser() as made:
        yield made
