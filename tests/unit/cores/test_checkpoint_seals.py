"""Seals: what each of them binds, and what a starter takes."""

from __future__ import annotations

import attrs
import pytest

from condor_actors.cores.checkpoint_seals import (
    FIRST,
    SEAL_BYTES,
    Generation,
    Seal,
    floor_of,
    job_and_run,
    key_of_owner,
    make_seal,
    make_ticket,
    seal_problem,
)
from condor_actors.cores.starter.checkpoint_guard import CheckpointGuard

KEY = key_of_owner(b"k" * 32, "alice@x")
OTHER = key_of_owner(b"k" * 32, "mallory@x")
RUN = "7.0#3@q"


def guard(run: str = RUN, floor: Generation = FIRST, key: bytes = KEY, claim: str = "c") -> CheckpointGuard:
    return CheckpointGuard(key, claim, run, make_ticket(key, claim, run, floor))


def test_a_seal_is_of_one_job_and_one_digest() -> None:
    seal = make_seal(KEY, RUN, 2, "ab")
    assert seal.generation == Generation(3, 2)
    assert seal_problem(KEY, "7.0#9@q", "ab", seal) == ""  # a later run of the job
    assert seal_problem(KEY, RUN, "ac", seal)
    assert seal_problem(KEY, "7.1#3@q", "ab", seal)
    assert seal_problem(KEY, "7.0#3@p", "ab", seal)
    assert seal_problem(OTHER, RUN, "ab", seal)
    assert seal_problem(KEY, RUN, "ab", attrs.evolve(seal, generation=Generation(3, 3)))
    assert seal_problem(KEY, RUN, "ab", None)
    assert seal_problem(b"", RUN, "ab", seal)


def test_no_key_makes_no_seal_and_no_ticket() -> None:
    assert key_of_owner(b"", "alice@x") == b""
    assert make_ticket(b"", "c", RUN, FIRST) == b""
    assert CheckpointGuard(b"", "c", RUN, b"").seal("ab") is None


def test_a_ticket_is_of_one_run_on_one_claim() -> None:
    ticket = make_ticket(KEY, "c", RUN, Generation(2, 1))
    assert floor_of(KEY, "c", RUN, ticket) == Generation(2, 1)
    assert floor_of(KEY, "d", RUN, ticket) is None
    assert floor_of(KEY, "c", "7.0#4@q", ticket) is None
    assert floor_of(OTHER, "c", RUN, ticket) is None
    lower = attrs.evolve(Seal.from_bytes(ticket) or Seal(FIRST, b""), generation=FIRST)
    assert floor_of(KEY, "c", RUN, lower.to_bytes()) is None
    seal = make_seal(KEY, RUN, 1, "ab")
    assert floor_of(KEY, "c", RUN, seal.to_bytes()) is None
    for broken in (b"", ticket[:-1], bytes(SEAL_BYTES)):
        assert floor_of(KEY, "c", RUN, broken) is None


def test_what_is_older_than_the_ticket_says_is_not_taken() -> None:
    old, last = make_seal(KEY, "7.0#1@q", 5, "old"), make_seal(KEY, "7.0#2@q", 1, "last")
    starter = guard(floor=last.generation)
    assert starter.image_problem("last", last, None) == ""
    assert "old one" in starter.image_problem("old", old, None)
    assert starter.increment_problem("last", last) == ""
    assert starter.image_problem("old", old, last) == ""  # what an increment adds to may be as old as it is
    assert starter.image_problem("other", old, last)
    without = CheckpointGuard(KEY, "c", RUN, b"")
    assert "how old" in without.image_problem("last", last, None)


def test_each_seal_of_a_run_is_newer_than_the_one_before() -> None:
    starter = guard()
    first, second = starter.seal("a"), starter.seal("b")
    assert first is not None
    assert second is not None
    assert Generation(2, 99) < first.generation < second.generation < Generation(4, 0)
    assert seal_problem(KEY, RUN, "b", second) == ""


@pytest.mark.parametrize("text", ["", "1", "1.", ".1", "a.b", "-1.2", "1.2.3", "٣.١", "9" * 30 + ".1"])
def test_what_is_no_generation_is_older_than_all(text: str) -> None:
    assert Generation.from_text(text) == FIRST
    assert str(Generation.from_text("3.14")) == "3.14"


@pytest.mark.parametrize(("run", "found"), [
    ("7.0#3@q@m", ("7.0@q@m", 3)), ("7.0", ("7.0@", 0)), ("7.0#x@q", ("7.0@q", 0)), ("", ("@", 0))])
def test_a_run_id_names_the_job_and_the_run(run: str, found: tuple[str, int]) -> None:
    assert job_and_run(run) == found
