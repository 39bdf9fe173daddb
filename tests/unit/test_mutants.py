"""The standing mutants are in order: each is still in the code, and the tests that are to kill it are there.

``make mutants`` tries them; here is only what takes no time.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants.every import MUTATIONS
from tests.mutants.mutation import ROOT, Mutation, StaleMutation, home_directories, names_of_tests
from tests.mutants.runner import BROKEN, KILLED, SKIPPED, STUCK, SURVIVED, chosen, verdict_on
from tests.mutants.tree import Outcome

PACKAGES = {"actors", "cores", "wire", "store", "transfer", "native"}
LEAST = 40

every = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)


def test_there_are_enough_everywhere() -> None:
    count = Counter(mutation.package for mutation in MUTATIONS)
    assert count.keys() >= PACKAGES
    assert len(MUTATIONS) >= LEAST
    assert min(count[package] for package in PACKAGES) >= 5, count


def test_each_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(mutation.name for mutation in MUTATIONS).items() if count > 1] == []
    places = Counter((mutation.file, mutation.old, mutation.new) for mutation in MUTATIONS)
    assert [place for place, count in places.items() if count > 1] == []


@every
def test_it_is_in_the_code(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text("utf-8")
    buggy = mutation.applied_to(text)
    assert buggy != text
    assert mutation.why
    if mutation.file.endswith(".py"):
        compile(buggy, mutation.file, "exec")


@every
def test_its_killers_stand_beside_the_code(mutation: Mutation) -> None:
    assert mutation.killed_by
    for test in mutation.killed_by:
        file, _, name = test.partition("::")
        assert file.startswith(tuple(f"{home}/" for home in home_directories(mutation))), test
        assert name.partition("::")[0].partition("[")[0] in names_of_tests(ROOT / file), test


def test_one_that_has_gone_stale_is_named() -> None:
    mutation = Mutation("gone", "condor_actors/x.py", "old", "new", why="?", killed_by=("a",))
    for text in ("no such text", "old and old"):
        with pytest.raises(StaleMutation, match=r"condor_actors/x\.py.*'gone'"):
            mutation.applied_to(text)


@pytest.mark.parametrize(("status", "output", "verdict"), [
    (0, "3 passed in 0.1s", SURVIVED), (1, "1 failed in 0.1s", KILLED), (2, "1 error in 0.1s", BROKEN),
    (4, "no such test", BROKEN), (5, "no tests ran", BROKEN), (None, "", STUCK), (0, "1 skipped in 0.1s", SKIPPED),
    (0, "1 passed, 1 skipped in 0.1s", SURVIVED), (-9, "", BROKEN)])
def test_verdicts(status: int | None, output: str, verdict: str) -> None:
    assert verdict_on(Outcome(status, output)) == verdict


def test_choosing() -> None:
    assert chosen([]) == MUTATIONS
    first, second = MUTATIONS[0].name, MUTATIONS[1].name
    assert [mutation.name for mutation in chosen([f"{first}, {second}"])] == [first, second]
    assert {mutation.name for mutation in chosen(["launcher-*"])} > {"launcher-keeps-groups"}
    with pytest.raises(LookupError, match="no-such-bug"):
        chosen(["no-such-bug"])
