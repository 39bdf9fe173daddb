"""The submit side with real processes: mails, local jobs, streams, large trees, files of evicted runs, bad places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.masters import MailServer
from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, until


@pytest.fixture(scope="module")
def server() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pool(server: MailServer) -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        config = f"SMTP_SERVER = 127.0.0.1:{server.port}\nMAIL_FROM = condor@example.org\n"
        made = PersonalPool(folder, slots=2, config=config)
        yield made
        made.stop()


def folder(pool: PersonalPool, name: str) -> Path:
    here = pool.work / name
    here.mkdir()
    open_to_jobs(here)
    return here


def test_a_mail_when_the_job_ends(pool: PersonalPool, server: MailServer) -> None:
    here = folder(pool, "mail")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'exit 4'"
        notification = complete
        notify_user = ann@example.org
        log = job.log
        queue
    """)
    mail = until(lambda: next((each for each in server.mails if f"Job {cluster}.0" in each), None), "the mail")
    assert "To: ann@example.org" in mail
    assert "exited with status 4" in mail


def test_a_log_is_there_when_its_jobs_are_queued(pool: PersonalPool) -> None:
    """``condor_submit job.sub && condor_wait job.log``: the writer of the log may have to start first."""
    here = folder(pool, "at-once")
    pool.submit(f"initialdir = {here}\nexecutable = /bin/true\nlog = job.log\nqueue 2\nlog = $(Process).log\nqueue 2")
    assert {path.name for path in here.iterdir()} >= {"job.log", "2.log", "3.log"}
    assert pool.run("condor_wait", "job.log", cwd=here) == "All jobs done.\n"


@pytest.mark.parametrize(("notification", "lines", "said"), [
    ("error", "arguments = \"-c 'exit 4'\"", "exited with status 4"),
    ("error", "arguments = \"-c true\"\ntransfer_output_files = never_made", "on hold"),
    ("always", "arguments = \"-c 'kill -9 $$'\"", "signal 9"),
])
def test_mails_about_what_went_wrong(pool: PersonalPool, server: MailServer, notification: str, lines: str,
                                     said: str) -> None:
    here = folder(pool, f"mail-{said.replace(' ', '-')}")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/sh
        transfer_executable = false
        should_transfer_files = yes
        {lines}
        notification = {notification}
        notify_user = ann@example.org
        queue
    """)
    mail = until(lambda: next((each for each in server.mails if f"Job {cluster}.0" in each), None), "the mail")
    assert said in mail
    if said == "on hold":
        assert "never_made" in mail.replace("=\n", ""), "with the reason; long lines are folded"
        pool.run("condor_rm", str(cluster))


def test_a_dead_smtp_server_stops_no_job_and_one_that_recovers_is_used(pool: PersonalPool, server: MailServer) -> None:
    here = folder(pool, "dead-mail")
    description = f"""
        initialdir = {here}
        executable = /bin/true
        notification = complete
        notify_user = ann@example.org
        log = $(name).log
        queue
    """
    server.pause()
    lost = pool.submit(description, "name=lost")
    pool.wait(str(here / "lost.log"))
    assert len(pool.history(str(lost))) == 1
    log = until(lambda: next((text for path in (pool.dir / "log").glob("ShadowHostLog*")
                              if f"Job {lost}.0" in (text := path.read_text()) and "was not taken" in text), ""),
                "the lost mail in the log")
    assert "ann@example.org" in log
    server.resume()
    cluster = pool.submit(description, "name=taken")
    until(lambda: any(f"Job {cluster}.0" in mail for mail in server.mails), "the next mail")
    assert not any(f"Job {lost}.0" in mail for mail in server.mails)


def test_a_local_job_runs_here(pool: PersonalPool) -> None:
    here = folder(pool, "local")
    cluster = pool.submit(f"""
        universe = local
        initialdir = {here}
        executable = /bin/sh
        arguments = "-c 'echo $WORD; pwd; exit 3'"
        environment = "WORD=here"
        output = out
        log = job.log
        queue
    """)
    pool.wait(str(here / "job.log"))
    assert (here / "out").read_text() == f"here\n{here}\n"
    assert [line[:3] for line in (here / "job.log").read_text().splitlines() if line[3:5] == " ("] == [
        "000", "001", "005"]
    (ad,) = pool.history(str(cluster))
    assert (ad["ExitCode"], ad["JobUniverse"]) == (3, 12)


def test_a_local_job_is_removed_with_its_program(pool: PersonalPool) -> None:
    here = folder(pool, "local-removed")
    cluster = pool.submit(f"""
        universe = scheduler
        initialdir = {here}
        executable = /bin/sh
        arguments = "-c 'echo $$ > pid; exec sleep 1000'"
        log = job.log
        queue
    """)
    pid = until(lambda: (here / "pid").exists() and (here / "pid").read_text().strip(), "the program")
    pool.run("condor_rm", str(cluster))
    until(lambda: not Path(f"/proc/{pid}").exists() or None, "the program gone")
    pool.until_status(f"{cluster}.0", 0)


@pytest.mark.parametrize(("out", "err"), [("out", "./err"), ("{here}/out", "../{here.name}//err")])
def test_output_is_seen_while_it_is_written(pool: PersonalPool, out: str, err: str) -> None:
    here = folder(pool, f"stream{len(out)}")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/sh
        transfer_executable = false
        should_transfer_files = yes
        arguments = "-c 'echo early; echo oh >&2; sleep 1000'"
        output = {out.format(here=here)}
        error = {err.format(here=here)}
        stream_output = true
        stream_error = true
        log = job.log
        queue
    """)
    until(lambda: (here / "out").exists() and "early" in (here / "out").read_text(), "the first line")
    until(lambda: (here / "err").exists() and "oh" in (here / "err").read_text(), "the first error")
    assert pool.status_of(f"{cluster}.0") == 2
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)


