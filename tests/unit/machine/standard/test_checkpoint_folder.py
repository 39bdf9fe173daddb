"""The folder of a job's checkpoints: the newest good image, its predecessor, and the note of an end."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from condor_actors.machine.standard.checkpoint_folder import CheckpointFolder
from condor_actors.machine.standard.checkpoint_keeping import CheckpointArchive
from condor_actors.transfer.image_pieces import ImageList, list_image


def taken(folder: CheckpointFolder, seed: int) -> ImageList:
    """A checkpoint as the shadow takes it: the list first, then the image in its place."""
    fresh = f"{folder.image}.new"
    Path(fresh).write_bytes(random.Random(seed).randbytes(300_000))
    pieces = list_image(fresh)
    folder.keep_list(pieces)
    os.rename(fresh, folder.image)
    folder.settle(pieces)
    return pieces


def made(tmp_path: Path) -> CheckpointFolder:
    folder = CheckpointFolder(tmp_path / "checkpoints" / "1.0")
    folder.make()
    return folder


def test_the_newest_image_is_the_one(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert folder.good_image() == (None, "")
    taken(folder, 1)
    newest = taken(folder, 2)
    good, _ = folder.good_image()
    assert good is not None
    assert (good.pieces.digest, good.is_previous) == (newest.digest, False)


def test_a_damaged_image_gives_way_to_the_one_before(tmp_path: Path) -> None:
    folder = made(tmp_path)
    before = taken(folder, 1)
    taken(folder, 2)
    os.truncate(folder.image, 100)
    good, _ = folder.good_image()
    assert good is not None
    assert (good.pieces.digest, good.is_previous) == (before.digest, True)
    assert "damaged" in good.why


def test_no_image_that_no_list_knows_is_good(tmp_path: Path) -> None:
    folder = made(tmp_path)
    taken(folder, 1)
    for path in folder.path.glob("*.list"):
        path.unlink()
    good, why = folder.good_image()
    assert good is None
    assert "damaged" in why


def test_a_crash_between_list_and_image_leaves_the_old_one(tmp_path: Path) -> None:
    folder = made(tmp_path)
    before = taken(folder, 1)
    fresh = tmp_path / "other"
    fresh.write_bytes(random.Random(3).randbytes(300_000))
    folder.keep_list(list_image(str(fresh)))
    good, _ = folder.good_image()
    assert good is not None
    assert good.pieces.digest == before.digest


@pytest.mark.parametrize("increment", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_an_image_that_never_takes_its_place_costs_nothing(increment: bool, times: int, tmp_path: Path) -> None:
    folder = made(tmp_path)
    before = taken(folder, 1)
    taken(folder, 2)
    for seed in range(times):
        fresh = f"{folder.delta if increment else folder.image}.new"
        Path(fresh).write_bytes(random.Random(7 + seed).randbytes(300_000))
        folder.keep_list(list_image(fresh))
        os.unlink(fresh)  # no room, say
    os.truncate(folder.image, 100)
    good, _ = folder.good_image()
    assert good is not None
    assert (good.pieces.digest, good.is_previous) == (before.digest, True)


def test_a_crash_after_the_image_took_its_place(tmp_path: Path) -> None:
    folder = made(tmp_path)
    taken(folder, 1)
    before = taken(folder, 2)
    fresh = f"{folder.image}.new"
    Path(fresh).write_bytes(random.Random(3).randbytes(300_000))
    folder.keep_list(list_image(fresh))
    os.rename(fresh, folder.image)  # and here it ends
    os.truncate(folder.image, 100)
    for _ in range(2):
        good, _ = CheckpointFolder(folder.path).good_image()
        assert good is not None
        assert (good.pieces.digest, good.is_previous) == (before.digest, True)


def test_lists_do_not_pile_up(tmp_path: Path) -> None:
    folder = made(tmp_path)
    for seed in range(10):
        taken(folder, seed)
    assert len(list(folder.path.glob("*.list"))) <= 4


def test_the_list_of_a_whole_image_outlives_many_increments(tmp_path: Path) -> None:
    folder = made(tmp_path)
    whole = taken(folder, 0)
    for seed in range(1, 10):
        fresh = f"{folder.delta}.new"
        Path(fresh).write_bytes(random.Random(seed).randbytes(200_000))
        pieces = list_image(fresh)
        folder.keep_list(pieces)
        os.rename(fresh, folder.delta)
        folder.settle(pieces)
    digests = {each.digest for each in folder.lists()}
    assert {whole.digest, pieces.digest} <= digests
    assert len(digests) <= 4
    assert folder.newest(increment=True) == (folder.delta, pieces)
    assert folder.newest()[1] == whole


def test_how_a_program_ended_is_remembered(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert folder.how_ended() is None
    folder.say_ended("1.0#3", 7)
    assert folder.how_ended() == ("1.0#3", 7)
    folder.clear()
    assert folder.how_ended() is None


def test_a_server_forgets_what_nobody_uses_and_heeds_quotas(tmp_path: Path) -> None:
    archive = CheckpointArchive(tmp_path / "archive", lease_s=100.0, quota_bytes=700_000, total_bytes=1_000_000)
    for owner, job in (("shadow:alice@pool h", "s#1.0"), ("shadow:bob@pool h", "s#2.0")):
        folder = archive.folder(owner, job)
        folder.path.parent.mkdir(parents=True)
        folder.make()
        taken(folder, 1)
    assert archive.room_problem("shadow:alice@pool h", 300_000) == 0
    assert archive.room_problem("shadow:alice@pool h", 500_000) != 0  # the owner's quota
    assert archive.room_problem("shadow:carol@pool h", 500_000) != 0  # all of it
    old = archive.folder("shadow:alice@pool h", "s#1.0").path
    now_s = old.stat().st_mtime
    os.utime(old, (now_s - 101.0, now_s - 101.0))
    assert archive.sweep(now_s) == 1
    assert [path.name for path in (tmp_path / "archive").iterdir()] == ["u-shadow%3Abob%40pool%20h"]


def test_names_lead_nowhere_else(tmp_path: Path) -> None:
    archive = CheckpointArchive(tmp_path, lease_s=1.0)
    for name in ("../../etc", "..", "/etc/passwd", "a/../../b"):
        assert archive.folder(name, name).path.parent.parent == tmp_path


def test_what_a_user_puts_in_its_way_is_not_written_through(tmp_path: Path) -> None:
    folder, outside = made(tmp_path), tmp_path / "outside"
    outside.write_text("kept")
    for name in (".list.new", ".ended.new"):
        (folder.path / name).symlink_to(outside)
    taken(folder, 1)
    folder.say_ended("1.0#1", 0)
    assert outside.read_text() == "kept"
    assert folder.how_ended() == ("1.0#1", 0)


def test_a_link_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "1.0").symlink_to(tmp_path)
    with pytest.raises(PermissionError):
        CheckpointFolder(tmp_path / "checkpoints" / "1.0").make()
