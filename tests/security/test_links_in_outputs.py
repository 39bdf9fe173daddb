"""A hostile job, or machine, sends links home: so that its next run writes where they lead, or gets what is there.

The next run may be of the same job, which runs again, of the same description, or of a node that takes the output of
the one before as its input.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.grid.condor_run import _fetch
from condor_actors.daemons.shadow.input_files import FileCache, input_manifest
from condor_actors.daemons.shadow.output_files import OutputPlaces
from condor_actors.daemons.shadow.output_transfer import _place
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.spool import ListSpool, SpoolBytes, SpoolListing
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.progress import CopyProgress
from condor_actors.tools.lib.retrieval import _fetch_job
from condor_actors.transfer.manifest import BadManifest, check_manifest, digest_bytes
from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs

KEY = b"ssh-ed25519 of the machine's\n"
HERS = b"hers\n"
NAMED = {"TransferOutput": "result, deep/data", "PreserveRelativePaths": True}
CLIMB = [("result", "directory", ""), ("result/s", "directory", ""), ("result/s/t", "directory", ""),
         ("result/s/t/u", "link", "../.."), ("result/s/t/m", "link", "u/../..")]
"""``u`` is ``result``, so ``m`` is two folders above it, and by its name alone ``result/s``."""


def sent(path: str, kind: str = "file", target: str = "") -> FileEntry:
    if kind != "file":
        return FileEntry(path=path, kind=kind, target=target)
    return FileEntry(path=path, size_bytes=len(KEY), digest=digest_bytes(KEY), inline=KEY)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home directory of a user, from which she submits; nothing of hers has changed in the end."""
    hers = [tmp_path / "home" / name for name in (".ssh/authorized_keys", ".bashrc", "thesis", "data/thesis")]
    hers.append(tmp_path / "above")
    for path in hers:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(HERS)
    yield tmp_path / "home"
    assert [path.read_bytes() for path in hers] == [HERS] * len(hers)


def bring(home: Path, job: dict[str, object], *entries: FileEntry) -> list[str]:
    """What stays away; the rest is written."""
    left: list[str] = _place(entries, OutputPlaces(ClassAd({"Iwd": str(home), **job})), "")[1]
    return left


def taken(home: Path, names: str) -> set[bytes]:
    """What the next run gets as its input."""
    job = ClassAd({"Iwd": str(home), "TransferExecutable": False, "TransferInput": names})
    return {entry.inline for entry in input_manifest(job, FileCache()).entries if entry.inline is not None}


@pytest.mark.parametrize("target", ["u/../../..", "./u/../..", "x/..", "..//u/..", "a/b/../c"])
def test_a_link_that_goes_up_behind_a_name(target: str) -> None:
    """That name may be a link itself, and then it leads elsewhere than its letters say."""
    with pytest.raises(BadManifest, match="leads to"):
        check_manifest([sent("d", "directory"), sent("d/s", "directory"), sent("d/s/t", "directory"),
                        sent("d/s/t/u", "link", "../.."), sent("d/s/t/m", "link", target)])


def test_a_link_out_of_all_folders_is_not_made(home: Path) -> None:
    with pytest.raises(BadManifest, match="behind a name"):
        bring(home, {"TransferOutput": "result"}, *(sent(*each) for each in CLIMB))
    assert not (home / "result").exists()


