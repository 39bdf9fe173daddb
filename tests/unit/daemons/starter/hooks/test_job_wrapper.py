"""What a wrapper has left, as the starter reads it: the job could have written it too."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.daemons.starter.hooks.job_wrapper import failure_in
from condor_actors.machine.run.sandbox import WRAPPER_FAILURE, Sandbox


@pytest.mark.parametrize(("said", "failure"), [
    (None, ""), (b"no licence\nserver\n", "no licence server"), (b"", "it did not say why"),
    (b"\x1b[2J\0\xff", "[2J \N{REPLACEMENT CHARACTER}"), (b"x" * 5000, "x" * 2000),
])
def test_it_is_one_line_of_some_length(tmp_path: Path, said: bytes | None, failure: str) -> None:
    if said is not None:
        (tmp_path / WRAPPER_FAILURE).write_bytes(said)
    assert failure_in(Sandbox(str(tmp_path), None)) == failure


@pytest.mark.parametrize("kind", ["folder", "link out", "loop"])
def test_what_is_no_plain_file_in_the_scratch_directory_is_not_read(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    if kind == "folder":
        (folder / WRAPPER_FAILURE).mkdir()
    else:
        (folder / WRAPPER_FAILURE).symlink_to("../secret" if kind == "link out" else WRAPPER_FAILURE)
    assert failure_in(Sandbox(str(folder), None)) == f"its {WRAPPER_FAILURE} cannot be read"
