"""Job ads as HTCondor's own library makes them (recorded), and its own reading of queue lines and macros (live)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from condor_actors.classads import UNDEFINED, parse_expression, unparse
from condor_actors.submit import SubmitError
from condor_actors.submit.queue_statement import load_items, parse_queue, split_row
from tests.unit.submit.worlds import World, evaluate, jobs_of

DATA = json.loads((Path(__file__).parent / "job_attributes.json").read_text())


_DISK = "(TARGET.FileSystemDomain == MY.FileSystemDomain) || "
_FETCHED = '(TARGET.HasFileTransfer && stringListIMember("http",TARGET.HasFileTransferPluginMethods))'
NOT_BY_DISK = (f"({_DISK}{_FETCHED})", _FETCHED)
"""What HTCondor requires of machines for inputs at URLs, and what we do: on a shared disk it begins without them."""


def canonical(text: str) -> str:
    return unparse(parse_expression(text)).lower()


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["description"][:60].replace("\n", ";"))
def test_attributes_of_a_job(case: dict[str, Any]) -> None:
    world = World(cwd="/tmp", folders={"/tmp", "/etc"}, files={"/bin/sleep": 43_000, "/etc/passwd": 1_000})
    description = f"executable = /bin/sleep\n{case['description']}\nqueue\n"
    if case.get("refused"):
        with pytest.raises(SubmitError):
            jobs_of(description, world, refuses=False)
        return
    (job,) = jobs_of(description, world, refuses=False)
    expected = {**DATA["plain"], **case["attributes"]}
    for name in case["absent"]:
        expected.pop(name, None)
    wrong = {
        name: (text, str(job.expression(name)))
        for name, recorded in expected.items()
        for text in (recorded.replace(*NOT_BY_DISK),)
        if name not in job or unparse(job.expression(name)).lower() != canonical(text)
    }
    assert not wrong
    for name in case["absent"]:
        assert job.evaluate(name) is UNDEFINED, name


QUEUE_LINES = (
    "x in a b c",
    "x in (a, b,c)",
    "2 x in a,b",
    "in (p q)",
    "x,y from (1 2)",
    "a,b,c from (1, two three four)",
    "x in [1:] a b c d",
    "x in [::2] (a b c d)",
    "x in [-2:] a,b,c",
    "x in [1:3] a b c d",
)


@pytest.mark.parametrize("line", QUEUE_LINES)
def test_queue_lines_give_the_rows_that_htcondor_gives(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    htcondor2 = pytest.importorskip("htcondor2")
    theirs = htcondor2.Submit("executable = /bin/true\n")
    rows = [row if isinstance(row, dict) else {"Item": row} for row in theirs.itemdata("queue " + line)]
    statement = parse_queue(line, evaluate)
    items = load_items(statement, World(cwd="/tmp"))  # before slicing, as theirs
    ours = [dict(zip(statement.variables, split_row(item, len(statement.variables)), strict=True)) for item in items]
    assert [list(row.values()) for row in ours] == [list(row.values()) for row in rows]
