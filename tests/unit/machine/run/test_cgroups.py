"""Control groups without a kernel: what is written to which file."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.machine.run.cgroups import JobCgroup


@pytest.mark.parametrize(("version", "hierarchy", "file", "stands", "goes"), [
    (1, "freezer", "freezer.state", "FROZEN", "THAWED"), (2, "", "cgroup.freeze", "1", "0")])
def test_who_joins_a_group_after_a_kill_does_not_stand_still(tmp_path: Path, version: int, hierarchy: str, file: str,
                                                             stands: str, goes: str) -> None:
    for name in ("cgroup.procs", "cgroup.kill", file):
        (tmp_path / name).touch()
    group = JobCgroup(version, {hierarchy: str(tmp_path)}, lambda idle: "")
    group.freeze()
    assert (tmp_path / file).read_text().startswith(stands)
    assert group.kill() == 0
    assert (tmp_path / file).read_text().startswith(goes)
