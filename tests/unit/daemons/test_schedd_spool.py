"""The spool of a schedd: the folders in it are their owners', who may have put anything there."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from condor_actors.daemons.schedd_spool import Spool
from condor_actors.messages.envelope import Done, Identity, Refused
from condor_actors.messages.queue import ReadSpool, SpoolChunk


def asked(spool: Spool, message: Any) -> Any:
    job = SimpleNamespace(name="1.0", proc=0, cluster=SimpleNamespace(number=1, owner=getpass.getuser()))
    desk: Any = SimpleNamespace(queue=SimpleNamespace(job=lambda *_: job), may_touch=lambda *_: True)
    return spool.answer(desk, message, Identity(name="somebody", method="local"))


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
    spool.forget(1, 0)
    assert not folder.exists()
