"""Each invariant of queue, claims, runs and slots, broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs
import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.claims.claim_table import _Asked
from condor_actors.cores.schedd.claims.held_claim import HeldClaim
from condor_actors.cores.schedd.job_status import JobStatus
from condor_actors.cores.schedd.queue_operations import QueueSnapshot, SaveClaim
from condor_actors.cores.schedd.schedd_core import ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.startd.slot_resources import Custom
from condor_actors.cores.startd.slot_states import BUSY, SUSPENDED, UNCLAIMED
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.effects import Ask
from condor_actors.messages.claim import RenewClaims
from condor_actors.messages.envelope import Address, Delivery, Identity
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from tests.unit.cores.startd.startd_bench import Startd

ANN = Identity(name="ann@dom")


def schedd() -> ScheddCore:
    """Two idle jobs, a third that runs on a claim."""
    core = ScheddCore(ScheddSettings(uid_domain="dom"), QueueSnapshot(), Random(1), 0.0, "v")
    core.start(0.0, "<s:1>")
    for message in (ReserveCluster(), SubmitPage(cluster_id=1, page=0, cluster_ad=b'Cmd = "/x"\n', procs=(b"",) * 3,
                                                 first_proc=0, last=True)):
        core.handle(Delivery(message=message, sender=Address("in:1", "probe"), identity=ANN), 1.0)
    row = SaveClaim("c#1", "s", "<e:1>", "<e:2>", "slot1@e", b"", "ann@dom", 600.0, "ann@dom")
    claim = core.claims.held["c#1"] = HeldClaim(row, ClassAd())
    job = core.context.queue.clusters[1].jobs[2]
    core.transitions.withdraw(job)
    core.runs.start(job, claim)
    core.validate()
    return core


def job(core: ScheddCore, proc: int = 0) -> Any:
    return core.context.queue.clusters[1].jobs[proc]


def claim(core: ScheddCore) -> Any:
    return core.claims.held["c#1"]


def run(core: ScheddCore) -> Any:
    return next(iter(core.runs.runs.values()))


def _two_asked(core: ScheddCore) -> None:
    asked = _Asked(job(core), None, "ann@dom")  # type: ignore[arg-type]
    core.transitions.withdraw(job(core))
    job(core).reserved = True
    core.claims._asked.update({1: asked, 2: asked})


def _reserved(core: ScheddCore) -> None:
    core.transitions.withdraw(job(core))
    job(core).reserved = True


def _renewal(core: ScheddCore) -> None:
    message = RenewClaims(claims=(("c#0", "s"),), schedd_node="<s:1>")
    core.claims._renewals._by_startd["<e:1>"] = Ask(Address("<e:1>", "startd"), message, 1.0, "renewed")


def _orphan_status(core: ScheddCore) -> None:
    core.transitions.withdraw(job(core))
    core.context.queue.set_status(job(core), JobStatus.RUNNING, 2.0)


def _orphan_run(core: ScheddCore) -> None:
    core.transitions.withdraw(job(core))
    job(core).run_id = "1.0#7@s"


SCHEDD: tuple[tuple[Callable[[ScheddCore], Any], str], ...] = (
    (lambda core: setattr(core.context.queue, "next_cluster", 1), "the next is 1"),
    (lambda core: core.context.queue.clusters[1].jobs.clear(), "has no job"),
    (lambda core: setattr(job(core), "proc", 9), "is kept as 1.0"),
    (lambda core: job(core).ad.store("JobStatus", 5), "its ad says 5"),
    (lambda core: setattr(job(core), "reserved", True), "is offered"),
    (lambda core: core.context.queue.clusters[1].counts.__setitem__(1, 9), "cluster 1 counts"),
    (lambda core: core.context.queue.everybody.__setitem__(1, 9), "the queue"),
    (lambda core: core.context.queue.by_owner["ann"].__setitem__(1, 9), "owner ann"),
    (lambda core: core.context.queue.by_submitter["ann@dom"].__setitem__(1, 9), "submitter ann@dom"),
    (lambda core: core.claims.held.update({"c#2": claim(core)}), "is kept as c#2"),
    (lambda core: core.claims.released._releases.update({"c#1": None}), "given back, and still held"),
    (lambda core: (setattr(claim(core), "run_id", ""), setattr(claim(core), "usable", False)), "not to be used again"),
    (_two_asked, "two claims are asked for"),
    (_reserved, "reserved are"),
    (_renewal, "names other claims"),
    (lambda core: core.claims._paused.update({claim(core).row.claim_id: claim(core)}), "runs already"),
    (lambda core: core.claims._idle.update({claim(core).row.claim_id: claim(core)}), "are kept as idle claims"),
    (lambda core: core.runs.locals.began("9.0#1@s", job(core)), "are counted as local runs"),
    (lambda core: setattr(run(core), "run_id", "x"), "is kept as"),
    (lambda core: setattr(run(core), "owner", "bob"), "is not bob's"),
    (lambda core: core.context.queue.set_status(job(core, 2), JobStatus.COMPLETED, 2.0), "goes on"),
    (lambda core: core.claims.vacate(claim(core)), "is on the claim c#1"),
    (lambda core: (core.runs.runs.clear(), setattr(job(core, 2), "run_id", "")), "which is not on it"),
    (_orphan_run, "which is over"),
    (_orphan_status, "and has no run"),
)


@pytest.mark.parametrize(("spoil", "reason"), SCHEDD, ids=[reason for _, reason in SCHEDD])
def test_what_is_wrong_in_a_schedd_is_named(spoil: Callable[[ScheddCore], Any], reason: str) -> None:
    core = schedd()
    spoil(core)
    with pytest.raises(InvariantBroken, match=reason):
        core.validate()


def startd() -> Any:
    """Two claims are granted, a job runs on one."""
    bench = Startd()
    bench.busy(bench.claim())
    bench.claim()
    bench.core.validate()
    return bench.core


def slot(core: Any) -> Any:
    return core.claims[0]


def whole(core: Any) -> Any:
    return slot(core).parent or slot(core)


def _record(core: Any, **changes: Any) -> None:
    slot(core).claim.record = attrs.evolve(slot(core).claim.record, **changes)


def _twice(core: Any, name: str) -> None:
    core.slots._slots[name] = slot(core)


def _claim_whole(core: Any) -> None:
    whole(core).claim, whole(core).job = slot(core).claim, slot(core).job
    whole(core).machine.slot_state = BUSY


def _not_joined(core: Any) -> None:
    slot(core).machine.slot_state = UNCLAIMED
    slot(core).claim = slot(core).job = None


def _device(core: Any) -> None:
    whole(core).total = attrs.evolve(whole(core).total, custom={"gpus": Custom(1, ("gpu0",))})


def _one_secret(core: Any) -> None:
    first, second = core.claims
    second.claim.record = attrs.evolve(second.claim.record, secret=first.claim.record.secret)


STARTD: tuple[tuple[Callable[[Any], Any], str], ...] = (
    (lambda core: _twice(core, "x"), "two slots have one capability"),
    (lambda core: setattr(slot(core), "name", "x"), "are kept as"),
    (lambda core: setattr(whole(core), "free", attrs.evolve(whole(core).free, cpus=-1)), "free and carved are"),
    (lambda core: setattr(slot(core), "claim", None), "with no claim"),
    (lambda core: setattr(slot(core), "job", None), "a claim without a job"),
    (lambda core: setattr(slot(core).machine, "slot_state", SUSPENDED), "nobody wants that"),
    (_claim_whole, "is partitionable"),
    (_not_joined, "has not been joined again"),
    (_device, "gpu0"),
    (_one_secret, "two claims have one secret"),
    (lambda core: setattr(slot(core), "number", 99), "is no child of"),
    (lambda core: core.slots._slots.pop(slot(core).name), "a child that is no slot"),
    (lambda core: core._claims.remove(slot(core).claim.claim_id), "the startd knows"),
    (lambda core: _record(core, slot_name="x"), "is not for"),
    (lambda core: core._claims.opening.update({slot(core).claim.claim_id: None}), "still waited for"),
)


@pytest.mark.parametrize(("spoil", "reason"), STARTD, ids=[reason for _, reason in STARTD])
def test_what_is_wrong_in_a_startd_is_named(spoil: Callable[[Any], Any], reason: str) -> None:
    core = startd()
    spoil(core)
    with pytest.raises(InvariantBroken, match=reason):
        core.validate()
