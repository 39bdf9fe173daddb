"""Jobs that begin at a time of their own, on a real pool by the real clock."""

from __future__ import annotations

import time
from pathlib import Path

from tests.pool_fixture import PersonalPool, open_to_jobs, until

PROGRAM = "arguments = \"-c 'date +%s.%N'\"\nexecutable = /bin/sh\ntransfer_executable = false\n"


def folder(pool: PersonalPool, name: str) -> Path:
    made = pool.work / name
    made.mkdir()
    open_to_jobs(made)
    return made


def test_a_job_waits_on_its_machine_for_its_time(pool: PersonalPool) -> None:
    here = folder(pool, "deferred")
    begins_s = int(time.time()) + 15
    cluster = pool.submit(f"initialdir = {here}\n{PROGRAM}deferral_time = {begins_s}\noutput = out\nlog = log\nqueue\n")
    until(lambda: pool.jobs(str(cluster))[0]["JobStatus"] == 2, "the job is matched before its time")
    assert time.time() < begins_s
    assert "001 (" not in (here / "log").read_text()
    pool.wait(str(here / "log"))
    assert 0.0 <= float((here / "out").read_text()) - begins_s < 5.0
    assert "001 (" in (here / "log").read_text()


def test_a_job_that_is_too_late_is_held_with_the_number_of_the_manual(pool: PersonalPool) -> None:
    here = folder(pool, "late")
    cluster = pool.submit(f"initialdir = {here}\n{PROGRAM}deferral_time = QDate - 100\ndeferral_window = 60\n"
                          "log = log\nqueue\n")
    (job,) = until(lambda: [job for job in pool.jobs(str(cluster)) if job["JobStatus"] == 5], "the job is held")
    assert job["HoldReasonCode"] == 20
    assert "012 (" in (here / "log").read_text()
    assert "missed deferred execution time" in pool.run("condor_q", "-hold", str(cluster))
    pool.run("condor_rm", str(cluster))


def test_a_cron_job_runs_at_full_minutes_and_goes_on(pool: PersonalPool) -> None:
    here = folder(pool, "cron")
    cluster = pool.submit(f"initialdir = {here}\n{PROGRAM}cron_minute = *\ncron_prep_time = 55\ncron_window = 30\n"
                          "output = out\non_exit_remove = NumJobCompletions >= 1\nlog = log\nqueue\n")
    (job,) = pool.jobs(str(cluster))
    assert job["DeferralTime"] % 60 == 0
    assert 0 < job["DeferralTime"] - time.time() <= 60
    pool.wait(str(here / "log"), 120)
    assert 0.0 <= float((here / "out").read_text()) - job["DeferralTime"] < 30.0


def test_the_analysis_says_until_when_a_job_waits(pool: PersonalPool) -> None:
    here = folder(pool, "analysed")
    cluster = pool.submit(f"initialdir = {here}\n{PROGRAM}deferral_time = QDate + 86400\nlog = log\nqueue\n")
    said = pool.run("condor_q", "-better-analyze", str(cluster))
    assert "Job waits for its time: it begins at 20" in said
    pool.run("condor_qedit", f"{cluster}.0", "DeferralTime", str(int(time.time()) + 10))
    pool.wait(str(here / "log"))
    assert "waits for its time" not in pool.run("condor_q", "-better-analyze", str(cluster))


def test_fields_that_name_no_time_are_refused(pool: PersonalPool) -> None:
    done = pool.tool("condor_submit", stdin="executable = /bin/true\ncron_hour = 24\nqueue\n")
    assert done.returncode == 1
    assert "CronHour has values from 0 to 23" in done.stderr
    done = pool.tool("condor_submit", stdin="universe = scheduler\nexecutable = /bin/true\ndeferral_time = 5\nqueue\n")
    assert done.returncode == 1
    assert "universe = local" in done.stderr


def test_a_job_that_does_nothing_leaves_two_events(pool: PersonalPool) -> None:
    here = folder(pool, "noop")
    cluster = pool.submit(f"initialdir = {here}\n{PROGRAM}noop_job = true\nnoop_job_exit_code = 3\n"
                          "log = log\nqueue 2\n")
    pool.wait(str(here / "log"))
    log = (here / "log").read_text()
    assert [line[:3] for line in log.splitlines() if line[3:5] == " ("] == ["000", "000", "005", "005"]
    assert log.count("(return value 3)") == 2
    assert {ad["ExitCode"] for ad in pool.history(str(cluster))} == {3}


def test_a_local_job_waits_in_the_queue(pool: PersonalPool) -> None:
    here = folder(pool, "local")
    begins_s = int(time.time()) + 6
    pool.submit(f"universe = local\ninitialdir = {here}\n{PROGRAM}deferral_time = {begins_s}\ndeferral_window = 10\n"
                "output = out\nlog = log\nqueue\n")
    pool.wait(str(here / "log"))
    assert 0.0 <= float((here / "out").read_text()) - begins_s < 5.0


def test_jobs_that_are_made_as_they_are_needed_each_run_once(pool: PersonalPool) -> None:
    here = folder(pool, "needed")
    cluster = pool.submit(f"initialdir = {here}\nexecutable = /bin/sh\ntransfer_executable = false\nnoop_job = true\n"
                          'arguments = "-c $(word)"\nmax_idle = 1\nlog = log\nqueue 2 word in (a b c)\n')
    pool.wait(str(here / "log"))
    assert sorted(ad["ProcId"] for ad in pool.history(str(cluster))) == list(range(6))
    assert sorted(ad["Arguments"] for ad in pool.history(str(cluster))) == [f"-c {word}" for word in "aabbcc"]
    log = (here / "log").read_text()
    assert "Cluster submitted from host: " in log
    assert log.rstrip().endswith("Materialized 6 jobs from 6 items.\tComplete\n...")
    cluster = pool.submit(f"initialdir = {here}\n{PROGRAM}requirements = false\nmax_materialize = 2\nqueue 100000\n")
    until(lambda: len(pool.jobs(str(cluster))) == 2, "the first jobs")
    row = pool.run("condor_q", "-factory", str(cluster)).splitlines()[-1].split()
    assert (row[0], *row[-8:-1]) == (f"{cluster}.", "2", "2", "0", "2", "0", "2", "Norm")
    pool.run("condor_rm", str(cluster))
    assert str(cluster) not in pool.run("condor_q", "-factory", "-af", "ClusterId").split()
