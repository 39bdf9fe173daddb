"""Simulated workflows: a condor_dagman that is started again whenever it dies, as the schedd does with its job.

Theory: what decides is the production's: the reader of DAG files, the core, the actor, its journal's lines, the rescue
file.  A workflow that has failed is submitted again by its user, who has mended it a little; so it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredLock

from condor_actors.actors import World
from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.definitions import Dag
from condor_actors.dag.reader import apply_rescue, read_dag, refuse_cycle
from condor_actors.dag.run_events import event_of
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.messages.envelope import Address
from condor_actors.simulation.world.dag_edges import (
    DagDisk,
    DagJournal,
    ScheddLine,
    SimulatedRunFiles,
    SimulatedScripts,
    SimulatedSubmitter,
)
from condor_actors.simulation.world.dag_outcomes import Outcomes
from condor_actors.simulation.world.disk import LogOnDisk
from condor_actors.simulation.world.post import SimulatedPost
from condor_actors.simulation.world.process import Process
from condor_actors.simulation.world.scenario import Workflow
from condor_actors.tools.dag.around import Around
from condor_actors.tools.dag.dag_actor import DagActor
from condor_actors.tools.dag.run_files import Ending
from condor_actors.tools.dag.throttles import Throttles
from condor_actors.userlog.reader import EventReader

if TYPE_CHECKING:
    from condor_actors.simulation.world.pool import Pool

__all__ = ["DagRuns"]

KEEPER_S = 2.0
START_S = 0.3
LOOK_S = 0.5
MOST_RUNS = 12
AGAIN = 3


class DagRuns:
    """The runs of one workflow.

    Attributes:
        name, workflow: what it is; outcomes: what its nodes come to.
        run: the number of the one that is under way, from 1 on.
        is_over: whether it has succeeded.
        dag: as written.
    """

    def __init__(self, pool: Pool, workflow: Workflow, name: str) -> None:
        self._pool = pool
        self.workflow = workflow
        self.name = name
        self.outcomes = Outcomes(workflow.seed)
        self.run = 1
        self.is_over = False
        self.dag = self._read()
        self._machine = pool.machines[workflow.machine]
        self._process: Process | None = None
        pool.clock.callLater(workflow.when_s, self._keep)

    def _read(self) -> Dag:
        dag = read_dag([next(iter(self.workflow.files))], Reading(self.workflow.files.__getitem__))
        refuse_cycle(dag)
        return dag

    @property
    def log(self) -> str:
        """The nodes' event log."""
        return f"/home/{self.workflow.owner}/{self.name}.nodes.log"

    def _keep(self) -> None:
        """Have a process run it, and look again later."""
        machine = self._machine
        if machine.powered and not machine.is_asleep and (self._process is None or not self._process.alive):
            self._start()
        if not self.is_over:
            self._pool.clock.callLater(KEEPER_S, self._keep)

    def _start(self) -> None:
        machine, owner = self._machine, self.workflow.owner
        process = self._process = Process(machine, "dagman", self.name, machine.next_pid(), self._pool.uid_of(owner))
        process.owner = owner
        machine.processes[process.pid] = process
        self._pool.note(process.title, "starts")
        process.clock.callLater(START_S, self._begin, process)

    def _begin(self, process: Process) -> None:
        kept: DagDisk = self._machine.disk.file(f"/home/{self.workflow.owner}/{self.name}", DagDisk)
        journal = DagJournal(self._machine.disk, process, kept)
        status = kept.texts.get(f"metrics{self.run}")
        if status is not None:
            self._ended(process, int(status))
            return
        run, offset = self._recovered(kept, journal)
        _Dagman(self._pool, self, process, run, journal).begin(offset, lambda code: self._over(process, journal, code))

    def _recovered(self, kept: DagDisk, journal: DagJournal) -> tuple[DagRun, int]:
        """The run as its journal left it, or a new one; and how much of the log it has read."""
        dag = self._read()
        rescue = kept.texts.get(f"rescue{self.run - 1}", "")
        if rescue:
            apply_rescue(dag, rescue, "rescue")
        flow = self.workflow
        run = DagRun(dag, RunSettings(jobs=flow.jobs, idle=flow.idle, pre=flow.pre, post=flow.post))
        if not kept.lines or kept.lines[0] != f"run {self.run}":
            log = self._machine.disk.files.get(self.log)
            if log is not None:
                log.empty()
            journal.commit([None, f"run {self.run}"])
            return run, 0
        offset = 0
        for line in kept.lines[1:]:
            if line.startswith("@ "):
                offset = int(line[2:])
            else:
                run.handle(event_of(line))
        return run, offset

    def _over(self, process: Process, journal: DagJournal, status: int) -> None:
        if status < 0:
            process.exit(AGAIN)
            return
        journal.commit([None])
        self._ended(process, status)

    def _ended(self, process: Process, status: int) -> None:
        """A run has ended: on with the next, or that was all."""
        self._pool.note(process.title, f"has ended run {self.run} with {status}")
        process.exit(status)
        self.is_over = status == 0
        self.run += not self.is_over
        if self.run > MOST_RUNS:
            self._pool.violate(f"the workflow {self.name} has failed {MOST_RUNS} times")


