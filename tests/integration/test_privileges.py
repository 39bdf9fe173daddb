"""Who the daemons of a real pool are that root has started, by what the kernel says of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.harness.root_helper import POOL
from tests.harness.root_pool import RootPool, root_pool

DROPPED = ("collector", "negotiator")


@pytest.fixture(scope="module")
def pool() -> Iterator[RootPool]:
    with root_pool() as made:
        yield made


@pytest.mark.parametrize("name", DROPPED)
def test_a_daemon_has_nothing_of_root(pool: RootPool, name: str) -> None:
    status = pool.status(name)
    for ids in ("Uid", "Gid"):
        assert status[ids].split() == [str(POOL)] * 4
    assert status["Groups"].split() == [str(POOL)]
    for rights in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[rights], 16) == 0, rights
    assert status["NoNewPrivs"] == "1"


def test_jobs_run_in_a_pool_without_root(pool: RootPool) -> None:
    pool.submit("executable = /usr/bin/id\narguments = -un\noutput = who\nlog = job.log\nqueue 3")
    pool.wait()
    assert (pool.work / "who").read_text().strip() == "nobody"


def test_the_folders_are_the_pools(pool: RootPool) -> None:
    for name in ("log", "run", "spool"):
        assert (pool.dir / name).stat().st_uid == POOL
    for key in pool.dir.rglob("*.key"):
        assert (key.stat().st_uid, key.stat().st_mode & 0o777) == (POOL, 0o600)


def test_a_pool_of_an_earlier_version_is_taken_over(pool: RootPool) -> None:
    """All that was root's is the pool's after a start; what is a user's stays the user's, and links lead nowhere."""
    pool.run("condor_personal", "stop", "--dir", str(pool.dir))
    top = pool.dir / "spool"
    for path in (top, pool.dir / "log", pool.dir / "run"):
        for each in (path, *path.rglob("*")):
            os.chown(each, 0, 0, follow_symlinks=False)
    theirs = top / "7" / "0"
    theirs.mkdir(parents=True)
    os.chown(theirs, 60_123, 60_123)
    outside = pool.folder / "outside"
    outside.write_text("root's")
    (top / "link").symlink_to(outside)
    os.link(outside, top / "second name")
    pool.run("condor_personal", "start", "--dir", str(pool.dir), "--slots", "4")
    assert theirs.stat().st_uid == 60_123
    assert outside.stat().st_uid == 0
    assert top.stat().st_uid == (top / "7").stat().st_uid == POOL
    test_jobs_run_in_a_pool_without_root(pool)
