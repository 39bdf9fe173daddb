"""Random DAGs under random interleavings, with crashes at any event, against a model that only knows the outcomes."""

from __future__ import annotations

import random

import attrs
import pytest

from condor_actors.dag.dag_run import DagRun, Phase
from condor_actors.dag.definitions import Dag, Kind
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_effects import (
    Ended,
    KillScripts,
    Note,
    RemoveJobs,
    RunEffect,
    RunScript,
    SaveFile,
    SetTimer,
    Submit,
    WriteRescue,
)
from condor_actors.dag.run_events import (
    REMOVED,
    SUBMIT_FAILED,
    Began,
    ClusterLeft,
    Halted,
    HoldEnded,
    JobChanged,
    JobEnded,
    JobMade,
    PostEnded,
    PreEnded,
    RemovedByUser,
    Reserved,
    Resumed,
    RunEvent,
    ScriptDue,
    SubmitDue,
    SubmitFailed,
    Submitted,
    ThrottlesSet,
    event_of,
    line_of,
)
from condor_actors.dag.run_state import NodeState, RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.dag.job_events import CHANGES
from condor_actors.tools.dag.log_recovery import recover
from condor_actors.userlog.reader import Event


def make(rng: random.Random) -> tuple[Dag, str]:
    """A DAG of up to 14 nodes with a bit of everything."""
    count = rng.randrange(1, 15)
    lines = []
    for node in range(count):
        noop, done = rng.random() < 0.15, rng.random() < 0.05
        lines.append(f"JOB n{node} x.sub{' NOOP' * noop}{' DONE' * done}")
        if rng.random() < 0.3:
            lines.append(f"SCRIPT {'DEFER 9 1 ' if rng.random() < 0.3 else ''}PRE n{node} pre")
            if rng.random() < 0.5:
                lines.append(f"PRE_SKIP n{node} 5")
        if rng.random() < 0.3:
            lines.append(f"SCRIPT POST n{node} post")
        if rng.random() < 0.2:
            lines.append(f"SCRIPT HOLD n{node} hold")
        if rng.random() < 0.4:
            lines.append(f"RETRY n{node} {rng.randrange(4)}{' UNLESS-EXIT 3' if rng.random() < 0.3 else ''}")
        if rng.random() < 0.3:
            lines.append(f"CATEGORY n{node} c")
        if rng.random() < 0.3:
            lines.append(f"PRIORITY n{node} {rng.randrange(-3, 4)}")
        if rng.random() < 0.2:
            lines.append(f"TOLERANCE n{node} {rng.choice(['1', '50%'])} {rng.choice(['WAIT', 'FAIL-FAST', ''])}")
    for child in range(1, count):
        for parent in range(child):
            if rng.random() < 0.25:
                lines.append(f"{'WEAK ' if rng.random() < 0.2 else ''}PARENT n{parent} CHILD n{child}")
    if count > 5 and rng.random() < 0.5:
        lines.append(f"PARENT n0 n1 CHILD n{count - 1} n{count - 2}")
    if rng.random() < 0.5:
        lines.append(f"MAXJOBS c {rng.randrange(1, 3)}")
    if rng.random() < 0.3:
        lines.append("FINAL last x.sub\n" + ("SCRIPT POST last post" if rng.random() < 0.5 else ""))
    text = "\n".join(lines)
    return read_dag(["x.dag"], Reading(lambda _: text)), text


