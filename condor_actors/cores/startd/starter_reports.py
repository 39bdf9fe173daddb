"""What the startd makes of what its starter host says: which claims it has, what runs on them, and that it is gone.

Theory: the starter host knows what runs, the startd what was granted.  A hello tells all of it, and what differs is
reconciled at once: claims of which the startd knows nothing are closed, claims of a former starter host are void, and
runs that were to end while the starter host could not be reached are ended now.
"""

from __future__ import annotations

from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim import Claim
from condor_actors.cores.startd.claims.claim_granting import ClaimGranting
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.claims.claim_joining import ClaimJoining
from condor_actors.cores.startd.claims.claim_leases import ClaimLeases
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.slots import Slot
from condor_actors.cores.startd.startd_events import NeedStarter, StarterDied
from condor_actors.cores.startd.starter_link import StarterLink
from condor_actors.cores.turn import Turn
from condor_actors.effects import CancelTimer, Note, Reply, job_note
from condor_actors.messages import claim
from condor_actors.messages.envelope import Delivery, Done

__all__ = ["StarterReports"]


class StarterReports:
    """Handles what the starter host says.

    Args:
        turn: of the core.
        claims: of the startd.
        starter: where it is.
        controller: gives a slot its events.
        publisher: is told which slots have changed.
        leases: are told which claims are in use.
        granting: opens claims.
        joining: is told on which claims nothing runs any more.
    """

    def __init__(self, turn: Turn, claims: ClaimIndex, starter: StarterLink, controller: SlotController,
                 publisher: SlotPublisher, leases: ClaimLeases, granting: ClaimGranting,
                 joining: ClaimJoining) -> None:
        self._turn = turn
        self._claims = claims
        self._starter = starter
        self._controller = controller
        self._publisher = publisher
        self._leases = leases
        self._granting = granting
        self._joining = joining

    def hello(self, event: Delivery, hello: claim.StarterHostHello) -> None:
        """A starter host introduces itself."""
        self._turn.do(CancelTimer("starter-wait"))
        moved = self._starter.connect(event.sender, hello)
        alive = dict(hello.active)
        self._turn.do(Reply(Done(), event))
        for claim_id in (*alive, *hello.idle):
            if claim_id not in self._claims:
                self._starter.close(claim_id, "the claim is over")
        for slot in self._claims.slots:
            held = slot.claim
            if held is None or held.claim_id in self._claims.opening:
                continue
            if held.record.starter_node != hello.node:
                self._controller.lose(slot)
            else:
                self._reconcile(slot, held, hello, alive.get(held.claim_id))
        if moved:
            self._turn.do(Note(f"the starter host (pid {hello.pid}) is at {hello.node}"))
        self._granting.starter_is_up()

    def _reconcile(self, slot: Slot, held: Claim, hello: claim.StarterHostHello, run: str | None) -> None:
        """Bring together what is known of one claim here and there; ``run`` is what runs on it."""
        held.heard = True
        if slot.machine.state is op.State.CLAIMED:
            self._granting.open(slot)
        elif held.claim_id in hello.idle:
            self._controller.end_run(slot)  # it has not heard that the claim is over
        elif run is None:
            self._controller.lose(slot)
            return
        if run is not None:
            self._take_up(slot, held, hello, run)
        elif held.job_id:
            held.job_id = ""
            self._controller.apply(slot, op.RunFinished())

    def _take_up(self, slot: Slot, held: Claim, hello: claim.StarterHostHello, run: str) -> None:
        """A job runs on the claim; what was decided while nobody was there to hear of it is said now."""
        closing = dict(hello.closing)
        suspended = held.claim_id in hello.suspended
        held.job_id = run.partition("#")[0]
        self._controller.apply(slot, op.RunStarted(owner_suspended=suspended))
        if held.claim_id in closing and slot.machine.state is op.State.CLAIMED:
            self._go_on_ending(slot, closing[held.claim_id])
        elif slot.machine.state is op.State.PREEMPTING:
            self._controller.end_run(slot)
        elif slot.machine.owner_suspended and not suspended:
            self._starter.order(held, op.SuspendJob())

    def _go_on_ending(self, slot: Slot, asked_s: float) -> None:
        """A startd that has died since had asked the run to go so many seconds ago: that time counts."""
        self._controller.apply(slot, op.EvictRequested("a startd before had asked it to go", "vacate"))
        if slot.machine.slot_state == op.VACATING:
            slot.machine.state_since_s = slot.machine.activity_since_s = self._turn.now_s - asked_s

    def died(self, event: Any, died: StarterDied) -> None:
        """The starter host's process is gone, and with it all that ran."""
        if died.pid != self._starter.pid:
            return
        self._turn.do(Note(f"the starter host (pid {died.pid}) is gone; its claims are void", "error"), NeedStarter())
        self._starter.disconnect()
        for slot in self._claims.slots:
            if slot.claim is not None and slot.claim.claim_id not in self._claims.opening:
                self._controller.lose(slot)

    def activity(self, event: Delivery, message: claim.ClaimActivity) -> None:
        """What runs on a claim, and what it uses."""
        slot = self._claims.slot(message.claim_id)
        if slot is None or slot.claim is None:
            return
        held = slot.claim
        held.cpu_s, held.memory_mib, held.disk_kib = message.cpu_s, message.memory_mib, message.disk_kib
        held.jobs += len(message.begun)
        running = message.job_id if message.activity in ("busy", "suspended") else ""
        passed = [job for job in message.begun if job != running]
        if running:
            if held.job_id and (running != held.job_id or running in message.begun):
                self._finished(slot, held)  # one report of an end and the next start, maybe of the same job
            self._passed(slot, held, passed)
            if slot.claim is not held:
                return
            if running != held.job_id:
                self._begins(slot, held, running)
                held.job_id, held.job_began_s, held.checkpoint_s = running, self._turn.now_s, 0.0
                if message.job_ad:
                    held.job_ad = message.job_ad
                    slot.job = ClassAd.from_bytes(message.job_ad)
            self._leases.in_use(held)
            self._controller.apply(slot, op.RunStarted())
            if message.by_user != slot.machine.user_suspended:
                self._controller.apply(slot, op.UserSuspended(message.by_user))
        elif message.activity == "idle":
            self._finished(slot, held)
            self._passed(slot, held, passed)
            self._joining.came_free(held.claim_id)
        elif message.activity == "closed":
            if held.job_id:
                self._leaves(slot, held.job_id)
            self._passed(slot, held, passed)
            self._controller.apply(slot, op.ClaimCleared())
        self._publisher.changed(slot)

    def _begins(self, slot: Slot, held: Claim, job: str) -> None:
        self._turn.do(job_note(job, "begins", f"begins on {slot.name} ({held.record.submitter} of "
                                              f"{held.record.schedd_name})"))

    def _leaves(self, slot: Slot, job: str) -> None:
        self._turn.do(job_note(job, "leaves", f"has left {slot.name}"))

    def _passed(self, slot: Slot, held: Claim, jobs: list[str]) -> None:
        """These began and ended between two reports."""
        for job in jobs:
            self._begins(slot, held, job)
            self._leaves(slot, job)

    def _finished(self, slot: Slot, held: Claim) -> None:
        """Nothing runs on a claim any more."""
        if held.job_id:
            self._leaves(slot, held.job_id)
        held.job_id = ""
        self._leases.idle(held)
        self._controller.apply(slot, op.RunFinished())
