"""A run at another schedd: submitted once whatever breaks off, and what a hostile schedd says harms nobody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from condor_actors.actors.workers import at_once
from condor_actors.classads import ClassAd
from condor_actors.cores.shadow import grid_events as gr
from condor_actors.cores.shadow.condor_jobs import PROJECTION, STDOUT
from condor_actors.cores.shadow.grid_events import GridSettings
from condor_actors.daemons.shadow.grid.condor_run import CondorRun
from condor_actors.daemons.shadow.grid.grid_manager import GridEdges
from condor_actors.machine.grid.remote_schedd import Line, ScheddFailed
from condor_actors.machine.grid.slurm import Slurm, SlurmPlace
from condor_actors.messages.envelope import Done
from condor_actors.messages.queue import ActionResults, ActOnJobs, JobsPage, QueryJobs
from condor_actors.messages.spool import FinishSpooling, ListSpool, ReadSpool, SpoolBytes, SpoolChunk, SpoolListing
from condor_actors.messages.submission import ClusterReserved, ReserveCluster, SubmitPage, Submitted
from condor_actors.userlog.writer import UserLogs
from condor_actors.wire.blocking import LinkLost


class PlayedSchedd:
    """The other schedd, as it keeps to the protocol or does not; nothing of it is to be had from a real one."""

    node = "played"

    def __init__(self) -> None:
        self.jobs: dict[int, ClassAd] = {}
        self.files: dict[str, bytes] = {}
        self.listing: tuple[tuple[str, int, int], ...] | None = None
        self.breaks_after = ""
        self.let_go: list[int] = []
        self.next = 7

    def ask(self, actor: str, message: Any, timeout_s: float) -> Any:
        """The answer; lost where it is that of ``breaks_after``."""
        answer = self._answer(message)
        if self.breaks_after == type(message).__name__:
            self.breaks_after = ""
            raise LinkLost("cut")
        return answer

    def _answer(self, message: Any) -> Any:
        if isinstance(message, QueryJobs):
            wanted = {cluster for cluster, _ in message.ids}
            return JobsPage(ads=tuple(ad.to_bytes() for number, ad in self.jobs.items()
                                      if not wanted or number in wanted) if message.source == "queue" else ())
        if isinstance(message, ReserveCluster):
            self.next += 1
            return ClusterReserved(cluster_id=self.next, schedd_name="s", now_s=0.0)
        if isinstance(message, SubmitPage):
            whole = ClassAd.from_bytes(message.cluster_ad)
            whole.update({"ClusterId": message.cluster_id, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 16})
            self.jobs[message.cluster_id] = ClassAd({name: whole.find(name.lower()) for name in PROJECTION
                                                     if name in whole})
            return Submitted(cluster_id=message.cluster_id, first_proc=0, last_proc=0)
        if isinstance(message, SpoolChunk):
            self.files[message.path] = message.data
            return Done()
        if isinstance(message, FinishSpooling):
            self.let_go.append(message.cluster_id)
            self.jobs[message.cluster_id].update({"JobStatus": 1, "HoldReasonCode": 0})
            return Done()
        if isinstance(message, ActOnJobs):
            for cluster, _ in message.ids:
                self.jobs.pop(cluster, None)
            return ActionResults(results=(), count=len(message.ids))
        if isinstance(message, ListSpool):
            listed = tuple((name, len(data), 0o644) for name, data in self.files.items())
            return SpoolListing(iwd="/", files=listed if self.listing is None else self.listing)
        assert isinstance(message, ReadSpool)
        return SpoolBytes(data=self.files.get(message.path, b"x" * 99)[message.offset:])


class Shared:
    """All jobs' way to it, without threads."""

    def __init__(self, schedd: PlayedSchedd) -> None:
        self._line = Line(schedd, 5.0, "/played/it")  # type: ignore[arg-type]
        self.question = self

    def ask(self) -> Any:
        """As `SharedQuestion`."""
        return self.call(lambda line: line.all_jobs("here/alice"))

    def call(self, work: Any, *arguments: Any) -> Any:
        """As `SharedSchedd`."""

        def attempt() -> Any:
            try:
                return work(self._line, *arguments)
            except LinkLost as error:
                raise ScheddFailed(str(error), transient=True) from None

        return at_once(attempt)


