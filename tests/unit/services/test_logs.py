"""What a daemon's log looks like."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from twisted.logger import LogEvent, Logger, LogLevel, globalLogPublisher

from condor_actors.config import Config, ConfigError, load_config
from condor_actors.effects import Note, job_note
from condor_actors.services.telemetry.logs import BURST, GivenLog, Lines, RotatingLog, log_name, start_logging
from tests.pool_fixture import small_file_system


def config(folder: Path, **values: str) -> Config:
    environ = {f"_CONDOR_{name}": value for name, value in {"LOG": str(folder), **values}.items()}
    return load_config(environ={"CONDOR_CONFIG": "ONLY_ENV", **environ}, subsystem="SCHEDD")


def write(settings: Config, daemon: str = "schedd", text: str = "job {job} starts", times: int = 1) -> None:
    stop = start_logging(settings, daemon)
    try:
        for _ in range(times):
            Logger("condor").info(text, job="1.0")
            Logger("condor").debug("a detail")
            Logger("twisted.internet").info("a socket opens")
            Logger("condor").error("it fails")
    finally:
        stop()


def test_names() -> None:
    assert log_name("schedd") == "ScheddLog"
    assert log_name("shadow-host") == "ShadowHostLog"


def test_lines_for_people(tmp_path: Path) -> None:
    write(config(tmp_path))
    lines = (tmp_path / "ScheddLog").read_text().splitlines()
    assert [re.sub(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ", "", line) for line in lines] == [
        "job 1.0 starts", "ERROR: it fails",
    ]


def test_lines_for_programs(tmp_path: Path) -> None:
    write(config(tmp_path, LOG_FORMAT="json"))
    first, second = map(json.loads, (tmp_path / "ScheddLog").read_text().splitlines())
    assert (first["text"], first["job"], first["level"]) == ("job 1.0 starts", "1.0", "info")
    assert second["level"] == "error"


def test_everything_on_request(tmp_path: Path) -> None:
    write(config(tmp_path, SCHEDD_DEBUG="D_FULLDEBUG"))
    text = (tmp_path / "ScheddLog").read_text()
    assert "a detail" in text
    assert "a socket opens" in text


def test_another_file_put_aside_at_its_size(tmp_path: Path) -> None:
    settings = config(tmp_path, SCHEDD_LOG=str(tmp_path / "queue.log"), MAX_SCHEDD_LOG="200", MAX_NUM_SCHEDD_LOG="2")
    write(settings, times=30)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queue.log", "queue.log.1", "queue.log.2"]
    assert (tmp_path / "queue.log.1").stat().st_size < 400


def test_lines_of_many_threads_are_whole_also_where_the_file_is_put_aside(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "Log", 2_000, 100, lambda event: event["text"])
    words = [[f"{name}{number} \udcff" for number in range(200)] for name in "abcd"]
    threads = [Thread(target=lambda each=each: [log({"text": text}) for text in each]) for each in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    log.close()
    files = list(tmp_path.iterdir())
    found = [line for path in files for line in path.read_text().splitlines()]
    assert sorted(found) == sorted(text.replace("\udcff", "?") for each in words for text in each)
    assert len(files) > 2
    assert all(path.stat().st_size < 2_100 for path in files)


def lines_of(folder: Path) -> list[str]:
    return [line[18:] for line in (folder / "ScheddLog").read_text().splitlines()]


def test_a_burst_of_one_kind_is_summed_up_and_other_kinds_are_told(tmp_path: Path) -> None:
    later: list[float] = []
    stop = start_logging(config(tmp_path), "schedd", later=lambda delay_s, function: later.append(delay_s))
    log = Logger("condor")
    for number in range(5_000):
        globalLogPublisher(event_at(7.5, log, job_note(f"{number}.0", "held", f"held by hand {number}")))
    globalLogPublisher(event_at(7.9, log, job_note("1.0", "released", "released")))
    globalLogPublisher(event_at(8.0, log, job_note("2.0", "held", "held again")))
    stop()
    lines = lines_of(tmp_path)
    assert lines[:2] == ["0.0: held by hand 0", "1.0: held by hand 1"]
    assert lines[BURST - 1:] == [
        f"{BURST - 1}.0: held by hand {BURST - 1}", "1.0: released",
        f"4000 more lines like the last {BURST} of this kind, in the same second; the last of them: "
        "4999.0: held by hand 4999",
        "2.0: held again",
    ]
    assert later == [1.0]


def test_a_burst_is_summed_up_when_nothing_follows(tmp_path: Path) -> None:
    later: list[Callable[[], None]] = []
    stop = start_logging(config(tmp_path), "schedd", later=lambda delay_s, function: later.append(function))
    for _ in range(BURST + 3):
        globalLogPublisher(event_at(7.5, Logger("condor"), job_note("1.0", "held", "held")))
    later[0]()
    assert lines_of(tmp_path)[-1].startswith("3 more lines like the last")
    stop()


def test_nothing_is_summed_up_where_everything_is_wanted(tmp_path: Path) -> None:
    stop = start_logging(config(tmp_path, SCHEDD_DEBUG="D_FULLDEBUG"), "schedd")
    for _ in range(BURST + 3):
        globalLogPublisher(event_at(7.5, Logger("condor"), job_note("1.0", "held", "held")))
    stop()
    assert len(lines_of(tmp_path)) == BURST + 3


@pytest.mark.parametrize("end", ["\n", "\r", "\x1b[2K\r", "\u2028", "\x85"])
@pytest.mark.parametrize("log_format", ["{text}", "of a user: {text}"])
def test_a_users_words_are_no_lines_of_their_own(tmp_path: Path, end: str, log_format: str) -> None:
    stop = start_logging(config(tmp_path), "schedd")
    forged = f"mine{end}11/23/26 10:00:00 ERROR: the machine burns"
    event = event_at(7.5, Logger("condor"), job_note("1.0", "held", f"held (1): {forged}"))
    globalLogPublisher({**event, "log_format": log_format})
    stop()
    (line,) = (tmp_path / "ScheddLog").read_text().splitlines()
    assert line.isprintable()
    assert "held (1): mine" in line


def event_at(when_s: float, log: Logger, note: Note) -> dict[str, object]:
    return {"log_logger": log, "log_level": LogLevel.levelWithName(note.level), "log_namespace": "condor",
            "log_source": None, "log_format": "{text}", "log_time": when_s, "text": note.text, **dict(note.fields)}


def test_standard_error_has_what_is_critical_once() -> None:
    program = """
