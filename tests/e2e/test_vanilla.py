"""What a user does: submit, watch, get the results."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.pool_fixture import PersonalPool, open_to_jobs


def folder(pool: PersonalPool, name: str) -> Path:
    made = pool.work / name
    made.mkdir()
    open_to_jobs(made)
    return made


def test_hello_comes_back(pool: PersonalPool) -> None:
    here = folder(pool, "hello")
    pool.submit(f"""
        initialdir = {here}
        executable = /bin/echo
        arguments = "hello 'from the pool'"
        output = hello.out
        error = hello.err
        log = hello.log
        queue
    """)
    pool.wait(str(here / "hello.log"))
    assert (here / "hello.out").read_text() == "hello from the pool\n"
    assert (here / "hello.err").read_text() == ""


def test_many_jobs_in_one_cluster_each_with_its_item(pool: PersonalPool) -> None:
    here = folder(pool, "items")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'echo $(Item) $(Process); exit 0'"
        output = out.$(Process)
        log = items.log
        queue Item in (red green blue yellow)
    """)
    pool.wait(str(here / "items.log"))
    texts = [(here / f"out.{n}").read_text() for n in range(4)]
    assert texts == ["red 0\n", "green 1\n", "blue 2\n", "yellow 3\n"]
    ads = pool.history(str(cluster))
    assert len(ads) == 4
    assert {ad["JobStatus"] for ad in ads} == {4}
    assert {ad["ExitCode"] for ad in ads} == {0}
    assert all(ad["RemoteWallClockTime"] >= 0 for ad in ads)


def test_files_travel_both_ways(pool: PersonalPool) -> None:
    here = folder(pool, "files")
    (here / "data").mkdir()
    (here / "data" / "numbers").write_text("3\n1\n2\n")
    (here / "big").write_bytes(bytes(range(256)) * 4096)
    program = here / "work.sh"
    program.write_text("#!/bin/sh\nsort data/numbers > sorted; cksum < big > sum; mkdir more; echo x > more/deep\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    pool.submit(f"""
        initialdir = {here}
        executable = work.sh
        transfer_input_files = data, big
        transfer_output_files = sorted, sum, more
        transfer_output_remaps = "sum = checksum.txt"
        should_transfer_files = YES
        output = o
        error = e
        log = files.log
        queue
    """)
    pool.wait(str(here / "files.log"))
    assert (here / "e").read_text() == ""
    assert (here / "sorted").read_text() == "1\n2\n3\n"
    assert (here / "checksum.txt").read_text().split()[1] == str(256 * 4096)
    assert (here / "more" / "deep").read_text() == "x\n"


def test_exit_codes_and_signals_are_recorded(pool: PersonalPool) -> None:
    here = folder(pool, "exits")
    program = here / "die.sh"
    program.write_text("#!/bin/sh\nkill -TERM $$\n")
    program.chmod(0o755)
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = die.sh
        log = exits.log
        queue
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'exit 7'"
        queue
    """)
    pool.wait(str(here / "exits.log"))
    (died,) = pool.history(str(cluster - 1))
    (exited,) = pool.history(str(cluster))
    assert exited["ExitCode"] == 7
    assert exited["ExitBySignal"] is False
    assert died["ExitBySignal"] is True
    assert died["ExitSignal"] == 15


def test_retries_until_it_succeeds(pool: PersonalPool) -> None:
    here = folder(pool, "retry")
    program = here / "twice.sh"
    program.write_text(f"#!/bin/sh\necho run >> {here}/count\n[ $(wc -l < {here}/count) -ge 3 ]\n")
    program.chmod(0o755)
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = twice.sh
        max_retries = 5
        log = retry.log
        queue
    """)
    pool.wait(str(here / "retry.log"))
    assert (here / "count").read_text().count("run") == 3
    (ad,) = pool.history(str(cluster))
    assert ad["ExitCode"] == 0
    assert ad["NumJobCompletions"] == 3


def test_hold_release_remove(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/sleep\ntransfer_executable = false\narguments = 1000\nqueue 2\n")
    pool.until_status(f"{cluster}.0", 2)
    assert pool.run("condor_hold", f"{cluster}.0") == f"Job {cluster}.0 held\n"
    pool.until_status(f"{cluster}.0", 5)
    (ad,) = pool.jobs(f"{cluster}.0")
    assert ad["HoldReasonCode"] == 1
    pool.run("condor_release", f"{cluster}.0")
    pool.until_status(f"{cluster}.0", 2)
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)
    pool.until_status(f"{cluster}.1", 0)
    assert {ad["JobStatus"] for ad in pool.history(str(cluster))} == {3}


def test_missing_input_holds_the_job_with_a_clear_reason(pool: PersonalPool) -> None:
    here = folder(pool, "missing")
    gone = here / "gone.txt"
    gone.write_text("soon gone")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/true
        transfer_executable = false
        hold = true
        should_transfer_files = yes
        transfer_input_files = gone.txt
        queue
    """)
    gone.unlink()
    pool.run("condor_release", str(cluster))
    pool.until_status(f"{cluster}.0", 5)
    pool.until_status(f"{cluster}.0", 5)
    reason = pool.jobs(f"{cluster}.0")[0]["HoldReason"]
    assert "gone.txt" in reason
    pool.run("condor_rm", str(cluster))


def test_an_output_that_is_missing_holds_the_job_and_the_others_come_home(pool: PersonalPool) -> None:
    """What the job said on its standard error tells why it did not make the file."""
    here = folder(pool, "unmade")
    cluster = pool.submit(f"""
        initialdir = {here}
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'echo made > some; head -c 300000 /dev/zero > large; echo no such module >&2; exit 1'"
        should_transfer_files = yes
        transfer_output_files = some, large, result
        output = out
        error = err
        log = log
        queue
    """)
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert (job["HoldReasonCode"], job["HoldReasonSubCode"]) == (12, 2)
    assert job["HoldReason"] == "Transfer output files failure: the job did not make result"
    assert ((here / "err").read_text(), (here / "some").read_text()) == ("no such module\n", "made\n")
    assert (here / "large").stat().st_size == 300000
    assert not (here / "result").exists()
    pool.run("condor_rm", str(cluster))
