#!/usr/bin/env python3
"""Pictures of a pool's page, where there is a browser: ``make demo`` and the documentation use it.

Drives a Chromium with playwright; without one of the two there are no pictures, and that is no failure.

Usage: page_pictures.py ADDRESS FOLDER
"""

from __future__ import annotations

import json
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 1100, 700
PHONE = 390
WAIT_MS = 30_000


def browser_program() -> str | None:
    """A Chromium of this machine; None: there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def take(address: str, folder: Path, cluster: int) -> list[Path]:
    """Take two pictures: the pool in light colours, and a job's story in dark ones, as on a phone.

    Args:
        address: of the page.
        folder: where they go.
        cluster: whose first job's story is shown.

    Returns:
        The files; none where there is no browser, or it does not start.
    """
    program = browser_program()
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return []
    if program is None:
        return []
    try:
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
            try:
                return [_pool(browser, address, folder), _story(browser, address, folder, cluster)]
            finally:
                browser.close()
    except Error as error:
        print(f"  no pictures of the page: {str(error).splitlines()[0]}", flush=True)
        return []


def _pool(browser: Any, address: str, folder: Path) -> Path:
    window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    window.goto(address)
    window.wait_for_selector("#map button", timeout=WAIT_MS)
    window.click("#map button >> nth=0")
    path = folder / "page-pool.png"
    window.screenshot(path=path)
    return path


def _story(browser: Any, address: str, folder: Path, cluster: int) -> Path:
    window = browser.new_page(viewport={"width": PHONE, "height": HEIGHT}, color_scheme="dark")
    with urllib.request.urlopen(f"{address}api/summary", timeout=30) as answer:
        schedd = json.load(answer)["schedds"][0]
    window.goto(f"{address}#job/{schedd}/{cluster}.0")
    window.wait_for_selector(".story li", timeout=WAIT_MS)
    path = folder / "page-story.png"
    window.screenshot(path=path)
    return path


if __name__ == "__main__":
    for picture in take(sys.argv[1], Path(sys.argv[2]), 1):
        print(picture)