from twisted.logger import Logger, globalLogBeginner
from condor_actors.services.telemetry.logs import leave_standard_error
log = Logger("condor")
log.critical("before")
leave_standard_error()
log.error("a mistake")
log.critical("the {what}", what="end")
print(globalLogBeginner._temporaryObserver)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "before\nthe end\n"
    assert done.stdout == "None\n"  # nothing remembers events, or asks a filter about each


@pytest.mark.parametrize(("text", "name"), [("LOG = {}", "LOG"), ("LOCAL_DIR = {}", "LOCAL_DIR"),
                                            ("SCHEDD_LOG = {}/ScheddLog", "SCHEDD_LOG")])
def test_a_folder_that_cannot_be_one_is_named_with_its_line(tmp_path: Path, text: str, name: str) -> None:
    taken, source = tmp_path / "file", tmp_path / "config"
    taken.touch()
    source.write_text(f"# first\n{text.format(taken)}\n")
    settings = load_config(environ={"CONDOR_CONFIG": str(source)}, subsystem="SCHEDD")
    with pytest.raises(ConfigError) as caught:
        start_logging(settings, "schedd")
    assert f"{source}, line 2: {name}: {taken}" in str(caught.value)
    assert "expected a folder that its daemons may make and write to" in str(caught.value)


def event(text: str) -> LogEvent:
    return {"log_time": 1.0, "log_level": LogLevel.info, "log_namespace": "condor", "log_format": "{text}",
            "text": text}


def without_times(path: Path) -> list[str]:
    return [line[len("MM/DD/YY hh:mm:ss "):] for line in path.read_text().splitlines()]


def missing(line: str) -> int:
    """How many lines a line says are missing."""
    found = re.fullmatch(r"WARNING: lines are missing here: (\d+), of 0 s: No space left on device", line)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("kind", ["rotating", "given"])
def test_a_log_on_a_full_disk_says_later_how_much_is_missing(kind: str) -> None:
    """A line of which the disk takes but a part does not run into the next."""
    with small_file_system("64k") as folder:
        path, ballast = folder / "ScheddLog", folder / "ballast"
        with path.open("ab", buffering=0) as file:
            log = RotatingLog(path, None, 1, Lines()) if kind == "rotating" else GivenLog(file.fileno(), Lines())
            log(event("before"))
            with ballast.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
                while True:
                    filler.write(bytes(4096))
            for _ in range(3):
                log(event("x" * 5000))
            ballast.unlink()
            log(event("after"))
            log(event("at last"))
            log.close()
        first, *told, after, last = without_times(path)
        assert (first, after, last) == ("before", "after", "at last")
        assert sum(map(missing, told)) == 3
        half = [line for line in told if not missing(line)]
        assert not half if kind == "rotating" else set("".join(half)) <= {"x"}


def test_a_log_that_could_not_be_begun_anew_goes_on_with_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It had been put aside when there was no room for its successor."""
    path = tmp_path / "ScheddLog"
    log = RotatingLog(path, 100, 1, Lines())
    log(event("x" * 100))

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("condor_actors.services.telemetry.logs.open_own", refuse)
        for _ in range(2):
            log(event("lost"))
    log(event("after"))
    log.close()
    told, after = without_times(path)
    assert (missing(told), after) == (2, "after")


def test_what_standard_error_cannot_take_stops_no_line_of_the_log(tmp_path: Path) -> None:
    program = ("from twisted.logger import Logger; import sys\n"
               "from condor_actors.config import load_config\n"
               "from condor_actors.services.telemetry.logs import leave_standard_error, start_logging\n"
               "leave_standard_error()\n"
               "stop = start_logging(load_config(subsystem='SCHEDD'), 'schedd')\n"
               "Logger('condor').critical('it fails')\n"
               "stop()\n")
    subprocess.run(["bash", "-c", '"$0" -c "$1" 2> /dev/full', sys.executable, program], check=True, env={
        **{name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()},
        "CONDOR_CONFIG": "ONLY_ENV", "_CONDOR_LOG": str(tmp_path)})
    assert without_times(tmp_path / "ScheddLog") == ["ERROR: it fails"]
