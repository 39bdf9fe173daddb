"""Gangs at the schedd: claimed all or none, begun in one turn, ended as a whole; core against plain values."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.gangs.gang import (
    TABLE,
    GangState,
    MemberBroke,
    MemberExited,
    gang_of,
    member_id,
    member_text,
    node_of,
)
from condor_actors.cores.schedd.gangs.groups import assignment
from condor_actors.cores.schedd.job_attributes import PRIVATE, _hidden
from condor_actors.cores.schedd.queue_operations import (
    DropRun,
    InsertJobs,
    QueueSnapshot,
    SaveClaim,
    SaveCluster,
    SaveCounter,
    SaveJob,
    SaveRun,
)
from condor_actors.cores.schedd.schedd_core import ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.effects import Answer, Ask
from condor_actors.messages.claim import ClaimGranted, ClaimRefused, ClaimRevoked, ReleaseClaim
from condor_actors.messages.envelope import Identity, Refused, TimerFired
from condor_actors.messages.negotiate import Match, MatchesMade
from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import RunEnded
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from tests.unit.cores.schedd.test_claims_and_runs import AD, ANN, LEASE_S, Schedd

EXITED = ClassAd({"ExitCode": 0, "ExitBySignal": False}).to_bytes()


def gang_ad(nodes: int, more: bytes = b"") -> bytes:
    return b"JobUniverse = 11\nMinHosts = %d\nMaxHosts = %d\n" % (nodes, nodes) + more


def slot(number: int) -> bytes:
    return (f'Name = "slot1@e{number}"\nMachine = "e{number}"\nRequirements = true\nCpus = 1\nMemory = 1000\n').encode()


class Gangs(Schedd):
    """A schedd, and a machine for each claim."""

    def match(self, count: int = 99) -> list[Any]:
        """At most so many of the slots that are wanted; the tags of the questions to their startds."""
        wanted = [each for each in self.requests() for _ in range(each.count)][:count]
        self.send(MatchesMade(cycle=1, submitter="ann@dom", matches=tuple(
            Match(autocluster=each.autocluster, job_id=each.job_id, slot_name=f"slot1@e{n}",
                  startd_address=f"<e{n}:1>", slot_ad=slot(n), capability="c")
            for n, each in enumerate(wanted, self.count + 1))))
        return [each.tag for each in self.out if isinstance(each, Ask) and each.tag[0] == "claim"]

    def machine(self, tag: Any) -> int:
        """The number of the machine that was asked."""
        return int(self.core.claims._asked[tag[1]].match.slot_name.removeprefix("slot1@e"))

    def grant(self, tag: Any) -> str:
        self.count += 1
        c, n = self.count, self.machine(tag)
        self.send(Answer(tag, ClaimGranted(claim_id=f"c#{c}", secret="s", slot_name=f"slot1@e{n}", slot_ad=slot(n),
                                           starter_node=f"<e{n}:2>", lease_s=LEASE_S)))
        self.core.validate()
        return f"c#{c}"

    def begin(self, nodes: int, more: bytes = b"") -> int:
        """A gang that runs."""
        cluster = self.submit(ad=gang_ad(nodes, more))
        for tag in self.match():
            self.grant(tag)
        return cluster

    def end(self, run_id: str, outcome: str = "exited", **facts: Any) -> list[StopRun]:
        """The end of a member; who is told to stop."""
        attributes = EXITED if outcome == "exited" else b""
        self.send(RunEnded(run_id=run_id, outcome=outcome, attributes=attributes, **facts), "in:1", ANN)
        self.core.validate()
        return self.sent(StopRun)

    def job(self, cluster: int) -> ClassAd:
        job = self.core.context.queue.job(cluster, 0)
        assert job is not None
        return job.ad


def test_names_of_members() -> None:
    assert member_id("12.0#3@s.d", 0) == "12.0#3@s.d"
    assert member_id("12.0#3@s.d", 2) == "12.0#3.2@s.d"
    assert (gang_of("12.0#3.2@s.d"), node_of("12.0#3.2@s.d")) == ("12.0#3@s.d", 2)
    assert (gang_of("12.0#3@s.d"), node_of("12.0#3@s.d")) == ("12.0#3@s.d", 0)


def test_a_gang_begins_when_its_last_claim_is_there_and_then_as_a_whole() -> None:
    schedd = Gangs()
    cluster = schedd.submit(ad=gang_ad(3))
    assert [each.count for each in schedd.requests()] == [3]
    first, second, third = schedd.match()
    for tag in (first, second):
        schedd.grant(tag)
        assert schedd.runs == []
        assert schedd.status(cluster) == "IDLE"
    assert schedd.job(cluster)["GangClaims"] == 2
    schedd.grant(third)
    assert [run.run_id for run in schedd.runs] == ["1.0#1@s", "1.0#1.1@s", "1.0#1.2@s"]
    assert [each.run_id for each in schedd.stored(SaveRun)] == [run.run_id for run in schedd.runs]
    assert schedd.status(cluster) == "RUNNING"
    assert schedd.job(cluster)["CurrentHosts"] == 3
    assert len({run.claim_id for run in schedd.runs}) == 3


def test_what_a_startd_grants_serves_whatever_its_old_ad_would_say_now() -> None:
    schedd = Gangs()
    schedd.submit(ad=gang_ad(2))
    for tag in schedd.match():
        number = schedd.machine(tag)
        ad = slot(number).replace(b"Requirements = true", b"Requirements = KeyboardIdle > 120")
        schedd.send(Answer(tag, ClaimGranted(claim_id=f"o#{number}", secret="s", slot_name=f"slot1@e{number}",
                                             slot_ad=ad, starter_node=f"<e{number}:2>", lease_s=LEASE_S)))
    assert len(schedd.runs) == 2
    for run in tuple(schedd.runs):
        schedd.end(run.run_id, "evicted")
    assert len(schedd.core.claims.gathering.claims) == 1  # the one that was free when the gang wanted to run again


def test_each_member_knows_its_number_and_the_others() -> None:
    schedd = Gangs()
    schedd.begin(2, b'Out = "o.#pArAlLeLnOdE#"\nArguments = "-n #pArAlLeLnOdE#"\nEnvironment = "A=1"\n')
    for node, run in enumerate(schedd.runs):
        ad = ClassAd.from_bytes(run.job_ad)
        assert (ad["Out"], ad["Arguments"], ad["Node"], ad["Nodes"]) == (f"o.{node}", f"-n {node}", node, 2)
        assert ad["Environment"] == f"A=1 _CONDOR_PROCNO={node} _CONDOR_NPROCS=2 _CONDOR_GANG_HOSTS=e1,e2"
    old = ClassAd.from_bytes(member_text(b'Env = "A=1"\n', 1, ["x", "y"]))
    assert old["Env"] == "A=1;_CONDOR_PROCNO=1;_CONDOR_NPROCS=2;_CONDOR_GANG_HOSTS=x,y"


def test_the_end_of_node_0_is_the_gangs() -> None:
    schedd = Gangs()
    cluster = schedd.begin(3)
    assert schedd.end("1.0#1.2@s") == []
    (stopped,) = schedd.end("1.0#1@s")
    assert (stopped.run_id, stopped.how) == ("1.0#1.1@s", "vacate")
    assert schedd.status(cluster) == "RUNNING"
    schedd.end("1.0#1.1@s", "evicted", reason="node 0 has ended")
    assert schedd.status(cluster) == "gone"


def test_a_gang_that_waits_for_all_ends_with_its_last() -> None:
    schedd = Gangs()
    cluster = schedd.begin(3, b'ParallelShutdownPolicy = "WAIT_FOR_ALL"\n')
    assert schedd.end("1.0#1@s") == []
    assert schedd.end("1.0#1.1@s") == []
    assert schedd.status(cluster) == "RUNNING"
    schedd.end("1.0#1.2@s")
    assert schedd.status(cluster) == "gone"


@pytest.mark.parametrize(("outcome", "status"), [("evicted", "IDLE"), ("lost", "IDLE"), ("failed", "IDLE"),
                                                 ("hold", "HELD")])
def test_a_member_that_breaks_takes_the_gang_along(outcome: str, status: str) -> None:
    schedd = Gangs()
    cluster = schedd.begin(3)
    stopped = schedd.end("1.0#1.1@s", outcome, reason="the owner is back", hold_code=34 if outcome == "hold" else 0)
    assert sorted(each.run_id for each in stopped) == ["1.0#1.2@s", "1.0#1@s"]
    schedd.end("1.0#1@s", "evicted")
    assert schedd.status(cluster) == "RUNNING"
    schedd.end("1.0#1.2@s", "evicted")
    assert schedd.status(cluster) == status
    if status == "HELD":
        assert schedd.job(cluster)["HoldReason"] == "node 1: the owner is back"


def test_hold_and_remove_reach_every_member() -> None:
    for action, status in ((JobAction.HOLD, "HELD"), (JobAction.REMOVE, "gone")):
        schedd = Gangs()
        cluster = schedd.begin(2)
        schedd.send(ActOnJobs(action=action, ids=((cluster, 0),), constraint="", reason="enough"))
        assert sorted(each.run_id for each in schedd.sent(StopRun)) == ["1.0#1.1@s", "1.0#1@s"]
        schedd.end("1.0#1@s", "evicted")
        schedd.end("1.0#1.1@s", "evicted")
        assert schedd.status(cluster) == status


def test_what_is_gathered_is_given_back_in_time_and_the_gang_stands_aside() -> None:
    schedd = Gangs(unused_claim_s=60.0)
    cluster = schedd.submit(ad=gang_ad(3))
    first, second, third = schedd.match()
    schedd.grant(first)
    schedd.grant(second)
    schedd.send(Answer(third, ClaimRefused(slot_name="slot1@e3", reason="taken")))
    schedd.send(TimerFired(key=("gang", 1)), later_s=60.0)
    assert len(schedd.sent(ReleaseClaim)) == 2
    assert schedd.core.claims.gathering.job is None
    assert schedd.requests() == ()
    assert "2 of the 3 machines" in schedd.job(cluster)["LastRejMatchReason"]
    schedd.send(TimerFired(key=("again", cluster, 0)), later_s=91.0)
    assert [each.count for each in schedd.requests()] == [3]
    schedd.core.validate()


def test_claims_are_gathered_for_one_gang_at_a_time() -> None:
    schedd = Gangs()
    first, second = (schedd.submit(ad=gang_ad(2, b"JobPrio = %d\n" % prio)) for prio in (5, 1))
    assert [each.count for each in schedd.requests()] == [2]
    for tag in schedd.match():
        schedd.grant(tag)
    assert (schedd.status(first), schedd.status(second)) == ("RUNNING", "IDLE")
    for run in tuple(schedd.runs):
        schedd.end(run.run_id)
    assert schedd.status(first) == "gone"
    assert schedd.status(second) == "RUNNING"  # on the same claims, without asking anyone


def test_jobs_of_one_cluster_are_groups_of_nodes() -> None:
    schedd = Gangs()
    (reserved,) = schedd.send(ReserveCluster())
    schedd.send(SubmitPage(
        cluster_id=reserved.cluster_id, page=0, cluster_ad=AD + gang_ad(1, b'Arguments = "head"\n'), first_proc=0,
        procs=(b"", b'MinHosts = 2\nArguments = "tail"\nRequirements = TARGET.Memory > 5000\n'), last=True))
    assert [each.count for each in schedd.requests()] == [1, 2]
    assert len(list(schedd.core.context.queue.jobs())) == 1
    head, *tails = schedd.match()
    for number, tag in enumerate((*tails, head)):  # in whatever order they come
        memory = 9000 if number < 2 else 1000
        n = schedd.machine(tag)
        ad = slot(n).replace(b"Memory = 1000", b"Memory = %d" % memory)
        schedd.send(Answer(tag, ClaimGranted(claim_id=f"g#{number}", secret="s", slot_name=f"slot1@e{n}",
                                             slot_ad=ad, starter_node=f"<e{n}:2>", lease_s=LEASE_S)))
        schedd.core.validate()
    assert [(run.run_id, run.claim_id) for run in schedd.runs] == [
        ("1.0#1@s", "g#2"), ("1.0#1.1@s", "g#0"), ("1.0#1.2@s", "g#1")]
    assert [ClassAd.from_bytes(run.job_ad)["Arguments"] for run in schedd.runs] == ["head", "tail", "tail"]
    assert [ClassAd.from_bytes(run.job_ad)["Nodes"] for run in schedd.runs] == [3, 3, 3]


def test_strangers_do_not_see_the_arguments_of_a_group() -> None:
    for name in ("GangGroup1", "ganggroup12"):
        assert _hidden([name.lower()], PRIVATE) == {name.lower()}


def test_a_slot_that_fits_every_group_makes_room_for_one_that_fits_its_own_alone() -> None:
    either, first = frozenset({0, 1}), frozenset({0})
    assert assignment([1, 1], [either, first]) == [[1], [0]]
    assert assignment([1, 1], [first, either]) == [[0], [1]]
    assert assignment([1, 1], [first, first]) is None
    placed = assignment([2, 1], [either, either, first])
    assert placed is not None
    assert 2 in placed[0]
    assert sorted(placed[0] + placed[1]) == [0, 1, 2]


def test_what_members_used_is_summed_over_a_schedds_death() -> None:
    schedd = Stored()
    schedd.begin(2, b'ParallelShutdownPolicy = "WAIT_FOR_ALL"\n')
    schedd.send(RunEnded(run_id="1.0#1@s", outcome="exited",
                         attributes=ClassAd({"ExitCode": 0, "RemoteUserCpu": 5.0}).to_bytes()), "in:1", ANN)
    core = schedd.reborn()
    run = core.runs.runs["1.0#1.1@s"]
    assert run.gang is not None
    told = ClassAd.from_bytes(core.runs.gangs.report(run, run.gang, ClassAd({"RemoteUserCpu": 2.0}).to_bytes()))
    assert told["RemoteUserCpu"] == 7.0


def test_a_held_gang_gives_back_what_was_gathered() -> None:
    schedd = Gangs()
    cluster = schedd.submit(ad=gang_ad(2))
    tag, _ = schedd.match()
    schedd.grant(tag)
    schedd.send(ActOnJobs(action=JobAction.HOLD, ids=((cluster, 0),), constraint="", reason="wait"))
    assert len(schedd.sent(ReleaseClaim)) == 1
    schedd.core.validate()


def test_a_claim_that_is_taken_back_leaves_the_gathering() -> None:
    schedd = Gangs()
    schedd.submit(ad=gang_ad(2))
    tag, _ = schedd.match()
    claim_id = schedd.grant(tag)
    schedd.send(ClaimRevoked(claim_id=claim_id, reason="the owner", final=True),
                identity=Identity(name="host:e1", method="tls", host="e1", roles=frozenset({"startd"})))
    assert schedd.core.claims.gathering.claims == []
    schedd.core.validate()


@pytest.mark.parametrize(("more", "procs", "word"), [
    (b"MinHosts = 0\n", 1, "machine_count"), (b"MinHosts = 5000\n", 1, "machine_count"), (b"", 60, "groups"),
    (b'WhenToTransferOutput = "ON_EXIT_OR_EVICT"\n', 1, "ON_EXIT"), (b"SuccessCheckpointExitCode = 85\n", 1,
                                                                     "checkpoint_exit_code"),
    (b"DeferralTime = 5\n", 1, "deferral_time"),
])
def test_what_a_gang_cannot_have_is_refused(more: bytes, procs: int, word: str) -> None:
    schedd = Gangs()
    (reserved,) = schedd.send(ReserveCluster())
    (answer,) = schedd.send(SubmitPage(cluster_id=reserved.cluster_id, page=0, cluster_ad=AD + gang_ad(2) + more,
                                       procs=(b"",) * procs, first_proc=0, last=True))
    assert isinstance(answer, Refused)
    assert word in answer.text


def test_the_table_is_walked() -> None:
    assert set(TABLE) == {(state, event) for state in GangState for event in (MemberExited, MemberBroke)}


# ---- a schedd that dies


class Stored(Gangs):
    """Keeps what was persisted, and can be started again from it."""

    def __init__(self, **settings: Any) -> None:
        self.rows: dict[Any, Any] = {}
        super().__init__(**settings)

    def send(self, *args: Any, **keywords: Any) -> list[Any]:
        replied = super().send(*args, **keywords)
        for kind in (SaveClaim, SaveRun, SaveCluster, SaveCounter):
            for row in self.stored(kind):
                self.rows[kind, getattr(row, "run_id", "") or getattr(row, "claim_id", "") or kind] = row
        for inserted in self.stored(InsertJobs):
            self.rows[SaveJob, 0] = SaveJob(inserted.cluster, *inserted.rows[0])
        for saved in self.stored(SaveJob):
            self.rows[SaveJob, 0] = saved
        for dropped in self.stored(DropRun):
            del self.rows[SaveRun, dropped.run_id]
        return replied

    def reborn(self) -> ScheddCore:
        def of(kind: type) -> tuple[Any, ...]:
            return tuple(row for (each, _), row in self.rows.items() if each is kind)

        core = ScheddCore(ScheddSettings(name="s", uid_domain="dom"), QueueSnapshot(
            counters={"next_cluster": 2}, clusters=of(SaveCluster), jobs=of(SaveJob), claims=of(SaveClaim),
            runs=of(SaveRun)), Random(2), self.now_s, "v")
        core.start(self.now_s, "<s:2>")
        core.validate()
        return core


def test_a_schedd_that_dies_finds_its_gang_whole() -> None:
    schedd = Stored()
    schedd.begin(3)
    core = schedd.reborn()
    assert sorted(core.runs.runs) == ["1.0#1.1@s", "1.0#1.2@s", "1.0#1@s"]
    assert core.context.queue.job(1, 0).run_id == "1.0#1@s"  # type: ignore[union-attr]  # it is there


def test_a_schedd_that_dies_while_a_gang_ends_goes_on_ending_it() -> None:
    schedd = Stored()
    schedd.begin(3)
    schedd.end("1.0#1@s", "evicted", reason="the owner is back")
    core = schedd.reborn()
    assert sorted(core.runs.runs) == ["1.0#1.1@s", "1.0#1.2@s"]
    assert all(run.stop is not None for run in core.runs.runs.values())
    assert {run.gang.outcome.outcome for run in core.runs.runs.values()} == {"evicted"}  # type: ignore[union-attr]
