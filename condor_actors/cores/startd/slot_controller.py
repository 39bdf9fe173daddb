"""How the startd treats one slot: its policy into orders to the starter host, words to the schedd, lines of the log.

Theory: decisions about a slot are :mod:`owner_policy`'s; here events are brought to a slot, and what follows from them
becomes effects.  What follows when a claim is over is decided where claims are granted
(:mod:`condor_actors.cores.startd.claims.claim_granting`), which asks to be called then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd import slot_ad
from condor_actors.cores.startd.claims.claim import Claim
from condor_actors.cores.startd.owner_pause import Pause
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.starter_link import StarterLink
from condor_actors.cores.turn import Turn
from condor_actors.effects import CancelTimer, Note, Send, SetTimer, job_note
from condor_actors.messages import claim
from condor_actors.messages.codes import Universe

__all__ = ["SlotController"]


class SlotController:
    """Gives slots their events and carries out what their policy decides.

    Args:
        turn: of the core.
        slots: of the machine.
        starter: gets the orders.
        publisher: is told which slots have changed.

    Attributes:
        pause: the owner's, which overrules every policy while it lasts; None: there is none.
        claim_over: called with the slot and the reason when a claim is over.
    """

    claim_over: Callable[[Slot, str], None]

    def __init__(self, turn: Turn, slots: Slots, starter: StarterLink, publisher: SlotPublisher) -> None:
        self._turn = turn
        self._slots = slots
        self._starter = starter
        self._publisher = publisher
        self.pause: Pause | None = None

    # ---- the policy of one slot

    def evaluate(self, slot: Slot) -> op.PolicyEvaluation:
        """What the policy of a slot comes to now."""
        evaluation = slot.policy.evaluation(slot.job if slot.claim is not None else None, self._turn.now_s)
        return evaluation if self.pause is None else self.pause.overrule(evaluation)

    def apply(self, slot: Slot, event: Any) -> None:
        """Give the event to the slot and carry out what follows.

        The policy waits for the starter host to say what runs on a claim that this startd has found: an owner who is
        there does not end a claim whose job sleeps.
        """
        if isinstance(event, op.PolicyEvaluation) and slot.claim is not None and not slot.claim.heard:
            return
        before = slot.machine.slot_state
        actions = slot.machine.handle(event, self._turn.now_s)
        self._log_transition(slot, event, before, bool(actions))
        for action in actions:
            self._carry_out(slot, action)
        if slot.machine.slot_state != before:
            now_free = slot.machine.claimable or slot.machine.state is not before[0]
            self._publisher.changed(slot, urgent=now_free)
            if isinstance(event, op.RunStarted):
                self.reevaluate(slot)

    def reevaluate(self, slot: Slot) -> None:
        """Evaluate the policy of a slot and carry out what follows."""
        self.apply(slot, self.evaluate(slot))

    def lose(self, slot: Slot) -> None:
        """The slot's claim is gone, and what ran on it with all it had done."""
        if slot.claim is not None:
            slot.claim.lost = True
        self.apply(slot, op.ClaimCleared())

    def _log_transition(self, slot: Slot, event: Any, before: op.SlotState, something: bool) -> None:
        """A line of the log for each change of state, with the reason; of what changed nothing only when debugging."""
        after = slot.machine.slot_state
        evaluated = isinstance(event, op.PolicyEvaluation)
        if after == before and evaluated and not something:
            return
        often = (after == before and not evaluated) or type(event) in (op.RunStarted, op.RunFinished)
        if often and not self._slots.settings.tells_all:
            return
        if evaluated:
            why = slot.policy.why(before, after, slot.job if slot.claim is not None else None, self._turn.now_s)
        else:
            why = getattr(event, "reason", "") or getattr(event, "what", "") or getattr(event, "how", "")
        way = _name(before) if after == before else f"{_name(before)} -> {_name(after)}"
        text = f"{slot.name}: {way} ({type(event).__name__}{': ' if why else ''}{why})"
        level = "debug" if often else "info"
        job = slot.claim.job_id if slot.claim is not None else ""
        self._turn.do(job_note(job, way, text, level) if job else Note(text, level))

    def checkpoint_if_due(self, slot: Slot) -> None:
        """PERIODIC_CHECKPOINT of the machine, ``periodic_checkpoint`` of the job."""
        held, job = slot.claim, slot.job
        if held is None or job is None or not self._starter.is_up or not held.job_id or not _saves(job):
            return
        if slot.machine.slot_state not in (op.BUSY, op.RETIRING):
            return
        slot_ad.write_claim(slot.ad, held, slot.machine, self._turn.now_s)
        if slot.policy.wants_checkpoint(job, self._turn.now_s):
            held.checkpoint_s = self._turn.now_s
            self._starter.checkpoint(held)

    def _carry_out(self, slot: Slot, action: Any) -> None:
        held = slot.claim
        if isinstance(action, op.StartTimer):
            self._turn.do(SetTimer(("slot", slot.name, action.what), action.delay_s))
        elif isinstance(action, op.StopTimer):
            self._turn.do(CancelTimer(("slot", slot.name, action.what)))
        elif held is None:
            return
        elif isinstance(action, op.ForgetMatch):
            self.claim_over(slot, action.reason)
        elif isinstance(action, op.RevokeClaim):
            self.tell_schedd(held, action.reason, final=False)
        elif self._starter.is_up:
            self._starter.order(held, action)
        elif isinstance(action, op.KillJob):
            self._turn.do(SetTimer(("slot", slot.name, "kill"), 0.0))

    def end_run(self, slot: Slot) -> None:
        """Have the starter host end what runs on a claim that is ending."""
        machine, held = slot.machine, slot.claim
        if held is None or not self._starter.is_up:
            return
        evaluation = machine.evaluation
        action: Any = op.KillJob(machine.reason)
        if machine.slot_state == op.VACATING:
            action = op.VacateJob(grace_s=evaluation.vacate_s, reason=machine.reason, hold=evaluation.want_hold,
                                  hold_subcode=evaluation.hold_subcode)
        self._starter.order(held, action)

    def tell_schedd(self, held: Claim, reason: str, *, final: bool) -> None:
        """Tell the schedd of a claim that it is revoked, or over (``final``)."""
        if held.schedd is not None:
            self._turn.do(Send(held.schedd, claim.ClaimRevoked(
                claim_id=held.claim_id, reason=reason, final=final, lost=final and held.lost)))


def _name(slot_state: op.SlotState) -> str:
    return f"{slot_state[0].value}/{slot_state[1].value}"


def _saves(job: ClassAd) -> bool:
    """Whether a job can be asked to save its work: by its runtime, or by a signal that it takes."""
    return job.get_int("JobUniverse") == Universe.STANDARD or job.get_bool("WantCheckpointSignal")
