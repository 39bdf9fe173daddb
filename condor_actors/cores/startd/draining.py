"""A drain: the wish to empty a machine, and what follows when it is empty.

With ``-start`` what is free meanwhile takes jobs that fit that expression; they are vacated when the last of the claims
that were there before is over.  A slot that is not divided takes none once its own claim is over.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from condor_actors.classads import ClassAdSyntaxError, is_true, parse_expression
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.startd_events import EndStartd
from condor_actors.cores.turn import Turn
from condor_actors.effects import Reply
from condor_actors.messages.admin import CancelDrain, Drain
from condor_actors.messages.envelope import Delivery, Done, Refused

__all__ = ["DrainControl", "Draining", "expectation"]

HOW = {"graceful": "retire", "quick": "vacate", "fast": "kill", "peaceful": "finish"}
ON_COMPLETION = ("nothing", "resume", "exit", "restart")


@attrs.define
class Draining:
    """The drain that is under way, if any.

    Attributes:
        request: as it was asked for; None: none is under way.
        request_id: names it.
        emptied: whether the machine is empty.
        former: with ``-start``, the claims that were there when the drain began and are not over; None: no matter.
    """

    request: Drain | None = None
    request_id: str = ""
    emptied: bool = False
    former: frozenset[str] | None = None
    count: int = 0

    @property
    def on_completion(self) -> str:
        """What follows when the machine is empty."""
        return self.request.on_completion if self.request is not None else "nothing"

    def begin(self, wish: Drain, slots: Slots, birth: int, now_s: float) -> Refused | str:
        """Take up a drain: how claims have to go, or why it is refused."""
        if self.request is not None:
            return Refused(code="busy", text=f"drain {self.request_id} is under way")
        if wish.how not in HOW or wish.on_completion not in ON_COMPLETION:
            return Refused(code="invalid", text=f"how is one of {', '.join(HOW)}; "
                                                f"on_completion one of {', '.join(ON_COMPLETION)}")
        try:
            parse_expression(wish.start_expr or "true")
        except ClassAdSyntaxError as error:
            return Refused(code="invalid", text=f"the start expression: {error}")
        if wish.check_expr:
            try:
                check = parse_expression(wish.check_expr)
            except ClassAdSyntaxError as error:
                return Refused(code="invalid", text=f"the check expression: {error}")
            for slot in slots:
                ad = slot.ad.copy()
                ad["DrainCheck"] = check
                if not is_true(ad.evaluate("DrainCheck", now_s=now_s)):
                    return Refused(code="denied", text=f"the check expression is not true for {slot.name}")
        self.count += 1
        self.request, self.request_id, self.emptied = wish, f"{birth}.{self.count}", False
        return HOW[wish.how]

    def end_peacefully(self, birth: int) -> str:
        """The startd is to end when the machine is empty, whatever drain is under way: how claims have to go."""
        if self.request is None:
            self.count += 1
            self.request_id = f"{birth}.{self.count}"
        self.request, self.emptied, self.former = Drain(how="peaceful", on_completion="exit"), False, None
        return HOW["peaceful"]

    def cancel(self, request_id: str) -> Refused | None:
        """End the drain; the refusal when there is no such one."""
        if self.request is None or (request_id and request_id != self.request_id):
            return Refused(code="not-found", text="there is no such drain")
        self.request = self.former = None
        self.request_id = ""
        return None


class DrainControl:
    """Empties the machine as a drain wants it, and sees to what follows.

    Args:
        turn: of the core.
        slots: of the machine.
        claims: of the startd.
        controller: gives slots their events.
        publisher: is told which slots have changed.
        draining: the drain under way, kept beyond this core.
        birth: numbers the startd's life; part of the drains' names.
    """

    def __init__(self, turn: Turn, slots: Slots, claims: ClaimIndex, controller: SlotController,
                 publisher: SlotPublisher, draining: Draining, birth: int) -> None:
        self._turn = turn
        self._slots = slots
        self._claims = claims
        self._controller = controller
        self._publisher = publisher
        self._draining = draining
        self._birth = birth

    def drain(self, event: Delivery, message: Drain) -> None:
        """An administrator drains the machine."""
        verdict = self._draining.begin(message, self._slots, self._birth, self._turn.now_s)
        if isinstance(verdict, Refused):
            self._turn.do(Reply(verdict, event))
            return
        if message.start_expr and self._claims:
            self._draining.former = self._claims.ids
        self.go_on()
        self._turn.do(Reply(Done(text=self._draining.request_id), event))

    def go_on(self) -> None:
        """Do what the drain under way says, which a core that was made anew may have taken over."""
        wish, former = self._draining.request, self._draining.former
        if wish is None:
            return
        self._draining.emptied = False
        if former is not None:
            self._slots.start_instead(parse_expression(wish.start_expr))
        for slot in self._slots:
            if former is None or (slot.claim is not None and slot.claim.claim_id in former):
                self._controller.apply(slot, op.DrainRequested(HOW[wish.how]))
            else:
                self._controller.reevaluate(slot)
                self._publisher.changed(slot, urgent=True)

    def cancel(self, event: Delivery, message: CancelDrain) -> None:
        """An administrator ends the drain."""
        refusal = self._draining.cancel(message.request_id)
        if refusal is not None:
            self._turn.do(Reply(refusal, event))
            return
        self._slots.start_instead(None)
        self._apply_to_all(op.DrainCancelled())
        self._turn.do(Reply(Done(), event))

    def finish(self) -> None:
        """Let what runs finish, then end the startd."""
        self._apply_to_all(op.DrainRequested(self._draining.end_peacefully(self._birth)))

    def check(self) -> None:
        """At the end of each turn: whether the machine is empty by now, and what follows then."""
        draining = self._draining
        if draining.request is None:
            return
        if draining.former is not None and draining.former.isdisjoint(self._claims.ids):
            # Those that were there are gone: now those that came in their place.
            draining.former = None
            self._slots.start_instead(None)
            self._apply_to_all(op.DrainRequested("vacate"))
        if draining.emptied or self._claims or self._claims.opening:
            return
        draining.emptied = True
        how = draining.on_completion
        self._apply_to_all(op.MachineEmptied())
        if how == "resume":
            draining.request = None
            self._apply_to_all(op.DrainCancelled())
        elif how in ("exit", "restart"):
            self._turn.do(EndStartd(how))

    def _apply_to_all(self, event: object) -> None:
        for slot in self._slots:
            self._controller.apply(slot, event)


def expectation(slots: Iterable[Slot], now_s: float) -> dict[str, int]:
    """What draining the machine now would cost and when it would be empty, as attributes for its slots' ads.

    Graceful: jobs use up their retirement time and then go without saving; quick: they go at once.  What a job has
    saved in a checkpoint is not lost.  Badput is in seconds of one processor, completion a time of day.

    Source: HTCondor's manual, machine attributes ExpectedMachineGracefulDraining…, ExpectedMachineQuickDraining….
    """
    done = {"Graceful": now_s, "Quick": now_s}
    lost = {"Graceful": 0.0, "Quick": 0.0}
    for slot in slots:
        machine, held = slot.machine, slot.claim
        if held is None or not machine.job_began_s:
            continue
        ran_s = max(0.0, now_s - max(machine.job_began_s, held.checkpoint_s))
        left_s = max(0.0, machine.job_began_s + machine.evaluation.retirement_s - now_s)
        for how, stays_s in (("Graceful", left_s), ("Quick", 0.0)):
            lost[how] += slot.total.cpus * (ran_s + stays_s)
            done[how] = max(done[how], now_s + stays_s + machine.evaluation.vacate_s)
    found = {}
    for how, when_s in done.items():
        found[f"ExpectedMachine{how}DrainingBadput"] = int(lost[how])
        found[f"ExpectedMachine{how}DrainingCompletion"] = int(when_s)
    return found
