"""The schedd's core under random histories: counts, autoclusters and the store agree with the jobs at every moment."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.schedd_core import HostHello, ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.schedd.shadow_hosts import HostStarted, StartHost
from condor_actors.effects import Answer, Ask, Persist, Reply, Send
from condor_actors.messages.claim import ClaimGranted, ClaimRefused
from condor_actors.messages.envelope import Address, Delivery, Identity
from condor_actors.messages.negotiate import Match, MatchesMade, NegotiateRequests
from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.messages.shadow_host import HostOrders, RunEnded, ShadowHostHello
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from condor_actors.store.queue_store import QueueStore

ANN = Identity(name="ann@dom", method="local", uid=1000)
SLOT = b'Name = "slot1@e"\nRequirements = true\nCpus = 1\nMemory = 1000\n'
AD = b'Cmd = "/bin/true"\nRequirements = TARGET.Memory >= RequestMemory\nRequestMemory = 10\n'


class SubmitSideMachine(RuleBasedStateMachine):
    """Ann submits, acts, gets matches; runs end this way and that; the schedd is killed now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now_s = 1_000_000.0
        self.told: list[Any] = []
        self.asked: list[Ask] = []
        self.runs: set[str] = set()
        self.completed: set[str] = set()
        self.claims = 0
        self.links = 0
        self.boot()

    def boot(self) -> None:
        self.store = QueueStore(Path(self.folder.name))
        chance = Random(self.links)  # another one in each life
        self.core = ScheddCore(ScheddSettings(uid_domain="dom"), self.store.load(), chance, self.now_s, "v")
        self.asked = []
        self.perform(self.core.start(self.now_s, "<s:1>"))
        self.host_arrives()

    def host_arrives(self) -> None:
        """The owner's host (new, or the one that outlived the schedd) says hello."""
        self.links += 1
        node = f"in:{self.links}"
        hosts = self.core.hosts
        owner = hosts.by_owner.get("ann")
        host_id = owner.host_id if owner is not None else next(iter(hosts.hosts))
        name = "ann" if owner is not None and owner.assigned else ""
        self.send(HostStarted(host_id, 7, "b"))
        self.send(HostHello(ShadowHostHello(host_id=host_id, owner=name, pid=7, runs=tuple(self.runs)), "b"), node)
        self.host_node = node

    def perform(self, effects: tuple[Any, ...]) -> list[Any]:
        operations = [each.operation for each in effects if isinstance(each, Persist)]
        if operations:
            self.store.commit(operations)
        for each in effects:
            if isinstance(each, Send) and isinstance(each.message, HostOrders):
                self.runs |= {start.run_id for start in each.message.starts}
            elif isinstance(each, Ask):
                self.asked.append(each)
            elif isinstance(each, StartHost):
                self.told.append(each)
        return [each.message for each in effects if isinstance(each, Reply)]

    def send(self, message: Any, node: str = "in:999") -> list[Any]:
        self.now_s += 1.0
        delivery = Delivery(message=message, sender=Address(node, "probe"), identity=ANN)
        effects = self.core.handle(delivery, self.now_s)
        self.core.validate()
        return self.perform(effects)

    # ---- what happens

    @rule(procs=st.lists(st.sampled_from([b"", b"JobPrio = 3\n", b"RequestMemory = 20\n", b"JobStatus = 5\n"]),
                         min_size=1, max_size=4))
    def submit(self, procs: list[bytes]) -> None:
        (reserved,) = self.send(ReserveCluster())
        self.send(SubmitPage(cluster_id=reserved.cluster_id, page=0, cluster_ad=AD, procs=tuple(procs), first_proc=0,
                             last=True))

    @precondition(lambda self: self.core.context.queue.clusters)
    @rule(action=st.sampled_from(list(JobAction)), data=st.data())
    def act(self, action: JobAction, data: st.DataObject) -> None:
        cluster = data.draw(st.sampled_from(sorted(self.core.context.queue.clusters)))
        proc = data.draw(st.sampled_from([-1, *self.core.context.queue.clusters[cluster].jobs]))
        self.send(ActOnJobs(action=action, ids=((cluster, proc),)))

    @precondition(lambda self: self.core.context.queue.everybody[1])
    @rule(names=st.sampled_from([(), ("JobPrio",), ("Cmd",)]), patience=st.randoms(use_true_random=False))
    def match(self, names: tuple[str, ...], patience: Random) -> None:
        (answer,) = self.send(NegotiateRequests(cycle=1, submitter="ann@dom", significant_attributes=names))
        matches = tuple(Match(autocluster=each.autocluster, job_id=each.job_id, slot_name="slot1@e",
                              startd_address="<e:1>", slot_ad=SLOT, capability="c") for each in answer.requests)
        self.send(MatchesMade(cycle=1, submitter="ann@dom", matches=matches))

        for question in [each for each in self.asked if each.tag[0] == "claim"]:
            if patience.random() < 0.9:
                self.startd_answers(question, granted=patience.random() < 0.8)

    def startd_answers(self, question: Ask, *, granted: bool) -> None:
        self.asked.remove(question)
        self.claims += 1
        answer: Any = ClaimRefused(slot_name="slot1@e", reason="no")
        if granted:
            answer = ClaimGranted(claim_id=f"c#{self.claims}", secret="s", slot_name="slot1@e", slot_ad=SLOT,
                                  starter_node="<e:2>", lease_s=600.0)
        self.send(Answer(question.tag, answer))

    @precondition(lambda self: self.runs)
    @rule(outcome=st.sampled_from(["exited", "evicted", "failed", "lost", "hold"]), usable=st.booleans(),
          data=st.data())
    def run_ends(self, outcome: str, usable: bool, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.runs)))
        self.runs.discard(run_id)
        ended = RunEnded(run_id=run_id, outcome=outcome, attributes=b"ExitCode = 0\n", claim_usable=usable)
        self.send(ended, self.host_node)
        before = self.rows()
        self.send(ended, self.host_node)
        assert self.rows() == before, "an end that is told twice changes nothing"

    @precondition(lambda self: self.runs)
    @rule()
    def the_schedd_is_killed(self) -> None:
        self.store.close()
        self.boot()

    # ---- what holds

    def rows(self) -> tuple[Any, ...]:
        found = self.store.load()
        return found.jobs, found.runs, len(list(self.store.history().rows((), "", 0)))

    @invariant()
    def counts_agree(self) -> None:
        queue = self.core.context.queue
        real = [0] * 8
        for job in queue.jobs():
            real[job.status] += 1
            assert job.ad.get_int("JobStatus") == job.status
        assert real == queue.everybody == queue.counts("ann")

    @invariant()
    def autoclusters_agree(self) -> None:
        waiting: dict[int, int] = {}
        for job in self.core.context.queue.jobs():
            if job.order is not None:
                assert job.ready
                waiting[job.autocluster] = waiting.get(job.autocluster, 0) + 1
            elif job.ready:
                assert job.not_before_s > 0.0
        assert waiting == {number: each.waiting for number, each in self.core.context.autoclusters.by_number.items()
                           if each.waiting}

    @invariant()
    def the_store_agrees(self) -> None:
        found = self.store.load()
        mine = {(job.cluster.number, job.proc): job for job in self.core.context.queue.jobs()}
        assert {(row.cluster, row.proc) for row in found.jobs} == mine.keys()
        for row in found.jobs:
            job = mine[row.cluster, row.proc]
            ad = ClassAd.from_bytes(row.ad)
            ad.parent = job.cluster.ad
            assert ad.get_int("JobStatus") == job.status
        assert {row.run_id for row in found.runs} == set(self.core.runs.runs)
        assert {row.claim_id for row in found.claims} == set(self.core.claims.held)

    @invariant()
    def one_run_a_claim_and_a_job(self) -> None:
        runs = self.core.runs.runs.values()
        assert len({run.job for run in runs}) == len(runs)
        assert all(run.claim is None or run.claim.run_id == run.run_id for run in runs)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestSubmitSide = SubmitSideMachine.TestCase
TestSubmitSide.settings = settings(max_examples=60, stateful_step_count=30, deadline=None,
                                   suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
