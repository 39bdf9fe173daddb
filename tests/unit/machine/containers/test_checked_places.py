"""What a run was allowed stays what it was, whatever lies at its path later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from condor_actors.machine.containers.checked_places import BY_NAME, CheckedPlaces
from condor_actors.machine.run.users import account_of_uid

ME = account_of_uid(os.geteuid())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_file_is_read_that_was_looked_at(tmp_path: Path) -> None:
    """Between the digest of an image and its unpacking another one is put in its place."""
    (tmp_path / "image").write_text("looked at")
    (tmp_path / "name").symlink_to("image")
    places = CheckedPlaces()
    real, descriptor = places.open(ME, str(tmp_path / "name"), os.O_RDONLY)
    assert real == str(tmp_path / "image")
    assert places.all() == {real: descriptor}
    (tmp_path / "image").rename(tmp_path / "old")
    (tmp_path / "image").write_text("another")
    with os.fdopen(places.take(real)) as stream:
        assert stream.read() == "looked at"
    assert places.all() == {}


def test_a_folder_is_seen_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "image"
    place.mkdir()
    (place / "mark").write_text("looked at")
    places = CheckedPlaces()
    places.look_at(str(place))
    place.rename(tmp_path / "old")
    place.symlink_to("/")
    assert (Path(places.seen(str(place))) / "mark").read_text() == "looked at"
    assert places.seen("/another") == "/another"
    places.close()
    with pytest.raises(NotADirectoryError):
        places.look_at(str(place))


def test_a_folder_that_cannot_be_opened_is_known_by_its_name(tmp_path: Path) -> None:
    places = CheckedPlaces()
    assert places.open_folder(ME, str(tmp_path / "none")) == str(tmp_path / "none")
    assert places.all() == {str(tmp_path / "none"): BY_NAME}
    assert places.seen(str(tmp_path / "none")) == str(tmp_path / "none")


def test_nothing_stays_open_when_the_run_is_over(tmp_path: Path) -> None:
    """Not even what a worker opens after its end."""
    before, places = open_files(), CheckedPlaces()
    places.open(ME, str(tmp_path), os.O_RDONLY)
    places.open(ME, str(tmp_path), os.O_RDONLY)
    assert open_files() == before + 1
    places.close()
    places.look_at(str(tmp_path))
    assert open_files() == before
