"""The actor that runs a DAG: in which order it has things done."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred, succeed

from condor_actors.classads import ClassAd
from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_effects import Ended
from condor_actors.dag.run_events import ThrottlesSet, line_of
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.messages.envelope import TimerFired
from condor_actors.tools.dag.dag_actor import DagActor
from condor_actors.tools.dag.run_files import Ending
from condor_actors.tools.dag.throttles import Throttles

ENDING = Ending(status=0, dag_id=1, parent_id=0, began_s=0.0, rescue_read=0, version="", metrics_form=2, graph=False,
                most_rescues=100, resets_retries=True, writes_rescue=False)


class Bench:
    """An actor whose files are written when a test says so."""

    def __init__(self, text: str) -> None:
        self.asked: list[str] = []
        self.ad, self.journal = ClassAd(), list[str]()
        files = SimpleNamespace(write_status="status", end="end", say="say", tell_states="states")
        around: Any = SimpleNamespace(
            files=files, in_files=self.in_files, in_schedd=self.in_schedd, interval_s=1.0,
            ending=ENDING, submitter=SimpleNamespace(tell_ad=lambda told: None, remove=None, own_ad=self.own_ad),
            table_s=0.0, throttles=Throttles.of_settings(RunSettings(), 100))
        self.actor = DagActor(DagRun(read_dag(["x"], Reading({"x": text}.__getitem__)), RunSettings()), around)
        context: Any = SimpleNamespace(now_s=lambda: 100.0, set_timer=lambda *given: None, has_timer=lambda key: True,
                                       defer_to_turn=lambda deferred, call: deferred.addBoth(call),
                                       persist=self.journal.append, after_commit=lambda call: None)
        self.actor.context = context

    def own_ad(self, names: tuple[str, ...]) -> ClassAd:
        """That of the DAG's own job."""
        return self.ad.project(names)

    def in_schedd(self, function: Any, *given: Any) -> Deferred[Any]:
        return succeed(None if function is None else function(*given))

    def in_files(self, function: Any, *given: Any) -> Deferred[Any]:
        self.asked.append(str(function))
        return Deferred()

    def fire(self, timer: str) -> None:
        delivery: Any = SimpleNamespace(message=TimerFired(key=timer))
        self.actor.receive(delivery)


def test_no_report_is_written_behind_that_of_the_end() -> None:
    """A status file of a DAG that had ended said that it was under way, when the report's time came meanwhile."""
    bench = Bench("JOB A a.sub\nNODE_STATUS_FILE status 0 ALWAYS-UPDATE\n")
    bench.fire("report")
    assert bench.asked[-1] == "status"
    end: Callable[[Ended], None] = bench.actor._end
    end(Ended(status=0, rescue=False, services=()))
    before = bench.asked.count("status")
    assert "end" in bench.asked
    bench.fire("report")
    assert bench.asked.count("status") == before


def test_limits_that_change_while_it_runs() -> None:
    """The ad of the DAG's own job has them; what can be no limit is ignored."""
    bench = Bench("JOB A a.sub\n")
    bench.fire("report")
    assert bench.journal == [], "the ad says nothing of them yet"
    bench.ad.update({"DAGMan_MaxJobs": 3, "DAGMan_MaxIdle": -1, "DAGMan_MaxSubmitsPerInterval": 0})
    bench.fire("report")
    idle = RunSettings().idle
    assert bench.journal == [line_of(ThrottlesSet(3, idle, RunSettings().pre, RunSettings().post, RunSettings().hold))]
    assert bench.actor.core.nodes.settings.jobs == 3
    bench.fire("report")
    assert len(bench.journal) == 1, "nothing has changed"
    assert any("Maximum Submitted Nodes-------: 3" in line for line in bench.actor._lines)