class _Dagman:
    """One process of condor_dagman."""

    def __init__(self, pool: Pool, runs: DagRuns, process: Process, run: DagRun, journal: DagJournal) -> None:
        self._pool = pool
        self._runs = runs
        self._process = process
        self._run = run
        self._journal = journal

    def begin(self, offset: int, over: Callable[[int], None]) -> None:
        """Run it from here; ``over`` is called with its status."""
        process, runs, pool = self._process, self._runs, self._pool
        machine = process.machine
        post = process.post = SimulatedPost(pool.network, process, machine.identity, pool.domain, process.log)
        world = World(reactor_time=process.clock, wall_clock=process.wall, random=process.random, post=post,
                      log=process.log, uid=process.uid, pid=process.pid, new_secret=process.new_secret)
        system = process.system = world.make_system(commit=self._journal.commit)
        if pool.raises:
            pool.trips.watch(process)
        if pool.scenario.checks:
            pool.checkers.listen(process)
        line = ScheddLine(Address(f"unix:{machine.folder('run')}/schedd.sock", "schedd"))
        system.spawn("line", lambda: line)
        actor = DagActor(self._run, self._around(line, over))
        system.spawn("dagman", lambda: actor, restart="temporary", inbox_limit=1_000_000)
        log = machine.disk.file(runs.log, lambda: LogOnDisk(lambda data: pool.logged(machine, runs.log, data)))
        self._look(log, EventReader(), offset, actor.context.as_turn(actor.log_read))

    def _around(self, line: ScheddLine, over: Callable[[int], None]) -> Around:
        process, runs = self._process, self._runs
        owner = runs.workflow.owner
        ad = {"DAGManJobId": str(runs.run), "DagRuns": f'"{runs.name}"', "UserLog": f'"{runs.log}"'}
        submitter: Any = SimulatedSubmitter(
            line, runs.outcomes, runs.run, ad, tuple(self._pool.machines).index(process.machine.name), f"/home/{owner}")
        files: Any = SimulatedRunFiles(process, self._journal, runs.run)
        scripts: Any = lambda ended, failed: SimulatedScripts(process, runs.outcomes, runs.run, ended)  # noqa: E731
        ending = Ending(status=0, dag_id=runs.run, parent_id=0, began_s=0.0, rescue_read=0, version="", metrics_form=2,
                        graph=False, most_rescues=100, resets_retries=True, writes_rescue=False)
        schedd, disk = DeferredLock(), DeferredLock()
        limits = Throttles.of_settings(self._run.nodes.settings, 5)

        def in_schedd(function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
            return schedd.run(function, *arguments)

        def in_files(function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
            return disk.run(function, *arguments)

        return Around(submitter=submitter, files=files, in_schedd=in_schedd, in_files=in_files, scripts=scripts,
                      sync=self._journal.wait, macros={}, records_retry=True, cwd="/", throttles=limits,
                      interval_s=60.0, table_s=0.0, removes=True, priority=0, ending=ending, over=over)

    def _look(self, log: LogOnDisk, reader: EventReader, offset: int, tell: Callable[..., None]) -> None:
        """Read what has come to the log; again later."""
        data = bytes(log.seen[offset:])
        if data:
            offset += len(data)
            tell(list(reader.feed(data)), offset - reader.rest_bytes)
        self._process.clock.callLater(LOOK_S, self._look, log, reader, offset, tell)
