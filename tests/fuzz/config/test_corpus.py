"""Every input that the fuzzer ever kept is tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.config.language import one_input

CORPUS = sorted(Path(__file__).with_name("corpus").iterdir())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name[:12])
def test_kept_input(path: Path) -> None:
    one_input(path.read_bytes())
