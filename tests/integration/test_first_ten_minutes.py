"""A newcomer with the README at a terminal and a browser: every step is answered, from nothing to the end."""

from __future__ import annotations

from typing import Any

from tests.harness.newcomer import Newcomer, first_minutes
from tests.pool_fixture import fresh_folder, open_to_jobs


def test_a_newcomer_gets_through(browser: Any) -> None:
    with fresh_folder() as above:
        home = above / "home"
        home.mkdir()
        open_to_jobs(home)
        context = browser.new_context()
        with Newcomer(home, context.new_page()) as newcomer:
            first_minutes(newcomer)
        context.close()
    assert newcomer.waits[-1].what.startswith("condor_personal stop")
