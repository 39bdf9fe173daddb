"""The audit log: what a line says, that nobody writes lines of others, how many there are, and the file."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from condor_actors.messages.admin import Drain
from condor_actors.messages.envelope import Address, Delivery, Done, Identity, Refused
from condor_actors.messages.queue import ActionResult, ActionResults, ActOnJobs, JobAction, QueryJobs
from condor_actors.services.telemetry import audit
from condor_actors.services.telemetry.audit import AuditLog
from condor_actors.store.audit_file import audit_line

ANN = Identity(name="ann@dom", method="local", uid=1000, pid=7)
FAR = Identity(name="bob@far", method="tls", roles=frozenset({"user"}), host="far", address="10.0.0.9")
FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^ "]+)')


def parsed(line: str) -> dict[str, str]:
    """The fields of a line, as someone else's program would read them."""
    stamp, _, rest = line.partition(" ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp)
    assert FIELD.sub("", rest).strip() == "", rest
    return {name: json.loads(value) if value.startswith('"') else value for name, value in FIELD.findall(rest)}


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Log:
    """An audit log, and what is in it once it was closed."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.path = folder / "SomeAuditLog"
        self.clock = Clock()
        self.log = AuditLog(self.path, "schedd", clock=self.clock, **{"max_bytes": 0, "keep": 2, **settings})

    def lines(self) -> list[dict[str, str]]:
        self.log.close()
        return [parsed(line) for line in self.path.read_text().splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def hold(identity: Identity = ANN, reason: str = "", node: str = "in:1") -> Delivery:
    return Delivery(message=ActOnJobs(action=JobAction.HOLD, ids=((1, 0),), reason=reason),
                    sender=Address(node, "tool"), identity=identity)


def results(*what: ActionResult) -> ActionResults:
    return ActionResults(results=tuple((1, number, each) for number, each in enumerate(what)),
                         count=what.count(ActionResult.SUCCESS))


def test_a_line_says_who_did_what_by_which_right_with_what_result(log: Log) -> None:
    log.log.answered(hold(), results(ActionResult.SUCCESS))
    log.log.answered(hold(FAR), results(ActionResult.PERMISSION_DENIED))
    log.log.answered(hold(), Refused(code="invalid", text="no such constraint"))
    log.log.answered(Delivery(message=QueryJobs(), sender=Address("in:1", "x"), identity=ANN), Done())
    log.log.refused_at_door("in:2", FAR, "condor.admin.Drain", Refused(code="denied", text="it needs ADMINISTRATOR"))
    log.log.event("manhole-login", "root", object_="key=ab:cd")
    first, second, third, fourth, fifth = log.lines()
    assert first.items() >= {"daemon": "schedd", "act": "hold-jobs", "object": "ids=1.0", "result": "ok",
                             "who": "ann@dom", "uid": "1000", "via": "local", "from": "pid:7",
                             "right": "WRITE", "detail": "1 done"}.items()
    assert second.items() >= {"result": "denied", "who": "bob@far", "host": "far", "from": "10.0.0.9",
                              "detail": "0 done, else permission_denied"}.items()
    assert third.items() >= {"result": "invalid", "detail": "no such constraint"}.items()
    assert fourth.items() >= {"act": "drain", "result": "denied", "right": "ADMINISTRATOR"}.items()
    assert fifth.items() >= {"act": "manhole-login", "who": "root", "object": "key=ab:cd"}.items()


@pytest.mark.parametrize("text", [
    "a\nb", "a\r\n2026-01-01T00:00:00.000Z daemon=schedd act=drain", 'a" result=ok who="root', "a\\", "\x00\x1b[2J\x7f",
    "\u2028\u2029\x85", "é", "x" * 10_000, 'a\\" b', "who=root@dom", "\ud800"])
def test_nobody_writes_a_line_or_a_field(log: Log, text: str) -> None:
    """Whatever stands in a name, a reason or a refusal."""
    log.log.answered(hold(reason=text), Refused(code="invalid", text=text))
    log.log.answered(hold(Identity(name=f"{text}@dom", method="tls", host=text)), Done())
    lines = log.lines()
    assert len(lines) == 2
    assert all(line["act"] == "hold-jobs" for line in lines)
    assert lines[0]["who"] == "ann@dom"
    assert lines[0]["result"] == "invalid"
    assert log.path.read_bytes().isascii()
    assert max(map(len, log.path.read_text().splitlines())) < 5_000


def test_refusals_are_few_and_the_rest_is_counted(log: Log) -> None:
    for _ in range(1_000):
        log.log.answered(hold(), Refused(code="denied", text="no"))
    log.log.answered(hold(FAR), Refused(code="denied", text="no"))
    log.log.answered(hold(), Done())
    log.clock.now_s += 4.0
    log.log.answered(hold(), Refused(code="denied", text="no"))
    lines = log.lines()
    refused = [line for line in lines if line["who"] == "ann@dom" and line["result"] == "denied"]
    assert len(refused) == 21
    assert refused[-1]["left_out"] == str(1_000 - 20)
    assert [line["who"] for line in lines if line["who"] != "ann@dom"] == ["bob@far"]
    assert [line["result"] for line in lines].count("ok") == 1


def test_what_was_left_out_of_the_silent_is_told(log: Log) -> None:
    for _ in range(50):
        log.log.answered(hold(), Refused(code="denied", text="no"))
    log.clock.now_s += 60.0
    log.log.answered(hold(FAR), Done())
    told = [line for line in log.lines() if line["act"] == "left-out"]
    assert [(line["who"], line["left_out"]) for line in told] == [("ann@dom", "30")]


def test_a_flood_of_what_is_allowed_is_bounded_too(log: Log) -> None:
    for _ in range(5_000):
        log.log.answered(hold(), Done())
    lines = log.lines()
    assert len([line for line in lines if line["act"] == "hold-jobs"]) == 2_000
    assert lines[-1]["left_out"] == "3000"


def test_the_file_is_for_administrators_and_is_put_aside(tmp_path: Path) -> None:
    log = Log(tmp_path, max_bytes=2_000, keep=2)
    for number in range(60):
        log.log.answered(hold(reason=f"number {number}"), Done())
        while not log.log._lines.empty():
            os.sched_yield()
    last = log.lines()[-1]
    assert last["object"].endswith("number 59")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["SomeAuditLog", "SomeAuditLog.1", "SomeAuditLog.2"]
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert path.stat().st_size < 12_000


def test_a_link_in_its_place_is_no_log(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("")
    (tmp_path / "SomeAuditLog").symlink_to(victim)
    with pytest.raises(OSError, match="SomeAuditLog"):
        Log(tmp_path)
    assert victim.read_text() == ""


def test_fields_without_a_value_are_left_out() -> None:
    assert parsed(audit_line(0.0, act="x", object="", uid=None, count=0)) == {"act": "x", "count": "0"}


def test_what_is_told_leaves_a_line(log: Log) -> None:
    message = Delivery(message=Drain(how="fast"), sender=Address("in:3", "x"), identity=ANN, answerable=False)
    log.log.answered(message, None)
    assert [line["result"] for line in log.lines()] == ["told"]


def test_lines_of_one_moment_are_synced_together(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    monkeypatch.setattr(audit, "TOGETHER_S", 60.0)
    for _ in range(50):
        log.log.answered(hold(), results(ActionResult.SUCCESS))
    assert (len(log.lines()), len(synced)) == (50, 1), "and an end does not wait for the moment to pass"
