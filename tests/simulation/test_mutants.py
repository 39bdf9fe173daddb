"""A test of the simulation itself: bugs put into the production code on purpose, each of which it has to find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from condor_actors.actors.inbound import Inbound
from condor_actors.actors.turn_loop import TurnLoop
from condor_actors.cores.schedd.claims.claim_table import ClaimTable
from condor_actors.cores.schedd.queue_operations import ArchiveJob, SaveCounter
from condor_actors.cores.schedd.runs.run_facts import RunFacts
from condor_actors.cores.schedd.runs.run_table import RunTable
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.cores.startd.claims.claim_leases import ClaimLeases
from condor_actors.cores.startd.slots import Slots
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.starter.job_run import JobRun, LinkLost, StarterState
from condor_actors.cores.starter.job_run_table import TABLE
from condor_actors.cores.turn import Turn
from condor_actors.daemons.shadow.shadow_host import ShadowHostActor
from condor_actors.daemons.startd import Startd
from condor_actors.daemons.startd_actor import StartdActor
from condor_actors.daemons.starter.claim_registry import StarterHost
from condor_actors.effects import Persist, SetTimer
from condor_actors.messages.claim import ClaimGranted, RequestClaim
from condor_actors.simulation.faults.chance import DESKTOP, QUICK
from condor_actors.simulation.world.disk import SimulatedClaims, SimulatedLogs
from condor_actors.simulation.world.queue_disk import QueueFile, SimulatedQueueStore
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, Wish, run
from condor_actors.store.queue_store import _WRITERS
from condor_actors.userlog.writer import UserLogs

HOME = MachineSpec("m0", central=True, submits=True, executes=False)
PLAIN = (HOME, MachineSpec("m1"), MachineSpec("m2"))
DESKS = (HOME, MachineSpec("m1", kbdd=True, config=DESKTOP))
SHORT = {**QUICK, "JOB_DEFAULT_LEASE_DURATION": "60"}

Patch = Callable[[pytest.MonkeyPatch], None]


def scenario(machines: tuple[MachineSpec, ...] = PLAIN, *, faults: str = "", count: int = 1, cpu_s: float = 200.0,
             span_s: float = 4000.0, **facts: Any) -> Scenario:
    return Scenario(
        machines=machines, config=SHORT, faults=faults, span_s=span_s,
        submissions=(Submission(when_s=30.0, owner="alice", machine="m0", count=count, cpu_s=cpu_s),), **facts)


def send_before_persist(patch: pytest.MonkeyPatch) -> None:
    commit = TurnLoop.commit

    def eager(self: TurnLoop) -> None:
        held, self._held = self._held, []
        for item in held:
            self._release(item)
        self._outbound.flush()
        commit(self)

    patch.setattr(TurnLoop, "commit", eager)


def no_dedupe(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Inbound, "_is_repeat", lambda self, identity, message_id: False)


def claims_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedClaims, "sync", lambda self: None)


def queue_synced_now_and_then(patch: pytest.MonkeyPatch) -> None:
    sync = SimulatedQueueStore.sync
    patch.setattr(SimulatedQueueStore, "sync", lambda self: sync(self) if self._disk.commits % 50 == 0 else None)


def counters_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(_WRITERS, SaveCounter, lambda connection, operations: None)


def log_not_synced(patch: pytest.MonkeyPatch) -> None:
    append = SimulatedLogs.append
    patch.setattr(SimulatedLogs, "append",
                  lambda self, path, data, *, lock, sync: append(self, path, data, lock=lock, sync=False))


def lease_of_a_claim_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimLeases, "expire", lambda self, claim_id: None)


def old_secret_for_a_new_claim(patch: pytest.MonkeyPatch) -> None:
    make = Startd.make_core

    def careless(self: Startd) -> StartdCore:
        core = make(self)
        first = core._granting._new_secret()
        core._granting._new_secret = lambda: first
        return core

    patch.setattr(Startd, "make_core", careless)


def renewal_not_armed_again(patch: pytest.MonkeyPatch) -> None:
    renew = ClaimTable.renew

    def once(self: ClaimTable) -> None:
        renew(self)
        self._context.out[:] = [each for each in self._context.out
                             if not (isinstance(each, SetTimer) and each.key == ("renew",))]

    patch.setattr(ClaimTable, "renew", once)


def polls_once(patch: pytest.MonkeyPatch) -> None:
    receive = StartdActor.receive

    def deaf(self: StartdActor, delivery: Any) -> None:
        if getattr(delivery.message, "key", None) != "poll":
            receive(self, delivery)

    patch.setattr(StartdActor, "receive", deaf)


def ends_are_told_once(patch: pytest.MonkeyPatch) -> None:
    hello = ShadowHostActor._hello

    def forgetful(self: ShadowHostActor) -> None:
        ended, self._ended = self._ended, {}
        hello(self)
        self._ended = ended

    patch.setattr(ShadowHostActor, "_hello", forgetful)


def log_is_not_read_before_it_is_written_again(patch: pytest.MonkeyPatch) -> None:
    write = UserLogs.write

    def blind(self: UserLogs, *arguments: Any, maybe_written: bool = False, once_since_s: float = 0.0) -> None:
        write(self, *arguments)

    patch.setattr(UserLogs, "write", blind)


def what_a_dead_shadow_had_to_write_is_lost(patch: pytest.MonkeyPatch) -> None:
    log_once = ShadowRun.log_once

    def trusting(self: ShadowRun, event: int, when_s: float, **facts: Any) -> None:
        if not self.order.reattach:
            log_once(self, event, when_s, **facts)

    patch.setattr(ShadowRun, "log_once", trusting)


def ends_do_not_wait_for_the_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UserLogs, "is_idle", property(lambda self: True))


def refused_claim_keeps_its_job(patch: pytest.MonkeyPatch) -> None:
    answered = ClaimTable.answered

    def stubborn(self: ClaimTable, serial: int, message: Any) -> None:
        if isinstance(message, ClaimGranted):
            answered(self, serial, message)
        else:
            self._asked.pop(serial, None)

    patch.setattr(ClaimTable, "answered", stubborn)


def secret_in_the_ad(patch: pytest.MonkeyPatch) -> None:
    perform = StartdActor.perform_own

    def chatty(self: StartdActor, effect: Any, delivery: Any) -> None:
        if type(effect).__name__ == "Show":
            effect.slot.ad["Hint"] = effect.slot.capability
        perform(self, effect, delivery)

    patch.setattr(StartdActor, "perform_own", chatty)


def owner_is_not_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StarterHost, "_suspend", lambda self, message: None)


def run_outlives_its_lease(patch: pytest.MonkeyPatch) -> None:
    def patient(run: JobRun, event: Any) -> None:
        run.connected = False

    for state, event in TABLE:
        if event is LinkLost and state is not StarterState.GONE:
            patch.setitem(TABLE, (state, event), patient)


def slots_keep_what_they_give(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Slots, "_set_free", lambda self, slot, free: None)


def runs_are_forgotten_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunTable, "restore", lambda self, rows: None)


def end_of_a_run_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    def drop(self: RunTable, ended: Any) -> None:
        del self.runs[ended.run_id]
        ended.job.run_id = ""

    patch.setattr(RunTable, "_drop", drop)


def startd_does_not_store_claims(patch: pytest.MonkeyPatch) -> None:
    do = Turn.do

    def careless(self: Turn, *effects: Any) -> None:
        do(self, *(each for each in effects if not isinstance(each, Persist)))

    patch.setattr(Turn, "do", careless)


def used_time_is_counted_twice(patch: pytest.MonkeyPatch) -> None:
    account = RunFacts.account

    def twice(self: RunFacts, ended: Any, message: Any) -> None:
        account(self, ended, message)
        account(self, ended, message)

    patch.setattr(RunFacts, "account", twice)


def claim_is_nobodys(patch: pytest.MonkeyPatch) -> None:
    receive = StartdActor.receive

    def forgetful(self: StartdActor, delivery: Any) -> None:
        if isinstance(delivery.message, RequestClaim):
            delivery = attrs.evolve(delivery, message=attrs.evolve(delivery.message, submitter="nobody"))
        receive(self, delivery)

    patch.setattr(StartdActor, "receive", forgetful)


def end_enters_the_history_twice(patch: pytest.MonkeyPatch) -> None:
    write = QueueFile.write

    def twice(self: QueueFile, operations: Any) -> None:
        write(self, [each for operation in operations
                     for each in ([operation, operation] if isinstance(operation, ArchiveJob) else [operation])])

    patch.setattr(QueueFile, "write", twice)
    patch.setitem(_WRITERS, ArchiveJob, lambda connection, operations: None)  # the database itself would refuse it


MUTANTS: dict[Patch, Scenario] = {
    send_before_persist: scenario(count=2, faults="at 230.01s die m0/schedd before commit"),
    no_dedupe: scenario(count=3, faults="\n".join(
        f"at {20 + 3 * number}s ambush m0/{daemon} on {kind} reset" for number, (daemon, kind) in enumerate(
            [("collector", "advertise.UpdateAd"), ("schedd", "shadow_host.RunUpdated")] * 20))),
    claims_not_synced: scenario(faults="at 100s power m1 for 20s\nat 100s power m2 for 20s"),
    queue_synced_now_and_then: scenario(count=5, faults="at 150s power m0 for 20s\nat 400s power m0 for 20s"),
    counters_are_not_stored: scenario(count=2, faults="at 100s crash m0/schedd"),
    log_not_synced: scenario(count=2, faults="at 232s power m0 for 20s"),
    lease_of_a_claim_never_ends: scenario(faults="at 100s power m0 for 3400s", span_s=8000.0),
    old_secret_for_a_new_claim: scenario(count=4, faults="at 100s crash m1/starter-host"),
    renewal_not_armed_again: scenario(cpu_s=3000.0, span_s=9000.0),
    polls_once: scenario(DESKS, faults="at 100s owner m1 for 30s", span_s=3000.0),
    ends_are_told_once: scenario(faults="at 100s ambush m0/schedd on shadow_host.RunEnded kill", span_s=3000.0),
    log_is_not_read_before_it_is_written_again: scenario(
        faults="at 100s ambush m0/schedd on shadow_host.NoticesWritten kill\nat 230.3s crash m0/shadow-host",
        cpu_s=200.0),
    what_a_dead_shadow_had_to_write_is_lost: scenario(faults="at 20s ambush m0/shadow-host on run.RunBegan kill"),
    ends_do_not_wait_for_the_log: scenario(
        faults="at 30.006s ambush m0/shadow-host on shadow_host.HostOrders kill", cpu_s=0.012),
    refused_claim_keeps_its_job: scenario(count=2, faults="at 20s ambush m1/startd on claim.RequestClaim kill"),
    secret_in_the_ad: scenario(),
    owner_is_not_heard: scenario(DESKS, faults="at 100s owner m1 for 60s"),
    run_outlives_its_lease: scenario(faults="at 100s cut m0 m1 for 1000s\nat 100s cut m0 m2 for 300s", cpu_s=900.0),
    slots_keep_what_they_give: scenario(count=5),
    runs_are_forgotten_at_a_restart: scenario(faults="at 100s crash m0/schedd"),
    end_of_a_run_is_not_stored: scenario(count=3),
    startd_does_not_store_claims: scenario(faults="at 100s crash m1/startd\nat 100s crash m2/startd"),
    claim_is_nobodys: scenario(),
    end_enters_the_history_twice: scenario(),
    used_time_is_counted_twice: scenario(
        wishes=(Wish(when_s=100.0, owner="alice", machine="m0", action="vacate"),)),
}


RULES: dict[Patch, str] = {
    send_before_persist: "which is done",
    no_dedupe: "twice",
    claims_not_synced: "claims were never synced",
    queue_synced_now_and_then: "not all jobs are done",
    counters_are_not_stored: "other rows than were stored",
    log_not_synced: "the user log does not say",
    lease_of_a_claim_never_ends: "past its lease",
    old_secret_for_a_new_claim: "have one secret",
    renewal_not_armed_again: "not all jobs are done",
    polls_once: "not all jobs are done",
    ends_are_told_once: "not all jobs are done",
    log_is_not_read_before_it_is_written_again: "which is done",
    what_a_dead_shadow_had_to_write_is_lost: "has not said that it executes",
    ends_do_not_wait_for_the_log: "has not said that it executes",
    refused_claim_keeps_its_job: "reserved are",
    secret_in_the_ad: "a secret is in an ad",
    owner_is_not_heard: "after its owner came",
    run_outlives_its_lease: "runs twice",
    slots_keep_what_they_give: "free and carved are",
    runs_are_forgotten_at_a_restart: "which executes already",
    end_of_a_run_is_not_stored: "in memory and in the store differ",
    startd_does_not_store_claims: "claims that are not stored",
    used_time_is_counted_twice: "CumulativeRemoteUserCpu",
    claim_is_nobodys: "is nobody's",
    end_enters_the_history_twice: "enters the history although",
}
"""What the rule says that finds each."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_bug_is_found(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert RULES[mutant] in run(MUTANTS[mutant]).violations[0]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_without_the_bug_nothing_is_found(mutant: Patch) -> None:
    result = run(attrs.evolve(MUTANTS[mutant]))
    assert not result.violations, result.violations[0]
