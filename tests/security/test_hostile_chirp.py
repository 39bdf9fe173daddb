"""A hostile machine speaks chirp for a job: what it moves, removes and learns in its owner's folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.chirp_protocol import ChirpError
from condor_actors.cores.shadow.chirp_rights import ChirpLimits, HomeRights
from condor_actors.daemons.shadow.chirp_files import ChirpFiles
from condor_actors.messages.run import ChirpCall

DENIED = ChirpError.NOT_AUTHORIZED


def call(verb: str, path: str, *numbers: int, other: str = "") -> ChirpCall:
    return ChirpCall(run_id="1.0#1", verb=verb, path=path, other=other, numbers=numbers)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a job, as an installed package leaves one: links with ``..`` that stay below it."""
    folder = tmp_path / "home/job"
    (folder / "package/bin").mkdir(parents=True)
    (folder / "package/bin/tool").symlink_to("../../profile")
    (folder / "package/data").mkdir()
    (folder / "package/data/plain").write_text("1")
    (folder / "package/data/near").symlink_to("plain")
    return folder


@pytest.fixture
def files(job: Path) -> Iterator[ChirpFiles]:
    made = ChirpFiles(str(job), (str(job),))
    yield made
    made.close_all()


@pytest.mark.parametrize("verb", ["rename", "link"])
@pytest.mark.parametrize("way", ["tool", "package/tool"])
def test_a_link_moved_up_would_lead_out(files: ChirpFiles, job: Path, verb: str, way: str) -> None:
    """``../../profile`` is the job's own file from below ``package/bin``, and the user's from the job's folder."""
    assert files.do(call(verb, "package/bin/tool", other=way)).value == DENIED
    assert not os.path.lexists(job / way)


def test_so_would_a_folder_with_one(files: ChirpFiles, job: Path) -> None:
    assert files.do(call("rename", "package/bin", other="bin")).value == DENIED
    assert files.do(call("rename", "package/data", other="data")).value == 0
    assert (job / "data/near").read_text() == "1"


def test_down_and_aside_it_leads_no_further_out(files: ChirpFiles, job: Path) -> None:
    assert files.do(call("rename", "package/bin/tool", other="package/data/tool")).value == 0
    assert files.do(call("mkdir", "package/data/more", 0o755)).value == 0
    assert files.do(call("rename", "package/data/tool", other="package/data/more/tool")).value == 0
    assert os.path.realpath(job / "package/data/more/tool").startswith(f"{job}/")


@pytest.mark.parametrize("verb", ["stat", "lstat", "open", "getdir", "access", "rename", "unlink"])
@pytest.mark.parametrize(("there", "absent"), [
    ("/etc/passwd", "/etc/nothing"), ("/etc/passwd/x", "/etc/nothing/x"), ("../thesis", "../nothing"),
    ("package/../../thesis", "package/../../nothing"), ("out/thesis", "out/nothing"), ("out/thesis/x", "out/nothing/x"),
])
def test_it_does_not_learn_what_else_there_is(files: ChirpFiles, job: Path, verb: str, there: str, absent: str) -> None:
    (job.parent / "thesis").write_text("years of work")
    (job / "out").symlink_to("..")
    numbers = {"open": (1, 0o644), "access": (4,)}.get(verb, ())
    said = [files.do(call(verb, path, *numbers, other="r")).value for path in (there, absent)]
    assert said == [DENIED, DENIED]


def test_a_tree_of_any_depth_is_removed(files: ChirpFiles, job: Path) -> None:
    """It is made by putting folder into folder; a removal by recursion runs out of stack."""
    assert files.do(call("mkdir", "tree", 0o755)).value == 0
    for _ in range(1200):
        files.do(call("mkdir", "next", 0o755))
        files.do(call("rename", "tree", other="next/tree"))
        assert files.do(call("rename", "next", other="tree")).value == 0
    assert files.do(call("rmall", "tree")).value == 0
    assert not (job / "tree").exists()


@pytest.mark.parametrize(("verb", "numbers"), [("truncate", (2 << 20,)), ("ftruncate", (1, 2 << 20))])
def test_what_it_may_write_bounds_what_it_may_lengthen(verb: str, numbers: tuple[int, ...]) -> None:
    job = ClassAd({"WantIOProxy": True, "Iwd": "/home/job", "MaxTransferOutputMB": 1})
    assert HomeRights(job, ChirpLimits()).refusal(call(verb, "file", *numbers), 0.0) == ChirpError.NO_SPACE
