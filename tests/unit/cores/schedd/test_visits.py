"""Shells and connections to ports of a running job, at the schedd between them and their user."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.effects import Answer, Ask
from condor_actors.messages.envelope import Done, Identity, PeerDown, Refused
from condor_actors.messages.interactive import ConnectToJob, ConnectToPort, OpenPort, OpenShell, PortData, ShellData
from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.messages.shadow_host import RunUpdated
from tests.unit.cores.schedd.test_claims_and_runs import ANN, Schedd, running

EVE = Identity(name="eve@dom", method="local", uid=1001)
TOOL, HOST, RUN = "in:5", "in:1", "1.0#1@s"
OPENINGS = (ConnectToJob(cluster_id=1, proc_id=0, shell_id="x"),
            ConnectToPort(cluster_id=1, proc_id=0, shell_id="x", port=80))
Opening = ConnectToJob | ConnectToPort
FOR_BOTH = [True, True]
"""One farewell for its user, one for its machine."""


def visited(opening: Opening) -> Schedd:
    """A schedd with a job that runs, and a visit of it."""
    schedd = Schedd()
    running(schedd)
    assert schedd.send(opening, TOOL) == []
    (question,) = (each for each in schedd.out if isinstance(each, Ask))
    assert isinstance(question.message, OpenPort if isinstance(opening, ConnectToPort) else OpenShell)
    assert (question.message.run_id, question.to.node) == (RUN, HOST)
    assert schedd.send(Answer(question.tag, Done())) == [Done()]
    return schedd


def word_of(opening: Opening, **facts: Any) -> Any:
    return (PortData if isinstance(opening, ConnectToPort) else ShellData)(shell_id="x", **facts)


def farewells(schedd: Schedd) -> list[bool]:
    return [each.is_last for kind in (ShellData, PortData) for each in schedd.sent(kind)]


@pytest.mark.parametrize("opening", OPENINGS)
def test_words_go_to_the_other_end_and_to_nobody_elses(opening: Opening) -> None:
    schedd = visited(opening)
    for node, is_passed in ((TOOL, True), (HOST, True), ("in:7", False)):
        schedd.send(word_of(opening, data=b"hello"), node)
        assert farewells(schedd) == ([False] if is_passed else [])
    assert isinstance(schedd.send(opening, "in:7", EVE)[0], Refused)


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("outcome", ["lost", "failed"])
def test_a_visit_ends_when_the_machine_is_not_heard_of_again(opening: Opening, outcome: str) -> None:
    schedd = visited(opening)
    schedd.ended(RUN, outcome)
    assert farewells(schedd) == FOR_BOTH
    schedd.send(word_of(opening, data=b"hello"), TOOL)
    assert farewells(schedd) == []


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_visit_ends_when_the_machine_is_out_of_touch(opening: Opening) -> None:
    """The run may go on for hours; what its visitor was to read is lost."""
    schedd = visited(opening)
    for event, expected in (("suspended", []), ("continued", []), ("disconnected", FOR_BOTH), ("disconnected", [])):
        schedd.send(RunUpdated(run_id=RUN, attributes=b"", event=event), HOST, ANN)
        assert farewells(schedd) == expected, event


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_visit_ends_when_the_job_is_removed_by_force(opening: Opening) -> None:
    schedd = visited(opening)
    for action in (JobAction.REMOVE, JobAction.REMOVE_FORCED):
        schedd.send(ActOnJobs(action=action, ids=((1, 0),)))
    assert farewells(schedd) == FOR_BOTH


@pytest.mark.parametrize("opening", OPENINGS)
def test_the_last_words_of_a_job_that_ends_come_from_its_machine(opening: Opening) -> None:
    schedd = visited(opening)
    schedd.ended(RUN)
    assert farewells(schedd) == []
    last = {"is_closed": True} if isinstance(opening, ConnectToPort) else {"exit_code": 0}
    schedd.send(word_of(opening, **last), HOST)
    assert farewells(schedd) == [True]


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("gone", [TOOL, HOST])
def test_either_end_is_told_that_the_other_has_gone(opening: Opening, gone: str) -> None:
    schedd = visited(opening)
    schedd.send(PeerDown(node=gone, reason="cut"), "")
    assert farewells(schedd) == [True]
