"""A local user whose expressions are expensive: as constraints of questions, Requirements, Rank, and policies of jobs.

Each evaluation has its bounds; what is expensive is undefined or an error, and nobody else's job waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.harness.processor_time import of_processes
from tests.pool_fixture import PersonalPool, fresh_folder

DOUBLED = 'strcat("aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaa")'
for _ in range(6):
    DOUBLED = f"strcat({DOUBLED}, {DOUBLED})"
BOMBS = {
    "join": f'size(join("{"a" * 500}", split({DOUBLED.replace("aaaaaaaaaaaaaaaa", "a a a a a a a a ")}))) > 5',
    "regexp": f'regexp("^(a+)+$", strcat({DOUBLED}, "b"))',
    "regexps": f'size(regexps("(a|aa)+(a|aa)+(a|aa)+c", {DOUBLED}, "x")) > 1',
    "nested": "size(" + "strcat(" * 6 + DOUBLED + f", {DOUBLED})" * 6 + ") > 1",
}
BYSTANDER_S = 20.0


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=4)
        yield made
        made.stop()


@contextmanager
def nobody_waits(pool: PersonalPool) -> Iterator[None]:
    """Other queries meanwhile cost the daemons less processor time than others would notice.

    By the clock, a machine with much else to do would look like daemons that are kept.
    """
    before_s = of_processes(pool.daemons().values())
    yield
    assert of_processes(pool.daemons().values()) - before_s < BYSTANDER_S


def _bystander(pool: PersonalPool, name: str) -> None:
    with nobody_waits(pool):
        pool.submit(f"executable = /bin/true\nlog = {name}.log\nqueue")
        pool.wait(f"{name}.log")


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("command", ["requirements", "rank", "periodic_hold", "periodic_remove", "+Bomb"])
def test_an_expensive_expression_of_a_job(pool: PersonalPool, bomb: str, command: str) -> None:
    name = f"{bomb}-{command.strip('+')}"
    expression = BOMBS[bomb]
    done = pool.tool("condor_submit", stdin=f"executable = /bin/true\n{command} = {expression}\n"
                     f"hold = {'false' if command in ('requirements', 'rank') else 'true'}\nqueue 20\n")
    _bystander(pool, name)
    assert done.returncode in (0, 1)
    pool.tool("condor_rm", "-all")


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("tool", ["condor_q", "condor_status", "condor_history"])
def test_an_expensive_question(pool: PersonalPool, bomb: str, tool: str) -> None:
    with nobody_waits(pool):
        pool.tool(tool, "-constraint", BOMBS[bomb])
    _bystander(pool, f"{tool}-{bomb}")
