"""Which program an image's entrypoint means."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.daemons.starter.container_launch import found_in


@pytest.mark.parametrize(("word", "path", "found"), [
    ("tool", "/usr/local/bin:/bin", "/bin/tool"), ("/x/tool", "/bin", "/x/tool"), ("./tool", "/bin", "./tool"),
    ("round", "/bin:/usr/bin", "/usr/bin/round"), ("missing", "/bin:/usr/bin", "missing"), ("tool", "bin", "tool"),
    ("sh", "/out", "sh"),
])
def test_a_word_without_a_folder_is_looked_for_in_the_image(tmp_path: Path, word: str, path: str, found: str) -> None:
    """Links are followed as if the image were the root: what only this machine has is not found."""
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to("/usr/sbin")
    (tmp_path / "usr/sbin").mkdir()
    (tmp_path / "usr/sbin/tool").touch()
    (tmp_path / "usr/sbin/round").symlink_to("round")
    (tmp_path / "usr/bin/round").touch()
    (tmp_path / "out").symlink_to("../../../../../../bin/..")
    assert found_in(str(tmp_path), word, path) == found
