"""Whatever stands in a submit file: jobs, or an error that says where and why; never anything else."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from condor_actors.submit import SubmitError
from condor_actors.submit.macros import template
from condor_actors.submit.queue_statement import QueueStatement, parse_queue
from tests.unit.submit.worlds import evaluate, jobs_of

WORDS = """
executable arguments = queue $( $$( ) ( $F( $INT( $ENV( , : in from matching [1:2] " ' \\ # + MY. if endif else elif
@=x @x include requirements request_memory universe standard environment | é 1 -1 true undefined x /bin/true
should_transfer_files YES max_retries
"""
PIECES = st.sampled_from(
    [*WORDS.split(), " ", "\n", "\t", "\x1f", "\x00", " = ", "\\\n", "queue 3\n", "include : ", "elif true"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_garbage_is_refused_or_makes_jobs(text: str) -> None:
    with contextlib.suppress(SubmitError):
        jobs_of(text, max_jobs=200)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_garbage_after_a_good_beginning(text: str) -> None:
    with contextlib.suppress(SubmitError):
        jobs_of(f"executable = /bin/true\n{text}\nqueue 2\n", max_jobs=200)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_text_is_a_template_and_a_queue_line_or_an_error(text: str) -> None:
    assert isinstance(template(text), tuple)
    with contextlib.suppress(SubmitError):
        assert isinstance(parse_queue(text, evaluate), QueueStatement)
