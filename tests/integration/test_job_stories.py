"""The logs of the daemons tell what happened to each job, found by its number, at the default level."""

from __future__ import annotations

import re

from tests.pool_fixture import PersonalPool, until

CAT = "executable = /bin/cat\ntransfer_input_files = no-such-file\nqueue\n"
HUGE = "executable = /bin/true\nrequirements = Memory > 10000000\nqueue\n"
SLEEP = "executable = /bin/sleep\narguments = 600\nlog = v.log\nqueue\n"


def story(pool: PersonalPool, job: str, log: str) -> list[str]:
    """The lines of a daemon's log that tell of a job, without their dates."""
    number = re.compile(rf"(?<![\w.]){re.escape(job)}(?![\w.])")
    lines = [line for path in (pool.dir / "log").glob(f"{log}*") if not path.name.endswith(".stderr")
             for line in path.read_text().splitlines()]
    return [line[18:].removeprefix(f"{job}: ") for line in lines if number.search(line)]


def tells(lines: list[str], *patterns: str) -> list[str]:
    """The patterns that no line after the line of the one before them begins with."""
    rest = iter(lines)
    return [each for each in patterns if not any(re.match(each, line) for line in rest)]


def told(pool: PersonalPool, job: str, log: str, *patterns: str) -> None:
    """Wait until a daemon's log has lines that begin so, one after the other: it may be the last to hear of an end."""
    until(lambda: tells(story(pool, job, log), *patterns) == [],
          lambda: f"{log} does not tell {tells(story(pool, job, log), *patterns)}: {story(pool, job, log)}")


def test_a_job_that_runs_and_ends(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/sh\narguments = \"-c 'exit 3'\"\nlog = story.log\nqueue 2\n")
    pool.wait("story.log")
    job, second = f"{cluster}.0", f"{cluster}.1"
    told(pool, job, "ScheddLog", rf"submitted by \S+ and 1 more, up to {second},", r"run 1 begins on slot\d",
         "run 1 ended: the program has exited with status 3", "completed")
    told(pool, second, "ScheddLog", r"run 1 begins on slot\d", "completed")
    told(pool, job, "NegotiatorLog", r"\S+ of .*: \d matched")
    told(pool, job, "StartdLog", r"begins on slot\d.*\(\w+@.* of ", r"has left slot\d")
    told(pool, job, "StarterHostLog", r"the program runs, pid \d+", "the run is over: exit status 3; ")
    told(pool, job, "ShadowHostLog", r"the program runs on slot\d", r"the run on slot\S+ is over: exited")


def test_why_a_job_is_held_and_released(pool: PersonalPool) -> None:
    job = f"{pool.submit(CAT)}.0"
    pool.until_status(job, 5)
    pool.run("condor_rm", job)
    told(pool, job, "ScheddLog", r"submitted by \S+", "run 1 ended: hold: .*no-such-file",
         r"held \(13\): .*no-such-file", "removed: ")
    told(pool, job, "ShadowHostLog", r"the run on slot\S+ is over: hold \(hold code 13, .*no-such-file")


def test_why_a_job_is_not_started(pool: PersonalPool) -> None:
    job = f"{pool.submit(HUGE)}.0"
    told(pool, job, "ScheddLog", "no match: ")
    told(pool, job, "NegotiatorLog", r"\S+ of .*: 0 matched, 1 rejected: ")
    pool.run("condor_rm", job)


def test_who_ended_a_run(pool: PersonalPool) -> None:
    job = f"{pool.submit(SLEEP)}.0"
    pool.until_status(job, 2)
    told(pool, job, "StarterHostLog", "the program runs")
    pool.run("condor_vacate_job", job)
    told(pool, job, "ScheddLog", "run 1 ended: evicted: .*condor_vacate_job", "idle again", "run 2 begins on ")
    told(pool, job, "StarterHostLog", "its user's side wants it to go .*condor_vacate_job", "the run is over: evicted")
    pool.run("condor_rm", job)
    told(pool, job, "ScheddLog", "removed: ")
