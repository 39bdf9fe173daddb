"""Which task is whose: nothing is lost, nothing counts twice, nobody hoards."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from condor_actors.master_worker.dispatch import AHEAD_S, MOST_AHEAD, Dispatch, Task


def dispatch(tasks: int, *workers: str, crash_limit: int = 3) -> Dispatch:
    made = Dispatch(crash_limit, lambda number: True)
    for number in range(1, tasks + 1):
        made.add(Task(number, 0, False, b""))
    for name in workers:
        made.joined(name, (), 0.0)
    return made


def numbers(tasks: list[Task]) -> list[int]:
    return [task.number for task in tasks]


def test_a_worker_that_nobody_knows_gets_one_task() -> None:
    assert numbers(dispatch(100, "a").take("a")) == [1]


def test_a_fast_worker_gets_what_it_computes_in_a_moment_and_no_more_than_its_share() -> None:
    made = dispatch(1000, "a", "b")
    made.measured("a", 1, AHEAD_S / 100, 0.0)
    assert len(made.take("a")) == 100
    made.measured("b", 1, 1e-9, 0.0)
    assert len(made.take("b")) == 500
    assert made.workers["b"].window() == MOST_AHEAD


def test_a_slow_worker_gets_one_task_at_a_time() -> None:
    made = dispatch(10, "a")
    made.measured("a", 1, 3600.0, 0.0)
    assert numbers(made.take("a")) == [1]
    assert made.take("a") == []


def test_a_result_of_a_task_that_was_never_its_own_does_not_count() -> None:
    made = dispatch(2, "a", "b")
    assert numbers(made.take("a")) == [1]
    assert [made.result("b", number) for number in (1, 2, 3)] == [False, False, False]
    assert made.result("a", 1)
    assert made.unfinished == 1


def test_a_result_counts_once_whoever_has_it() -> None:
    made = dispatch(1, "a", "b")
    assert numbers(made.take("a")) == [1]
    made.lost("a", 0.0)
    assert made.overdue(4.9, 5.0) == []
    assert made.overdue(5.0, 5.0) == ["a"]
    assert made.gone("a", by_itself=True) == []
    assert numbers(made.take("b")) == [1]
    assert made.joined("a", [1], 6.0) == [1]
    assert made.result("a", 1)
    assert not made.result("b", 1)
    assert made.unfinished == 0


def test_a_worker_that_comes_back_keeps_what_it_has() -> None:
    made = dispatch(4, "a")
    made.measured("a", 1, 1e-6, 0.0)
    assert numbers(made.take("a")) == [1, 2, 3, 4]
    made.lost("a", 0.0)
    assert made.take("a") == []
    assert made.joined("a", [2, 4], 1.0) == []
    assert list(made.workers["a"].given) == [2, 4]
    assert numbers(made.take("a")) == [1, 3]


def test_what_kills_its_workers_is_given_up() -> None:
    made = dispatch(2, crash_limit=2)
    for name in "ab":
        made.joined(name, (), 0.0)
        assert numbers(made.take(name)) == [1]
        given_up = made.gone(name, by_itself=True)
    assert numbers(given_up) == [1]
    made.joined("c", (), 0.0)
    assert numbers(made.take("c")) == [2]
    assert made.gone("c", by_itself=False) == []
    assert made.tasks[2].crashes == 0


def test_what_waits_behind_something_long_goes_to_others_first() -> None:
    made = dispatch(6, "a")
    made.measured("a", 1, 1e-6, 0.0)
    assert len(made.take("a")) == 6
    made.returned("a", [2, 3, 99])
    made.joined("b", (), 0.0)
    assert made.workers["a"].window() == 1
    assert numbers(made.take("b")) == [2]


def test_cancelled_tasks_are_not_given() -> None:
    made = Dispatch(3, lambda number: number != 1)
    for number in (1, 2):
        made.add(Task(number, 0, False, b""))
    made.joined("a", (), 0.0)
    assert numbers(made.take("a")) == [2]
    assert made.unfinished == 1


def test_only_what_nobody_began_is_dropped_at_the_end() -> None:
    made = dispatch(3, "a", "b")
    made.take("a")
    made.gone("a", by_itself=False)
    assert numbers(made.drop_waiting()) == [2, 3]
    assert numbers(made.take("b")) == [1]
    assert numbers(made.drop()) == [1]
    assert made.unfinished == made.waiting == 0


class AnyOrder(RuleBasedStateMachine):
    """Workers come, go, lose links and answer in any order: each task ends once, and none is forgotten."""

    @initialize()
    def begin(self) -> None:
        self.core = Dispatch(1000, lambda number: True)
        self.added = 0
        self.ended: set[int] = set()
        self.held: dict[str, list[int]] = {}

    @rule(count=st.integers(1, 5))
    def add(self, count: int) -> None:
        for _ in range(count):
            self.added += 1
            self.core.add(Task(self.added, 0, False, b""))

    @rule(name=st.sampled_from("abc"), keep=st.integers(0, 5))
    def join(self, name: str, keep: int) -> None:
        held = self.held.get(name, [])[:keep]
        dropped = self.core.joined(name, held, 0.0)
        self.held[name] = [number for number in held if number not in dropped]

    @rule(name=st.sampled_from("abc"), mean=st.sampled_from([1e-6, 0.03, 10.0]))
    def take(self, name: str, mean: float) -> None:
        self.core.measured(name, 1, mean, 0.0)
        self.held.setdefault(name, []).extend(task.number for task in self.core.take(name))

    @rule(name=st.sampled_from("abc"), lost=st.booleans())
    def answer(self, name: str, lost: bool) -> None:
        if self.held.get(name):
            number = self.held[name].pop(0)
            if not lost:
                assert self.core.result(name, number) == (number not in self.ended)
                self.ended.add(number)
            else:
                self.core.joined(name, self.held[name], 0.0)

    @rule(name=st.sampled_from("abc"), by_itself=st.booleans())
    def leave(self, name: str, by_itself: bool) -> None:
        assert self.core.gone(name, by_itself=by_itself) == []
        if by_itself:
            self.held.pop(name, None)  # else it is only the link that is gone, and results still come

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "core"):
            return
        assert set(self.core.tasks) == set(range(1, self.added + 1)) - self.ended
        owned = [number for worker in self.core.workers.values() for number in worker.given
                 if number in self.core.tasks]
        assert len(owned) == len(set(owned))
        assert len(owned) + len({number for number in self.core._waiting if number in self.core.tasks}) == len(
            self.core.tasks)


TestAnyOrder = AnyOrder.TestCase
