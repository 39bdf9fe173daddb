"""The spool of a schedd: the folders in it are their owners', who may have put anything there."""

from __future__ import annotations

import getpass
import os
import pwd
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from condor_actors.cores.schedd.job_transitions import ForgetSpool
from condor_actors.daemons.schedd.spool import Spool
from condor_actors.messages.envelope import Done, Identity, Refused
from condor_actors.messages.spool import ReadSpool, SpoolChunk


def asked(spool: Spool, message: Any) -> Any:
    job = SimpleNamespace(name="1.0", proc=0, cluster=SimpleNamespace(number=1, owner=getpass.getuser()))
    context: Any = SimpleNamespace(queue=SimpleNamespace(job=lambda *_: job), may_touch=lambda *_: True)
    answers: list[Any] = []
    spool.answer(context, message, Identity(name="someone", method="local")).addCallback(answers.append)
    return answers[0]


def chunk(name: str, data: bytes = b"new") -> SpoolChunk:
    return SpoolChunk(cluster_id=1, proc_id=0, path=name, offset=0, data=data)


def test_pipes_and_second_names_are_neither_waited_for_nor_written(tmp_path: Path) -> None:
    spool, outside = Spool(tmp_path / "spool"), tmp_path / "outside"
    assert isinstance(asked(spool, chunk("in", b"longer")), Done)
    assert isinstance(asked(spool, chunk("in")), Done)
    folder = spool.folder(1, 0)
    assert (folder / "in").read_bytes() == b"new"
    outside.write_text("kept")
    os.link(outside, folder / "second")
    os.symlink(outside, folder / "link")
    os.mkfifo(folder / "pipe")
    for name in ("second", "link", "pipe"):
        assert isinstance(asked(spool, chunk(name)), Refused)
    assert outside.read_text() == "kept"
    assert isinstance(asked(spool, ReadSpool(cluster_id=1, proc_id=0, path="pipe", offset=0)), Refused)
    spool.forget(ForgetSpool(1, 0, getpass.getuser()))
    assert not folder.exists()


@pytest.mark.skipif(os.getuid() != 0 or "nobody" not in {each.pw_name for each in pwd.getpwall()},
                    reason="only root can give folders to others")
def test_what_runs_leave_is_their_owners_and_goes_with_the_job(tmp_path: Path) -> None:
    """Nobody else sees into the folders, and their places are not the owner's: root empties them."""
    spool = Spool(tmp_path / "spool")
    for _ in range(2):
        spool.make_folder_of("nobody")
    folder = spool.folder_of("nobody")
    assert folder.stat().st_uid == 0
    for name in ("evicted", "checkpoints"):
        facts = (folder / name).stat()
        assert (facts.st_uid, stat.S_IMODE(facts.st_mode)) == (pwd.getpwnam("nobody").pw_uid, 0o700)
        (folder / name / "1.0").mkdir()
        (folder / name / "2.0").mkdir()
    spool.forget(ForgetSpool(1, 0, "nobody"))
    assert sorted(str(path.relative_to(folder)) for path in folder.glob("*/*")) == ["checkpoints/2.0", "evicted/2.0"]
