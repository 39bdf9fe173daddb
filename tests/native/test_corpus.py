"""Real programs: natively, remotely, and through checkpoints at random moments; see corpus.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.corpus import Bench, Program, programs

CORPUS = programs()


def prove(program: Program, folder: Path, quick: bool) -> None:
    absent = program.missing()
    if absent:
        pytest.skip(f"{absent} is not installed")
    result = Bench(folder).prove(program, quick=quick)
    if program.reason and not result.good:
        pytest.xfail(program.reason)
    assert result.remote == ""
    assert result.moved == ""


@pytest.mark.parametrize("program", [p for p in CORPUS if p.core], ids=lambda p: p.name)
def test_core_of_the_corpus(program: Program, tmp_path: Path) -> None:
    prove(program, tmp_path, quick=True)


@pytest.mark.soak
@pytest.mark.parametrize("program", [p for p in CORPUS if not p.core], ids=lambda p: p.name)
def test_corpus(program: Program, tmp_path: Path) -> None:
    prove(program, tmp_path, quick=False)


def test_the_corpus_is_wide() -> None:
    assert len({p.name for p in CORPUS}) == len(CORPUS) >= 60
    assert len({p.language for p in CORPUS}) >= 15
