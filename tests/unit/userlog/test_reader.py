"""Events are cut out of logs as they grow, also elements that have others in them."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.userlog.event_facts import facts_of
from condor_actors.userlog.event_text import event_text, event_xml
from condor_actors.userlog.reader import EventReader

FACTS = ClassAd({"SubmitHost": "<h:1>", "StructuredNotes": ClassAd({"Proc": 99, "Text": "</c> <c>"})})


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_an_element_in_an_element_is_part_of_its_event(step: int) -> None:
    data = "".join(event_xml(0, 7, proc, 1e9, FACTS) for proc in range(3)).encode()
    reader = EventReader()
    events = [event for at in range(0, len(data), step) for event in reader.feed(data[at : at + step])]
    assert [(event.number, event.cluster, event.proc) for event in events] == [(0, 7, 0), (0, 7, 1), (0, 7, 2)]
    assert [facts_of(event, is_xml=True).evaluate("StructuredNotes")["Text"] for event in events] == ["</c> <c>"] * 3
    assert not reader.has_rest


def test_an_element_that_was_never_finished_costs_no_other_event() -> None:
    whole = [event_xml(0, 7, proc, 1e9, FACTS) for proc in range(3)]
    data = whole[0] + whole[1][: whole[1].index("StructuredNotes") + 25] + "\n" + whole[2]
    assert [event.proc for event in EventReader().feed(data.encode())] == [0, 2]


def test_notes_of_the_text_form_are_read_back() -> None:
    (event,) = EventReader().feed(event_text(0, 7, 1, 1e9, FACTS).encode())
    assert dict(facts_of(event, is_xml=False).evaluate("StructuredNotes").items()) == {"Proc": 99, "Text": "</c> <c>"}
