"""What a simulated condor_dagman works with: its line to the schedd, its scripts, its files and its journal.

Theory: the actor that runs a DAG, and the core that decides, are the production's.  What blocks there answers later
here, in the same order: one question to the schedd after the other.  When the line breaks, everything that was asked
over it has no answer, and numbers that were reserved over it mean nothing; so the actor asks again what became of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.python.failure import Failure

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd, quote
from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.rescue import rescue_text
from condor_actors.messages.envelope import Address, AskFailed, Delivery, PeerDown, Refused
from condor_actors.messages.queue import ActOnJobs, JobAction, QueryJobs
from condor_actors.messages.submission import ReserveCluster, SubmitItems, SubmitPage
from condor_actors.simulation.world.dag_outcomes import DEFERRED, Outcomes
from condor_actors.simulation.world.disk import Committer, Kept
from condor_actors.simulation.world.scenario import Submission
from condor_actors.simulation.world.submitted_ads import cluster_ad, proc_ad
from condor_actors.tools.dag.run_files import Ending
from condor_actors.tools.dag.submitter import Prepared, Wanted
from condor_actors.wire.errors import LinkLost, RequestRefused

if TYPE_CHECKING:
    from condor_actors.simulation.world.process import Process

__all__ = ["DagDisk", "DagJournal", "ScheddLine", "SimulatedRunFiles", "SimulatedScripts", "SimulatedSubmitter"]

PATIENCE_S = 30.0


class DagDisk(Kept):
    """A workflow's journal and small files on a disk: lines, and texts by name.

    An operation is a line, or (name, text) for a file, or None, which empties the journal.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.texts: dict[str, str] = {}
        self._platter: tuple[list[str], dict[str, str]] = ([], {})

    def apply(self, operation: Any) -> None:
        """As processes see it."""
        _keep(self.lines, self.texts, operation)

    def settle(self, operation: Any) -> None:
        """On the platter."""
        _keep(*self._platter, operation)

    def revert(self) -> None:
        """Back to the platter."""
        if self.unsynced:
            self.unsynced = []
            lines, texts = self._platter
            self.lines, self.texts = list(lines), dict(texts)


def _keep(lines: list[str], texts: dict[str, str], operation: Any) -> None:
    if operation is None:
        lines.clear()
    elif isinstance(operation, str):
        lines.append(operation)
    else:
        texts[operation[0]] = operation[1]


class DagJournal(Committer):
    """The journal of a process: what is appended is on the platter when `wait` returns."""

    _kept: DagDisk

    def sync(self) -> None:
        """Nobody waits at the end of a turn."""

    def wait(self) -> None:
        """Until it is on the platter."""
        self._disk.check()
        self._kept.sync()


class ScheddLine(Actor):
    """The line to the schedd: one question after the other, each with an answer or without."""

    def __init__(self, schedd: Address) -> None:
        self._schedd = schedd
        self._open: list[Deferred[Any]] = []
        self.broke: Callable[[], None] = lambda: None

    def started(self) -> None:
        """Watch it."""
        self.context.watch(self._schedd.node)

    def receive(self, delivery: Delivery) -> None:
        """It breaks."""
        if isinstance(delivery.message, PeerDown):
            self._lost()

    def ask(self, message: Any) -> Deferred[Any]:
        """The schedd's answer; fails with `RequestRefused` or `LinkLost`."""
        answer: Deferred[Any] = Deferred()
        self.context.as_turn(self._ask)(message, answer)
        return answer

    def _ask(self, message: Any, answer: Deferred[Any]) -> None:
        self._open.append(answer)
        self.context.ask(self._schedd, message, timeout_s=PATIENCE_S,
                         then=lambda delivery: self._answered(answer, delivery.message))

    def _answered(self, answer: Deferred[Any], said: Any) -> None:
        if answer not in self._open:
            return
        if isinstance(said, AskFailed):
            self._lost()
            return
        self._open.remove(answer)
        if isinstance(said, Refused):
            answer.errback(Failure(RequestRefused(said.code, said.text)))
        else:
            answer.callback(said)

    def _lost(self) -> None:
        waiting, self._open = self._open, []
        self.broke()
        for answer in waiting:
            answer.errback(Failure(LinkLost("the line to the schedd broke")))


