"""Folders that a job cannot write to are found behind links, and never hide what a run needs."""

from __future__ import annotations

from pathlib import Path

from condor_actors.machine.run.confinement import reachable


def test_folders_are_found_behind_links_once_and_only_folders(tmp_path: Path) -> None:
    real, link, file = tmp_path / "real", tmp_path / "link", tmp_path / "file"
    real.mkdir()
    link.symlink_to(real)
    file.touch()
    assert reachable([str(link), str(real), str(file), str(tmp_path / "none"), "/"], []) == (str(real),)


def test_what_holds_something_needed_is_left_as_it_is(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name / "below").mkdir(parents=True)
    way = tmp_path / "way"
    way.symlink_to(tmp_path / "one" / "below")
    folders = [str(tmp_path / name) for name in ("one", "two", "three")]
    needed = [str(way), str(tmp_path / "two" / "not there yet")]
    assert reachable(folders, needed) == (str(tmp_path / "three"),)
    assert reachable(folders, []) == tuple(folders)


def test_a_name_that_begins_alike_is_another_folder(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "workshop").mkdir()
    assert reachable([str(tmp_path / "work")], [str(tmp_path / "workshop")]) == (str(tmp_path / "work"),)


def test_a_folder_in_another_goes_with_it_unless_that_one_is_left_out(tmp_path: Path) -> None:
    for name in ("usr/bin", "usr/lib"):
        (tmp_path / name).mkdir(parents=True)
    folders = [str(tmp_path / name) for name in ("usr/bin", "usr/lib", "usr")]
    assert reachable(folders, []) == (str(tmp_path / "usr"),)
    assert reachable(folders, [str(tmp_path / "usr" / "bin" / "program")]) == (str(tmp_path / "usr" / "lib"),)
