"""What goes to the journal, and what happens when it does not take it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from twisted.logger import Logger, globalLogPublisher

from condor_actors.effects import job_note
from condor_actors.services.telemetry.journal import MOST_LETTERS, JournalLog, packed


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket in the journal's place."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "socket"))
        made.setblocking(False)
        yield made


@pytest.fixture
def log(tmp_path: Path) -> Iterator[JournalLog]:
    made = JournalLog("schedd", str(tmp_path / "socket"))
    globalLogPublisher.addObserver(made)
    yield made
    globalLogPublisher.removeObserver(made)
    made.close()


def read(datagram: bytes) -> dict[str, str]:
    """The fields of a datagram, by the protocol."""
    found = {}
    while datagram:
        line, _, rest = datagram.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            size = int.from_bytes(rest[:8], "little")
            value, rest = rest[8:8 + size], rest[8 + size + 1:]
        found[name.decode()] = value.decode()
        datagram = rest
    return found


def test_values_of_several_lines_have_their_length() -> None:
    fields = {"MESSAGE": "a\nPRIORITY=0\nb", "PRIORITY": "6", "CONDOR_X": "", "CONDOR_Y": "=\ud800"}
    assert read(packed(fields)) == {**fields, "CONDOR_Y": "=?"}


def test_an_event_has_its_fields(journal: socket.socket, log: JournalLog) -> None:
    Logger("condor").warn("job {job} starts", job="1.0", count=3, ratio=0.5, whole={"not": "plain"})
    assert read(journal.recv(65536)) == {
        "MESSAGE": "job 1.0 starts", "PRIORITY": "4", "SYSLOG_IDENTIFIER": "condor-schedd", "CONDOR_DAEMON": "schedd",
        "CONDOR_JOB": "1.0", "CONDOR_COUNT": "3", "CONDOR_RATIO": "0.5"}


def test_an_event_of_a_jobs_story_is_found_by_the_job(journal: socket.socket, log: JournalLog) -> None:
    note = job_note("12.0#3", "held", "held: no room")
    Logger("condor").info("{text}", text=note.text, **dict(note.fields))
    found = read(journal.recv(65536))
    assert (found["CONDOR_JOB"], found["CONDOR_KIND"], found["MESSAGE"]) == ("12.0", "held", "12.0: held: no room")


def test_no_text_makes_fields_of_its_own(journal: socket.socket, log: JournalLog) -> None:
    Logger("condor").info("{text}", text="x\nPRIORITY=0\nCONDOR_JOB=1.0\0", **{"daemon": "other", "a b\n": "v"})
    found = read(journal.recv(65536))
    assert found["MESSAGE"] == "x PRIORITY=0 CONDOR_JOB=1.0 "
    assert (found["PRIORITY"], found["CONDOR_DAEMON"], found["CONDOR_OTHER"]) == ("6", "schedd", "v")
    assert "CONDOR_JOB" not in found


def test_a_traceback_keeps_its_lines_and_a_long_text_is_cut(journal: socket.socket, log: JournalLog) -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        Logger("condor").failure("it failed")
    found = read(journal.recv(65536))
    assert found["MESSAGE"].count("\n") > 2
    assert found["PRIORITY"] == "2"
    Logger("condor").info("{text}", text="x" * 10**6, path="y" * 10**6)
    found = read(journal.recv(65536))
    assert (len(found["MESSAGE"]), len(found["CONDOR_PATH"])) == (MOST_LETTERS, MOST_LETTERS // 32)


def test_a_journal_that_takes_nothing_is_not_waited_for(journal: socket.socket, log: JournalLog) -> None:
    for number in range(10_000):
        Logger("condor").info("line {number}", number=number)
    assert log.dropped > 0
    dropped = log.dropped
    taken = 0
    with suppress(BlockingIOError):
        while journal.recv(65536):
            taken += 1
    assert taken + dropped == 10_000
    Logger("condor").info("and on")
    assert read(journal.recv(65536))["CONDOR_DROPPED"] == str(dropped)
    Logger("condor").info("and on")
    assert "CONDOR_DROPPED" not in read(journal.recv(65536))


def test_no_journal_is_no_failure(tmp_path: Path, log: JournalLog) -> None:
    Logger("condor").info("nobody listens")
    assert log.dropped == 1
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as late:
        late.bind(str(tmp_path / "socket"))
        Logger("condor").info("now someone does")
        assert read(late.recv(65536))["CONDOR_DROPPED"] == "1"
