"""The users: who submits what, by a tool that speaks to the schedd as ``condor_submit`` does.

Theory: a user's submission counts when the schedd has answered ``Submitted``, and is tried again when nothing was
submitted for certain.  When the answer is lost the user does not know, and submits again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from condor_actors.actors import Actor, World
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Address, Delivery, TimerFired
from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.messages.submission import ClusterReserved, ReserveCluster, SubmitItems, SubmitPage, Submitted
from condor_actors.simulation.world.dag_runs import DagRuns
from condor_actors.simulation.world.post import SimulatedPost
from condor_actors.simulation.world.process import Process
from condor_actors.simulation.world.scenario import LATE, JobRecord, Submission, Wish
from condor_actors.simulation.world.submitted_ads import cluster_ad, proc_ad

if TYPE_CHECKING:
    from condor_actors.simulation.world.pool import Pool

__all__ = ["Users"]

TRY_AGAIN_S = 10.0
PATIENCE_S = 30.0
FIRST_UID = 1001


class UserActor(Actor):
    """One user at one machine."""

    def __init__(self, users: Users, schedd: Address, home: str, submissions: list[Submission], wishes: list[Wish],
                 release_s: float) -> None:
        self._wishes = wishes
        self._release_s = release_s
        self._users = users
        self._schedd = schedd
        self._home = home
        self._place = users.place_of(schedd)
        self._waiting = submissions

    def started(self) -> None:
        """Wait for the first."""
        now_s = self.context.system.clock.seconds()
        for index, submission in enumerate(self._waiting):
            self.context.set_timer(index, max(0.0, submission.when_s - now_s))
        for wish in self._wishes:
            self.context.set_timer(wish, max(0.0, wish.when_s - now_s))
        if self._release_s:
            self.context.set_timer("release", self._release_s)

    def receive(self, delivery: Delivery) -> None:
        """Time to submit, or to do something to the jobs."""
        if not isinstance(delivery.message, TimerFired):
            return
        index = delivery.message.key
        if isinstance(index, Wish):
            self._act(index.action, index.constraint)
        elif index == "release":
            self._act("release", f"JobStatus == {JobStatus.HELD}")
            self._act("continue", f"JobStatus == {JobStatus.SUSPENDED}")
            self.context.set_timer("release", self._release_s)
        else:
            self.context.ask(self._schedd, ReserveCluster(), timeout_s=PATIENCE_S,
                             then=lambda answer: self._reserved(index, answer.message))

    def _act(self, action: str, constraint: str) -> None:
        self.context.ask(self._schedd, ActOnJobs(action=JobAction(action), constraint=constraint),
                         timeout_s=PATIENCE_S, then=lambda answer: None)

    def _reserved(self, index: int, answer: Any) -> None:
        if not isinstance(answer, ClusterReserved):
            self.context.set_timer(index, TRY_AGAIN_S)
            return
        submission = self._waiting[index]
        ad = cluster_ad(submission, self._place, self._home)
        procs = tuple(proc_ad(submission, self._place, proc) for proc in range(submission.count))
        page: SubmitPage | SubmitItems = SubmitPage(
            cluster_id=answer.cluster_id, page=0, cluster_ad=ad, procs=procs, first_proc=0, last=True)
        if LATE in submission.ad:
            page = SubmitItems(cluster_id=answer.cluster_id, page=0, cluster_ad=ad, items=procs, last=True)
        self.context.ask(self._schedd, page, timeout_s=PATIENCE_S,
                         then=lambda answered: self._answered(index, answer.cluster_id, answered.message))

    def _answered(self, index: int, cluster: int, answer: Any) -> None:
        if isinstance(answer, Submitted):
            self._users.submitted(self._waiting[index], cluster)
        else:
            self._users.uncertain(self._waiting[index], cluster)
            self.context.set_timer(index, TRY_AGAIN_S)


class Users:
    """All users of the pool.

    Attributes:
        uids: their numbers.
        waiting: submissions that are not in a queue yet.
        dags: their workflows.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        scenario = pool.scenario
        names = sorted({*(each.owner for each in scenario.submissions), *(each.owner for each in scenario.workflows)})
        self.uids = {name: FIRST_UID + number for number, name in enumerate(names)}
        self.waiting = len(pool.scenario.submissions)
        self.open: dict[str, None] = {}
        self.dags: list[DagRuns] = []
        self._places = tuple(pool.machines)

    def place_of(self, schedd: Address) -> int:
        """The number of the machine of a schedd's socket."""
        return self._places.index(schedd.node.split("/")[2])

    def job_of(self, program: Mapping[str, float], run_id: str) -> str:
        """The job of a run."""
        return f"{self._places[int(program.get('schedd', 0))]}/{run_id.partition('#')[0]}"

    def start(self) -> None:
        """Log every user in."""
        by_place: dict[tuple[str, str], list[Submission]] = {}
        for submission in self._pool.scenario.submissions:
            by_place.setdefault((submission.machine, submission.owner), []).append(submission)
        for flow in self._pool.scenario.workflows:
            by_place.setdefault((flow.machine, flow.owner), [])
        for (machine, owner), submissions in by_place.items():
            self.log_in(machine, owner, submissions)
        for number, workflow in enumerate(self._pool.scenario.workflows):
            self.dags.append(DagRuns(self._pool, workflow, f"dag{number}"))

    def log_in(self, machine_name: str, owner: str, submissions: list[Submission]) -> None:
        """A user sits down at a machine (its keyboard is somewhere else, so that it survives a crash)."""
        pool = self._pool
        machine = pool.machines[machine_name]
        process = Process(machine, "tool", f"user-{owner}", machine.next_pid(), self.uids[owner])
        process.owner = owner
        post = process.post = SimulatedPost(pool.network, process, machine.identity, pool.domain, process.log)
        world = World(reactor_time=process.clock, wall_clock=process.wall, random=process.random, post=post,
                      log=process.log, uid=process.uid, pid=process.pid, new_secret=process.new_secret)
        process.system = world.make_system()
        schedd = Address(f"unix:{machine.folder('run')}/schedd.sock", "schedd")
        scenario = pool.scenario
        wishes = [each for each in scenario.wishes if (each.machine, each.owner) == (machine_name, owner)]
        process.system.spawn("user", lambda: UserActor(self, schedd, f"/home/{owner}", submissions, wishes,
                                                       scenario.release_s))

    def submitted(self, submission: Submission, cluster: int) -> None:
        """The schedd has answered for a cluster."""
        self.waiting -= 1
        pool = self._pool
        for proc in range(submission.count):
            job = f"{submission.machine}/{cluster}.{proc}"
            own = submission.each[proc] if proc < len(submission.each) else {}
            demand_s = float(own.get("cpu_s", submission.cpu_s))
            pool.jobs[job] = JobRecord(job=job, owner=submission.owner, machine=submission.machine, demand_s=demand_s,
                                       submitted_s=pool.clock.now_s)
            self.open[job] = None

    def uncertain(self, submission: Submission, cluster: int) -> None:
        """Nobody knows whether a cluster is in the queue."""

    def completed(self, job: str) -> None:
        """The queue says that a job is done."""
        record = self._pool.jobs.get(job)
        if record is not None and record.completed_s is None:
            record.completed_s = self._pool.clock.now_s
            self.open.pop(job, None)

    def all_done(self) -> bool:
        """Whether everything was submitted and is done."""
        return not self.waiting and not self.open and all(each.is_over for each in self.dags)

    def unfinished(self) -> tuple[str, ...]:
        """What is not done."""
        return (*self.open, *(each.name for each in self.dags if not each.is_over)) or (
            f"{self.waiting} submissions",)
