"""How the startd's desk treats one slot: policy into orders, claims begun and ended, ads kept up to date.

Theory: decisions about a slot are :mod:`owner_policy`'s; here what follows from them becomes messages to the starter
host and to schedds, operations for the claim file, and ads.
:class:`~condor_actors.cores.startd.startd_core.StartdCore` adds the conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from condor_actors.classads import ClassAd, match_ads, requirements_hold
from condor_actors.cores.secrets import matches
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd import slot_ad
from condor_actors.cores.startd.claim import Claim, ClaimRecord, DropClaim
from condor_actors.cores.startd.draining import Draining
from condor_actors.cores.startd.idleness import Idleness
from condor_actors.cores.startd.owner_pause import Pause
from condor_actors.cores.startd.slot_resources import Share
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.startd_events import Hide, Observed, Show, StartdSettings
from condor_actors.effects import Ask, CancelTimer, Effect, Note, Persist, Reply, Send, SetTimer
from condor_actors.messages import claim
from condor_actors.messages.codes import HoldCode, Universe
from condor_actors.messages.envelope import Address, Delivery, Refused

__all__ = ["SlotController"]



class SlotController:
    """The part of the desk that knows slots; see the module.

    Args:
        slots: the slots, already created.
        settings: times and addresses.
        birth_s: when this startd began; part of its claims' ids.
        new_secret: gives fresh secrets.
        numbers: of claims, none twice while the process lives: a desk that is made anew goes on with them.
    """

    def __init__(self, slots: Slots, settings: StartdSettings, *, birth_s: float, new_secret: Callable[[], str],
                 numbers: Iterator[int] | None = None) -> None:
        self.slots = slots
        self.settings = settings
        self.idleness = Idleness()
        self.draining = Draining()
        self.pause: Pause | None = None
        self.starter: Address | None = None
        self.starter_pid = 0
        self.starter_node = ""
        self._birth = int(birth_s)
        self._numbers = numbers if numbers is not None else count(1)
        self._new_secret = new_secret
        self._by_claim: dict[str, Slot] = {}
        self._opening: dict[str, Delivery] = {}
        self._successors: dict[str, Delivery] = {}
        self._waiting: list[Delivery] = []
        self._unheard: dict[str, float] = {}
        """Claims that nothing runs on and whose schedd has not spoken of them, and since when."""
        self._doubting = False
        self._dirty: dict[str, None] = {}
        self._gone_ads: dict[str, None] = {}
        self._losing = False
        self._publishing: float | None = None
        self._observed = Observed(total_load=0.0, own_load=0.0)
        self._effects: list[Effect] = []
        self._now_s = birth_s

    def _do(self, *effects: Effect) -> None:
        self._effects.extend(effects)

    def _refuse(self, event: Any, code: str, text: str) -> None:
        if isinstance(event, Delivery):
            self._do(Reply(Refused(code=code, text=text), event))

    # ---- claims: begin

    def _decline(self, event: Delivery, reason: str, retry_after_s: float = 0.0) -> None:
        name = event.message.slot_name
        self._do(Reply(claim.ClaimRefused(slot_name=name, reason=reason, retry_after_s=retry_after_s), event))
        slot = self.slots.get(name)
        if slot is None:
            return
        if slot.machine.slot_state == op.MATCHED and matches(slot.capability, event.message.capability):
            self._policy(slot, op.TimerExpired("match"))  # whom the negotiator gave it to has come, in vain
        self._dirty_slot(slot, urgent=True)

    def _admissible(self, slot: Slot, job: ClassAd) -> Share | str:
        """The share the job would get; the situation is looked at again, for it may have changed since the match."""
        if slot.machine.draining:
            return "the machine is being drained"
        if self.pause is not None:
            return "the owner of the machine has paused the pool there"
        if slot.partitionable and not slot.machine.claimable:
            return f"the slot is {slot.machine.state.value}"
        share = self.slots.fit(slot, job)
        if isinstance(share, str):
            return f"not enough is left: {share}"
        if not match_ads(job, slot.ad, self._now_s):
            side = "slot" if requirements_hold(job, slot.ad, self._now_s) else "job"
            return f"the Requirements of the {side} do not hold any more"
        if not slot.policy.starts(job, self._now_s):
            return "START does not hold any more"
        return share

    def _grant(self, event: Delivery, request: claim.RequestClaim, slot: Slot, job: ClassAd) -> None:
        assert self.starter is not None
        rank = slot.policy.rank(job, self._now_s)
        record = ClaimRecord(
            claim_id=f"{self.settings.address}#{self._birth}#{next(self._numbers)}", secret=self._new_secret(),
            slot_name=slot.name, share=slot.total, submitter=request.submitter, schedd_name=request.schedd_name,
            lease_s=request.lease_s, starter_node=self.starter_node, job_ad=request.job_ad, rank=rank,
            granted_s=self._now_s, schedd_node=request.schedd_node)
        slot.claim = Claim(record=record, schedd=event.sender, renewed_s=self._now_s)
        slot.job = job
        self.slots.write_worklife(slot, job, self._now_s)
        self._by_claim[record.claim_id] = slot
        self.slots.renew_capability(slot)
        self._policy(slot, op.Claimed())
        self._opening[record.claim_id] = event
        self._open(slot)

    def _open(self, slot: Slot) -> None:
        """Ask the starter host to open the gate of the slot's claim."""
        held = slot.claim
        assert held is not None
        assert self.starter is not None
        self.slots.refresh(slot, self._now_s)
        assigned = tuple((name, ",".join(have.ids)) for name, have in slot.total.custom.items() if have.ids)
        message = claim.OpenClaim(
            claim_id=held.claim_id, secret=held.record.secret, slot_name=slot.name, slot_ad=slot.ad.to_bytes(),
            submitter=held.record.submitter, assigned=assigned)
        self._do(Ask(self.starter, message, self.settings.open_timeout_s, ("open", held.claim_id)))

    # ---- the policy of one slot

    def _look(self, slot: Slot) -> op.PolicyEvaluation:
        evaluation = slot.policy.evaluation(slot.job if slot.claim is not None else None, self._now_s)
        return evaluation if self.pause is None else self.pause.overrule(evaluation)

    def _policy(self, slot: Slot, event: Any) -> None:
        """Give the event to the slot and carry out what follows.

        The policy waits for the starter host to say what runs on a claim that this startd has found: an owner who is
        there does not end a claim whose job sleeps.
        """
        if isinstance(event, op.PolicyEvaluation) and slot.claim is not None and not slot.claim.heard:
            return
        before = slot.machine.slot_state
        actions = slot.machine.handle(event, self._now_s)
        self._tell_story(slot, event, before, bool(actions))
        for action in actions:
            self._carry_out(slot, action)
        if slot.machine.slot_state != before:
            now_free = slot.machine.claimable or slot.machine.state is not before[0]
            self._dirty_slot(slot, urgent=now_free)
            if isinstance(event, op.RunStarted):
                self._policy(slot, self._look(slot))

    def _tell_story(self, slot: Slot, event: Any, before: op.SlotState, something: bool) -> None:
        """A line of the log for each change of place, with the reason; of what changed nothing only to who debugs."""
        after = slot.machine.slot_state
        looked = isinstance(event, op.PolicyEvaluation)
        if after == before and looked and not something:
            return
        often = (after == before and not looked) or type(event) in (op.RunStarted, op.RunFinished)
        if often and not self.slots.settings.tells_all:
            return
        if looked:
            why = slot.policy.why(before, after, slot.job if slot.claim is not None else None, self._now_s)
        else:
            why = getattr(event, "reason", "") or getattr(event, "what", "") or getattr(event, "how", "")
        way = _name(before) if after == before else f"{_name(before)} -> {_name(after)}"
        self._do(Note(f"{slot.name}: {way} ({type(event).__name__}{': ' if why else ''}{why})",
                      "debug" if often else "info"))

    def _checkpoint_if_due(self, slot: Slot) -> None:
        """PERIODIC_CHECKPOINT of the machine, ``periodic_checkpoint`` of the job."""
        held, job = slot.claim, slot.job
        if held is None or job is None or self.starter is None or not held.job_id or not _saves(job):
            return
        if slot.machine.slot_state not in (op.BUSY, op.RETIRING):
            return
        slot_ad.write_claim(slot.ad, held, slot.machine, self._now_s)
        if slot.policy.wants_checkpoint(job, self._now_s):
            held.checkpoint_s = self._now_s
            self._do(Send(self.starter, claim.CheckpointClaim(claim_id=held.claim_id)))

    def _carry_out(self, slot: Slot, action: Any) -> None:
        held = slot.claim
        if isinstance(action, op.StartTimer):
            self._do(SetTimer(("slot", slot.name, action.what), action.delay_s))
        elif isinstance(action, op.StopTimer):
            self._do(CancelTimer(("slot", slot.name, action.what)))
        elif held is None:
            return
        elif isinstance(action, op.ForgetMatch):
            self._drop(slot, held, action.reason)
        elif isinstance(action, op.RevokeClaim):
            self._tell_schedd(held, action.reason, final=False)
        elif self.starter is not None:
            self._do(Send(self.starter, self._order(held, action)))
        elif isinstance(action, op.KillJob):
            self._do(SetTimer(("slot", slot.name, "kill"), 0.0))

    def _end_run(self, slot: Slot) -> None:
        """Have the starter host end what runs on a claim that is ending."""
        machine, held = slot.machine, slot.claim
        if held is None or self.starter is None:
            return
        evaluation = machine.evaluation
        action: Any = op.KillJob(machine.reason)
        if machine.slot_state == op.VACATING:
            action = op.VacateJob(grace_s=evaluation.vacate_s, reason=machine.reason, hold=evaluation.want_hold,
                               hold_subcode=evaluation.hold_subcode)
        self._do(Send(self.starter, self._order(held, action)))

    @staticmethod
    def _order(held: Claim, action: Any) -> Any:
        claim_id = held.claim_id
        if isinstance(action, op.SuspendJob):
            return claim.SuspendClaim(claim_id=claim_id)
        if isinstance(action, op.ResumeJob):
            return claim.ContinueClaim(claim_id=claim_id)
        if isinstance(action, op.LowerPriority):
            return claim.LowerClaim(claim_id=claim_id, on=action.on)
        if isinstance(action, op.VacateJob):
            return claim.CloseClaim(claim_id=claim_id, vacate_s=action.grace_s, reason=action.reason, hold=action.hold,
                                    hold_code=HoldCode.STARTD_HELD_JOB if action.hold else 0,
                                    hold_subcode=action.hold_subcode)
        return claim.CloseClaim(claim_id=claim_id, vacate_s=0.0, reason=action.reason)

    def _tell_schedd(self, held: Claim, reason: str, *, final: bool) -> None:
        if held.schedd is not None:
            self._do(Send(held.schedd, claim.ClaimRevoked(
                claim_id=held.claim_id, reason=reason, final=final, lost=final and self._losing)))

    def _drop(self, slot: Slot, held: Claim, reason: str) -> None:
        """The claim is over; the slot is free, joined to its parent, or the successor's."""
        self._by_claim.pop(held.claim_id, None)
        slot.claim = slot.job = None
        self.slots.renew_capability(slot)
        self._do(Persist(DropClaim(held.claim_id)), CancelTimer(("lease", held.claim_id)))
        self._tell_schedd(held, reason, final=True)
        successor = self._successors.pop(slot.name, None)
        if successor is not None:
            self._do(CancelTimer(("successor", slot.name)))
            if slot.parent is not None and not slot.machine.draining:
                slot.machine.go(op.UNCLAIMED, self._now_s)
            self._succeed(successor, slot)
            return
        if slot.parent is not None:
            self._join(slot)

    def _succeed(self, successor: Delivery, slot: Slot) -> None:
        request = successor.message
        job = ClassAd.from_bytes(request.job_ad)
        share = self._admissible(slot, job) if slot.machine.claimable else f"the slot is {slot.machine.state.value}"
        if isinstance(share, str) or self.starter is None:
            self._decline(successor, share if isinstance(share, str) else "the starter host is gone")
            if slot.parent is not None:
                self._join(slot)
            return
        self._grant(successor, request, slot, job)

    def _join(self, slot: Slot) -> None:
        parent = self.slots.join(slot, self._now_s)
        self._dirty.pop(slot.name, None)
        self._gone_ads[slot.name] = None
        self._dirty_slot(parent, urgent=True)

    # ---- ads

    def _dirty_slot(self, slot: Slot, urgent: bool = False) -> None:
        self._dirty[slot.name] = None
        delay_s = 0.0 if urgent else self.settings.spacing_s
        if self._publishing is None or delay_s < self._publishing:
            self._publishing = delay_s
            self._do(SetTimer("publish", delay_s))

    def _publish(self) -> None:
        names, self._dirty = tuple(self._dirty), {}
        gone, self._gone_ads = tuple(self._gone_ads), {}
        self._do(*(Hide(name) for name in gone if self.slots.get(name) is None))
        for name in names:
            slot = self.slots.get(name)
            if slot is not None:
                self.slots.refresh(slot, self._now_s)
                self._do(Show(slot))


def _name(slot_state: op.SlotState) -> str:
    return f"{slot_state[0].value}/{slot_state[1].value}"


def _saves(job: ClassAd) -> bool:
    """Whether a job can be asked to save its work: by its runtime, or by a signal that it takes."""
    return job.get_int("JobUniverse") == Universe.STANDARD or job.get_bool("WantCheckpointSignal")