class SimulatedSubmitter:
    """As :class:`~condor_actors.tools.dag.submitter.Submitter`, with answers that come later.

    Args:
        line: to the schedd.
        outcomes: what the nodes' jobs come to.
        run: which run of the workflow, from 1 on.
        ad: attributes of every job, as texts of expressions.
        place: the number of the schedd's machine; home: where the jobs are submitted.
    """

    def __init__(self, line: ScheddLine, outcomes: Outcomes, run: int, ad: Mapping[str, str], place: int,
                 home: str) -> None:
        self._line = line
        self._outcomes = outcomes
        self._run = run
        self._ad = ad
        self._place = place
        self._home = home
        self._numbers: list[int] = []
        self._prepared: dict[int, tuple[bytes, tuple[bytes, ...], bool]] = {}
        line.broke = self._broke

    def _broke(self) -> None:
        self._numbers, self._prepared = [], {}

    @inlineCallbacks
    def prepare(self, wanted: Sequence[Wanted]) -> Any:
        """Describe jobs and reserve numbers."""
        self._prepared = {}
        found = []
        for each in wanted:
            jobs = 0
            if each.cluster:
                jobs = yield self._jobs_of(each.cluster, each.node.name)
            found.append(jobs)
        missing = found.count(0) - len(self._numbers)
        if missing > 0:
            answer = yield self._line.ask(ReserveCluster(count=missing))
            self._numbers += range(answer.cluster_id, answer.cluster_id + missing)
        return [Prepared(each.number, each.cluster, jobs, there=True) if jobs else self._prepare_one(each)
                for each, jobs in zip(wanted, found, strict=True)]

    def _prepare_one(self, wanted: Wanted) -> Prepared:
        name, attempt = wanted.node.name, int(wanted.macros["RETRY"])
        count, is_late = self._outcomes.jobs(name), self._outcomes.is_late(name)
        submission = Submission(
            when_s=0.0, owner="", machine="", count=count,
            ad={**self._ad, "DAGNodeName": quote(name), "DAGManNodeRetry": str(attempt),
                **({"JobMaterializeMaxIdle": "1"} if is_late else {})},
            each=tuple({"cpu_s": self._outcomes.cpu_s(name, proc),
                        "exit": self._outcomes.status(self._run, name, attempt, f"job{proc}")}
                       for proc in range(count)))
        cluster = self._numbers.pop(0)
        self._prepared[cluster] = (cluster_ad(submission, self._place, self._home), tuple(
            proc_ad(submission, self._place, proc) for proc in range(count)), is_late)
        return Prepared(wanted.number, cluster, count, is_late)

    @inlineCallbacks
    def send(self, prepared: Sequence[Prepared]) -> Any:
        """Send what was prepared: for each an empty text, or why it was refused."""
        problems = []
        for each in prepared:
            ads = self._prepared.pop(each.cluster, None)
            if ads is None:
                raise LinkLost("the line to the schedd broke")
            common, own, is_late = ads
            page: Any = (SubmitItems(cluster_id=each.cluster, page=0, cluster_ad=common, items=own, last=True)
                         if is_late else SubmitPage(cluster_id=each.cluster, page=0, cluster_ad=common, procs=own,
                                                    first_proc=0, last=True))
            try:
                yield self._line.ask(page)
                problems.append("")
            except RequestRefused as error:
                problems.append(str(error))
        return problems

    @inlineCallbacks
    def _jobs_of(self, cluster: int, node: str) -> Any:
        for source in ("queue", "factories", "history"):
            page = yield self._line.ask(QueryJobs(
                source=source, ids=((cluster, -1),), projection=("TotalSubmitProcs",),
                constraint=f"DAGNodeName =?= {quote(node)}"))
            if page.ads:
                return ClassAd.from_bytes(page.ads[0]).get_int("TotalSubmitProcs")
        return 0

    def remove(self, clusters: Sequence[int], reason: str) -> Deferred[Any]:
        """Remove the jobs of clusters."""
        return self._line.ask(ActOnJobs(action=JobAction.REMOVE, reason=reason,
                                        ids=tuple((cluster, -1) for cluster in clusters)))

    def tell_ad(self, attributes: Mapping[str, Any]) -> None:
        """The DAG's own job is not played."""

    def own_ad(self, names: tuple[str, ...] = ()) -> ClassAd:
        """It is not played."""
        return ClassAd()


class SimulatedScripts:
    """As :class:`~condor_actors.tools.dag.script_runner.ScriptRunner`; the first word behind the program is the try."""

    def __init__(self, process: Process, outcomes: Outcomes, run: int, ended: Callable[[int, str, int], None]) -> None:
        self._process = process
        self._outcomes = outcomes
        self._run = run
        self._ended = ended
        self._calls: list[Any] = []
        self._deferred: set[tuple[int, str, int]] = set()

    def run(self, number: int, node: Any, which: str, script: Any, words: Sequence[str], folder: str) -> None:
        """Start a script."""
        attempt = int(words[1])
        status = self._outcomes.status(self._run, node.name, attempt, which)
        if script.defer is not None and (number, which, attempt) not in self._deferred:
            self._deferred.add((number, which, attempt))
            status = DEFERRED
        self._calls.append(self._process.clock.callLater(
            self._outcomes.script_s(node.name, attempt, which), self._ended, number, which, status))

    def kill(self) -> None:
        """Kill all."""
        for call in self._calls:
            if call.active():
                call.cancel()


@attrs.frozen
class SimulatedRunFiles:
    """As :class:`~condor_actors.tools.dag.run_files.RunFiles`, on a simulated disk."""

    process: Process
    journal: DagJournal
    run: int

    def say(self, lines: Sequence[str]) -> None:
        """Lines of dagman.out."""
        for line in lines:
            self.process.machine.pool.note(self.process.title, f"says {line}")

    def tell_states(self, now_s: float, notes: Sequence[Any]) -> None:
        """Nobody reads them."""

    def log_script(self, note: Any, name: str, now_s: float) -> None:
        """Nobody reads it: what follows from a script is in the journal."""

    def write_rescue(self, run: DagRun, ending: Ending, now_s: float) -> str:
        """Write the rescue file that a final node finds."""
        self.journal.commit([(f"rescue{self.run}", rescue_text(run.nodes, now_s, resets_retries=True))])
        self.journal.wait()
        return f"rescue{self.run}"

    def end(self, run: DagRun, ending: Ending, now_s: float) -> str:
        """Write the rescue file, then the metrics."""
        texts = []
        if ending.writes_rescue:
            texts.append((f"rescue{self.run}", rescue_text(run.nodes, now_s, resets_retries=True)))
        self.journal.commit([*texts, (f"metrics{self.run}", str(ending.status))])
        self.journal.wait()
        return texts[0][0] if texts else ""
