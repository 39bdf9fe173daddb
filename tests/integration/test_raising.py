"""An error in a turn, a callback or an edge of a real daemon costs no more than the run it happened to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.proc_files import command_lines
from tests.pool_fixture import PersonalPool, fresh_folder, until

RAISING = Path(__file__).parent.parent / "harness" / "raising"
JOBS = """
    executable = /bin/sh
    transfer_executable = false
    should_transfer_files = yes
    log = job.log
    output = out.$(Process)
    arguments = "-c 'echo $$; while ! test -e {go}.$(Process); do sleep 0.05; done; echo done'"
    request_memory = 16MB
    queue {count}
"""
STARTER = "condor_actors.daemons.starter.starter:Starter"


class RaisingPool(PersonalPool):
    """A pool whose daemons raise on order."""

    def order(self, daemon: str, text: str) -> Path:
        """Have a daemon raise; the file that is gone when it has."""
        path = self.dir.parent / "orders" / f"{daemon}.order"
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)
        return path


@pytest.fixture(scope="module")
def signs() -> Iterator[Path]:
    """A folder that jobs can look into, no matter who they run as."""
    with fresh_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RaisingPool]:
    folder = tmp_path_factory.mktemp("raising")
    (folder / "orders").mkdir()
    before = dict(os.environ)
    os.environ.update({"PYTHONPATH": str(RAISING), "RAISE_ORDERS": str(folder / "orders")})
    try:
        made = RaisingPool(folder, slots=3, config="STARTER_INITIAL_UPDATE_INTERVAL = 1\n"
                           "STARTER_UPDATE_INTERVAL = 1\nMEMORY = 512\n")
        yield made
        made.stop()
    finally:
        os.environ.clear()
        os.environ.update(before)


def carried_out(path: Path) -> None:
    taken = path.with_name(f"{path.name}.taken")
    until(lambda: not (path.exists() or taken.exists()) or None, f"{path.name} raised: {taken.exists()}")


def lives(words: str) -> bool:
    """Whether a process has these words in its command line; a job's own numbers say nothing here."""
    return any(words.encode() in line for _, line in command_lines())


CASES = {
    "a starter's turn": ("starter-host", "turn starter/ after"),
    "a starter's turn before it began": ("starter-host", "turn starter/ before"),
    "what a starter measured": ("starter-host", f"{STARTER}._measured"),
}


@pytest.mark.parametrize("case", CASES)
def test_jobs_end_although_something_raises(pool: RaisingPool, signs: Path, case: str) -> None:
    name = case.replace(" ", "_").replace("'", "")
    go = signs / name
    cluster = pool.submit(JOBS.format(go=go, count=3).replace("job.log", f"{name}.log").replace("out.", f"{name}.o."))
    pool.until_status(f"{cluster}.0", 2)
    pool.until_status(f"{cluster}.1", 2)
    order = pool.order(*CASES[case])
    for command in ("condor_suspend", "condor_continue"):  # something to do for all of them
        pool.tool(command, f"{cluster}.0")  # which may not run just now
    carried_out(order)
    for number in range(3):
        Path(f"{go}.{number}").touch()
    pool.wait(f"{name}.log", 40)
    outputs = [(pool.work / f"{name}.o.{number}").read_text().split() for number in range(3)]
    assert [words[1] for words in outputs] == ["done"] * 3
    assert not lives(f"test -e {go}.")
    until(lambda: not pool.scratch() or None, "scratch directories freed")
