"""Container images made from this machine's own files."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

__all__ = ["docker_archive", "oci_archive", "packed", "root_folder", "rootfs_tar"]

APPLETS = ("sh", "cat", "echo", "ls", "id", "sleep", "mkdir", "env", "grep", "ps", "kill", "dd", "touch", "true",
           "httpd")


def root_folder(folder: Path) -> Path:
    """A root directory with busybox and a file that says which one it is."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("needs busybox (busybox-static)")
    (folder / "bin").mkdir(parents=True)
    (folder / "etc").mkdir()
    shutil.copy(busybox, folder / "bin/busybox")
    for name in APPLETS:
        (folder / "bin" / name).symlink_to("busybox")
    (folder / "etc/image").write_text("made in a test\n")
    return folder


def packed(folder: Path) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, str(path.relative_to(folder)), recursive=False, filter=_as_roots)
    return stream.getvalue()


def _as_roots(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


CONFIGURATION = {"config": {"Env": ["PATH=/bin", "FROM_IMAGE=yes"], "Entrypoint": None}}


def upper_layer() -> bytes:
    """A layer that adds a file, and removes another."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        _add(archive, "etc/second", b"layer\n")
        _add(archive, "etc/.wh.removed", b"")
    return stream.getvalue()


def rootfs_tar(folder: Path, target: Path) -> Path:
    """A tar of the root directory itself."""
    target.write_bytes(packed(folder))
    return target


def docker_archive(folder: Path, target: Path) -> Path:
    """What ``docker save`` writes: two layers."""
    (folder / "etc/removed").write_text("below\n")
    with tarfile.open(target, "w") as archive:
        _add(archive, "config.json", json.dumps(CONFIGURATION).encode())
        _add(archive, "one/layer.tar", packed(folder))
        _add(archive, "two/layer.tar", upper_layer())
        _add(archive, "manifest.json", json.dumps(
            [{"Config": "config.json", "RepoTags": ["x:y"], "Layers": ["one/layer.tar", "two/layer.tar"]}]).encode())
    return target


def oci_archive(folder: Path, target: Path) -> Path:
    """The same by the OCI's layout."""
    def blob(data: bytes) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        _add(archive, f"blobs/sha256/{digest}", data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    with tarfile.open(target, "w") as archive:
        _add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        layers = [blob(packed(folder)), blob(upper_layer())]
        manifest = blob(json.dumps({"layers": layers, "config": blob(json.dumps(CONFIGURATION).encode())}).encode())
        _add(archive, "index.json", json.dumps({"manifests": [manifest]}).encode())
    return target
