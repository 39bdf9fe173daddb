"""What the options of whole ads take, beside what the commands' own tests show of them."""

from __future__ import annotations

import pytest

from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.flags import parse
from condor_actors.tools.printing.ad_output import AdQuestion, flags


def form_of(word: str) -> str:
    question = AdQuestion()
    assert all(question.take(item) for item in parse([word], flags()))
    return question.form


@pytest.mark.parametrize(("word", "form"), [
    ("-long", "long"), ("-long:json", "json"), ("-json:jsonl,nosort", "jsonl"), ("-long:auto", "long")])
def test_a_qualifier_names_the_form(word: str, form: str) -> None:
    assert form_of(word) == form


def test_a_qualifier_that_is_no_form_is_refused() -> None:
    with pytest.raises(ToolError, match="-long:nope: nope is no form of ads; there are long, json, jsonl, xml"):
        form_of("-long:nope")
