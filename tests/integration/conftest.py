"""Machines that are joined by a wire, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.namespaces import Wire, a_wire


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A wire to hang machines on."""
    with a_wire() as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium; each test opens windows of its own."""
    playwright = pytest.importorskip("playwright.sync_api")
    import shutil

    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium here; etc/install-system-packages test installs it")
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()
