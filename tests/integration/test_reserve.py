"""condor_reserve on a real pool: the pool drains ahead, others make way, a killed negotiator knows it again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

SLEEP = ("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nshould_transfer_files = yes\n"
         "log = job.log\nqueue\n")


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2, config="MACHINEMAXVACATETIME = 2\nNEGOTIATOR_INTERVAL = 2\n")
        yield made
        made.stop()


def test_others_make_way_and_come_back_when_it_is_over(pool: PersonalPool) -> None:
    cluster = pool.submit(SLEEP)
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: pool.run("condor_status", "-af", "RemoteUser").count("@") == 1 or None, "the claim is advertised")
    pool.run("condor_reserve", "make", "demo", "-user", "someone@else", "-machines", "1", "-ahead", "0")
    pool.until_status(f"{cluster}.0", 1)
    assert "reserv" in until(lambda: text if "reserved for another user" in (
        text := pool.run("condor_q", "-better-analyze", str(cluster))) else None, "the job learns why it waits")
    old = pool.kill("negotiator")
    pool.until_restarted("negotiator", old)
    listed = until(lambda: done.stdout if (done := pool.tool("condor_reserve", "list")).returncode == 0
                   and "running" in done.stdout and done.stdout.split()[-1] != "running" else None, "it is known again")
    assert "demo" in listed
    assert 'MadeBy' in pool.run("condor_reserve", "list", "-long")
    assert pool.status_of(f"{cluster}.0") == 1
    pool.run("condor_reserve", "cancel", "demo")
    pool.until_status(f"{cluster}.0", 2)
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)


def test_the_user_runs_on_what_is_reserved_and_it_ends_by_itself(pool: PersonalPool) -> None:
    cluster = pool.submit(SLEEP)
    pool.until_status(f"{cluster}.0", 2)
    name = pool.jobs(str(cluster))[0]["User"]
    pool.run("condor_reserve", "make", "mine", "-user", name, "-machines", "1", "-for", "3s", "-ahead", "0s")
    until(lambda: "mine" not in pool.run("condor_reserve", "list") or None, "it is over")
    assert pool.status_of(f"{cluster}.0") == 2, "its own job was left alone"
    pool.run("condor_rm", str(cluster))


def test_the_pool_drains_ahead_what_runs_may_finish_and_nothing_follows(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = yes\n"
                          f"arguments = \"-c 'while [ ! -e {pool.work}/go ]; do sleep 0.1; done'\"\n"
                          "log = ahead.log\nqueue 3\n")
    until(lambda: [job["JobStatus"] for job in pool.jobs(str(cluster))].count(2) == 2 or None, "both slots taken")
    until(lambda: pool.run("condor_status", "-af", "Activity").split() == ["Busy"] * 2 or None,
          "the machine knows that both run: a claim without a run is given up at once")
    pool.run("condor_reserve", "make", "later", "-user", "someone@else", "-machines", "1", "-from", "+1h",
             "-ahead", "2h", "-for", "1h")
    until(lambda: pool.run("condor_status", "-af", "Activity").split() == ["Retiring"] * 2 or None,
          "the claims take nothing new")
    assert [job["JobStatus"] for job in pool.jobs(str(cluster))].count(2) == 2, "but what runs goes on"
    (pool.work / "go").touch()
    until(lambda: len(pool.jobs(str(cluster))) == 1 or None, "both have ended")
    until(lambda: pool.run("condor_status", "-af", "State").split() == ["Unclaimed"] * 2 or None, "an empty machine")
    until(lambda: "reserved for another user" in pool.run("condor_q", "-better-analyze", str(cluster)) or None,
          "the third has to wait, and learns why")
    assert pool.jobs(str(cluster))[0]["JobStatus"] == 1
    pool.run("condor_reserve", "cancel", "later")
    until(lambda: not pool.jobs(str(cluster)) or None, "now it runs")


def test_no_owner_is_driven_out(pool: PersonalPool) -> None:
    def aside() -> str:
        line = next(each for each in pool.run("condor_reserve", "list").splitlines() if each.startswith("desk"))
        return line.partition("running")[2].strip()

    pool.run("condor_owner", "pause", "1h")
    until(lambda: pool.run("condor_status", "-af", "State").split() == ["Owner"] * 2 or None, "its owner has it")
    pool.run("condor_reserve", "make", "desk", "-user", "someone@else", "-machines", "1", "-for", "1h", "-ahead", "0")
    until(lambda: aside() == "" or None, "the owner is there")
    pool.run("condor_owner", "resume")
    until(lambda: aside() or None, "the machine is set aside when the owner has gone")
    pool.run("condor_reserve", "cancel", "desk")


@pytest.mark.parametrize(("words", "status", "said"), [
    (("make", "x", "-user", "a@b", "-machines", "9"), 1, "could be had"),
    (("make", "x", "-user", "a@b", "-machines", "1", "-constraint", "Memory >"), 1, "cannot be read"),
    (("make", "x", "-machines", "1"), 2, "takes -user"),
    (("make", "x", "-user", "a@b", "-machines", "1", "-from", "soon"), 2, "no moment"),
    (("cancel", "nothing"), 1, "no reservation"),
    (("dance",), 2, "Usage"),
])
def test_what_cannot_be_done(pool: PersonalPool, words: tuple[str, ...], status: int, said: str) -> None:
    done = pool.tool("condor_reserve", *words)
    assert (done.returncode, said in done.stderr) == (status, True), done
