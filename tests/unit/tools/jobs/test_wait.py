"""condor_wait and what it reads: event logs that grow."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from condor_actors.userlog.reader import EventReader
from condor_actors.userlog.watch import GrowingFile


def event(number: int, cluster: int, proc: int, text: str = "Something") -> str:
    return f"{number:03} ({cluster:03}.{proc:03}.000) 2026-11-21 09:00:00 {text}\n\tmore\n...\n"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


XML = (
    '<c>\n    <a n="MyType"><s>SubmitEvent</s></a>\n    <a n="EventTypeNumber"><i>0</i></a>\n'
    '    <a n="Cluster"><i>7</i></a>\n    <a n="Proc"><i>1</i></a>\n    <a n="Subproc"><i>0</i></a>\n</c>\n'
)


def test_events_are_cut_where_they_end_however_the_bytes_arrive() -> None:
    reader = EventReader()
    whole = (event(0, 12, 3) + event(5, 12, 3)).encode()
    found = [made for byte in whole for made in reader.feed(bytes([byte]))]
    assert [(made.number, made.cluster, made.proc) for made in found] == [(0, 12, 3), (5, 12, 3)]


def test_xml_logs_are_read_too() -> None:
    (found,) = EventReader().feed(b'<?xml version="1.0"?>\n<classads>\n' + XML.encode())
    assert (found.number, found.cluster, found.proc) == (0, 7, 1)


def wait(log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "condor_actors.tools.jobs.wait", "-wait", "60", *arguments, str(log)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_it_ends_when_all_jobs_have(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0, 1, 0) + event(0, 1, 1) + event(5, 1, 0) + event(9, 1, 1))
    done = wait(log)
    assert (done.returncode, done.stdout) == (0, "All jobs done.\n")


def test_it_waits_for_what_is_written_later(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0, 1, 0))
    with GrowingFile(str(log)) as growing:
        assert growing.read()
        writer = threading.Thread(target=append, args=(log, event(5, 1, 0)))
        writer.start()
        data = b""
        while not data:
            assert growing.wait(None)
            data = growing.read()
        writer.join()
    assert b"005 (001.000.000)" in data


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("1.0",), 0, "All jobs done."),
        (("1.1",), 1, "Time expired."),
        (("-num", "1", "1"), 0, "Specifed number of jobs (1) done."),
        (("-status", "1.0"), 0, "1.0.0 completed"),
        (("-echo", "1.0"), 0, "005 (001.000.000)"),
    ],
)
def test_one_job_or_some(tmp_path: Path, arguments: tuple[str, ...], status: int, said: str) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0, 1, 0) + event(0, 1, 1) + event(5, 1, 0))
    command = [sys.executable, "-m", "condor_actors.tools.jobs.wait", "-wait", "1", *arguments[:-1],
               str(log), arguments[-1]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status
    assert said in done.stdout


@pytest.mark.parametrize("text", ["Hello, world\n", "nothing", "<html>\n", "[section]\n...\nmore\n", "\x00\x01", "12a"])
def test_a_file_that_is_no_event_log_is_not_waited_for(tmp_path: Path, text: str) -> None:
    log = tmp_path / "program.c"
    log.write_text(text)
    done = wait(log)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{log}:1: {text.splitlines()[0]!r} is no event of a job")
    assert "log = FILE" in done.stderr


@pytest.mark.parametrize("text", ["", "\n", "0", "000", "000 ", "000 (1", "<", "<?xml version", "<c>\n",
                                  event(0, 1, 0)[:30],
                                  "garbage of a disk that was full\n" + event(0, 1, 0)])
def test_the_beginning_of_an_event_is_one(text: str) -> None:
    reader = EventReader()
    list(reader.feed(text.encode()))
    assert reader.stranger == ""


def test_a_file_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\n")
    with GrowingFile(str(log)) as growing:
        assert growing.read() == b"one\n"
        log.write_text("2\n")
        assert growing.read() == b"2\n"
        fresh = tmp_path / "b.log"
        fresh.write_text("three\n")
        fresh.rename(log)
        assert growing.read() == b"three\n"


def test_a_file_that_was_replaced_tells_when_it_grows(tmp_path: Path) -> None:
    """The kernel watches a file, not its name: who waits for the new one has to have it watched, too."""
    log = tmp_path / "a.log"
    log.write_text("one\n")
    with GrowingFile(str(log)) as growing:
        assert growing.read() == b"one\n"
        fresh = tmp_path / "b.log"
        fresh.write_text("two\n")
        fresh.rename(log)
        assert growing.read() == b"two\n"
        growing.forget()
        append(log, "three\n")
        descriptor = growing.fileno()
        assert descriptor is not None
        assert select.select([descriptor], [], [], 60.0)[0] == [descriptor]
        assert growing.read() == b"three\n"


def test_a_log_may_be_read_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0, 1, 0) + event(6, 1, 0))
    for arguments in (["-allevents", "-echo", str(log)], ["-wait", "0", "-echo", str(log)]):
        done = subprocess.run(
            [sys.executable, "-m", "condor_actors.tools.jobs.wait", *arguments],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, log.read_text(), "")


def test_waiting_for_events_of_a_kind(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0, 1, 0) + event(6, 1, 0) + event(6, 1, 1))
    done = wait(log, "-event-id:2", "6", "-status")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1.0.0 submitted\n1.0.0 event 6 found\n1.1.0 event 6 found\nGot 2 events of id 6\n"


@pytest.mark.parametrize("words", [(), ("-wait", "60")])
@pytest.mark.parametrize(("kind", "said"), [("folder", "Is a directory"), ("fifo", "it is a FIFO"),
                                            ("device", "it is a device")])
def test_what_is_no_file_is_no_event_log(tmp_path: Path, kind: str, said: str, words: tuple[str, ...]) -> None:
    """It was waited for, or read, without end, whatever ``-wait`` said."""
    log = tmp_path / kind
    {"folder": log.mkdir, "fifo": lambda: os.mkfifo(log), "device": lambda: log.symlink_to("/dev/zero")}[kind]()
    done = subprocess.run([sys.executable, "-m", "condor_actors.tools.jobs.wait", *words, str(log)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"Couldn't open {log}: {said}" in done.stderr + done.stdout


def test_a_wait_of_a_thousand_days_is_woken_by_what_is_written(tmp_path: Path) -> None:
    """The kernel counts the milliseconds of a wait in 31 bits."""
    log = tmp_path / "log"
    log.touch()
    with GrowingFile(str(log)) as growing:
        growing.read()
        growing.wait(time.monotonic() + 1.0)  # from here on it is watched
        with log.open("a") as more:
            more.write("...\n")
        assert growing.wait(time.monotonic() + 1000 * 86_400.0)
        assert growing.read() == b"...\n"
