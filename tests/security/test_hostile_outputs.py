"""A machine that sends home what the job never made: into its owner's folder, and among the pieces of its output."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.output_names import OutputNames
from condor_actors.daemons.shadow.output_files import OutputPlaces, write_pieces
from condor_actors.daemons.shadow.output_transfer import _place
from condor_actors.daemons.shadow.url_signer import sign_uploads
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import SignUploads
from condor_actors.messages.spool import ListSpool, SpoolBytes, SpoolListing
from condor_actors.tools.lib.progress import CopyProgress
from condor_actors.tools.lib.retrieval import _fetch_job
from condor_actors.transfer.manifest import BadManifest, digest_bytes

KEY = b"ssh-ed25519 of the machine's\n"
NAMED = {"TransferOutput": "result, data/, sub/deep/table"}


def sent(path: str, kind: str = "file", target: str = "") -> FileEntry:
    if kind != "file":
        return FileEntry(path=path, kind=kind, target=target)
    return FileEntry(path=path, size_bytes=len(KEY), digest=digest_bytes(KEY), inline=KEY)


def brought(home: Path, job: dict[str, object], *entries: FileEntry) -> list[str]:
    """What stays away; the rest is written."""
    left: list[str] = _place(entries, OutputPlaces(ClassAd({"Iwd": str(home), **job})), "")[1]
    return left


def files_of(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("path", [".ssh/authorized_keys", ".bashrc", "bin/ls", "other", "results", "_condor_stdout2"])
@pytest.mark.parametrize("job", [{"TransferOutput": "result"}, {"TransferOutput": ""},
                                 {"TransferOutput": "a/result", "PreserveRelativePaths": True}])
def test_files_that_the_job_does_not_name(tmp_path: Path, job: dict[str, object], path: str) -> None:
    folders = [sent(".ssh", "directory"), sent("bin", "directory")] if "/" in path else []
    with pytest.raises(BadManifest, match="no output of the job"):
        brought(tmp_path, job, sent("_condor_stdout"), *folders, sent(path))
    assert files_of(tmp_path) == set()


@pytest.mark.parametrize("path", [".ssh/authorized_keys", "bin/ls"])
def test_without_names_no_file_of_a_folder(tmp_path: Path, path: str) -> None:
    """A starter sends what is new beside the job's inputs, and folders only when they are named."""
    with pytest.raises(BadManifest, match="no output of the job"):
        brought(tmp_path, {}, sent(path))
    assert files_of(tmp_path) == set()


@pytest.mark.parametrize("job", [{}, {"TransferOutput": "data/"}])
def test_nothing_that_a_shell_runs_comes_into_a_home_directory_unless_it_is_named(
    tmp_path: Path, job: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert brought(tmp_path, job, sent("result"), sent(".bashrc"), sent(".profile")) == [".bashrc", ".profile"]
    assert files_of(tmp_path) == {"result"}
    below = tmp_path / "work"
    below.mkdir()
    assert brought(below, job, sent(".state")) == []
    assert brought(tmp_path, {"TransferOutput": ".bashrc"}, sent(".bashrc")) == []
    assert files_of(tmp_path) == {"result", ".bashrc", "work/.state"}


@pytest.mark.parametrize("path", ["condor_exec.exe", "_condor_stdin"])
def test_no_other_program_or_input_goes_to_the_next_machine(tmp_path: Path, path: str) -> None:
    """Not with what an evicted run leaves, nor with a checkpoint: the machine may be revoked by then."""
    job = ClassAd({"Iwd": str(tmp_path)})
    part = tmp_path / "kept"
    with pytest.raises(BadManifest, match="for the next run"):
        _place([sent("state"), sent(path)], OutputPlaces(job, str(part)), str(part))
    with pytest.raises(BadManifest, match="no output of the job"):
        brought(tmp_path, {}, sent(path))
    assert files_of(tmp_path) == set()


class Spool:
    """A schedd with files that a machine has sent for a job."""

    def __init__(self, iwd: Path, *names: str) -> None:
        self.listing = SpoolListing(iwd=str(iwd), files=tuple((name, len(KEY), 0o644) for name in names))

    def ask(self, question: Any) -> Any:
        return self.listing if isinstance(question, ListSpool) else SpoolBytes(data=KEY)


def test_nor_does_it_by_way_of_a_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    there: Any = Spool(tmp_path, "result", ".bashrc")
    _fetch_job(there, ClassAd({"ClusterId": 1}), CopyProgress("fetched"))
    assert files_of(tmp_path) == {"result"}
    assert ".bashrc of job 1.0 is left in the spool" in capsys.readouterr().err
    _fetch_job(there, ClassAd({"ClusterId": 1, "TransferOutput": "result,.bashrc"}), CopyProgress("fetched"))
    assert files_of(tmp_path) == {"result", ".bashrc"}


def test_pieces_of_output_go_to_output_and_error(tmp_path: Path) -> None:
    places = OutputPlaces(ClassAd({"Iwd": str(tmp_path), "Out": "out", "Err": str(tmp_path / "err")}))
    pieces = [("out", 0, b"o"), (str(tmp_path / "err"), 0, b"e"), (".ssh/rc", 0, KEY), (".bashrc", 0, KEY),
              ("_condor_stdout", 0, KEY), (str(tmp_path / "other"), 0, KEY)]
    assert [path for path, _ in write_pieces(places, pieces)] == [each[0] for each in pieces[2:]]
    assert files_of(tmp_path) == {"out", "err"}


@pytest.mark.parametrize("path", ["other", "../other", "results/x"])
def test_no_url_is_signed_for_what_is_no_output(path: str) -> None:
    """With one it would write any object beside the job's, with the owner's keys."""
    said: list[Any] = []
    job = ClassAd({"TransferOutput": "result", "OutputDestination": "s3://store/bucket/prefix/"})
    shadow: Any = SimpleNamespace(context=SimpleNamespace(reply=lambda _, answer: said.append(answer)),
                                  core=SimpleNamespace(order=SimpleNamespace(run_id="1.0#1"), state=None, job=job))
    question: Any = SimpleNamespace(message=SignUploads(run_id="1.0#1", paths=("result", path)))
    sign_uploads(shadow, question)
    assert [(answer.code, path in answer.text) for answer in said] == [("invalid", True)]


@pytest.mark.parametrize(("job", "path"), [
    (NAMED, "result"), (NAMED, "result/below"), (NAMED, "anything"), (NAMED, "table"), (NAMED, "_condor_stderr"),
    ({**NAMED, "TransferOutput": "sub/deep/table", "PreserveRelativePaths": True}, "sub/deep/table"),
    ({**NAMED, "TransferOutput": "./sub/", "PreserveRelativePaths": True}, "sub/x/y"),
    ({"TransferOutput": "/tmp/far"}, "far"), ({}, "core.7"), ({}, ".state"),
    ({"TransferOutput": "", "ManifestDesired": True, "ClusterId": 3, "ProcId": 1}, "3_1_manifest/out"),
    ({"TransferOutput": "", "ManifestDir": "lists"}, "lists/in"), ({"TransferOutput": ""}, ".starter.log"),
])
def test_what_an_honest_machine_sends(job: dict[str, object], path: str) -> None:
    assert OutputNames(ClassAd(job)).have(path)
