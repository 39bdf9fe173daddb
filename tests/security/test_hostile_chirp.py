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
    """It is made by putting folder into folder; a removal by recursion runs out of stack.  By chirp it can be made no
    deeper than a path is long, for it is looked through before it is moved."""
    assert files.do(call("mkdir", "tree", 0o755)).value == 0
    for _ in range(1200):
        (job / "next").mkdir()
        (job / "tree").rename(job / "next/tree")
        (job / "next").rename(job / "tree")
    assert files.do(call("rename", "tree", other="other")).value == ChirpError.TOO_BIG
    assert files.do(call("rmall", "tree")).value == 0
    assert not (job / "tree").exists()


@pytest.mark.parametrize(("verb", "numbers"), [("truncate", (2 << 20,)), ("ftruncate", (1, 2 << 20))])
def test_what_it_may_write_bounds_what_it_may_lengthen(verb: str, numbers: tuple[int, ...]) -> None:
    job = ClassAd({"WantIOProxy": True, "Iwd": "/home/job", "MaxTransferOutputMB": 1})
    assert HomeRights(job, ChirpLimits()).refusal(call(verb, "file", *numbers), 0.0) == ChirpError.NO_SPACE


HERS = "hers"
LINKS = {"home": "..", "far": "{above}", "letters": "../thesis"}


@pytest.fixture
def hers(job: Path) -> Path:
    """The job's folder with links of its owner's that lead out of it."""
    (job.parent / "thesis").write_text(HERS)
    for name, target in LINKS.items():
        (job / name).symlink_to(target.format(above=job.parent))
    (job / "package/kept").mkdir()
    (job / "package/kept/home").symlink_to(job.parent)
    return job


def leading_out(job: Path) -> list[str]:
    """The links that lead out of the job's folder, but for hers."""
    found = []
    for folder, folders, names in os.walk(job):
        for path in (Path(folder, name) for name in (*folders, *names)):
            if path.is_symlink() and not os.path.realpath(path).startswith(f"{job}/"):
                found.append(str(path.relative_to(job)))
    return sorted(found)


@pytest.mark.parametrize("verb", ["rename", "link"])
@pytest.mark.parametrize(("old", "new"), [
    ("home", "result"), ("far", "result"), ("letters", "job.log"), ("package/kept", "result"),
    ("package/kept", "package/data/result"), ("package/kept/home", "package/kept/result"), ("package", "result")])
def test_no_link_out_gets_the_name_of_an_output(files: ChirpFiles, hers: Path, verb: str, old: str, new: str) -> None:
    """The shadow, or the owner, would write through it, or take what is there along for the next run."""
    before = leading_out(hers)
    assert files.do(call(verb, old, other=new)).value in (DENIED, ChirpError.UNKNOWN)
    assert leading_out(hers) == before
    assert not os.path.lexists(hers / new)


@pytest.mark.parametrize("target", ["home", "home/thesis", "far/thesis", "letters", "package/kept", "package",
                                    "{job}/home", "{job}/far/thesis", "{job}/package/kept", ".", "./home/thesis"])
def test_no_link_is_made_that_leads_out_by_way_of_hers(files: ChirpFiles, hers: Path, target: str) -> None:
    before = leading_out(hers)
    assert files.do(call("symlink", target.format(job=hers), other="result")).value == DENIED
    assert leading_out(hers) == before


def test_nor_in_several_steps(files: ChirpFiles, hers: Path) -> None:
    """A link to nothing that is there later, and one that means something else where it is moved to."""
    before = leading_out(hers)
    assert files.do(call("symlink", "later/home", other="result")).value == 0
    for step in (call("symlink", "package/kept", other="later"), call("rename", "package/kept", other="later"),
                 call("rename", "home", other="later")):
        assert files.do(step).value == DENIED
    assert files.do(call("symlink", "home", other="package/data/result")).value == 0
    for step in (call("rename", "package/data/result", other="result2"),
                 call("link", "package/data/result", other="package/kept/result")):
        assert files.do(step).value == DENIED
    assert leading_out(hers) == before


def test_what_leads_nowhere_else_is_moved_as_before(files: ChirpFiles, hers: Path) -> None:
    for old, new in (("package/data", "package/more"), ("package/more/plain", "plain"), ("package/more", "more")):
        assert files.do(call("rename", old, other=new)).value == 0
    assert files.do(call("symlink", "more", other="again")).value == 0
    assert files.do(call("link", "plain", other="plain2")).value == 0
    assert (hers / "plain2").read_text() == "1"
