"""The commands about tokens, where nothing has to answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.pool.tokens import asked_life
from tests.harness.commands import program_of


@pytest.mark.parametrize(("place", "said"), [("/dev/null", "Not a directory"), ("/no/such", "No such file")])
def test_a_folder_of_tokens_that_is_none(place: str, said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program_of("condor_token_list"), "condor_token_list", "-dir", place],
        capture_output=True, text=True, env={"CONDOR_CONFIG": "ONLY_ENV", "HOME": str(tmp_path)}, timeout=60,
        check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"-dir {place}: {said}" in done.stderr


@pytest.mark.parametrize("text", ["0", "-5", "1e3", "10000000001", "9" * 300, "soon", "\u0663"])
def test_a_life_that_no_token_has(text: str) -> None:
    with pytest.raises(ToolError, match="expected a number of seconds from 1 to 10000000000"):
        asked_life({"lifetime": text})


def test_a_life_of_three_hundred_years_and_none() -> None:
    assert asked_life({"lifetime": "10000000000"}) == 1e10
    assert asked_life({}) == 0.0
