"""What a command says of checkpoints that it has asked for, by what the schedd says of the jobs before and after."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.messages.queue import JobsPage
from condor_actors.tools.lib import checkpoint_outcome
from condor_actors.tools.lib.checkpoint_outcome import CheckpointOutcome, standing_problem

RUNS = {"ClusterId": 1, "ProcId": 0, "JobStatus": 2, "JobUniverse": 1, "NumCkpts": 1, "NumShadowStarts": 1,
        "LastCkptTime": 100}


class Queue:
    """A schedd that answers each question with the next of some ads, and goes on with the last."""

    def __init__(self, *answers: dict[str, Any] | None) -> None:
        self._answers = list(answers)

    def ask(self, message: object) -> JobsPage:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return JobsPage(ads=() if answer is None else (ClassAd({**RUNS, **answer}).to_bytes(),))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_outcome, "PAUSE_S", 0.0)
    monkeypatch.setattr(checkpoint_outcome, "PATIENCE_S", 0.05)


@pytest.mark.parametrize(("answers", "problems", "unheard"), [
    ([{}, {"NumCkpts": 2}], [], []),
    ([{}, {}, {"LastCkptProblem": "a child", "LastCkptProblemTime": 120.5}], [("1.0", "a child")], []),
    ([{"LastCkptProblemTime": 120.5}, {"NumCkpts": 2, "LastCkptProblemTime": 120.5}], [], []),
    ([{}, {"JobStatus": 1}], [], []),
    ([{}, {"NumShadowStarts": 2}], [], []),
    ([{}, None], [], []),
    ([{}], [], ["1.0"]),
    ([None], [], []),
])
def test_what_became_of_it(answers: list[dict[str, Any] | None], problems: list[tuple[str, str]],
                           unheard: list[str]) -> None:
    outcome = CheckpointOutcome(Queue(*answers), ((1, 0),), "")  # type: ignore[arg-type]
    assert outcome.problems([(1, 0)]) == problems
    assert outcome.unheard == unheard


@pytest.mark.parametrize(("facts", "problem"), [
    ({"LastCkptProblem": "a child", "LastCkptProblemTime": 120.5}, "a child"),
    ({"LastCkptProblem": "a child", "LastCkptProblemTime": 99.5}, ""),
    ({"LastCkptProblem": "a child", "LastCkptProblemTime": 120.5, "JobUniverse": 5}, ""),
    ({}, ""),
])
def test_a_problem_stands_until_a_checkpoint_is_taken(facts: dict[str, Any], problem: str) -> None:
    assert standing_problem(ClassAd({**RUNS, **facts})) == problem
