"""The manual's order, and the page for people who come from another system: what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

from condor_actors.submit.keywords import is_known
from tests.harness.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "coming-from.md").read_text()
PER_JOB = re.compile(r"^([a-z_]+) *= ", re.MULTILINE)


def test_pages_in_the_manuals_order_exist_and_have_one_place() -> None:
    named = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(named) > 30
    assert len(named) == len(set(named))
    assert [name for name in named if not (ROOT / "docs" / name).is_file()] == []


def test_commands_of_the_guide_are_installed() -> None:
    named = set(re.findall(r"`(condor_\w+)(?=[ `])", GUIDE))
    assert len(named) > 15
    assert named - COMMANDS.keys() == set()


def test_what_the_guide_puts_into_a_description_is_known_there() -> None:
    table = GUIDE.split("| of `sbatch` | in the description |")[1].partition("What surprises people")[0]
    cells = [line.split(" | ", 1)[1] for line in table.splitlines() if line.startswith("| `")]
    named = {word for cell in cells for word in re.findall(r"`([a-z_]+)(?= =|`)", cell)} - {"queue"}
    block = GUIDE.split("is this:\n\n```\n")[1].partition("```")[0]
    named |= set(PER_JOB.findall(block))
    assert len(named) > 20
    assert {name for name in named if not is_known(name)} == set()