@attrs.define
class World:
    """Everything around a run: what a part of a node comes to depends on node and attempt alone; when, on chance.

    ``queue``: the clusters that the schedd knows, which survive a crash; ``successes``: of each node's whole runs.
    """

    dag: Dag
    seed: int
    rng: random.Random
    settings: RunSettings
    journal: list[str] = attrs.Factory(list)
    queue: dict[int, tuple[int, int, int]] = attrs.Factory(dict)  # cluster: node, attempt, jobs
    ended_jobs: set[tuple[int, int]] = attrs.Factory(set)
    submitted_for: dict[tuple[int, int], int] = attrs.Factory(dict)
    next_cluster: int = 1
    made: dict[int, int] = attrs.Factory(dict)  # of the clusters that make their jobs as they are needed
    left: set[int] = attrs.Factory(set)
    log: list[Event] = attrs.Factory(list)
    reads_log: bool = False

    def outcome(self, node: int, attempt: int, part: str) -> int:
        """The status of a part: mostly 0."""
        rng = random.Random(f"{self.seed}/{node}/{attempt}/{part}")
        return rng.choice([0] * 7 + [1, 3, 5])

    def jobs(self, node: int, attempt: int) -> int:
        return random.Random(f"{self.seed}/{node}/{attempt}/jobs").choice([1, 1, 1, 3])

    def is_late(self, node: int, attempt: int) -> bool:
        return random.Random(f"{self.seed}/{node}/{attempt}/late").random() < 0.3

    def refuses(self, node: int, attempt: int) -> bool:
        return random.Random(f"{self.seed}/{node}/{attempt}/refuses").random() < 0.04

    def model(self) -> dict[str, str]:
        """Which nodes succeed, fail, never begin; computed from the outcomes alone."""
        results: dict[int, str] = {}
        for number, node in enumerate(self.dag.nodes):
            if node.kind is Kind.FINAL:
                continue
            if node.done:
                results[number] = "DONE"
                continue
            above = [(results[parent], weak) for parent in range(number)
                     for child, weak in self.dag.graph.children_of(parent) if child == number]
            if any(result == "FUTILE" or (result == "FAILED" and not weak) for result, weak in above):
                results[number] = "FUTILE"
                continue
            results[number] = self.model_of(number)
        return {self.dag.nodes[number].name: result for number, result in results.items()}

    def model_of(self, number: int) -> str:
        node = self.dag.nodes[number]
        for attempt in range(node.retries + 1):
            status = self.model_attempt(number, attempt)
            if status == 0:
                return "DONE"
            if status == node.unless_exit:
                break
        return "FAILED"

    def model_attempt(self, number: int, attempt: int) -> int:
        node = self.dag.nodes[number]
        if node.pre is not None:
            status = self.outcome(number, attempt, "pre")
            if status and status == node.pre_skip:
                return 0
            if status:
                runs_post = self.settings.always_post and node.post is not None
                return self.outcome(number, attempt, "post") if runs_post else status
        if node.noop:
            status = 0
        else:
            status = SUBMIT_FAILED if self.refuses(number, attempt) else self.model_jobs(number, attempt)
        return self.outcome(number, attempt, "post") if node.post is not None else status

    def model_jobs(self, number: int, attempt: int) -> int:
        """A status that is not 0 stands for all of them: which of several jobs failed first is chance."""
        count = self.jobs(number, attempt)
        bad = [status for proc in range(count) if (status := self.outcome(number, attempt, f"job{proc}"))]
        allowed, share = self.dag.nodes[number].tolerance or (self.settings.tolerance, False)
        return bad[0] if len(bad) > (count * allowed // 100 if share else allowed) else 0


def drive(world: World, crashes: float, disturbances: float = 0.0) -> DagRun:
    """Run it to its end; what was decided and not journaled yet is lost in a crash.

    ``disturbances``: how often someone halts it, lets it go on, or removes it.
    """
    rng = world.rng
    run = DagRun(world.dag, world.settings)
    pending: list[RunEffect] = []
    live: dict[int, int] = {}
    deferred: set[tuple[int, str, int]] = set()

    def tell(event: RunEvent) -> None:
        world.journal.append(line_of(event))
        pending.extend(run.handle(event))
        run.validate()

    tell(Began())
    for _ in range(20_000):
        if run.phase is Phase.OVER:
            return run
        if rng.random() < crashes:
            run = again(world)
            run.validate()
            pending = list(run.resume())
            live = {cluster: cluster for cluster in world.queue}
            continue
        if rng.random() < disturbances:
            tell(rng.choice([Halted(), Halted(), Resumed(), Resumed(), RemovedByUser()]))
            continue
        acts = [*range(len(pending)), *(("job", cluster) for cluster in live)]
        assert acts, (world.seed, [run.nodes.state(n) for n in range(len(world.dag.nodes))])
        act = rng.choice(acts)
        if isinstance(act, tuple):
            job_event(world, run, act[1], live, tell)
            continue
        effect = pending.pop(act)
        if isinstance(effect, Submit):
            submit(world, run, effect, live, tell)
        elif isinstance(effect, RunScript):
            script(world, run, effect, deferred, tell)
        elif isinstance(effect, SetTimer):
            tell(SubmitDue(effect.node) if effect.what == "submit" else ScriptDue(effect.node, effect.what))
        elif isinstance(effect, RemoveJobs):
            for cluster in effect.clusters:
                remove(world, cluster, tell)
                live.pop(cluster, None)
        else:
            assert isinstance(effect, (Note, SaveFile, KillScripts, WriteRescue, Ended))
    raise AssertionError(f"seed {world.seed} does not end")


def again(world: World) -> DagRun:
    """The run after a crash: from its journal, or from the jobs' event log."""
    if not world.reads_log:
        run = DagRun(world.dag, world.settings)
        for line in world.journal:
            run.handle(event_of(line))
        return run
    limits = ThrottlesSet(*(getattr(world.settings, name) for name in ("jobs", "idle", "pre", "post", "hold")))
    run = DagRun(world.dag, attrs.evolve(world.settings, jobs=0, idle=0, pre=0, post=0, hold=0))
    world.journal.clear()
    recover(run, "log", lambda: world.log, lambda event: world.journal.append(line_of(event)), limits)
    return run


def remove(world: World, cluster: int, tell) -> None:
    _, _, jobs = world.queue.get(cluster, (0, 0, 0))
    for proc in range(world.made.get(cluster, jobs)):
        end(world, cluster, proc, REMOVED, tell)
    if cluster in world.made:
        leave(world, cluster, tell)


def leave(world: World, cluster: int, tell) -> None:
    node, _, jobs = world.queue[cluster]
    made = world.made[cluster]
    world.left.add(cluster)
    how = "Complete" if made == jobs else "Incomplete"
    logged(world, JobEventType.CLUSTER_REMOVE, cluster, -1, f"\tMaterialized {made} jobs from {made} items.\t{how}")
    tell(ClusterLeft(node, cluster, made, made == jobs))


def logged(world: World, number: int, cluster: int, proc: int, text: str) -> None:
    world.log.append(Event(number, cluster, proc, 0, f"{number:03d} event\n{text}\n"))


def submit(world: World, run: DagRun, effect: Submit, live, tell) -> None:
    node, attempt = effect.node, run.nodes.attempt_of(effect.node)
    if run.nodes.state(node) is not NodeState.SUBMITTING:  # it was stopped meanwhile
        return
    if effect.cluster in world.queue:  # the answer was lost: it is found again
        tell(Submitted(node, effect.cluster, world.queue[effect.cluster][2]))
        return
    if world.refuses(node, attempt):
        tell(SubmitFailed(node, world.rng.random() < 0.5))
        return
    cluster, world.next_cluster = world.next_cluster, world.next_cluster + 1
    is_late = world.is_late(node, attempt)
    tell(Reserved(node, cluster, is_late))
    world.queue[cluster] = (node, attempt, world.jobs(node, attempt))
    assert (node, attempt) not in world.submitted_for, "submitted twice"
    name = f"    DAG Node: {world.dag.nodes[node].name}"
    if is_late:
        world.made[cluster] = 0
        logged(world, JobEventType.CLUSTER_SUBMIT, cluster, -1, name)
    for proc in range(0 if is_late else world.jobs(node, attempt)):
        logged(world, JobEventType.SUBMIT, cluster, proc, name)
    world.submitted_for[node, attempt] = cluster
    live[cluster] = cluster
    if world.rng.random() < 0.1:
        return_lost(world, run, effect)
        return
    tell(Submitted(node, cluster, world.jobs(node, attempt)))


def return_lost(world: World, run: DagRun, effect: Submit) -> None:
    """The answer is lost; it is asked for at once, by the number that was reserved."""
    cluster = run.nodes.active[effect.node].cluster
    event = Submitted(effect.node, cluster, world.queue[cluster][2])
    world.journal.append(line_of(event))
    run.handle(event)


def job_event(world: World, run: DagRun, cluster: int, live, tell) -> None:
    node, attempt, jobs = world.queue[cluster]
    if run.nodes.state(node) is NodeState.SUBMITTING:
        return
    made = world.made.get(cluster, jobs)
    left = [proc for proc in range(made) if (cluster, proc) not in world.ended_jobs]
    if made < jobs and (not left or world.rng.random() < 0.4) and cluster not in world.left:
        world.made[cluster] += 1
        logged(world, JobEventType.SUBMIT, cluster, made, f"    DAG Node: {world.dag.nodes[node].name}")
        tell(JobMade(node, cluster, made))
        return
    if not left and cluster in world.made and cluster not in world.left:
        leave(world, cluster, tell)
        return
    if not left:
        for proc in range(jobs):  # told again: a DAGMan that read the log before a crash reads it once more
            end(world, cluster, proc, world.outcome(node, attempt, f"job{proc}"), tell)
        live.pop(cluster, None)
        return
    proc = world.rng.choice(left)
    if world.rng.random() < 0.5:
        event = world.rng.choice([JobEventType.EXECUTE, JobEventType.JOB_EVICTED, JobEventType.JOB_HELD])
        logged(world, event, cluster, proc, "")
        tell(JobChanged(node, cluster, proc, CHANGES[event]))
    else:
        world.ended_jobs.add((cluster, proc))
        end(world, cluster, proc, world.outcome(node, attempt, f"job{proc}"), tell)


def end(world: World, cluster: int, proc: int, status: int, tell) -> None:
    node = world.queue[cluster][0]
    world.ended_jobs.add((cluster, proc))
    number = JobEventType.JOB_ABORTED if status == REMOVED else JobEventType.JOB_TERMINATED
    logged(world, number, cluster, proc, f"\t(1) Normal termination (return value {status})")
    tell(JobEnded(node, cluster, proc, status))


def script(world: World, run: DagRun, effect: RunScript, deferred, tell) -> None:
    node, attempt = effect.node, run.nodes.attempt_of(effect.node)
    if effect.which == "hold":
        tell(HoldEnded(node))
    elif effect.which == "pre":
        found = world.dag.nodes[node].pre
        if found is not None and found.defer is not None and (node, "pre", attempt) not in deferred:
            deferred.add((node, "pre", attempt))
            tell(PreEnded(node, 9))
        else:
            status = world.outcome(node, attempt, "pre")
            if status and status == world.dag.nodes[node].pre_skip:
                logged(world, JobEventType.PRESKIP, 0, 0, f"    DAG Node: {world.dag.nodes[node].name}")
            tell(PreEnded(node, status))
    else:
        status = world.outcome(node, attempt, "post")
        logged(world, JobEventType.POST_SCRIPT_TERMINATED, 0, 0, f"\t(1) Normal termination (return value {status})\n"
               f"    DAG Node: {world.dag.nodes[node].name}")
        tell(PostEnded(node, status))


@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("crashes", [0.0, 0.05])
def test_the_outcome_is_that_of_the_model(block: int, crashes: float) -> None:
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(seed)
        dag, text = make(rng)
        settings = RunSettings(jobs=rng.choice([0, 1, 3]), idle=rng.choice([0, 1, 4]), pre=rng.choice([0, 1]),
                               post=rng.choice([0, 1]), always_post=rng.random() < 0.3,
                               fails_fast=False, holds=0, depth_first=rng.random() < 0.3,
                               retry_first=rng.random() < 0.3, submit_attempts=2)
        for node in dag.nodes:
            node.fails_fast = False
        world = World(dag, seed, rng, settings)
        run = drive(world, crashes)
        expected = world.model()
        found = {node.name: run.nodes.state(number).name for number, node in enumerate(dag.nodes)
                 if node.kind is not Kind.FINAL}
        # Of several jobs any may fail first, so UNLESS-EXIT may end a node earlier or not: these are not compared.
        if not any(node.unless_exit is not None for node in dag.nodes):
            assert found == expected, f"seed {seed}\n{text}"
        assert "WAITING" not in found.values()
        if dag.final >= 0:
            assert run.nodes.state(dag.final).name == world.model_of(dag.final), f"seed {seed}"


@pytest.mark.parametrize("block", range(4))
def test_it_ends_however_it_is_disturbed(block: int) -> None:
    """Nothing is submitted twice, what has succeeded would have succeeded anyway, the rest is for a rescue file."""
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(seed)
        dag, text = make(rng)
        for node in dag.nodes:
            node.fails_fast = False
            if rng.random() < 0.1 and node.kind is not Kind.FINAL:
                node.abort_on = (1, None)
        settings = RunSettings(jobs=rng.choice([0, 1, 3]), pre=rng.choice([0, 1]), post=rng.choice([0, 1]), holds=0,
                               fails_fast=False, submit_attempts=2)
        world = World(dag, seed, rng, settings)
        run = drive(world, 0.03, 0.02)
        expected = world.model()
        for number, node in enumerate(dag.nodes):
            if node.kind is not Kind.FINAL and run.nodes.state(number) is NodeState.DONE and node.unless_exit is None:
                assert expected[node.name] == "DONE", f"seed {seed}\n{text}"
        if dag.final >= 0:
            assert run.nodes.state(dag.final).name in ("DONE", "FAILED"), f"seed {seed}\n{text}"


class LoggedWorld(World):
    """A world in which all that comes to pass stands in the jobs' event log: a failed PRE script does not."""

    def outcome(self, node: int, attempt: int, part: str) -> int:
        status = super().outcome(node, attempt, part)
        return status if part != "pre" or status == self.dag.nodes[node].pre_skip else 0

    def refuses(self, node: int, attempt: int) -> bool:
        return False


@pytest.mark.parametrize("block", range(6))
def test_the_event_log_alone_makes_the_same_run(block: int) -> None:
    """Whenever it crashes and its journal is lost, the log tells enough: nothing is submitted twice, all ends alike."""
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(seed)
        dag, text = make(rng)
        for node in dag.nodes:
            node.fails_fast = False
        settings = RunSettings(jobs=rng.choice([0, 1, 3]), idle=rng.choice([0, 1, 4]), pre=rng.choice([0, 1]),
                               post=rng.choice([0, 1]), holds=0, fails_fast=False, submit_attempts=2)
        world = LoggedWorld(dag, seed, rng, settings, reads_log=True)
        run = drive(world, 0.05)
        if not any(node.unless_exit is not None for node in dag.nodes):
            found = {node.name: run.nodes.state(number).name for number, node in enumerate(dag.nodes)
                     if node.kind is not Kind.FINAL}
            assert found == world.model(), f"seed {seed}\n{text}"