def test_a_streamed_file_without_content_is_made_anew(pool: PersonalPool) -> None:
    here = folder(pool, "quiet")
    (here / "out").write_text("of an earlier run\n")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/true
        should_transfer_files = yes
        output = out
        error = err
        stream_output = true
        stream_error = true
        log = job.log
        queue
    """)
    pool.until_status(f"{cluster}.0", 0)
    assert (here / "out").read_text() == (here / "err").read_text() == ""


def test_trees_of_thousands_of_files_travel_both_ways(pool: PersonalPool) -> None:
    here = folder(pool, "tree")
    (here / "in").mkdir()
    for number in range(3000):
        (here / "in" / f"file{number}").write_text(f"{number}\n")
    (here / "in" / "large").write_bytes(bytes(range(256)) * 400)
    pool.submit(f"""
        initialdir = {here}
        executable = /bin/sh
        transfer_executable = false
        should_transfer_files = yes
        transfer_input_files = in
        transfer_output_files = back
        arguments = "-c 'cp -r in back'"
        log = job.log
        queue
    """)
    pool.wait(str(here / "job.log"))
    assert {path.name: path.read_bytes() for path in (here / "back").iterdir()} == {
        path.name: path.read_bytes() for path in (here / "in").iterdir()}


def test_an_evicted_run_leaves_its_files_to_the_next(pool: PersonalPool) -> None:
    here = folder(pool, "evicted")
    program = here / "go.sh"
    program.write_text("#!/bin/sh\nif [ -e state ]; then cat state; exit 0; fi\n"
                       "trap 'exit 1' TERM\necho first run > state\nwhile :; do sleep 0.1; done\n")
    program.chmod(0o755)
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = go.sh
        should_transfer_files = yes
        when_to_transfer_output = ON_EXIT_OR_EVICT
        output = out
        log = job.log
        queue
    """)
    until(lambda: "file state" if "state" in pool.tool("condor_tail", f"{cluster}.0", "state").stdout or
          "first run" in pool.tool("condor_tail", "-no-stdout", f"{cluster}.0", "state").stdout else None, "the state")
    pool.run("condor_vacate_job", f"{cluster}.0")
    pool.wait(str(here / "job.log"))
    assert (here / "out").read_text() == "first run\n"
    (ad,) = pool.history(str(cluster))
    assert ad["NumJobStarts"] == 2


@pytest.mark.parametrize(("what", "line", "code"), [
    ("output", "output = nosuch/out", 12), ("input", "transfer_input_files = /nonexistent/$(ClusterId)", 13),
])
def test_bad_places_hold_the_job(pool: PersonalPool, what: str, line: str, code: int) -> None:
    here = folder(pool, f"bad-{what}")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/true
        should_transfer_files = yes
        skip_filechecks = true
        {line}
        log = job.log
        queue
    """, "-disable")
    pool.until_status(f"{cluster}.0", 5)
    (ad,) = pool.jobs(str(cluster))
    assert ad["HoldReasonCode"] == code
    pool.run("condor_rm", str(cluster))
