"""Images are kept for their owner, within their quota, over a restart."""

from __future__ import annotations

from pathlib import Path

from condor_actors.machine.containers.image_store import Image, ImageStore
from condor_actors.machine.containers.root_folder import make_layers, place_in
from condor_actors.machine.containers.unpack import ImageFacts


def placed(store: ImageStore, folder: Path, owner: str, digest: str, size: int) -> tuple[Image, list[str]]:
    made = folder / f"unpacked-{digest}"
    made.mkdir()
    (made / "file").write_text(digest)
    image = store.place(str(made), owner, digest, ImageFacts(size_bytes=size))
    return image, store.add(image, "run")


def test_an_image_is_its_owners_only(tmp_path: Path) -> None:
    store = ImageStore(str(tmp_path), 1000)
    store.load()
    placed(store, tmp_path, "alice@a", "d1", 10)
    assert store.find("alice@a", "d1", "r") is not None
    assert store.find("bob@a", "d1", "r") is None


def test_what_no_run_uses_goes_first_and_what_one_uses_stays(tmp_path: Path) -> None:
    store = ImageStore(str(tmp_path), 15)
    store.load()
    first, gone = placed(store, tmp_path, "a", "d1", 10)
    second, gone = placed(store, tmp_path, "a", "d2", 10)
    assert gone == []
    assert store.release(first, "run") == [str(Path(first.path).parent)]
    assert store.find("a", "d1", "r") is None
    assert store.release(second, "run") == []


def test_a_new_process_knows_what_was_finished_and_removes_the_rest(tmp_path: Path) -> None:
    store = ImageStore(str(tmp_path), 1000)
    store.load()
    placed(store, tmp_path, "a", "d1", 10)
    (Path(store.path) / "half" / "root").mkdir(parents=True)
    again = ImageStore(str(tmp_path), 1000)
    again.load()
    found = again.find("a", "d1", "r")
    assert found is not None
    assert (Path(found.path) / "file").read_text() == "d1"
    assert len(list(Path(store.path).iterdir())) == 1


def test_the_second_waits_for_the_first(tmp_path: Path) -> None:
    store = ImageStore(str(tmp_path), 1000)
    heard: list[str] = []
    assert store.begin("a", "d", lambda: heard.append("first"))
    assert not store.begin("a", "d", lambda: heard.append("second"))
    assert store.begin("b", "d", lambda: None)
    store.finished("a", "d")
    assert heard == ["second"]


def test_places_follow_the_links_of_the_image_inside_it(tmp_path: Path) -> None:
    image, layers = tmp_path / "image", tmp_path / "layers"
    (image / "run").mkdir(parents=True)
    (image / "var").mkdir()
    (image / "var/run").symlink_to("/run")
    (image / "out").symlink_to("../../../etc")
    assert place_in(str(image), "/var/run/x") == (["run", "x"], 1)
    assert place_in(str(image), "/out/y") == (["etc", "y"], 0)
    make_layers(str(layers), str(image), ["/var/run/x", "/proc"], ["/out/hosts"])
    assert (layers / "upper/run/x").is_dir()
    assert (layers / "upper/proc").is_dir()
    assert (layers / "upper/etc/hosts").is_file()
