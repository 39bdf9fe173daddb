"""Bugs of the executor whose workers are jobs."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

_DISPATCH = "tests/unit/master_worker/test_dispatch.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "a-result-counts-twice", "condor_actors/master_worker/dispatch.py",
        "        if task is None or name not in task.given_to:\n            return False\n"
        "        del self.tasks[number]\n",
        "        self.tasks.pop(number, None)\n",
        why="a task whose first worker comes back ends twice",
        killed_by=(f"{_DISPATCH}::test_a_result_counts_once_whoever_has_it",)),
    Mutation(
        "results-of-anybody", "condor_actors/master_worker/dispatch.py",
        "if task is None or name not in task.given_to:",
        "if task is None:",
        why="one machine answers for the tasks of all others",
        killed_by=(f"{_DISPATCH}::test_a_result_of_a_task_that_was_never_its_own_does_not_count",)),
    Mutation(
        "killers-go-on", "condor_actors/master_worker/dispatch.py",
        "if first.crashes >= self._crash_limit:",
        "if first.crashes > self._crash_limit + 99:",
        why="a task that kills its workers kills every worker of the pool",
        killed_by=(f"{_DISPATCH}::test_what_kills_its_workers_is_given_up",)),
    Mutation(
        "cancelled-tasks-run", "condor_actors/master_worker/dispatch.py",
        "                if not self._begin(number):\n",
        "                if not self._begin(number) and False:\n",
        why="Future.cancel says yes, and the task runs all the same",
        killed_by=(f"{_DISPATCH}::test_cancelled_tasks_are_not_given",)),
)
