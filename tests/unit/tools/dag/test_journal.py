"""The journal of a run: what is read back, what a crash leaves, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_events import Began, RunEvent, Submitted, line_of
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.journal import Journal, JournalError, digest_of

TEXT = "JOB A x\nJOB B x\nPARENT A CHILD B\n"


def digest(text: str) -> str:
    return digest_of(read_dag(["x.dag"], Reading(lambda _: text)))


def test_events_offset_and_settings_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "j")
    journal = Journal.create(path, "d", RunSettings(jobs=7), "x.rescue001", 12.5)
    journal.append([line_of(Began()), "@ 40", line_of(Submitted(0, 3, 1)), "@ 90"])
    journal.sync()
    told: list[RunEvent] = []
    again = Journal.open(path, "d", told.append)
    assert told == [Began(), Submitted(0, 3, 1)]
    assert (again.offset, again.rescue, again.began_s) == (90, "x.rescue001", 12.5)
    assert Journal.head(path)[3] == RunSettings(jobs=7)
    again.remove()
    assert not Path(path).exists()


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal.create(str(path), "d", RunSettings(), "", 0.0).append([line_of(Began())])
    whole = path.read_bytes()
    path.write_bytes(whole + b"S 0 3")
    told: list[RunEvent] = []
    Journal.open(str(path), "d", told.append).append([line_of(Submitted(0, 4, 1))])
    assert told == [Began()]
    assert path.read_bytes() == whole + b"S 0 4 1\n"


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal.create(str(path), "d", RunSettings(), "", 0.0).append(["what"])
    with pytest.raises(JournalError, match="have changed"):
        Journal.open(str(path), "e", lambda _: None)
    with pytest.raises(JournalError, match="'what' is no event"):
        Journal.open(str(path), "d", lambda _: None)
    path.write_text("something else\n")
    with pytest.raises(JournalError, match="is no journal"):
        Journal.head(str(path))


@pytest.mark.parametrize("other", [
    "JOB A x\nJOB C x\nPARENT A CHILD C\n", "JOB A x\nJOB B x\n", TEXT + "RETRY A 1\n", TEXT + "SCRIPT POST A x\n",
    TEXT + "CATEGORY A c\nMAXJOBS c 1\n", TEXT.replace("PARENT", "WEAK PARENT"),
])
def test_a_digest_tells_what_steers_a_run(other: str) -> None:
    assert digest(TEXT) != digest(other)


def test_a_digest_does_not_tell_what_does_not(tmp_path: Path) -> None:
    assert digest(TEXT) == digest(TEXT.replace(" x", " y") + 'VARS A n="1"\n')
