"""The records of runs: what is in the file, what bounds it, how a question finds its place again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.job_notices import RecordEpoch
from condor_actors.daemons.schedd.epochs import EPOCH, epoch_file, epoch_record
from condor_actors.daemons.schedd.history import history_page
from condor_actors.messages.queue import QueryJobs
from condor_actors.store.record_file import TOGETHER_S, AdRecord, RecordFileSettings, RecordReader
from condor_actors.tools.printing.ad_output import ads_of_file


def at_once(function: Any, *given: Any) -> Deferred[Any]:
    return maybeDeferred(function, *given)


def epoch(number: int, owner: str = "alice", text: str = "") -> AdRecord:
    own = ClassAd({"ProcId": number, "Args": text, "NumShadowStarts": 1}).to_bytes()
    return epoch_record(RecordEpoch(1, number, 0, owner, 1_700_000_000.0 + number, b"ClusterId = 1\n", own))


def procs(path: Path, question: QueryJobs) -> list[int]:
    found, cursor = [], ""
    while True:
        sees_all = JobSight(frozenset(), lambda owner: True)
        page = history_page(RecordReader(str(path), (EPOCH,)), attrs.evolve(question, cursor=cursor), sees_all)
        found += [ClassAd.from_bytes(text).get_int("ProcId") for text in page.ads]
        cursor = page.cursor
        if not cursor:
            return found


def test_the_newest_comes_first_and_a_value_is_no_banner(tmp_path: Path) -> None:
    path = tmp_path / "epochs"
    epochs = epoch_file(RecordFileSettings(path=str(path), most_bytes=20 << 20, rotations=2), at_once)
    hostile = '\n*** EPOCH ClusterId=7 ProcId=7 RunInstanceId=0 Owner="bob" CurrentTime=1\n'
    for number in range(3):
        epochs.record(epoch(number, text=hostile))
    assert procs(path, QueryJobs(source="epochs")) == [2, 1, 0]
    assert procs(path, QueryJobs(source="epochs", ids=((1, 1),))) == [1]
    assert procs(path, QueryJobs(source="epochs", ids=((7, -1),))) == []
    assert procs(path, QueryJobs(source="epochs", owner="bob")) == []
    assert [ad.get_int("ProcId") for ad in ads_of_file(str(path))] == [0, 1, 2]
    assert path.stat().st_mode & 0o777 == 0o600
    assert 'Owner="alice" CurrentTime=1700000002' in path.read_text()


def test_what_is_kept_is_bounded_and_pages_span_files(tmp_path: Path) -> None:
    path = tmp_path / "epochs"
    epochs = epoch_file(RecordFileSettings(path=str(path), most_bytes=100_000, rotations=2), at_once)
    for number in range(6_000):
        epochs.record(epoch(number))
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert sum(file.stat().st_size for file in files) <= 300_000
    found = procs(path, QueryJobs(source="epochs"))
    assert len(found) > 1_000
    assert found == list(range(5_999, 5_999 - len(found), -1))


def test_a_folder_has_a_file_of_each_job(tmp_path: Path) -> None:
    """Also where there is no file for all, or that one cannot be written; records of other kinds are not there."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    for path in ("", str(tmp_path / "none" / "epochs"), str(tmp_path / "epochs")):
        settings = RecordFileSettings(path=path, most_bytes=20 << 20, rotations=2, folder=str(folder), kind=EPOCH)
        epochs = epoch_file(settings, at_once)
        for number in (0, 1, 0):
            epochs.record(epoch(number))
        epochs.record(attrs.evolve(epoch(0), kind="INPUT"))
    assert sorted(path.name for path in folder.iterdir()) == ["job.runs.1.0.ads", "job.runs.1.1.ads"]
    assert [len(ads_of_file(str(folder / f"job.runs.1.{proc}.ads"))) for proc in (0, 1)] == [6, 3]
    assert (folder / "job.runs.1.0.ads").stat().st_mode & 0o777 == 0o600
    assert len(ads_of_file(str(tmp_path / "epochs"))) == 4


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "none" / "epochs")
    epochs = epoch_file(RecordFileSettings(path=path, most_bytes=20 << 20, rotations=2), at_once)
    epochs.record(epoch(0))
    (tmp_path / "none").mkdir()
    epochs.record(epoch(1))
    assert procs(tmp_path / "none" / "epochs", QueryJobs(source="epochs")) == [1]


def test_one_record_is_written_at_once_and_those_behind_it_together(tmp_path: Path) -> None:
    path, clock, writes = tmp_path / "epochs", Clock(), []

    def counted(function: Any, *given: Any) -> Deferred[Any]:
        writes.append(len(given[1]))
        return at_once(function, *given)

    epochs = epoch_file(RecordFileSettings(path=str(path), most_bytes=20 << 20, rotations=2), counted, clock)
    for number in range(5):
        epochs.record(epoch(number))
    assert writes == [1]
    clock.advance(TOGETHER_S)
    assert writes == [1, 4]
    epochs.record(epoch(5))
    assert procs(path, QueryJobs(source="epochs")) == [4, 3, 2, 1, 0]
    epochs.write_waiting()  # someone asks, or the process ends
    epochs.write_waiting()
    assert procs(path, QueryJobs(source="epochs")) == [5, 4, 3, 2, 1, 0]
    clock.advance(TOGETHER_S)
    assert writes == [1, 4]
    assert clock.getDelayedCalls() == []
    epochs.record(epoch(6))
    assert writes == [1, 4, 1]