class Run:
    """One run, and what its work came to."""

    def __init__(self, folder: Path, schedd: PlayedSchedd, **more: object) -> None:
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        (self.home / "x").write_text("program")
        (self.home / "data").write_text("data")
        job = ClassAd({"ClusterId": 1, "ProcId": 0, "Owner": "alice", "GlobalJobId": "here#1.0#5", "JobUniverse": 9,
                       "Cmd": "x", "Iwd": str(self.home), "TransferInput": "data", "Out": "out", "Err": "/dev/null",
                       "GridResource": "condor there pool", **more})
        place = SlurmPlace(commands="", conf="", deadline_s=1.0, at_once=1)
        edges = GridEdges(batch=Slurm(None, place, {}, 1), schedds=lambda *_: Shared(schedd),  # type: ignore[arg-type]
                          settings=GridSettings(), folder=str(folder / "grid"), in_thread=at_once,
                          logs=UserLogs(Clock()))
        self.run = CondorRun("1.0#1@s", job, edges, lambda: 5.0)
        self.folder = next(iter((folder / "grid").iterdir()), None) if (folder / "grid").exists() else None

    def does(self, name: str, *arguments: Any) -> Any:
        """The event that some work comes to."""
        found: list[Any] = []
        getattr(self.run, name)(*arguments).addBoth(found.append)
        return found[0]


@pytest.fixture
def schedd() -> PlayedSchedd:
    return PlayedSchedd()


def test_it_is_there_with_its_input_and_let_go_once(tmp_path: Path, schedd: PlayedSchedd) -> None:
    run = Run(tmp_path, schedd)
    assert run.does("prepare") == gr.Prepared()
    assert run.does("look", "") == gr.Looked((), gr.FolderRecord(prepared=True))
    assert run.does("submit") == gr.Submitted("8.0", 5.0)
    assert run.does("submit") == gr.Submitted("8.0", 5.0)
    assert (schedd.let_go, schedd.files) == ([8], {"x": b"program", "data": b"data"})
    looked = run.does("look", "8.0")
    assert (looked.found[0].state, looked.record.claim) == ("IDLE", "8.0")


@pytest.mark.parametrize("message", ["ReserveCluster", "SubmitPage", "SpoolChunk", "FinishSpooling"])
def test_an_answer_is_lost_and_another_grid_manager_goes_on(tmp_path: Path, schedd: PlayedSchedd,
                                                            message: str) -> None:
    run = Run(tmp_path, schedd)
    run.does("prepare")
    schedd.breaks_after = message
    assert run.does("submit") == gr.SubmitFailed("cut", transient=True)
    other = Run(tmp_path, schedd)
    looked = other.does("look", "")
    if not looked.found:
        assert not looked.record.claim
        assert isinstance(other.does("submit"), gr.Submitted)
    assert len(schedd.let_go) == 1
    assert list(schedd.jobs) == schedd.let_go


def test_one_that_is_withdrawn_is_not_let_go(tmp_path: Path, schedd: PlayedSchedd) -> None:
    run = Run(tmp_path, schedd)
    run.does("prepare")
    schedd.breaks_after = "SubmitPage"
    run.does("submit")
    assert run.does("withdraw") == gr.Withdrawn("")
    assert isinstance(run.does("submit"), gr.SubmitFailed)
    assert schedd.let_go == []
    assert run.does("cancel") == gr.Cancelled(True)
    assert schedd.jobs == {}


def test_a_job_of_another_with_the_same_mark_is_not_ours(tmp_path: Path, schedd: PlayedSchedd) -> None:
    run = Run(tmp_path, schedd)
    run.does("prepare")
    run.does("submit")
    schedd.jobs[99] = ClassAd({**dict(schedd.jobs[8].items()), "ClusterId": 99, "JobStatus": 4, "ExitBySignal": False,
                               "ExitCode": 0})
    assert run.does("look", "8.0").found[0].state == "IDLE"
    run.does("cancel")
    assert list(schedd.jobs) == [99]


def test_an_input_that_cannot_be_read_is_a_hold(tmp_path: Path, schedd: PlayedSchedd) -> None:
    run = Run(tmp_path, schedd, TransferInput="nosuch")
    run.does("prepare")
    event = run.does("submit")
    assert isinstance(event, gr.FilesFailed)
    assert "nosuch" in event.reason
    assert schedd.let_go == []


