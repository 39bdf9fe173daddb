"""condor_watch, condor_watch_q and condor_top with a real pool, in a real terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.terminal import Terminal
from tests.pool_fixture import PersonalPool, fresh_folder

EVIL = "ev\x1b[2Jil"


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        running = made.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nlog = a.log\n"
                              f"batch_name = {EVIL}\nqueue 3\n")
        made.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nhold = true\nqueue 1\n")
        made.until_status(f"{running}.1", 2)
        yield made
        made.stop()


def terminal(pool: PersonalPool, *words: str, columns: int = 80, lines: int = 24) -> Terminal:
    return Terminal(pool.command(*words), columns=columns, lines=lines, cwd=pool.work, environment=pool.environment)


@pytest.mark.parametrize("columns", [60, 200])
def test_every_view_fits_its_window(pool: PersonalPool, columns: int) -> None:
    with terminal(pool, "condor_watch", columns=columns) as watch:
        shown = watch.until(lambda text: "2 running" in text and "1.0" in text)
        assert "1 held" in shown
        assert ("BATCH" in shown) == (columns == 200)
        if columns == 200:
            assert "ev\\x1b[2Jil" in shown
        assert b"ev\x1b[2J" not in watch.raw
        watch.type("2")
        watch.until("slot1@")
        watch.type("3")
        watch.until("MACHINE")
        watch.type("\t")
        watch.until(lambda text: "WHAT" in text and "done" in text)
        watch.type("5")
        watch.until("SAVED OF THIS RUN")
        watch.type("q")
        assert watch.end() == 0
        assert b"\x1b[?1049l" in watch.raw


def test_a_job_s_story_searching_and_sorting(pool: PersonalPool) -> None:
    with terminal(pool, "condor_watch", "-mine", columns=100, lines=40) as watch:
        watch.until("mine")
        watch.until("1.0")
        watch.type("\x1b[B\r")
        assert "submitted" in watch.until("1.1 of ")
        watch.type("\x1b")
        watch.until("STATE")
        watch.type("/2.0\r")
        watch.until(lambda text: "/2.0" in text and "1.0" not in text.split("COMMAND")[-1])
        watch.type("\x1b")
        watch.until("1.0")
        watch.type("s")
        watch.until("by status")
        watch.type("r")
        watch.until("by status down")
        watch.type("?")
        watch.until("what became of the job")
        watch.resize(60, 12)
        watch.until("what became of the job")
        watch.type("q")
        assert watch.end() == 0


def test_one_picture_without_a_terminal(pool: PersonalPool) -> None:
    out = pool.run("condor_watch", "-view", "jobs")
    assert "2 running" in out
    assert "\x1b" not in out
    lost = pool.tool("condor_watch", "-name", "nosuch")
    assert (lost.returncode, "there is no schedd nosuch" in lost.stderr) == (1, True)
    assert pool.tool("condor_watch", "-view", "all").returncode == 1


def test_jobs_are_found_by_the_schedd_and_followed_by_their_logs(pool: PersonalPool) -> None:
    done = pool.tool("condor_watch_q", "-clusters", "1", "-exit", "any,active,6", "-exit", "any,idle,5")
    assert done.returncode == 6
    assert "1.0 ... 1.2" in done.stdout
    assert "ev\\x1b[2Jil" in done.stdout
    by_batch = pool.tool("condor_watch_q", "-batches", EVIL, "-exit", "any,active,6")
    assert by_batch.returncode == 6
    both = pool.tool("condor_watch_q", "-exit", "any,active,6")
    assert "Cluster 2 does not have a job event log file" in both.stderr
    with terminal(pool, "condor_watch_q") as watch:
        watch.until("ev\\x1b[2Jil")
        watch.type("q")
        assert watch.end() == 0


def test_top_asks_a_daemon_twice(pool: PersonalPool) -> None:
    out = pool.run("condor_top", "-d", "1", "-c", "all")
    assert "Schedd " in out
    assert "ScheddActor_" in out
    assert "Duty Cycle: " in out
    assert "Collector " in pool.run("condor_top", "-collector", "-d", "1")
    with terminal(pool, "condor_top", "-l", "-d", "1", columns=60) as top:
        top.until("Runtime stats from")
        top.type("c")
        top.until("columns (runtime)")
        top.type("q")
        assert top.end() == 0
