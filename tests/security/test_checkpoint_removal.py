"""The program that removes checkpoints from a mounted file system runs as their owner, with names from a machine.

Others may write on that file system, the machine that has sent the checkpoint among them: a link of theirs in the place
of a folder would have a file of the owner's elsewhere removed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import condor_actors

PROGRAM = Path(condor_actors.__file__).parent / "libexec" / "cleanup_locally_mounted_checkpoint"
BASE = "store://kept/job/0001.1"


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Where the file system is mounted; beside it is the owner's home directory."""
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True)
    (home / "authorized_keys").write_text("hers")
    (home.parent / "state").write_text("hers")
    made = tmp_path / "shelf"
    (made / "kept" / "job").mkdir(parents=True)
    return made


def remove(shelf: Path, name: str, base: str = BASE, *more: str) -> subprocess.CompletedProcess[str]:
    """Have a file removed, as the process of the shadow host does it."""
    return subprocess.run([PROGRAM, "-prefix", "store://", "-path", shelf, "-from", base, "-delete", name, "-jobad",
                           "/dev/null", *more], capture_output=True, text=True, check=False, timeout=60)


def untouched(shelf: Path) -> bool:
    home = shelf.parent / "home"
    return (home / ".ssh" / "authorized_keys").exists() and (home / "state").exists()


@pytest.mark.parametrize("name", ["state", ".ssh/authorized_keys"])
@pytest.mark.parametrize("where", ["kept", "kept/job", "kept/job/0001.1"])
def test_a_link_in_the_place_of_a_folder(shelf: Path, where: str, name: str) -> None:
    place, home = shelf / where, shelf.parent / "home"
    if place.exists():
        place.rename(shelf / "aside")
    base = BASE[:len("store://") + len(where)]
    place.symlink_to(home)
    done = remove(shelf, name, base)
    assert (done.returncode, untouched(shelf)) == (1, True), done.stderr
    assert "is a link" in done.stderr
    place.unlink()
    place.symlink_to(os.path.relpath(home, place.parent))
    assert remove(shelf, name, base).returncode == 1
    assert untouched(shelf)


def test_a_link_in_the_place_of_a_folder_of_the_checkpoint(shelf: Path) -> None:
    checkpoint = shelf / "kept" / "job" / "0001.1"
    checkpoint.mkdir()
    (checkpoint / "keys").symlink_to(shelf.parent / "home" / ".ssh")
    assert remove(shelf, "keys/authorized_keys").returncode == 1
    assert remove(shelf, "keys/../../../../home/state").returncode == 1
    assert untouched(shelf)


def test_what_is_a_checkpoint_goes_with_its_folders(shelf: Path) -> None:
    checkpoint = shelf / "kept" / "job" / "0001.1"
    (checkpoint / "a" / "b c").mkdir(parents=True)
    for name in ("state", "-rf", "a/b c/x*"):
        (checkpoint / name).write_text("x")
    (checkpoint / "link").symlink_to(shelf.parent / "home" / "state")
    for name in ("state", "-rf", "link", "a/b c/x*"):
        assert remove(shelf, name).returncode == 0
    assert list((shelf / "kept").iterdir()) == []
    assert untouched(shelf)
    gone = remove(shelf, "state")
    assert (gone.returncode, "not there any more" in gone.stderr) == (0, True)


def manifest(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """What ``condor_manifest`` does in a folder that a job has left."""
    start = "import sys; from condor_actors.tools.jobs.manifest import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", start, *words], cwd=home, capture_output=True, text=True, check=False,
                          timeout=60)


def test_a_list_is_not_written_through_a_link_nor_a_pipe_waited_for(tmp_path: Path) -> None:
    left, hers = tmp_path / "left", tmp_path / "bashrc"
    left.mkdir()
    hers.write_text("hers")
    (left / "state").write_text("x")
    os.mkfifo(left / "pipe")
    (left / "_condor_checkpoint_MANIFEST.0000").symlink_to(hers)
    assert manifest("createManifestFor", str(left), home=tmp_path).returncode == 0
    assert hers.read_text() == "hers"
    assert manifest("validateManifestFile", str(left / "_condor_checkpoint_MANIFEST.0000"), home=left).returncode == 0
    said = manifest("compute_file_sha256_checksum", "pipe", home=left)
    assert said.returncode != 0
    assert "no plain file" in said.stderr + said.stdout
