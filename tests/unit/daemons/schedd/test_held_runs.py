"""What the log of a running job says when it is put on hold: that its run was ended, and then that it is held."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from condor_actors.messages.codes import HoldCode
from tests.harness.submit_side import SubmitPool


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def running(pool: SubmitPool, ad: bytes = b"") -> int:
    cluster = pool.submit(b'UserLog = "log"\n' + ad)
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    return cluster


def logged(pool: SubmitPool) -> list[str]:
    """The events, but those of the job's size."""
    told = re.findall(r"^(\d{3}) \(", (pool.home / "log").read_text(), re.MULTILINE)
    return [number for number in told if number != "006"]


def slow_to_leave(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are told to end do not, until the test says so."""
    def nothing(*_args: Any, **_more: Any) -> None: ...

    monkeypatch.setattr(pool.execute, "finish", nothing)


def leave(pool: SubmitPool, cluster: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pool.execute.finish(f"{cluster}.0#1", cause="killed", exit_code=-1)
    pool.run()


def test_a_user_holds_it(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = running(pool)
    slow_to_leave(pool, monkeypatch)
    pool.act("hold", cluster)
    pool.run()
    assert pool.status(cluster) == 5
    assert logged(pool) == ["000", "001"], "its run has not ended yet"
    leave(pool, cluster, monkeypatch)
    assert logged(pool) == ["000", "001", "004", "012"]
    (job,) = pool.jobs()
    text = (pool.home / "log").read_text()
    assert text.count(job.get_str("HoldReason")) == 2, "the hold is the eviction's reason too"


def test_it_is_released_before_its_run_has_ended(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = running(pool)
    slow_to_leave(pool, monkeypatch)
    pool.act("hold", cluster)
    pool.act("release", cluster)
    pool.run()
    assert logged(pool) == ["000", "001", "012", "013"]
    leave(pool, cluster, monkeypatch)
    assert logged(pool) == ["000", "001", "012", "013", "004"]
    assert pool.status(cluster) == 2, "it runs again on the same claim"


def test_it_is_removed_before_its_run_has_ended(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = running(pool)
    slow_to_leave(pool, monkeypatch)
    pool.act("hold", cluster)
    pool.act("remove", cluster)
    leave(pool, cluster, monkeypatch)
    assert logged(pool)[-2:] == ["004", "009"]
    assert pool.jobs() == []


def test_the_schedd_dies_before_the_run_has_ended(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = running(pool)
    slow_to_leave(pool, monkeypatch)
    pool.act("hold", cluster)
    pool.run()
    pool.kill_schedd()
    monkeypatch.undo()
    pool.execute.finish(f"{cluster}.0#1", cause="killed", exit_code=-1)
    pool.run(3.0)
    pool.start_schedd()
    pool.run(10.0)
    assert logged(pool)[-2:] == ["004", "012"]


def test_the_jobs_own_policy_holds_it(pool: SubmitPool) -> None:
    cluster = running(pool, b"PeriodicHold = NumJobStarts > 0\n")
    pool.run(120.0)
    assert pool.status(cluster) == 5
    assert logged(pool) == ["000", "001", "012"], "as in HTCondor, whose shadow holds it then"


def test_an_idle_job_is_not_evicted(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "log"\n')
    pool.act("hold", cluster)
    pool.run()
    assert logged(pool) == ["000", "012"]
    (job,) = pool.jobs()
    assert job.get_int("HoldReasonCode") == HoldCode.USER_REQUEST
