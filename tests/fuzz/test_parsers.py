"""Every parser takes what the fuzzer has found before, its honest inputs, and some hundred fresh ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.parsers.running import CORPUS, fuzz, try_input
from tests.fuzz.parsers.targets import TARGETS

KEPT = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", KEPT, ids=[f"{path.parent.name}-{path.name}" for path in KEPT])
def test_kept_cases(path: Path) -> None:
    assert try_input(path.parent.name, path.read_bytes()) == ""


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_fresh_inputs(name: str) -> None:
    for seed in TARGETS[name].seeds():
        assert try_input(name, seed) == ""
    assert fuzz(name, 2, inputs=150).findings == []
