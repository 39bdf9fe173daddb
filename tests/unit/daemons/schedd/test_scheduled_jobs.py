"""Jobs with a time of their own, and jobs that do nothing, in a schedd whose clock the test moves."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from condor_actors.messages.queue import ActOnJobs, EditJobs, JobAction
from tests.harness.submit_side import SubmitPool


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path, zone=ZoneInfo("Europe/Berlin"))


def offered(pool: SubmitPool) -> bool:
    """Whether the negotiator would be asked for anything."""
    (job,) = pool.jobs()
    found = pool.schedd.actor.core.context.queue.job(job.get_int("ClusterId"), job.get_int("ProcId"))
    return found.order is not None


def now_s(pool: SubmitPool) -> float:
    return pool.net.clock.wall()


def at(pool: SubmitPool, seconds: float) -> bytes:
    return f"DeferralTime = {int(now_s(pool) + seconds)}\n".encode()


def test_a_job_is_offered_its_preparation_time_before_its_time(pool: SubmitPool) -> None:
    pool.submit(at(pool, 1000.0) + b"DeferralPrepTime = 100\nDeferralWindow = 0\n")
    pool.run(890.0)
    assert not offered(pool)
    pool.run(20.0)
    assert offered(pool)


def test_a_job_that_wakes_asks_for_a_cycle(pool: SubmitPool) -> None:
    wished: list[float] = []
    pool.submit(at(pool, 1000.0))
    pool.schedd.actor.core.demand.wish_cycle = lambda: wished.append(now_s(pool))
    pool.run(690.0)
    assert wished == []
    pool.run(20.0)
    assert len(wished) == 1


def test_five_minutes_before_where_nothing_is_said(pool: SubmitPool) -> None:
    pool.submit(at(pool, 1000.0))
    pool.run(690.0)
    assert not offered(pool)
    pool.run(20.0)
    assert offered(pool)


def test_a_job_that_comes_too_late_is_held_with_the_code_of_the_manual(pool: SubmitPool) -> None:
    cluster = pool.submit(at(pool, -100.0) + b'DeferralWindow = 60\nUserLog = "log"\n')
    pool.run(1.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 20)
    assert "missed deferred execution time" in job.get_str("HoldReason")
    assert "60 seconds later" in job.get_str("HoldReason")
    log = (pool.home / "log").read_text()
    assert log.index("000 (") < log.index("012 (")
    pool.ask(EditJobs(ids=((cluster, 0),), attributes=at(pool, 500.0)))
    pool.ask(ActOnJobs(action=JobAction.RELEASE, ids=((cluster, 0),)))
    pool.run(150.0)
    assert not offered(pool)
    pool.run(60.0)
    assert offered(pool)


def test_a_window_lets_a_late_job_begin(pool: SubmitPool) -> None:
    pool.submit(at(pool, -100.0) + b"DeferralWindow = 200\n")
    pool.run(1.0)
    assert offered(pool)


def test_a_job_that_no_machine_took_in_time_is_held(pool: SubmitPool) -> None:
    pool.submit(at(pool, 100.0) + b"DeferralWindow = 10\n")
    pool.run(60.0)
    assert offered(pool)
    pool.run(120.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 20)


@pytest.mark.parametrize("value", [b'"noon"', b"-5", b"1.0e30", b"true", b"error"])
def test_what_is_no_time_is_held(pool: SubmitPool, value: bytes) -> None:
    pool.submit(b"DeferralTime = " + value + b"\n")
    pool.run(1.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 20)


def test_a_time_that_moves_with_the_clock_counts_from_the_arrival(pool: SubmitPool) -> None:
    pool.submit(b"DeferralTime = time() + 600\nDeferralPrepTime = 0\n")
    pool.run(1.0)
    assert offered(pool)


def test_a_job_may_get_its_time_by_an_edit_and_lose_it(pool: SubmitPool) -> None:
    cluster = pool.submit()
    assert offered(pool)
    pool.ask(EditJobs(ids=((cluster, 0),), attributes=at(pool, 5000.0)))
    assert not offered(pool)
    pool.ask(EditJobs(ids=((cluster, 0),), attributes=b"DeferralTime = undefined\n"))
    assert offered(pool)


def test_a_held_job_does_not_wake(pool: SubmitPool) -> None:
    cluster = pool.submit(at(pool, 1000.0))
    pool.ask(ActOnJobs(action=JobAction.HOLD, ids=((cluster, 0),)))
    pool.run(2000.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 1)


def test_a_schedd_that_is_started_again_still_wakes_it(pool: SubmitPool) -> None:
    pool.submit(at(pool, 1000.0) + b"DeferralPrepTime = 0\nDeferralWindow = 60\n")
    pool.kill_schedd()
    pool.start_schedd()
    pool.run(900.0)
    assert not offered(pool)
    pool.run(101.0)
    assert offered(pool)


def test_a_clock_that_is_set_forward_is_noticed_within_a_minute(pool: SubmitPool) -> None:
    pool.submit(at(pool, 5000.0) + b"DeferralPrepTime = 0\nDeferralWindow = 600\n")
    pool.net.clock.epoch_s += 5000.0
    pool.run(61.0)
    assert offered(pool)


# ---- cron


def cron(pool: SubmitPool) -> int:
    """The job's next time, as seconds from now."""
    (job,) = pool.jobs()
    return job.get_int("DeferralTime") - int(now_s(pool))


