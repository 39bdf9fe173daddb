"""A newcomer's first minutes: ``python -m benchmarks.first_minutes`` (needs Chromium and playwright).

Types what the README says into a shell in a terminal, makes the usual mistakes, asks why a job waits, and looks at the
page in a browser.  Printed is how long each answer took, in seconds of the clock.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import sync_playwright

from tests.harness.newcomer import Newcomer, first_minutes, table_of
from tests.pool_fixture import fresh_folder, open_to_jobs


def main() -> None:
    """Entry."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("no chromium here; etc/install-system-packages test installs it")
    with fresh_folder() as above, sync_playwright() as started:
        home = above / "home"
        home.mkdir()
        open_to_jobs(home)
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with Newcomer(home, browser.new_page()) as newcomer:
            first_minutes(newcomer)
        browser.close()
    print(table_of(newcomer.waits))


if __name__ == "__main__":
    main()
