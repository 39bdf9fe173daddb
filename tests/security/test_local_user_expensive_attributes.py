"""A local user with expensive attributes, where the administrator's expressions and others' queries look at them.

Each evaluation has its bounds (`test_local_user_expressions`); here are the places where one turn makes many.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from condor_actors.messages.queue import QueryTotals
from condor_actors.wire.blocking import RequestRefused, connect
from tests.pool_fixture import PersonalPool, fresh_folder, until
from tests.security.test_local_user_expressions import BOMBS, nobody_waits

EXPENSIVE = BOMBS["join"]
"""It takes some milliseconds, and stays below what one evaluation may."""
CONFIG = """
POLLING_INTERVAL = 1
SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) Cheap
SUBMIT_REQUIREMENT_Cheap = string(Asked) =!= "no" && isError(TooMuch) == false
SUBMIT_REQUIREMENT_Cheap_REASON = strcat("not so: ", string(Why))
JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) Looks
JOB_TRANSFORM_Looks @=end
   REQUIREMENTS string(Shaped) == "true"
   SET Looked true
@end
START = string(TARGET.Starting) =!= "no"
RANK = size(string(TARGET.Ranked))
SYSTEM_PERIODIC_HOLD = string(Held) == "yes"
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=4, config=CONFIG)
        yield made
        made.stop()


def in_time(pool: PersonalPool, name: str) -> None:
    """Another user's job is submitted and runs, and another user's question is answered."""
    with nobody_waits(pool):
        assert pool.tool("condor_q", "-totals").returncode == 0
        pool.submit(f"executable = /bin/true\nlog = {name}.log\nqueue")
        pool.wait(f"{name}.log")


def crowd(pool: PersonalPool, attribute: str, count: int, *, own: bool = False, hold: bool = True) -> tuple[int, str]:
    """Submit many jobs with an expensive attribute, the cluster's or each job's own; exit status and output."""
    expression = f"{EXPENSIVE} || $(Process) > 1" if own else EXPENSIVE
    done = pool.tool("condor_submit", stdin=f"executable = /bin/true\n+{attribute} = {expression}\n"
                     f"hold = {'true' if hold else 'false'}\nqueue {count}\n")
    return done.returncode, done.stderr


@pytest.mark.parametrize("attribute", ["Asked", "Shaped"])
def test_the_rules_for_a_submission(pool: PersonalPool, attribute: str) -> None:
    """Submit requirements and transforms look at attributes of thousands of jobs in one turn: not at expensive ones."""
    with nobody_waits(pool):
        status, said = crowd(pool, attribute, 3000, own=True)
    assert (status, "in all: ask for less at once" in said) == (1, True), said
    assert crowd(pool, attribute, 2)[0] == 0
    in_time(pool, attribute)
    pool.tool("condor_rm", "-all")


@pytest.mark.parametrize("attribute", ["Starting", "Ranked", "Held"])
def test_the_policies_of_machines_and_of_the_schedd(pool: PersonalPool, attribute: str) -> None:
    assert crowd(pool, attribute, 200, own=True, hold=False)[0] == 0
    in_time(pool, attribute)
    pool.tool("condor_rm", "-all")
    until(lambda: not pool.jobs(), "an empty queue")


@pytest.mark.parametrize("words", [
    ("condor_q", "-totals", "-constraint"), ("condor_q", "-autocluster", "-constraint"), ("condor_q", "-constraint"),
    ("condor_rm", "-constraint"), ("condor_history", "-constraint"), ("condor_status", "-constraint"),
])
@pytest.mark.parametrize("bomb", ["join", "regexps"])
def test_a_question_that_is_expensive_by_itself(pool: PersonalPool, words: tuple[str, ...], bomb: str) -> None:
    with nobody_waits(pool):
        pool.tool(*words, f"({BOMBS[bomb]}) && false")
    in_time(pool, f"{'-'.join(words)}-{bomb}")


def test_a_count_over_many_expensive_jobs_is_refused(pool: PersonalPool) -> None:
    assert crowd(pool, "Own", 2000)[0] == 0
    with nobody_waits(pool), connect(f"unix:{pool.dir / 'run' / 'schedd.sock'}") as client:
        with pytest.raises(RequestRefused, match="ask for less at once"):
            client.ask("schedd", QueryTotals(constraint='string(Own) =!= "x"'))
        counts = client.ask("schedd", QueryTotals(constraint="ClusterId > 0")).everybody
        assert sum(count for _, count in counts) >= 2000
    in_time(pool, "count")
    pool.tool("condor_rm", "-all")


def test_expensive_attributes_of_one_spoil_nobody_elses_question(pool: PersonalPool) -> None:
    """His attribute takes more than an evaluation may: his job is not among the found, and all others are."""
    too_expensive = " && ".join([f"({EXPENSIVE})"] * 60)
    his = pool.submit(f"executable = /bin/true\nhold = true\n+Wanted = {too_expensive}\nqueue")
    hers = pool.submit("executable = /bin/true\nhold = true\n+Wanted = true\nqueue")
    found = pool.run("condor_q", "-constraint", "Wanted", "-af", "ClusterId").split()
    assert found == [str(hers)]
    both = pool.run("condor_q", "-constraint", f"ClusterId == {his} || ClusterId == {hers}", "-af", "ClusterId")
    assert both.split() == [str(his), str(hers)]
    pool.tool("condor_rm", "-all")
