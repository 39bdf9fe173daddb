"""A local user, or a job, at the folders of runs that are handed to another batch system.

Where ``GRIDMANAGER_FOLDER`` is one folder for all, others can make what is not there yet, and a reader of the queue
can work out the names of runs.  The script in a run's folder is started as the run's owner.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.slurm_jobs import batch_name
from condor_actors.cores.starter.run_spec import read_spec
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.grid import grid_folder
from condor_actors.machine.run.tree_removal import remove_tree

MALLORY = 4711
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to someone else")


@pytest.fixture
def job(tmp_path: Path) -> ClassAd:
    home = tmp_path / "home"
    home.mkdir()
    (home / "x").write_text("program")
    return ClassAd({"ClusterId": 1, "ProcId": 0, "Owner": "alice", "User": "alice@test", "JobUniverse": 9, "Cmd": "x",
                    "Iwd": str(home), "GridResource": "batch slurm", "QDate": 5, "GlobalJobId": "schedd#1.0#5"})


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    made = tmp_path / "grid"
    made.mkdir()
    made.chmod(0o1777)
    return made


def plant(folder: Path) -> None:
    """What a run is, with a script of his own."""
    (folder / "sandbox").mkdir(parents=True)
    (folder / "script").write_text("#!/bin/sh\nid > /tmp/owned\n")
    (folder / "script").chmod(0o755)
    (folder / "prepared").touch()
    (folder / "end").write_text("0\n0m0s 0m0s\n")
    (folder / "claim").symlink_to("77")


def refused(folder: Path, job: ClassAd, why: str) -> None:
    """It is not taken for hers, and what it says is not believed."""
    with pytest.raises(FileTrouble, match=why):
        grid_folder.prepare(str(folder), job, read_spec(job))
    record = grid_folder.record_of(str(folder))
    assert (record.prepared, record.status, record.claim) == (False, None, "")
    assert grid_folder.withdraw(str(folder)) == ""


@NEEDS_ROOT
def test_a_folder_that_somebody_else_has_made(shared: Path, job: ClassAd) -> None:
    folder = shared / batch_name("1.0#1@schedd", job)
    plant(folder)
    os.chown(folder, MALLORY, MALLORY)
    refused(folder, job, "belongs to the user id 4711")
    grid_folder.remove(str(folder))
    assert (folder / "script").exists()


def test_a_link_in_its_place(shared: Path, job: ClassAd, tmp_path: Path) -> None:
    plant(tmp_path / "elsewhere")
    folder = shared / "condor.1.0.1.a"
    folder.symlink_to(tmp_path / "elsewhere")
    refused(folder, job, "something else is in its place")
    grid_folder.remove(str(folder))
    assert (tmp_path / "elsewhere/script").exists()


def test_one_that_others_can_write(shared: Path, job: ClassAd) -> None:
    folder = shared / "condor.1.0.1.a"
    plant(folder)
    folder.chmod(0o777)
    refused(folder, job, "others can write there")


def test_a_place_where_others_can_rename_it(shared: Path, job: ClassAd) -> None:
    shared.chmod(0o777)
    with pytest.raises(FileTrouble, match="others can rename"):
        grid_folder.prepare(str(shared / "condor.1.0.1.a"), job, read_spec(job))


@NEEDS_ROOT
def test_a_place_that_is_somebody_elses(shared: Path, job: ClassAd) -> None:
    os.chown(shared, MALLORY, MALLORY)
    with pytest.raises(FileTrouble, match="belongs to the user id 4711"):
        grid_folder.prepare(str(shared / "condor.1.0.1.a"), job, read_spec(job))


def test_one_folder_for_all_serves_where_it_is_safe(shared: Path, job: ClassAd) -> None:
    folder = str(shared / "condor.1.0.1.a")
    assert grid_folder.prepare(folder, job, read_spec(job))
    assert grid_folder.record_of(folder).prepared


def deep(folder: Path, levels: int) -> None:
    """Folders in folders, more than a path can name."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.parametrize("levels", [1500, 3000])
def test_folders_that_are_very_deep(shared: Path, job: ClassAd, levels: int) -> None:
    """What a job leaves is brought home or refused by name, and goes in any case."""
    job["TransferOutput"] = "d"
    folder = shared / "condor.1.0.1.a"
    grid_folder.prepare(str(folder), job, read_spec(job))
    deep(folder / "sandbox", levels)
    if levels * 2 < os.pathconf("/", "PC_PATH_MAX") - 500:
        grid_folder.bring_home(str(folder), job, read_spec(job), 0)
    else:
        with pytest.raises(FileTrouble, match="File name too long"):
            grid_folder.bring_home(str(folder), job, read_spec(job), 0)
    remove_tree(str(shared.parent / "home"))
    grid_folder.remove(str(folder))
    assert not folder.exists()


def test_a_link_on_the_way_to_an_output(shared: Path, job: ClassAd) -> None:
    job["TransferOutput"] = "d/passwd"
    folder = shared / "condor.1.0.1.a"
    grid_folder.prepare(str(folder), job, read_spec(job))
    (folder / "sandbox/d").symlink_to("/etc")
    with pytest.raises(FileTrouble, match="a link that leads out"):
        grid_folder.bring_home(str(folder), job, read_spec(job), 0)
