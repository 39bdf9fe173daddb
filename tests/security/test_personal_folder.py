"""A user begins a pool of her own in a folder that another one has prepared, or can write to."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.tools.admin import annex, personal
from condor_actors.tools.lib.personal_setup import PersonalFiles
from tests.pool_fixture import fresh_folder

NEED_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to someone else")
MALLORY = 4711


@pytest.fixture
def place() -> Iterator[Path]:
    """A pool's folder to be, beside a file of hers."""
    with fresh_folder() as folder:
        (folder / "thesis").write_text("years of work")
        (folder / "pool").mkdir()
        yield folder / "pool"
        assert (folder / "thesis").read_text() == "years of work"


@pytest.mark.parametrize("command", ["start", "stop", "status", "env"])
@pytest.mark.parametrize("whose", [pytest.param("his", marks=NEED_ROOT), "everybody's", "a group's",
                                   pytest.param("below his", marks=NEED_ROOT),
                                   pytest.param("behind his link", marks=NEED_ROOT)])
def test_a_folder_that_is_not_hers_alone(place: Path, capsys: pytest.CaptureFixture[str], command: str,
                                         whose: str) -> None:
    """He would choose her configuration, and with it what she runs; by the lock he would have her empty a file."""
    os.symlink("../thesis", place / ".lock")
    folder = place
    if whose == "his":
        os.chown(place, MALLORY, MALLORY)
    elif whose == "below his":
        os.chown(place, MALLORY, MALLORY)
        folder = place / "own"
        folder.mkdir()
    elif whose == "behind his link":
        folder = place.with_name("link")
        folder.symlink_to(place)
        os.lchown(folder, MALLORY, MALLORY)
        place.parent.chmod(0o1777)
    else:
        place.chmod(0o777 if whose == "everybody's" else 0o775)
    assert personal.main([command, "--dir", str(folder)]) == 1
    said = capsys.readouterr().err
    assert str(folder if whose == "behind his link" else place) in said
    assert "--dir" in said
    assert not (folder / "condor_config").exists()


@pytest.mark.parametrize("whose", [pytest.param("his", marks=NEED_ROOT), "everybody's", "a group's",
                                   pytest.param("below his", marks=NEED_ROOT), "where all can rename it",
                                   pytest.param("behind his link", marks=NEED_ROOT)])
def test_a_folder_of_annexes_that_is_not_hers_alone(place: Path, whose: str) -> None:
    """Its script is what Slurm runs as her, and its tokens are machines of the pool."""
    folder = place
    if whose == "his":
        os.chown(place, MALLORY, MALLORY)
    elif whose == "below his":
        os.chown(place, MALLORY, MALLORY)
        folder = place / "own"
    elif whose == "behind his link":
        place.parent.chmod(0o1777)
        folder = place.with_name("link")
        folder.symlink_to(place)
        os.lchown(folder, MALLORY, MALLORY)
    elif whose == "where all can rename it":
        place.parent.chmod(0o777)
    else:
        place.chmod(0o777 if whose == "everybody's" else 0o775)
    with pytest.raises(annex.AnnexError, match="what your machines in Slurm run; name another folder with --folder"):
        annex._own_folder(folder)


def test_a_folder_of_annexes_of_ones_own(place: Path) -> None:
    assert annex._own_folder(place / "annexes") == place / "annexes"


def test_a_socket_that_names_another_process(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pool of root's, sockets are in a folder of the daemons' account: it would have root end any process."""
    victim = subprocess.Popen(["/bin/sleep", "1000"])
    (place / "run").mkdir()
    files = PersonalFiles(place)

    class Fake:
        """Anyone who listens there says that it is the victim; the kernel says who it is."""

        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *error: object) -> None:
            return None

        def ask(self, actor: str, message: object, timeout_s: float) -> Fake:
            return self

        pid = victim.pid

        def local_peer(self) -> tuple[int, int]:
            return os.getpid(), os.geteuid()

    monkeypatch.setattr(personal, "connect", lambda node, timeout_s: Fake())
    try:
        assert personal.main(["stop", "--dir", str(place), "--fast"]) == 0
        assert victim.poll() is None
        assert personal._master_pid(files) is None
    finally:
        victim.kill()
        victim.wait()


def test_who_listens_is_told_by_the_kernel(place: Path) -> None:
    from condor_actors.wire.blocking import Client

    listening = socket.socket(socket.AF_UNIX)
    with listening, socket.socket(socket.AF_UNIX) as ours:
        listening.bind(str(place / "sock"))
        listening.listen()
        ours.connect(str(place / "sock"))
        assert Client("unix:", ours).local_peer() == (os.getpid(), os.geteuid())
