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


def test_a_share_is_written_once_and_again_after_an_idle_run(tmp_path: Path) -> None:
    for name in ("cgroup.procs", "cpu.idle", "cpu.weight"):
        (tmp_path / name).touch()
    settled: list[bool] = []
    group = JobCgroup(2, {"": str(tmp_path)}, lambda idle: str(settled.append(idle) or ""))
    group.share(100, None, False)
    (tmp_path / "cpu.idle").write_text("untouched")
    assert group.share(100, None, False) == ()
    assert (tmp_path / "cpu.idle").read_text() == "untouched"
    assert settled == [False, False], "the groups above are looked after all the same"
    group.share(100, None, True)
    group.share(100, None, False)
    assert (tmp_path / "cpu.idle").read_text().startswith("0")
    (tmp_path / "cpu.idle").write_text("untouched")
    group.limit(cpus=2, memory_mib=None)
    group.share(100, None, False)
    assert (tmp_path / "cpu.idle").read_text().startswith("0"), "a new limit writes the weight as well"
