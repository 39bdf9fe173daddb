"""Manifests: what trees become, what is refused, and back to files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.blob_store import BlobStore
from condor_actors.transfer.layout import lay_out
from condor_actors.transfer.manifest import (
    BadManifest,
    HeavyManifest,
    ManifestBuilder,
    check_manifest,
    digest_bytes,
    is_light,
)


def entry(path: str, **facts: object) -> FileEntry:
    data = b"x"
    facts = {"size_bytes": 1, "digest": digest_bytes(data), "inline": data, **facts}
    if facts.get("kind", "file") != "file":
        facts = {"kind": facts["kind"], "target": facts.get("target", "")}
    return FileEntry(path=path, **facts)  # type: ignore[arg-type]


def test_a_tree_becomes_a_manifest_and_a_tree_again(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "sub" / "deep").mkdir(parents=True)
    (top / "small").write_text("small")
    (top / "sub" / "large").write_bytes(os.urandom(100_000))
    (top / "sub" / "large").chmod(0o755)
    (top / "sub" / "deep" / "up").symlink_to("../large")
    (top / "out").symlink_to("/etc/hostname")
    os.mkfifo(top / "pipe")
    builder = ManifestBuilder()
    builder.add(str(top), "in")
    check_manifest(builder.entries)
    store = BlobStore(tmp_path / "s")
    for source in builder.sources.values():
        store.put_bytes(Path(source).read_bytes())
    (tmp_path / "copy").mkdir()
    lay_out(builder.entries, str(tmp_path / "copy"), store)
    copy = tmp_path / "copy" / "in"
    assert (copy / "small").read_text() == "small"
    assert (copy / "sub" / "large").read_bytes() == (top / "sub" / "large").read_bytes()
    assert (copy / "sub" / "large").stat().st_mode & 0o777 == 0o755
    assert os.readlink(copy / "sub" / "deep" / "up") == "../large"
    assert not (copy / "out").is_symlink()
    assert not (copy / "pipe").exists()


def test_what_rides_inline_is_limited_in_all(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).write_bytes(bytes([number]) * 1000)
    builder = ManifestBuilder(inline_total_bytes=3500)
    builder.add_tree(str(tmp_path))
    assert sum(each.inline is not None for each in builder.entries) == 3
    assert len(builder.sources) == 7


@pytest.mark.parametrize(
    "entries",
    [
        [entry("/etc/passwd")],
        [entry("../x")],
        [entry("a/../../x")],
        [entry("a//b")],
        [entry("./a")],
        [entry("")],
        [entry("a\0b")],
        [entry("a"), entry("a")],
        [entry("a", kind="link", target="/etc"), entry("a/b")],
        [entry("a", kind="link", target="x"), entry("a/b")],
        [entry("a", kind="link", target="x"), entry("a/b/c")],
        [entry("a/b"), entry("a", kind="link", target="x")],
        [entry("a", kind="link", target="../x")],
        [entry("d/a", kind="link", target="../../x")],
        [entry("a", kind="device")],
        [entry("a", mode=0o4755)],
        [entry("a", inline=b"y")],
        [entry("a", digest="abc", inline=None)],
        [entry("a", size_bytes=-1, inline=None)],
    ],
)
def test_hostile_manifests_are_refused(entries: list[FileEntry]) -> None:
    with pytest.raises(BadManifest):
        check_manifest(entries)


def test_too_much_is_refused() -> None:
    with pytest.raises(BadManifest):
        check_manifest([entry("a"), entry("b")], max_total_bytes=1)


def test_a_link_in_the_way_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").symlink_to("../victim")
    lay_out([entry("a")], str(tmp_path / "d"), None, replace=True)
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "d" / "a").read_text() == "x"
    with pytest.raises(FileExistsError):
        lay_out([entry("a")], str(tmp_path / "d"), None)


def test_what_takes_long_is_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    with (tmp_path / "large" / "sparse").open("wb") as file:
        file.truncate(5 << 20)
    (tmp_path / "many").mkdir()
    for number in range(301):
        (tmp_path / "many" / f"{number}").touch()
    for name in ("large", "many"):
        with pytest.raises(HeavyManifest):
            ManifestBuilder(light=True).add(str(tmp_path / name), name)
        builder = ManifestBuilder()
        builder.add(str(tmp_path / name), name)
        assert not is_light(builder.entries)
    assert is_light([entry("a")])
