"""The folder of a run in another batch system, and who may have one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from condor_actors.actors.workers import at_once
from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.starter.run_spec import read_spec
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.grid import grid_folder
from condor_actors.daemons.shadow.grid.grid_manager import ROOTS, GridManager
from condor_actors.daemons.shadow.grid.grid_shadow import GridShadow
from condor_actors.messages.shadow_host import RunEnded, StartRun
from condor_actors.userlog.writer import UserLogs
from tests.harness.local_post import LocalNetwork


def job_in(folder: Path, **more: object) -> ClassAd:
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home/x").write_text("program")
    (folder / "home/data").write_text("data")
    return ClassAd({"ClusterId": 1, "ProcId": 0, "Owner": "alice", "User": "alice@test", "JobUniverse": 9, "Cmd": "x",
                    "Iwd": str(folder / "home"), "TransferInput": "data", "GridResource": "batch slurm", **more})


def test_it_is_prepared_once(tmp_path: Path) -> None:
    job, place = job_in(tmp_path), str(tmp_path / "grid/run")
    assert grid_folder.prepare(place, job, read_spec(job))
    (tmp_path / "home/data").write_text("changed")
    assert not grid_folder.prepare(place, job, read_spec(job))  # the job may be reading it
    assert (tmp_path / "grid/run/sandbox/data").read_text() == "data"
    assert grid_folder.record_of(place).prepared


def test_a_half_prepared_one_is_made_anew(tmp_path: Path) -> None:
    job, place = job_in(tmp_path), tmp_path / "grid/run"
    (place / "sandbox").mkdir(parents=True)
    (place / "sandbox/old").write_text("from before a crash")
    assert grid_folder.prepare(str(place), job, read_spec(job))
    assert sorted(os.listdir(place / "sandbox")) == ["condor_exec.exe", "data"]


@pytest.mark.parametrize(("name", "said"), [("nosuch", "cannot read input file"), ("http://a/b", "nobody fetches")])
def test_an_input_that_cannot_be_had_is_named(tmp_path: Path, name: str, said: str) -> None:
    job = job_in(tmp_path, TransferInput=name)
    with pytest.raises(FileTrouble, match=said):
        grid_folder.prepare(str(tmp_path / "grid/run"), job, read_spec(job))


def test_what_is_new_or_changed_comes_home(tmp_path: Path) -> None:
    job, place = job_in(tmp_path, TransferOutputRemaps="new = renamed"), str(tmp_path / "grid/run")
    grid_folder.prepare(place, job, read_spec(job))
    sandbox = tmp_path / "grid/run/sandbox"
    (sandbox / "new").write_text("new")
    (tmp_path / "home/data").write_text("mine")
    for _ in range(2):  # once more after a crash
        grid_folder.bring_home(place, job, read_spec(job), 0)
    assert sorted(os.listdir(tmp_path / "home")) == ["data", "renamed", "x"]
    assert (tmp_path / "home/data").read_text() == "mine"  # the job has not changed it


def test_a_link_that_leads_out_brings_nothing(tmp_path: Path) -> None:
    job, place = job_in(tmp_path), str(tmp_path / "grid/run")
    grid_folder.prepare(place, job, read_spec(job))
    (tmp_path / "grid/run/sandbox/out").symlink_to("/etc/passwd")
    with pytest.raises(FileTrouble, match="a link that leads out"):
        grid_folder.bring_home(place, job, read_spec(job), 0)


def test_a_named_output_that_is_missing_is_named(tmp_path: Path) -> None:
    job, place = job_in(tmp_path, TransferOutput="result"), str(tmp_path / "grid/run")
    grid_folder.prepare(place, job, read_spec(job))
    with pytest.raises(FileTrouble, match="has left no output file result"):
        grid_folder.bring_home(place, job, read_spec(job), 0)


def test_withdrawn_or_begun(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b/claim").symlink_to("7")
    assert grid_folder.withdraw(str(tmp_path / "a")) == ""
    assert grid_folder.withdraw(str(tmp_path / "b")) == "7"
    assert grid_folder.record_of(str(tmp_path / "a")).claim == ""


def test_roots_jobs_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    order = StartRun(run_id="1.0#1", job_ad=job_in(tmp_path).to_bytes(), claim_id="", secret="", starter_node="",
                     slot_name="", slot_ad=b"", lease_s=60.0)
    net = LocalNetwork()
    system = net.system("<host:1>")
    probe = net.probe(system, "shadow-host")
    manager = GridManager(load_config(files=[], environ={}), net.clock, UserLogs(net.clock, sync=False), at_once,
                          lambda: {"HOME": str(tmp_path)})
    system.spawn("shadow/1.0#1", lambda: GridShadow(order, manager.edges()))
    net.run(0.1)
    (ended,) = [report.message for report in probe.messages if isinstance(report.message, RunEnded)]
    assert (ended.outcome, ended.reason) == ("hold", ROOTS)
    net.stop()
