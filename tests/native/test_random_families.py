"""A few random families of processes, moved at random moments; `make families` runs many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.conftest import Compile
from tests.native.random_families import one_family


@pytest.mark.parametrize("seed", [2, 5, 7, 13])
def test_a_random_family_finds_what_it_finds_natively(seed: int, compiled: Compile, tmp_path: Path) -> None:
    outcome = one_family(compiled("random_family"), seed, tmp_path)
    assert outcome.wrong == ""
    assert outcome.moves
