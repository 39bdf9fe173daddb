"""This package and HTCondor's own engine on the same expressions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("htcondor2")

from condor_actors.tools.pool.classad import answer
from tests.conformance.classads.campaign import run
from tests.conformance.classads.engines import theirs

HERE = Path(__file__).parent
EXAMPLES = [json.loads(line) for line in (HERE / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
COUNT = int(os.environ.get("CLASSAD_EXPRESSIONS", "5000"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["expr"])
def test_the_manuals_examples(example: dict[str, str]) -> None:
    assert answer(json.dumps(example)) == example["result"]
    assert theirs(example["expr"], example["my"], example.get("target")) == example["result"]


CALLS = [json.loads(line) for line in (HERE / "calls.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("example", CALLS, ids=lambda example: example["expr"])
def test_calls_that_once_differed(example: dict[str, str]) -> None:
    assert answer(json.dumps(example)) == example["result"]
    assert theirs(example["expr"], example["my"], example.get("target")) == example["result"]


def test_generated_calls() -> None:
    outcome = run(0, COUNT, calls=True)
    unknown = [difference for difference in outcome.differences if difference["why"] is None]
    assert not unknown, "\n".join(json.dumps(difference) for difference in unknown[:20])
    assert len(outcome.crashed) < COUNT / 100


def test_generated_expressions() -> None:
    outcome = run(0, COUNT)
    unknown = [difference for difference in outcome.differences if difference["why"] is None]
    assert not unknown, "\n".join(json.dumps(difference) for difference in unknown[:20])
    assert len(outcome.crashed) < COUNT / 500
