"""No daemon's reactor is kept long by what it does itself: a pool at work, its logs and what they say of slow edges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

LONGEST_MS = 200
SLOW = re.compile(r"the reactor was kept (\d+) ms by (.*)")
BEGINNING = re.compile(r"timed calls|a descriptor of ")
"""What names no part of ours: an iteration in which Python imports, or one that is made of many short edges."""


def _slow(pool: PersonalPool) -> list[tuple[int, str]]:
    found = []
    for path in sorted((pool.dir / "log").glob("*Log*")):
        text = path.read_text(errors="replace")
        found += [(int(match[1]), f"{path.name}: {match[2]}") for match in SLOW.finditer(text)]
    return found


def _stolen_s() -> float:
    """How long others' machines have kept this one's processors waiting, in hundredths of a second."""
    return float(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])


@pytest.fixture
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=4)
        yield made
        made.stop()


def _work(pool: PersonalPool) -> None:
    (pool.work / "big").write_bytes(bytes(64 << 20))
    pool.submit("executable = /bin/true\nlog = many.log\nhold = true\nqueue 3000")
    pool.submit("executable = /bin/sh\narguments = \"-c 'cat in > out; echo $(Process)'\"\noutput = o.$(Process)\n"
                "transfer_input_files = in, big\ntransfer_output_files = out\n"
                "transfer_output_remaps = \"out = out.$(Process)\"\n"
                "log = work.log\nqueue 40")
    pool.wait("work.log", 120)
    pool.run("condor_q", "-all", "-long")
    old = pool.kill("schedd")
    pool.until_restarted("schedd", old)
    until(lambda: len(pool.jobs("-attributes", "ProcId")) == 3000, "the queue after a restart")
    pool.run("condor_rm", "-all")
    until(lambda: not pool.jobs(), "an empty queue")
    pool.history()


@pytest.mark.alone
def test_nothing_keeps_a_reactor_long(pool: PersonalPool) -> None:
    (pool.work / "in").write_text("in")
    before = _stolen_s()
    _work(pool)
    if _stolen_s() - before > 100:
        pytest.skip("other machines have taken this one's processors for more than a second")
    slow = [(ms, edge) for ms, edge in _slow(pool) if ms > LONGEST_MS and not BEGINNING.search(edge)]
    assert not slow, "\n".join(f"{ms} ms: {edge}" for ms, edge in slow)
