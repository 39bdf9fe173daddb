"""What a startd says and does: claims are granted, kept, ended; the starter host is told; ads are sent.

Theory: everything the startd hears is an event here: messages (as the :class:`Delivery` they came in), readings of the
host, timers, answers, and the coming and going of the starter host.  Decisions about one slot are
:mod:`owner_policy`'s; this core brings the events to the right slot and turns what follows into messages.

A claim is granted in this order: reserve (carve) → ask the starter host to open the gate → persist → tell the schedd.
So a schedd that has heard of a claim can use it, and it survives the startd.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression
from condor_actors.cores.secrets import matches
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claim import Claim, ClaimRecord, DropClaim, SaveClaim
from condor_actors.cores.startd.claim_checks import validate_claims
from condor_actors.cores.startd.draining import HOW
from condor_actors.cores.startd.owner_state import OwnerState
from condor_actors.cores.startd.slot_resources import Share
from condor_actors.cores.startd.slots import Slot
from condor_actors.cores.startd.startd_events import (
    Benchmarked,
    EndStartd,
    Hide,
    NeedStarter,
    Observed,
    RunBenchmarks,
    SensorSpoke,
    Show,
    StartdSettings,
    StarterDied,
    StopBenchmarks,
)
from condor_actors.effects import Answer, Ask, CancelTimer, Effect, Note, Persist, Reply, Send, SetTimer
from condor_actors.messages import admin, claim, negotiate, owner
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Refused, TimerFired

__all__ = ["Benchmarked", "StartdSettings", "EndStartd", "StartdCore", "Hide", "NeedStarter", "Observed",
           "RunBenchmarks", "SensorSpoke", "Show", "StarterDied", "StopBenchmarks"]

STARTER_ACTOR = "starter-host"
SCHEDD_ACTOR = "schedd"
ALL_RENEWED = claim.ClaimsRenewed(gone=())
KEPT_PATIENCE_S = 30.0
KEPT_AFTER_S = 20.0
"""A claim on which nothing has run for this long is asked about: its schedd may never have heard of it."""


class StartdCore(OwnerState):
    """The core of the startd; see the module.

    Args:
        slots: the slots, already created.
        settings: times and addresses.
        birth_s: when this startd began; part of its claims' ids.
        new_secret: gives fresh secrets; numbers: of claims.
    """

    # ---- the door

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from ``event`` at ``now_s``."""
        self._now_s = now_s
        self._effects = []
        what = event.message if isinstance(event, Delivery) else event
        action = self._ACTIONS.get(type(what))
        if action is None:
            self._refuse(event, "invalid", f"a startd does not take {type(what).__name__}")
        else:
            action(self, event, what)
        if self.draining.request is not None:
            self._look_at_drain()
        return tuple(self._effects)

    def story(self, slot_name: str) -> tuple[tuple[float, str, str], ...]:
        """What made the slot what it is: (when, event, place afterwards)."""
        slot = self.slots.get(slot_name)
        return tuple(slot.machine.story) if slot is not None else ()

    def start(self, records: tuple[ClaimRecord, ...], now_s: float,
              facts: Mapping[str, Any] | None = None) -> tuple[Effect, ...]:
        """The first turn: take up what the store remembers, offer the slots, ask for a starter host."""
        self._now_s = now_s
        self._effects = [NeedStarter()]
        self.recall(facts or {}, now_s)
        for record in records:
            self._restore(record)
        self._say_kept()
        for slot in self.slots:
            self._policy(slot, self._look(slot))
            self._dirty_slot(slot, urgent=True)
        if self.draining.request is not None:
            self._drain_on()
        self._do(SetTimer("heartbeat", self.settings.update_interval_s))
        return tuple(self._effects)

    def validate(self) -> None:
        """Check what holds between two turns, of the slots and of the claims.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        self.slots.validate()
        validate_claims(self.slots, self._by_claim, self._opening)

    # ---- claims: asking

    def _request_claim(self, event: Delivery, request: claim.RequestClaim) -> None:
        slot = self.slots.get(request.slot_name)
        if slot is None:
            return self._decline(event, "there is no such slot")
        if not matches(slot.capability, request.capability):
            return self._decline(event, "the match is out of date")
        if self.starter is None:
            self._waiting.append(event)
            self._do(SetTimer("starter-wait", self.settings.starter_wait_s), NeedStarter())
            return None
        try:
            job = ClassAd.from_bytes(request.job_ad)
        except ClassAdSyntaxError as error:
            return self._decline(event, f"the job's ad cannot be read: {error}")
        share = self._admissible(slot, job)
        if isinstance(share, str):
            return self._decline(event, share)
        if slot.partitionable:
            slot = self.slots.carve(slot, share, self._now_s)
        elif not slot.machine.claimable:
            return self._displace(event, slot, job)
        return self._grant(event, request, slot, job)

    def _displace(self, event: Delivery, slot: Slot, job: ClassAd) -> None:
        """The slot is taken: the newcomer waits while the present job makes way."""
        old = slot.claim
        if old is None or slot.machine.state is op.State.OWNER:
            return self._decline(event, f"the slot is {slot.machine.state.value}")
        rank = slot.policy.rank(job, self._now_s)
        if rank < old.record.rank:
            return self._decline(event, "a job that the machine likes better runs there")
        if slot.name in self._successors:
            return self._decline(event, "another claim already waits for it", 60.0)
        self._successors[slot.name] = event
        self._do(SetTimer(("successor", slot.name), self.settings.successor_wait_s))
        why = "rank" if rank > old.record.rank else "user priority"
        return self._policy(slot, op.EvictRequested(f"preempted by {event.message.submitter} ({why})", "retire"))

    def _answered(self, event: Any, answer: Answer) -> None:
        if answer.tag[0] == "kept":
            self._kept(answer.tag[1], answer.message)
        else:
            self._opened(answer)

    def _opened(self, answer: Answer) -> None:
        """The starter host has opened the gate of a claim, or not."""
        _, claim_id = answer.tag
        slot = self._by_claim.get(claim_id)
        event_waiting = self._opening.pop(claim_id, None)
        held = slot.claim if slot is not None else None
        if slot is None or held is None:
            if event_waiting is not None:
                self._decline(event_waiting, "the machine was taken back meanwhile", 5.0)
            return
        if event_waiting is None and isinstance(answer.message, AskFailed):
            return  # it was granted before; what the starter host has is in its next hello
        if not isinstance(answer.message, Done):
            why = answer.message.text if isinstance(answer.message, (Refused, AskFailed)) else "no answer"
            self._do(Note(f"{slot.name}: the starter host does not open the claim: {why}", "warn"))
            self._close(claim_id, "it was not opened in time")
            if event_waiting is not None:
                self._decline(event_waiting, f"the starter host does not open the claim: {why}", 5.0)
            self._policy(slot, op.ClaimCleared())
            return
        held.open = True
        if event_waiting is None:
            return
        if slot.machine.state is op.State.PREEMPTING:  # its gate is being closed again
            self._decline(event_waiting, "the machine was taken back meanwhile", 5.0)
            return
        granted = claim.ClaimGranted(
            claim_id=claim_id, secret=held.record.secret, slot_name=slot.name, slot_ad=slot.ad.to_bytes(),
            starter_node=self.starter_node, lease_s=held.record.lease_s)
        self._do(Persist(SaveClaim(held.record)), Reply(granted, event_waiting),
                 SetTimer(("lease", claim_id), held.record.lease_s))
        self._doubt(held)
        self._dirty_slot(slot, urgent=True)
        if slot.parent is not None:
            self._dirty_slot(slot.parent, urgent=True)

    def _close(self, claim_id: str, reason: str) -> None:
        """Have the starter host shut a gate that belongs to no claim here."""
        if self.starter is not None:
            self._do(Send(self.starter, claim.CloseClaim(claim_id=claim_id, vacate_s=0.0, reason=reason)))

    def _restore(self, record: ClaimRecord) -> None:
        """Take up a claim of the startd's former life."""
        slot = self.slots.get(record.slot_name)
        if slot is None:
            bare, _, host = record.slot_name.partition("@")
            front, _, number = bare.rpartition("_")
            parent = self.slots.get(f"{front}@{host}")
            if parent is None or not parent.partitionable or not number.isdigit() or not _covers(parent, record.share):
                self._do(Note(f"the claim {record.claim_id} fits no slot any more", "warn"),
                         Persist(DropClaim(record.claim_id)))
                return
            slot = self.slots.carve(parent, record.share, self._now_s, int(number))
        schedd = Address(record.schedd_node, SCHEDD_ACTOR) if record.schedd_node else None
        slot.claim = Claim(record=record, schedd=schedd, renewed_s=self._now_s, heard=False)
        self._unheard[record.claim_id] = 0.0
        slot.job = ClassAd.from_bytes(record.job_ad)
        slot.machine.go(op.CLAIMED, self._now_s)
        self._by_claim[record.claim_id] = slot
        self.slots.refresh(slot, self._now_s)
        self._do(SetTimer(("lease", record.claim_id), record.lease_s))

    # ---- claims: keeping and ending

    def _doubt(self, held: Claim) -> None:
        """Nothing runs on the claim: unless that changes soon, ask whether its schedd knows of it."""
        self._unheard[held.claim_id] = self._now_s
        self._doubt_later()

    def _doubt_later(self) -> None:
        if not self._doubting:
            self._doubting = True
            self._do(SetTimer("kept", KEPT_AFTER_S))

    def _say_kept(self) -> None:
        """Tell the schedds of claims that are in doubt what they have here, and where this is."""
        self._doubting = False
        pairs: dict[str, list[tuple[str, str]]] = {}
        for claim_id, since_s in tuple(self._unheard.items()):
            slot = self._by_claim.get(claim_id)
            if slot is None or slot.claim is None or not slot.claim.record.schedd_node:
                del self._unheard[claim_id]
            elif claim_id in self._opening or self._now_s - since_s < KEPT_AFTER_S / 2:
                self._doubt_later()  # the schedd may be about to hear of it
            else:
                record = slot.claim.record
                pairs.setdefault(record.schedd_node, []).append((claim_id, record.secret))
        for node, claims in pairs.items():
            message = claim.ClaimsKept(claims=tuple(claims), startd=self.settings.address)
            self._do(Ask(Address(node, SCHEDD_ACTOR), message, KEPT_PATIENCE_S, ("kept", tuple(dict(claims)))))

    def _kept(self, claim_ids: tuple[str, ...], answer: Any) -> None:
        """A schedd has said which of them it knows."""
        if not isinstance(answer, claim.ClaimsRenewed):
            self._doubt_later()
            return
        for claim_id in claim_ids:
            self._unheard.pop(claim_id, None)
            slot = self._by_claim.get(claim_id)
            if slot is None or slot.claim is None:
                continue
            if claim_id in answer.gone:
                self._policy(slot, op.Released("its schedd does not know it any more"))
            else:
                self._renewed(slot.claim)

    def _renewed(self, held: Claim) -> None:
        held.renewed_s = self._now_s
        self._do(SetTimer(("lease", held.claim_id), held.record.lease_s))

    def _renew(self, event: Delivery, message: claim.RenewClaims) -> None:
        gone = []
        for claim_id, secret in message.claims:
            slot = self._owned(claim_id, secret)
            if slot is None or slot.claim is None:
                gone.append(claim_id)
                continue
            held = slot.claim
            held.schedd = event.sender
            self._unheard.pop(claim_id, None)
            if held.record.schedd_node != message.schedd_node:
                held.record = attrs.evolve(held.record, schedd_node=message.schedd_node)
                self._do(Persist(SaveClaim(held.record)))
            self._renewed(held)
        self._do(Reply(claim.ClaimsRenewed(gone=tuple(gone)) if gone else ALL_RENEWED, event))

    def _release(self, event: Delivery, message: claim.ReleaseClaim) -> None:
        slot = self._owned(message.claim_id, message.secret)
        if slot is not None:
            self._policy(slot, op.Released(message.reason or "released by its schedd"))
        self._do(Reply(Done(), event))

    def _owned(self, claim_id: str, secret: str) -> Slot | None:
        slot = self._by_claim.get(claim_id)
        if slot is None or slot.claim is None or not matches(slot.claim.record.secret, secret):
            return None
        return slot

    def _match_notice(self, event: Delivery, message: negotiate.MatchNotice) -> None:
        slot = self.slots.get(message.slot_name)
        if slot is not None and not slot.partitionable:
            self._policy(slot, op.Matched(message.submitter))
        self._do(Reply(Done(), event))

    def _vacate(self, event: Delivery, message: admin.VacateSlots) -> None:
        wanted = set(message.slots)
        count = 0
        for slot in self.slots:
            if slot.claim is None:
                continue
            bare = slot.name.partition("@")[0]
            above = slot.parent.name if slot.parent is not None else slot.name
            if wanted and not wanted & {slot.name, bare, above, above.partition("@")[0], self.slots.settings.host}:
                continue
            count += 1
            how = "kill" if message.fast else "finish" if message.finish else "vacate"
            self._policy(slot, op.EvictRequested(message.reason or "condor_vacate", how))
        self._do(Reply(Done(text=f"{count} claims are being vacated"), event))

    # ---- the starter host

    def _hello(self, event: Delivery, hello: claim.StarterHostHello) -> None:
        self._do(CancelTimer("starter-wait"))
        moved = hello.node != self.starter_node
        self.starter, self.starter_pid, self.starter_node = event.sender, hello.pid, hello.node
        alive, closing = dict(hello.active), dict(hello.closing)
        self._do(Reply(Done(), event))
        for claim_id in (*alive, *hello.idle):
            if claim_id not in self._by_claim:
                self._close(claim_id, "the claim is over")
        for claim_id, slot in tuple(self._by_claim.items()):
            held = slot.claim
            if held is None or claim_id in self._opening:
                continue
            if held.record.starter_node != hello.node:
                self._lose(slot)
                continue
            held.heard = True
            if slot.machine.state is op.State.CLAIMED:
                self._open(slot)
            elif claim_id in hello.idle:
                self._end_run(slot)  # it has not heard that the claim is over
            elif claim_id not in alive:
                self._lose(slot)
                continue
            if claim_id in alive:
                held.job_id = alive[claim_id].partition("#")[0]
                self._policy(slot, op.RunStarted(owner_suspended=claim_id in hello.suspended))
                # What was decided while nobody was there to hear of it.
                if claim_id in closing and slot.machine.state is op.State.CLAIMED:
                    self._go_on_ending(slot, closing[claim_id])
                elif slot.machine.state is op.State.PREEMPTING:
                    self._end_run(slot)
                elif slot.machine.owner_suspended and claim_id not in hello.suspended:
                    self._do(Send(event.sender, self._order(held, op.SuspendJob())))
            elif held.job_id:
                held.job_id = ""
                self._policy(slot, op.RunFinished())
        if moved:
            self._do(Note(f"the starter host (pid {hello.pid}) is at {hello.node}"))
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._request_claim(request, request.message)

    def _go_on_ending(self, slot: Slot, asked_s: float) -> None:
        """A startd that has died since had asked the run to go so many seconds ago: that time counts."""
        self._policy(slot, op.EvictRequested("a startd before had asked it to go", "vacate"))
        if slot.machine.slot_state == op.VACATING:
            slot.machine.state_since_s = slot.machine.activity_since_s = self._now_s - asked_s

    def _starter_died(self, event: Any, died: StarterDied) -> None:
        if died.pid != self.starter_pid:
            return
        self._do(Note(f"the starter host (pid {died.pid}) is gone; its claims are void", "error"), NeedStarter())
        self.starter, self.starter_pid, self.starter_node = None, 0, ""
        for slot in tuple(self._by_claim.values()):
            if slot.claim is not None and slot.claim.claim_id not in self._opening:
                self._lose(slot)

    def _lose(self, slot: Slot) -> None:
        """The claim is gone, and what ran on it with all it had done."""
        self._losing = True
        self._policy(slot, op.ClaimCleared())
        self._losing = False

    def _activity(self, event: Delivery, message: claim.ClaimActivity) -> None:
        slot = self._by_claim.get(message.claim_id)
        if slot is None or slot.claim is None:
            return
        held = slot.claim
        held.cpu_s, held.memory_mib, held.disk_kib = message.cpu_s, message.memory_mib, message.disk_kib
        if message.activity in ("busy", "suspended"):
            if message.job_id != held.job_id:
                held.job_id, held.job_began_s, held.checkpoint_s = message.job_id, self._now_s, 0.0
                held.jobs += 1
                if message.job_ad:
                    held.job_ad = message.job_ad
                    slot.job = ClassAd.from_bytes(message.job_ad)
            self._unheard.pop(held.claim_id, None)
            self._policy(slot, op.RunStarted())
            if message.by_user != slot.machine.user_suspended:
                self._policy(slot, op.UserSuspended(message.by_user))
        elif message.activity == "idle":
            held.job_id = ""
            self._doubt(held)
            self._policy(slot, op.RunFinished())
        elif message.activity == "closed":
            self._policy(slot, op.ClaimCleared())
        self._dirty_slot(slot)

    # ---- time

    def _timer(self, event: Any, fired: TimerFired) -> None:
        key = fired.key
        if key == "publish":
            self._publishing = None
            self._publish()
        elif key == "heartbeat":
            for slot in self.slots:
                self._dirty_slot(slot)
            self._do(SetTimer("heartbeat", self.settings.update_interval_s))
        elif key == "kept":
            self._say_kept()
        elif key == "pause":
            self._do(Note("the owner's pause is over"))
            self._end_pause()
        elif key == "starter-wait":
            waiting, self._waiting = self._waiting, []
            for request in waiting:
                self._decline(request, "the starter host does not start", 30.0)
        elif key[0] == "lease":
            self._lease_over(key[1])
        elif key[0] == "successor":
            successor = self._successors.pop(key[1], None)
            if successor is not None:
                self._decline(successor, "the job that holds the slot takes long to leave", 60.0)
        elif key[0] == "slot":
            self._slot_timer(key[1], key[2])

    def _slot_timer(self, name: str, what: str) -> None:
        slot = self.slots.get(name)
        if slot is None:
            return
        self._policy(slot, op.ClaimCleared() if what == "kill" and self.starter is None else op.TimerExpired(what))

    def _lease_over(self, claim_id: str) -> None:
        slot = self._by_claim.get(claim_id)
        if slot is not None and slot.claim is not None:
            self._do(Note(f"{slot.name}: the lease of {claim_id} is over", "warn"))
            self._policy(slot, op.Released("its lease ran out"))

    # ---- draining

    def _drain(self, event: Delivery, message: admin.Drain) -> None:
        verdict = self.draining.begin(message, self.slots, self._birth, self._now_s)
        if isinstance(verdict, Refused):
            self._do(Reply(verdict, event))
            return
        if message.start_expr and self._by_claim:
            self.draining.former = frozenset(self._by_claim)
        self._drain_on()
        self._do(Reply(Done(text=self.draining.request_id), event))

    def _drain_on(self) -> None:
        """Do what the drain says, which a desk that was made anew may have taken over."""
        wish, former = self.draining.request, self.draining.former
        assert wish is not None
        self.draining.emptied = False
        if former is not None:
            self.slots.start_instead(parse_expression(wish.start_expr))
        for slot in self.slots:
            if former is None or (slot.claim is not None and slot.claim.claim_id in former):
                self._policy(slot, op.DrainRequested(HOW[wish.how]))
            else:
                self._policy(slot, self._look(slot))
                self._dirty_slot(slot, urgent=True)

    def _cancel_drain(self, event: Delivery, message: admin.CancelDrain) -> None:
        refusal = self.draining.cancel(message.request_id)
        if refusal is not None:
            self._do(Reply(refusal, event))
            return
        self.slots.start_instead(None)
        for slot in self.slots:
            self._policy(slot, op.DrainCancelled())
        self._do(Reply(Done(), event))

    def _look_at_drain(self) -> None:
        former = self.draining.former
        if former is not None and former.isdisjoint(self._by_claim):
            # Those that were there are gone: now those that came in their place.
            self.draining.former = None
            self.slots.start_instead(None)
            for slot in self.slots:
                self._policy(slot, op.DrainRequested("vacate"))
        if self.draining.emptied or self._by_claim or self._opening:
            return
        self.draining.emptied = True
        how = self.draining.on_completion
        for slot in self.slots:
            self._policy(slot, op.MachineEmptied())
        if how == "resume":
            self.draining.request = None
            for slot in self.slots:
                self._policy(slot, op.DrainCancelled())
        elif how in ("exit", "restart"):
            self._do(EndStartd(how))

    def refresh(self, now_s: float) -> tuple[Effect, ...]:
        """Policy or attributes have changed: look at everything again and show it."""
        self._now_s = now_s
        self._effects = []
        self._look_at_all()
        for slot in self.slots:
            self._dirty_slot(slot, urgent=True)
        return tuple(self._effects)

    def finish(self, now_s: float) -> tuple[Effect, ...]:
        """Take no new claims, let what runs finish, then end the startd."""
        self._now_s = now_s
        self._effects = []
        how = self.draining.end_peacefully(self._birth)
        for slot in self.slots:
            self._policy(slot, op.DrainRequested(how))
        self._look_at_drain()
        return tuple(self._effects)

    def vacate_all(self, now_s: float, *, fast: bool) -> tuple[Effect, ...]:
        """End every claim, for a startd that stops for good."""
        self._now_s = now_s
        self._effects = []
        for slot in self.slots:
            if slot.claim is not None:
                self._policy(slot, op.EvictRequested("the startd is shutting down", "kill" if fast else "vacate"))
        return tuple(self._effects)

    @property
    def claims(self) -> tuple[Slot, ...]:
        """The slots that are claimed."""
        return tuple(self._by_claim.values())

    _ACTIONS: dict[type, Any] = {}  # filled below, when the functions exist


StartdCore._ACTIONS = {
    claim.RequestClaim: StartdCore._request_claim,
    claim.RenewClaims: StartdCore._renew,
    claim.ReleaseClaim: StartdCore._release,
    claim.StarterHostHello: StartdCore._hello,
    claim.ClaimActivity: StartdCore._activity,
    negotiate.MatchNotice: StartdCore._match_notice,
    admin.VacateSlots: StartdCore._vacate,
    admin.Drain: StartdCore._drain,
    admin.CancelDrain: StartdCore._cancel_drain,
    admin.IdleReading: StartdCore._idle_reading,
    owner.QueryOwner: StartdCore._query_owner,
    owner.PauseMachine: StartdCore._pause,
    owner.ResumeMachine: StartdCore._resume,
    SensorSpoke: StartdCore._sensor_spoke,
    Benchmarked: StartdCore._benchmarked,
    Observed: StartdCore._observe,
    StarterDied: StartdCore._starter_died,
    Answer: StartdCore._answered,
    TimerFired: StartdCore._timer,
}


def _covers(parent: Slot, share: Share) -> bool:
    left = parent.free.minus(share)
    return min(left.cpus, left.memory_mib, left.disk_kib) >= 0 and all(
        have.amount >= 0 for have in left.custom.values())