def test_what_comes_home(tmp_path: Path, schedd: PlayedSchedd) -> None:
    run = Run(tmp_path, schedd, TransferOutputRemaps="made = renamed")
    run.does("prepare")
    run.does("submit")
    schedd.files |= {"_condor_stdout": b"said", "made": b"made", "below/file": b"no", "data": b"changed there"}
    assert run.does("bring", 0) == gr.Brought()
    assert {name: (run.home / name).read_text() for name in sorted(os.listdir(run.home))} == {
        "data": "data", "out": "said", "renamed": "made", "x": "program"}
    assert run.does("clean_up") is True
    assert (schedd.jobs, list((tmp_path / "grid").iterdir())) == ({}, [])


@pytest.mark.parametrize("row", [("../evil", 4, 0o644), ("/etc/evil", 4, 0o644), ("a/../../evil", 4, 0o644),
                                 ("made", -1, 0o644), ("", 4, 0o644), ("x" * 100_000, 4, 0o644)])
def test_an_output_that_cannot_be_one(tmp_path: Path, schedd: PlayedSchedd, row: tuple[str, int, int]) -> None:
    run = Run(tmp_path, schedd)
    run.does("prepare")
    run.does("submit")
    before = sorted(os.listdir(tmp_path)), sorted(os.listdir(run.home))
    schedd.listing = (row,)
    assert isinstance(run.does("bring", 0), gr.FilesFailed)
    assert (sorted(os.listdir(tmp_path)), sorted(os.listdir(run.home))) == before


def test_more_bytes_than_it_said(tmp_path: Path, schedd: PlayedSchedd) -> None:
    run = Run(tmp_path, schedd)
    run.does("prepare")
    run.does("submit")
    schedd.listing = (("made", 4, 0o4755),)
    assert isinstance(run.does("bring", 0), gr.Unavailable)
    assert not (run.home / "made").exists()
    schedd.files["made"] = b"four"
    assert run.does("bring", 0) == gr.Brought()
    assert (run.home / "made").stat().st_mode & 0o7777 == 0o755


def test_bytes_without_end_for_what_is_no_file(tmp_path: Path, schedd: PlayedSchedd) -> None:
    """A pipe in the place of the output: nothing can be put there but what was held in memory."""
    run = Run(tmp_path, schedd)
    os.mkfifo(run.home / "out")
    run.does("prepare")
    run.does("submit")
    schedd.listing = ((STDOUT, 1 << 40, 0o644),)
    failed = run.does("bring", 0)
    assert isinstance(failed, gr.FilesFailed)
    assert "is no file that could take them" in failed.reason


@pytest.mark.parametrize(("facts", "files", "said"), [
    ({"TransferOutput": "wanted"}, {"other": b""}, "has left no output file wanted"),
    ({"MaxTransferOutputMB": 1}, {"big": b"x" * (2 << 20)}, "max_transfer_output_mb")])
def test_too_little_and_too_much(tmp_path: Path, schedd: PlayedSchedd, facts: dict[str, object],
                                 files: dict[str, bytes], said: str) -> None:
    run = Run(tmp_path, schedd, **facts)
    run.does("prepare")
    run.does("submit")
    schedd.files |= files
    event = run.does("bring", 0)
    assert isinstance(event, gr.FilesFailed)
    assert said in event.reason


def test_an_answer_of_the_wrong_kind(tmp_path: Path, schedd: PlayedSchedd) -> None:
    run = Run(tmp_path, schedd)
    run.does("prepare")
    schedd._answer = lambda message: Done()  # type: ignore[method-assign]
    assert isinstance(run.does("look", ""), gr.Unavailable)
    assert run.does("submit") == gr.SubmitFailed("the other schedd answered ReserveCluster with Done", transient=True)


def test_what_cannot_be_handed_on_is_said_at_once(tmp_path: Path, schedd: PlayedSchedd) -> None:
    assert "travel" in Run(tmp_path, schedd, ShouldTransferFiles="NO").does("prepare").reason
    assert "grid manager" in Run(tmp_path, schedd, remote_Owner="root").does("prepare").reason
