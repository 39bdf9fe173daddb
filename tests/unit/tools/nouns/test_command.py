"""htcondor: every noun and verb of the table is reachable, and what is not there says why."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.nouns import command, eventlog, job, words
from condor_actors.tools.nouns.table import NOUNS, NOUNS_OF

VERBS = [(noun.name, verb) for noun in NOUNS.values() for verb in noun.verbs]


@pytest.mark.parametrize(("noun", "verb"), VERBS, ids=lambda each: getattr(each, "name", each))
def test_each_verb_leads_somewhere(noun: str, verb: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(verb, type(VERBS[0][1]))
    assert sum(map(bool, (verb.act, verb.command, verb.refused))) == 1
    if verb.act:
        module, _, function = verb.act.partition(":")
        assert callable(getattr(importlib.import_module(NOUNS_OF + module), function))
    if verb.refused:
        assert command.main([noun, verb.name]) == 1
        assert verb.refused in capsys.readouterr().err
    if not verb.command:
        assert command.main([noun, verb.name, "--help"]) == 0
        assert f"htcondor {noun} {verb.name}" in capsys.readouterr().out


@pytest.mark.parametrize("given", [[], ["job"], ["dog"], ["job", "eat"], ["job", "status"],
                                   ["job", "status", "1", "-x"], ["job", "submit", "--runtime", "soon", "x"]])
def test_what_makes_no_sense(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(given) == 2
    said = capsys.readouterr()
    assert "usage: htcondor" in said.err
    assert said.out == ""


def test_without_words_it_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    command.main([])
    assert command.ABOUT in capsys.readouterr().err


@pytest.mark.parametrize(("given", "said"), [
    (["job", "submit", "does_not_exist.sub"],
     "Error while trying to run job submit:\nCould not find file: does_not_exist.sub\n"),
    (["job", "submit", "x.sub", "--resource", "ec2"],
     "Error while trying to run job submit:\nError: EC2 resources must specify a --runtime argument\n"),
    (["job", "status", "1.x"],
     "Error while trying to run job status:\n1.x is no job id; expected CLUSTER or CLUSTER.PROC, as 12.0\n"),
    (["eventlog", "read", "nowhere.log"],
     "Error while trying to run eventlog read:\nCould not find file: nowhere.log\n"),
])
def test_failures(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(given) == 1
    assert capsys.readouterr().err == said


def test_a_job_in_words() -> None:
    ad = ClassAd({"JobStatus": 5, "QDate": 100, "EnteredCurrentStatus": 190, "HoldReason": "so", "NumHolds": 1})
    said = job._SENTENCES[5]("Job 1.0", ad, 200.0)
    assert said[:4] == ["Job 1.0 is currently held.", "It has been held for 10 seconds.", 'It was held because "so".',
                        "It has been held 1 time."]


def test_spans_and_sizes() -> None:
    assert [words.span(each) for each in (1, 59, 60, 7200, 86400 + 3 * 3600, 2 * 86400)] == [
        "1 second", "59 seconds", "1 minute", "2 hours", "1 day 3 hours", "2 days 0 hours"]
    assert [words.size(each) for each in (256, 1536, 5 * 1024**3)] == ["256 B", "1.500 KB", "5.000 GB"]
    assert words.clock(90061) == "1+01:01:01"


LOG = """000 (007.000.000) 2026-01-02 03:04:05 Job submitted from host: <127.0.0.1:9618>
...
001 (007.000.000) 2026-01-02 03:05:00 Job executing on host: <127.0.0.2:1000>
\tSlotName: slot1@there
...
004 (007.000.000) 2026-01-02 03:06:00 Job was evicted.
\t(0) Job was not checkpointed.
\t\tUsr 0 00:00:10, Sys 0 00:00:01  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
...
001 (007.000.000) 2026-01-02 03:07:00 Job executing on host: <127.0.0.3:1000>
...
005 (007.000.000) 2026-01-02 03:07:30 Job terminated.
\t(1) Normal termination (return value 0)
\t\tUsr 0 00:00:20, Sys 0 00:00:02  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t\tUsr 0 00:00:30, Sys 0 00:00:03  -  Total Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
...
"""


def test_an_event_log_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "job.log"
    log.write_text(LOG)
    line = eventlog.lines_of([str(log)])["7.0"]
    assert (line.host, line.starts, line.evictions, line.code) == ("127.0.0.3", 2, 1, 0)
    assert (line.wall_s, line.good_s, line.cpu_s) == (90.0, 30.0, 33.0)
    assert command.main(["eventlog", "read", str(log)]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("Job ")
    assert row.split() == ["7.0", "127.0.0.3", "1/2/26", "03:07", "1/2/26", "03:07", "1", "0+00:01:30", "0+00:00:30",
                           "0+00:00:33"]
    assert command.main(["eventlog", "read", "-csv", str(log)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "7.0,127.0.0.3,1/2/26 03:07,1/2/26 03:07,1,90,30,33"


def test_an_unreadable_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "job.log"
    log.write_bytes(b"\xff\x00 nothing\n...\n")
    status = command.main(["eventlog", "read", str(log)])
    assert status in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
