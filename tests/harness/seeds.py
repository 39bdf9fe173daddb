"""Seeds of simulated worlds: a few in every run, all of them in the long ones (``make soak``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["some_of"]


def some_of(seeds: Iterable[int], *, every_run: int = 1) -> list[Any]:
    """Parameters of a test: the first ``every_run`` seeds are tried in every run, the others are ``soak``."""
    return [seed if number < every_run else pytest.param(seed, marks=pytest.mark.soak)
            for number, seed in enumerate(seeds)]
