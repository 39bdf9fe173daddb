"""What users may do to jobs by the page: the messages that ask the schedd for it, and its answers in plain words."""

from __future__ import annotations

from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.messages.queue import ActionResult, ActionResults, ActOnJobs, EditJobs, JobAction

__all__ = ["ACTIONS", "MOST_JOBS", "MOST_PRIORITY", "REASON_LETTERS", "answer_in_words", "job_ids", "priority_question",
           "question"]

ACTIONS = ("hold", "release", "remove", "suspend", "continue", "vacate", "checkpoint")
"""Those of `JobAction` that the page has, by their value."""
MOST_JOBS = 500
"""Jobs or clusters of one question."""
MOST_PRIORITY = 1_000_000
"""A job's priority is from its negative to this."""
REASON_LETTERS = 200

_DONE = {
    "hold": "held", "release": "released", "remove": "removed", "suspend": "suspended", "continue": "continued",
    "vacate": "told to leave its machine", "checkpoint": "asked for a checkpoint", "priority": "given its priority",
}
_BAD_STATUS = {
    "hold": "cannot be held in its state", "release": "is not held", "remove": "cannot be removed in its state",
    "suspend": "does not run", "continue": "is not suspended", "vacate": "does not run",
    "checkpoint": "does not run in the standard universe", "priority": "cannot be changed in its state",
}
_ALREADY = {"hold": "is held already", "remove": "is marked for removal already", "suspend": "is suspended already",
            "continue": "runs already"}


def job_ids(names: list[str]) -> tuple[tuple[int, int], ...]:
    """Ids from ``12.3`` or ``12`` (the cluster, proc -1), each named once."""
    found: dict[tuple[int, int], None] = {}
    for name in names:
        cluster, _, proc = name.partition(".")
        found[int(cluster), int(proc) if proc else -1] = None
    return tuple(found)


def question(action: str, ids: tuple[tuple[int, int], ...], reason: str) -> ActOnJobs:
    """The message for one of :data:`ACTIONS`."""
    said = "".join(letter if letter.isprintable() else " " for letter in reason).strip()
    return ActOnJobs(action=JobAction(action), ids=ids, reason=said or "by the web page")


def priority_question(ids: tuple[tuple[int, int], ...], priority: int) -> EditJobs:
    """The message that gives jobs a priority."""
    return EditJobs(attributes=ClassAd({"JobPrio": priority}).to_bytes(), ids=ids)


def answer_in_words(action: str, answer: ActionResults) -> dict[str, Any]:
    """What the page is told: how many jobs were changed, and what became of each that was named.

    Args:
        action: one of :data:`ACTIONS`, or ``priority``.
        answer: the schedd's.
    """
    words = {
        ActionResult.SUCCESS: f"was {_DONE[action]}",
        ActionResult.NOT_FOUND: "is not in the queue",
        ActionResult.BAD_STATUS: _BAD_STATUS[action],
        ActionResult.ALREADY_DONE: _ALREADY.get(action, "is so already"),
        ActionResult.PERMISSION_DENIED: "is another user's",
        ActionResult.ERROR: "could not be changed",
    }
    results = []
    for cluster, proc, result in answer.results[:MOST_JOBS]:
        name = f"{cluster}.{proc}" if proc >= 0 else f"{cluster}"
        kind = "Job" if proc >= 0 else "Cluster"
        results.append({"job": name, "result": result.value, "text": f"{kind} {name} {words[result]}."})
    return {"action": action, "count": answer.count, "results": results, "text": answer.text}