def test_a_cron_job_runs_again_and_again_each_time_at_its_next_time(pool: SubmitPool) -> None:
    cluster = pool.submit(b'CronMinute = "0,30"\nDeferralPrepTime = 60\nOnExitRemove = false\n')
    times = []
    for number in (1, 2, 3):
        (job,) = pool.jobs()
        times.append(job.get_int("DeferralTime"))
        assert not offered(pool)
        pool.run(cron(pool) - 30.0)
        pool.match()
        pool.execute.begin(f"{cluster}.0#{number}")
        pool.run(60.0)
        pool.execute.finish(f"{cluster}.0#{number}")
        pool.run(1.0)
    assert times == [times[0], times[0] + 1800, times[0] + 3600]
    assert times[0] % 1800 == 0


def test_a_cron_job_that_found_no_machine_in_time_waits_for_its_next(pool: SubmitPool) -> None:
    pool.submit(b'CronMinute = "0"\nDeferralWindow = 60\n')
    (job,) = pool.jobs()
    first = job.get_int("DeferralTime")
    pool.run(cron(pool) + 121.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("DeferralTime")) == (1, first + 3600)
    assert not offered(pool)


def test_a_released_cron_job_gets_a_new_time(pool: SubmitPool) -> None:
    cluster = pool.submit(b'CronMinute = "0"\n')
    (job,) = pool.jobs()
    first = job.get_int("DeferralTime")
    pool.ask(ActOnJobs(action=JobAction.HOLD, ids=((cluster, 0),)))
    pool.run(2 * 3600.0)
    pool.ask(ActOnJobs(action=JobAction.RELEASE, ids=((cluster, 0),)))
    pool.run(1.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("DeferralTime")) == (1, first + 7200)


def test_a_schedule_that_is_none_is_held_with_the_code_of_the_manual(pool: SubmitPool) -> None:
    pool.submit(b'CronMinute = "every"\n')
    pool.run(1.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 25)
    assert "CronMinute" in job.get_str("HoldReason")


# ---- jobs that do nothing


@pytest.mark.parametrize(("ad", "words", "code", "number"), [
    (b"", "Normal termination (return value 0)", 0, None),
    (b"NoopJobExitCode = 7\nNoopJobExitSignal = 9\n", "Normal termination (return value 7)", 7, None),
    (b"NoopJobExitSignal = 9\n", "Abnormal termination (signal 9)", None, 9),
])
def test_a_job_that_does_nothing_is_over_at_once(
        pool: SubmitPool, ad: bytes, words: str, code: int | None, number: int | None) -> None:
    pool.submit(b'IsNoopJob = true\nUserLog = "log"\n' + ad)
    pool.run(1.0)
    assert pool.jobs() == []
    (job,) = pool.history()
    assert (job.get_int("JobStatus"), job.get_int("NumJobStarts")) == (4, 0)
    assert (job.get("ExitCode"), job.get("ExitSignal")) == (code, number)
    log = (pool.home / "log").read_text()
    assert words in log
    assert "001 (" not in log
    assert log.index("000 (") < log.index("005 (")


def test_a_job_that_asks_for_no_noop_runs(pool: SubmitPool) -> None:
    pool.submit(b"IsNoopJob = ProcId > 0\n")
    assert offered(pool)
