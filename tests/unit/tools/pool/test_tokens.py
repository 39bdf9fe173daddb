"""The commands about tokens, where nothing has to answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.commands import program_of


@pytest.mark.parametrize(("place", "said"), [("/dev/null", "Not a directory"), ("/no/such", "No such file")])
def test_a_folder_of_tokens_that_is_none(place: str, said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program_of("condor_token_list"), "condor_token_list", "-dir", place],
        capture_output=True, text=True, env={"CONDOR_CONFIG": "ONLY_ENV", "HOME": str(tmp_path)}, timeout=60,
        check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"-dir {place}: {said}" in done.stderr