@pytest.mark.parametrize(("job", "entries"), [
    ({"TransferOutput": "result"}, [("result", "link", ".bashrc")]),
    ({"TransferOutput": "result"}, [("result", "link", "thesis")]),
    ({"TransferOutput": "result"}, [("result", "link", ".ssh")]),
    ({"TransferOutput": "result"}, [("result", "directory", ""), ("result/l", "link", "../.ssh")]),
    ({"TransferOutput": "result"}, [("result", "directory", ""), ("result/l", "link", "../thesis")]),
    ({"TransferOutput": "data/"}, [("result", "link", "thesis")]),
    ({"TransferOutput": "data/"}, [("result", "link", ".bashrc"), (".bashrc", "file", "")]),
    ({"TransferOutput": "data/"}, [("result", "link", "thesis"), ("thesis", "link", "nothing")]),
    ({"TransferOutput": "data/"}, [("result", "link", "thesis"), ("thesis", "link", "result")]),
    ({}, [("result", "link", "thesis")]),
    (NAMED, [("deep", "directory", ""), ("deep/data", "link", "../thesis")]),
])
@pytest.mark.parametrize("again", ["result", "result/l", "result/authorized_keys", "result/l/authorized_keys"])
def test_a_link_to_what_is_no_output(home: Path, job: dict[str, object], entries: list[tuple[str, str, str]],
                                     again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays away.  So the next run writes nothing of hers, and has nothing of hers as its input."""
    monkeypatch.setenv("HOME", str(home))
    assert bring(home, job, *(sent(*each) for each in entries))
    assert not [path for path in home.rglob("*") if path.is_symlink()]
    for name in ("result", "result/l"):
        if (home / name).exists():
            assert HERS not in taken(home, name)
    if "result" in str(job) and not (home / again).is_dir():
        folders = [sent(above, "directory") for above in ("result", "result/l") if again.startswith(f"{above}/")]
        bring(home, job, *folders, sent(again))


@pytest.mark.parametrize("name", ["_condor_stdout", "_condor_stderr", ".starter.log"])
@pytest.mark.parametrize("kind", ["link", "directory"])
def test_output_and_error_are_files(home: Path, name: str, kind: str) -> None:
    """Two names of the machine's may be one place at home: a link by the one is written through by the other."""
    job = {"Out": "out", "Err": "out", "JobStarterLog": "out"}
    with pytest.raises(BadManifest, match="no output of the job"):
        bring(home, job, sent(name, kind, "thesis"), sent("out"))


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_on_the_way_to_an_output_is_a_folder(home: Path, kind: str) -> None:
    with pytest.raises(BadManifest, match="no output of the job"):
        bring(home, NAMED, sent("deep", kind, "data"))


@pytest.mark.parametrize("job", [{"TransferOutput": "result"}, {"TransferOutput": "data/"}])
@pytest.mark.parametrize("target", [".ssh", "..", "/"])
def test_nothing_is_written_through_a_link_that_leads_out(home: Path, job: dict[str, object], target: str) -> None:
    """However it came there: an older version may have made it, or she."""
    (home / "result").mkdir()
    (home / "result/l").symlink_to(home / target)
    (home / "result/to").symlink_to(home / ".bashrc")
    above = (home / target).resolve().name
    inside = "authorized_keys" if target == ".ssh" else "above"
    with pytest.raises(FileTrouble, match="leads out of"):
        bring(home, job, sent("result", "directory"), sent("result/l", "directory"), sent(f"result/l/{inside}"))
    with pytest.raises(FileTrouble, match="leads out of"):
        bring(home, job, sent("result", "directory"), sent("result/l", "directory"), sent("result/l/new", "directory"),
              sent("result/l/new/folder", "directory"))
    assert not (home / target / "new").exists(), above
    bring(home, job, sent("result", "directory"), sent("result/to"))
    assert (home / "result/to").read_bytes() == KEY, "a link in the place of a file of the folder is replaced"


def test_names_that_the_job_does_not_say_lead_over_no_link_of_hers(home: Path) -> None:
    """A folder's content may have any names, those of her links among them."""
    (home / "work").mkdir()
    (home / "work/home").symlink_to("..")
    with pytest.raises(FileTrouble, match="leads out of"):
        bring(home / "work", {"TransferOutput": "data/"}, sent("home", "directory"), sent("home/.bashrc"))


def test_a_link_of_hers_in_the_place_of_an_output_is_followed(home: Path, tmp_path: Path) -> None:
    large = tmp_path / "large"
    (large / "kept").mkdir(parents=True)
    (home / "result").symlink_to(large)
    (home / "plain").symlink_to(large / "plain")
    job = {"TransferOutput": "result, plain"}
    assert bring(home, job, sent("result", "directory"), sent("result/kept", "directory"), sent("result/kept/x"),
                 sent("plain")) == []
    assert [(large / name).read_bytes() for name in ("kept/x", "plain")] == [KEY, KEY]


def test_links_among_outputs_come_home(home: Path) -> None:
    entries = [sent("result", "directory"), sent("result/1", "directory"), sent("result/1/x"),
               sent("result/last", "link", "1"), sent("result/gone", "link", "2/y"),
               sent("result/1/up", "link", "../last"),
               sent("other", "directory"), sent("other/x", "link", "../result/1/x"), sent("other/again", "link", "x")]
    for _ in range(2):
        assert bring(home, {"TransferOutput": "result, other"}, *entries) == []
    assert [(home / name).read_bytes() for name in ("result/last/x", "result/1/up/x", "other/again")] == [KEY] * 3
    assert bring(home, {"TransferOutput": "data/"}, sent("run7"), sent("latest", "link", "run7")) == []
    assert (home / "latest").read_bytes() == KEY


def test_what_an_evicted_run_has_left_leads_nowhere_else(home: Path, tmp_path: Path) -> None:
    """It lies deep in SPOOL, and goes to the next machine: links that go up would name any file of the owner's."""
    job, part = ClassAd({"Iwd": str(home)}), tmp_path / "spool" / "kept.part"
    up = [sent("/".join("abcdefgh"[:depth]), "directory") for depth in range(1, 9)]
    up += [sent("a/b/c/d/e/f/g/h/u", "link", "/".join([".."] * 7)),
           sent("a/b/c/d/e/f/g/h/m", "link", "u/" + "/".join([".."] * 7)),
           sent("stolen", "link", f"a/b/c/d/e/f/g/h/m/{home.name}/thesis")]
    with pytest.raises(BadManifest, match="behind a name"):
        _place(up, OutputPlaces(job, str(part)), str(part))


class Line:
    """Another schedd, to which the job was handed, sends a file."""

    def fetch(self, number: int, name: str, size: int, write: object) -> None:
        write(KEY)  # type: ignore[operator]


def test_nor_does_another_schedd_write_through_one(home: Path) -> None:
    (home / "result").mkdir()
    (home / "result/to").symlink_to(home / ".bashrc")
    (home / "result/out").symlink_to("..")
    places = OutputPlaces(ClassAd({"Iwd": str(home), "TransferOutput": "result"}))
    target = places.target("result/to")
    assert target is not None
    _fetch(Line(), (1, "result/to", len(KEY)), target, 0o644)  # type: ignore[arg-type]
    with pytest.raises(FileTrouble, match="leads out of"):
        places.target("result/out/.bashrc")


class Spool:
    """A schedd with a file that a machine has sent for a job."""

    def __init__(self, iwd: Path, name: str) -> None:
        self.listing = SpoolListing(iwd=str(iwd), files=((name, len(KEY), 0o644),))

    def ask(self, question: object) -> object:
        return self.listing if isinstance(question, ListSpool) else SpoolBytes(data=KEY)


@pytest.mark.parametrize("names", ["result", "data/"])
def test_nor_does_what_is_fetched_from_a_spool(home: Path, names: str) -> None:
    (home / "work/result").mkdir(parents=True)
    (home / "work/result/out").symlink_to(home)
    job = ClassAd({"ClusterId": 1, "TransferOutput": names})
    with pytest.raises(ToolError, match="leads out of"):
        _fetch_job(Spool(home / "work", "result/out/.bashrc"), job, CopyProgress("fetched"))  # type: ignore[arg-type]
    _fetch_job(Spool(home / "work", "result/out"), job, CopyProgress("fetched"))  # type: ignore[arg-type]
    assert (home / "work/result/out").read_bytes() == KEY


FIRST = """#!/bin/sh
mkdir -p result/s/t
ln -s ../.. result/s/t/u
ln -s u/../.. result/s/t/m
ln -s ../beside result/l
"""
SECOND = """#!/bin/sh
mkdir -p result/s/t/m result/l
echo changed | tee result/s/t/m/above result/l/file > /dev/null
"""


def test_a_job_that_runs_twice() -> None:
    """A program that its user does not know well, on an honest machine: in a real pool."""
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1)
        try:
            work = pool.work / "work"
            for path in (work / "beside" / "file", pool.work / "above"):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(HERS)
                path.chmod(0o666)
            for path in (pool.work, work, work / "beside"):
                open_to_jobs(path)
            for number, program in enumerate((FIRST, SECOND)):
                (work / "program.sh").write_text(program)
                (work / "program.sh").chmod(0o755)
                pool.submit(f"executable = {work}/program.sh\ninitialdir = {work}\nlog = {number}.log\n"
                            "transfer_output_files = result\nshould_transfer_files = YES\nperiodic_remove = "
                            "JobStatus == 5\nqueue\n")
                pool.wait(f"work/{number}.log")
            assert (pool.work / "above").read_bytes() == HERS
            assert (work / "beside/file").read_bytes() == HERS
            assert not os.path.islink(work / "result/l")
        finally:
            pool.stop()
