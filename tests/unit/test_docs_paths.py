"""Every file that the documentation names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "condor_actors"
NAMED = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+(?:\.py|\.c|\.h|/))`")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {"bin/", "dist/", "etc/", "work/", "examples/"}


def named_files(page: Path) -> list[str]:
    """What a page calls by a path of the tree; bare file names are meant beside the path before them."""
    return [name for name in NAMED.findall(page.read_text()) if "/" in name.rstrip("/")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_the_docs_exist(page: Path) -> None:
    places = (ROOT, PACKAGE, ROOT / "native")
    missing = [name for name in named_files(page) if not any((place / name).exists() for place in places)]
    assert not missing


def test_files_named_beside_others_exist() -> None:
    """A bare name is one of the tree's, so that a renamed module leaves none behind."""
    known = {path.name for folder in ("condor_actors", "native", "docs", "examples", "tests", "twisted")
             for path in (ROOT / folder).rglob("*.*")} | {"setup.py"}
    missing = {f"{page.name}: {name}" for page in PAGES for name in NAMED.findall(page.read_text())
               if "/" not in name and name not in known}
    assert missing == set()


def test_the_map_names_enough_to_be_one() -> None:
    assert len(named_files(ROOT / "docs" / "where-things-are.md")) > 40
