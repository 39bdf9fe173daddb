"""A job that names others in OtherJobRemoveRequirements takes them along: its owner's, nobody else's."""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.effects import GoOn, Reply
from condor_actors.messages.envelope import Address, Delivery, Identity
from condor_actors.messages.queue import ActOnJobs, JobAction
from tests.unit.cores.schedd.test_job_attributes import ANN, BOB, ROOT, Queue


def remove(queue: Queue, identity: Identity) -> None:
    """Remove 1.0, and take all turns that follow."""
    message = ActOnJobs(action=JobAction.REMOVE, ids=((1, 0),))
    question = Delivery(message=message, sender=Address("in:9", "x"), identity=identity, answerable=True)
    left: list[Any] = [message]
    answers = []
    while left:
        effects = queue.core.handle(attrs.evolve(question, message=left.pop(0)), 2.0)
        left += [each.event for each in effects if isinstance(each, GoOn)]
        answers += [each for each in effects if isinstance(each, Reply)]
    assert [each.to is None or each.to.answerable for each in answers] == [True, False]


def jobs(queue: Queue) -> list[int]:
    return sorted(queue.core.context.queue.clusters)


def made(requirement: str) -> Queue:
    """Ann's 1.0 with the requirement, her 2.0 of a workflow, her 3.0, and bob's 4.0 of the same workflow."""
    queue = Queue(f"OtherJobRemoveRequirements = {requirement}\n")
    queue.submit("DAGManJobId = 1\n")
    queue.submit("")
    queue.submit("DAGManJobId = 1\n", identity=BOB)
    assert jobs(queue) == [1, 2, 3, 4]
    return queue


def test_its_own_jobs_go_with_it() -> None:
    queue = made('"DAGManJobId =?= 1"')
    remove(queue, ANN)
    assert jobs(queue) == [3, 4]


def test_whoever_removes_it_the_others_are_its_owners() -> None:
    queue = made('"true"')
    remove(queue, ROOT)
    assert jobs(queue) == [4]


def test_what_names_nothing_takes_nothing_along() -> None:
    for requirement in ("7", '""', "undefined"):
        queue = made(requirement)
        remove(queue, ANN)
        assert jobs(queue) == [2, 3, 4]


