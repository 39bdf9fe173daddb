"""The threat model and the page of promises name tests; a promise whose test has gone is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
PROMISES = (ROOT / "docs" / "security-tests.md").read_text()
TEST = r"`([a-z_/0-9]+/test_[a-z_0-9]+\.py(?:::test_[a-z_0-9]+)?)`"
NAMED = sorted(set(re.findall(TEST, PAGE + PROMISES)))
ROWS = [line for line in PROMISES.splitlines() if line.startswith("| ") and not line.startswith("| promise ")]
ATTACKERS = ("user with a shell on the submit machine", "user with a shell on an execute machine", "vanilla job",
             "standard job", "owner of an image", "stolen certificate", "submit machine", "partner pool",
             "stranger on the network", "yesterday's backup of SPOOL")


@pytest.mark.parametrize("named", NAMED)
def test_every_test_that_is_named_exists(named: str) -> None:
    path, _, name = named.partition("::")
    text = (ROOT / "tests" / path.removeprefix("tests/")).read_text()
    assert not name or re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), named


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_every_attacker_has_a_part(attacker: str) -> None:
    headings = [line for line in PAGE.splitlines() if line.startswith("## ")]
    assert any(attacker in line for line in headings)


@pytest.mark.parametrize("row", ROWS)
def test_every_promise_has_its_test(row: str) -> None:
    assert re.search(TEST, row), row
    assert len(row.split(" | ")) == 2


def test_every_file_of_attacks_is_on_one_of_the_pages() -> None:
    """An attack that no page names is one that no reader finds."""
    files = {path.name for path in (ROOT / "tests" / "security").glob("test_*.py")}
    assert files - {Path(name.partition("::")[0]).name for name in NAMED} == set()


def test_much_is_named() -> None:
    assert len(NAMED) > 30
