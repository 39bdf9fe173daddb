"""How a claim begins, and what becomes of its slot when it is over.

Theory: a claim is granted in this order: reserve (carve) → ask the starter host to open the claim → persist → tell the
schedd.  So a schedd that has heard of a claim can use it, and it survives the startd.  A request for a slot that is
taken waits while the present job makes way, if the machine likes the newcomer at least as well; without a starter host
all requests wait for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condor_actors.classads import ClassAd, ClassAdSyntaxError, match_ads, requirements_hold
from condor_actors.cores.flocking import foreign_job
from condor_actors.cores.rights import hosts_of, is_fetched
from condor_actors.cores.secrets import matches
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.announced_matches import AnnouncedMatches
from condor_actors.cores.startd.claims.claim import Claim, ClaimRecord, DropClaim, SaveClaim
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.claims.claim_leases import ClaimLeases
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.slot_resources import Share
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.startd_events import NeedStarter, StartdSettings
from condor_actors.cores.startd.starter_link import StarterLink
from condor_actors.cores.turn import Turn
from condor_actors.effects import CancelTimer, Note, Persist, Reply, SetTimer
from condor_actors.messages import claim, negotiate
from condor_actors.messages.envelope import AskFailed, Delivery, Done, Refused
from condor_actors.messages.realm import MARK, abroad, node_abroad

__all__ = ["ClaimGranting"]

NOTICE_WAIT_S = 5.0
MOST_EARLY = 100
DECLINED_S = 5.0
"""How long the negotiator's word of a match may come behind the schedd's that it is declined."""
NO_MATCH = "no match with it was announced by this pool's negotiator"


class ClaimGranting:
    """Answers schedds that ask for a slot.

    Args:
        turn: of the core.
        slots: of the machine.
        claims: of the startd.
        starter: opens claims.
        controller: gives a slot its events; says when a claim is over.
        publisher: is told which slots have changed.
        leases: of the claims.
        settings: times.
        new_claim_id: gives fresh public ids.
        new_secret: gives fresh secrets.
    """

    def __init__(self, turn: Turn, slots: Slots, claims: ClaimIndex, starter: StarterLink, controller: SlotController,
                 publisher: SlotPublisher, leases: ClaimLeases, settings: StartdSettings, *,
                 new_claim_id: Callable[[], str], new_secret: Callable[[], str]) -> None:
        self._turn = turn
        self._slots = slots
        self._claims = claims
        self._starter = starter
        self._controller = controller
        self._publisher = publisher
        self._leases = leases
        self._settings = settings
        self._new_claim_id = new_claim_id
        self._new_secret = new_secret
        self._successors: dict[str, Delivery] = {}
        """Requests that wait until the present job has left, by slot."""
        self._announced = AnnouncedMatches()
        self._early: dict[tuple[str, str], list[Delivery]] = {}
        """Requests from other pools of whose match the negotiator has not told yet, by slot and submitter."""
        self._declined: dict[str, tuple[str, float]] = {}
        """Matches that were declined before the negotiator told of them, by slot: whose, and until when that counts."""
        self._waiting: list[Delivery] = []
        """Requests that wait for a starter host."""
        controller.claim_over = self._claim_over
        self.may_be_claimed: Callable[[], bool] = lambda: True
        """Asked before anything is granted: whether the machine does not sleep."""
        self.claim_ended: Callable[[str], None] = lambda claim_id: None
        """Told of each claim that is over."""

    # ---- asking

    def match_notice(self, event: Delivery, message: negotiate.MatchNotice) -> None:
        """The negotiator has given a slot to a submitter."""
        slot = self._slots.get(message.slot_name)
        if slot is not None and MARK in message.submitter:
            self._announced.announce(message, self._turn.now_s)
            for early in self._early.pop((message.slot_name, message.submitter), ()):
                self.request(early, early.message)
        declined = self._declined.pop(message.slot_name, None)
        is_declined = declined is not None and declined[0] == message.submitter and self._turn.now_s < declined[1]
        if slot is not None and not slot.partitionable and not is_declined:
            self._controller.apply(slot, op.Matched(message.submitter))
        self._turn.do(Reply(Done(), event))

    def match_declined(self, event: Delivery, message: claim.DeclineMatch) -> None:
        """A schedd does not want the slot that it was matched with."""
        slot = self._slots.get(message.slot_name)
        if slot is None or slot.partitionable or not matches(slot.capability, message.capability):
            return
        if slot.machine.slot_state == op.MATCHED:
            self._end_match(slot)
        else:
            submitter = abroad(message.submitter, event.identity.realm)
            self._declined[slot.name] = (submitter, self._turn.now_s + DECLINED_S)

    def _end_match(self, slot: Slot) -> None:
        """A match has come to nothing: the slot is the next one's."""
        self._controller.apply(slot, op.TimerExpired("match"))
        self._publisher.changed(slot, urgent=True)

    def request(self, event: Delivery, request: claim.RequestClaim) -> None:
        """A schedd asks for a slot that it was matched with."""
        slot = self._slots.get(request.slot_name)
        if slot is None:
            return self._decline(event, "there is no such slot")
        if not event.identity.is_local and "schedd" not in event.identity.roles:
            return self._decline(event, f"{event.identity.name} of {event.identity.host} is no schedd")
        if is_fetched(request.owner) and event.identity.method != "self":
            return self._decline(event, "work is fetched by this machine alone")
        if not matches(slot.capability, request.capability):
            return self._decline(event, "the match is out of date")
        if not self._starter.is_up:
            self._waiting.append(event)
            self._turn.do(SetTimer("starter-wait", self._settings.starter_wait_s), NeedStarter())
            return None
        try:
            job = ClassAd.from_bytes(request.job_ad)
        except ClassAdSyntaxError as error:
            return self._decline(event, f"the job's ad cannot be read: {error}")
        submitter = abroad(request.submitter, event.identity.realm)
        foreign_job(job, submitter)
        if MARK in submitter and not self._announced.knows(slot.name, submitter, self._turn.now_s):
            return self._wait_for_notice(event, slot.name, submitter)
        why_not = self._announced.why_not(slot.name, submitter, job, slot.ad, self._turn.now_s)
        if why_not:
            return self._decline(event, why_not)
        share = self.admissible(slot, job)
        if isinstance(share, str):
            return self._decline(event, share)
        if slot.partitionable:
            slot = self._slots.carve(slot, share, self._turn.now_s)
        elif not slot.machine.claimable:
            return self._displace(event, slot, job)
        return self.grant(event, request, slot, job)

    def _wait_for_notice(self, event: Delivery, slot_name: str, submitter: str) -> None:
        """The schedd may be faster than the negotiator's word to us."""
        if sum(map(len, self._early.values())) >= MOST_EARLY:
            return self._decline(event, NO_MATCH)
        self._early.setdefault((slot_name, submitter), []).append(event)
        return self._turn.do(SetTimer(("early", (slot_name, submitter)), NOTICE_WAIT_S))

    def no_notice(self, key: tuple[str, str]) -> None:
        """The negotiator has said nothing of a match that another pool's schedd claims to have."""
        for event in self._early.pop(key, ()):
            self._decline(event, NO_MATCH)

    def starter_is_up(self) -> None:
        """Requests that waited for a starter host are taken up."""
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self.request(request, request.message)

    def starter_does_not_start(self) -> None:
        """Requests have waited long enough for a starter host."""
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._decline(request, "the starter host does not start", 30.0)

    def successor_waited(self, slot_name: str) -> None:
        """A request has waited long enough for the present job to leave."""
        successor = self._successors.pop(slot_name, None)
        if successor is not None:
            self._decline(successor, "the job that holds the slot takes long to leave", 60.0)

    def _decline(self, event: Delivery, reason: str, retry_after_s: float = 0.0) -> None:
        name = event.message.slot_name
        self._turn.do(Reply(claim.ClaimRefused(slot_name=name, reason=reason, retry_after_s=retry_after_s), event))
        self._turn.do(Note(f"{name} is refused to {event.message.submitter}: {reason}", fields=(("kind", "refused"),)))
        slot = self._slots.get(name)
        if slot is None:
            return
        if slot.machine.slot_state == op.MATCHED and matches(slot.capability, event.message.capability):
            self._end_match(slot)
        else:
            self._publisher.changed(slot, urgent=True)

    def admissible(self, slot: Slot, job: ClassAd) -> Share | str:
        """The share that the job would get, or why none: things may have changed since the match."""
        if slot.machine.draining:
            return "the machine is being drained"
        if not self.may_be_claimed():
            return "the machine goes to sleep"
        if self._controller.pause is not None:
            return "the owner of the machine has paused the pool there"
        if slot.partitionable and not slot.machine.claimable:
            return f"the slot is {slot.machine.state.value}"
        share = self._slots.fit(slot, job)
        if isinstance(share, str):
            return f"not enough is left: {share}"
        if not match_ads(job, slot.ad, self._turn.now_s):
            side = "slot" if requirements_hold(job, slot.ad, self._turn.now_s) else "job"
            return f"the Requirements of the {side} do not hold any more"
        if not slot.policy.starts(job, self._turn.now_s):
            return "START does not hold any more"
        return share

    def _displace(self, event: Delivery, slot: Slot, job: ClassAd) -> None:
        """The slot is taken: the newcomer waits while the present job makes way."""
        old = slot.claim
        if old is None or slot.machine.state is op.State.OWNER:
            return self._decline(event, f"the slot is {slot.machine.state.value}")
        rank = slot.policy.rank(job, self._turn.now_s)
        if rank < old.record.rank:
            return self._decline(event, "a job that the machine likes better runs there")
        if slot.name in self._successors:
            return self._decline(event, "another claim already waits for it", 60.0)
        self._successors[slot.name] = event
        self._turn.do(SetTimer(("successor", slot.name), self._settings.successor_wait_s))
        why = "rank" if rank > old.record.rank else "user priority"
        newcomer = abroad(event.message.submitter, event.identity.realm)
        evict = op.EvictRequested(f"preempted by {newcomer} ({why})", "retire")
        return self._controller.apply(slot, evict)

    # ---- granting

    def grant(self, event: Delivery, request: claim.RequestClaim, slot: Slot, job: ClassAd) -> None:
        """A claim on a free slot begins: the starter host is asked to open it, and then it is told."""
        now_s = self._turn.now_s
        rank = slot.policy.rank(job, now_s)
        realm = event.identity.realm
        record = ClaimRecord(
            claim_id=self._new_claim_id(), secret=self._new_secret(), slot_name=slot.name, share=slot.total,
            submitter=abroad(request.submitter, realm), schedd_name=abroad(request.schedd_name, realm),
            lease_s=request.lease_s, starter_node=self._starter.node,
            job_ad=job.to_bytes() if realm else request.job_ad, rank=rank, granted_s=now_s,
            schedd_node=node_abroad(request.schedd_node, realm), owner=abroad(request.owner, realm),
            hosts=hosts_of(event.identity), checkpoint_key=request.checkpoint_key)
        slot.claim = Claim(record=record, schedd=event.sender, renewed_s=now_s)
        slot.job = job
        self._slots.write_worklife(slot, job, now_s)
        self._claims.add(record.claim_id, slot)
        self._slots.renew_capability(slot)
        self._controller.apply(slot, op.Claimed())
        self._claims.opening[record.claim_id] = event
        self.open(slot)

    def open(self, slot: Slot) -> None:
        """Have the starter host open the slot's claim, with the slot's ad as it is now."""
        self._slots.refresh(slot, self._turn.now_s)
        self._starter.open(slot, self._slots.assigned(slot))

    def opened(self, claim_id: str, answer: Any) -> None:
        """The starter host has opened a claim, or not."""
        slot = self._claims.slot(claim_id)
        event_waiting = self._claims.opening.pop(claim_id, None)
        held = slot.claim if slot is not None else None
        if slot is None or held is None:
            if event_waiting is not None:
                self._decline(event_waiting, "the machine was taken back meanwhile", 5.0)
            return
        if event_waiting is None and isinstance(answer, AskFailed):
            return  # it was granted before; what the starter host has is in its next hello
        if not isinstance(answer, Done):
            why = answer.text if isinstance(answer, (Refused, AskFailed)) else "no answer"
            self._turn.do(Note(f"{slot.name}: the starter host does not open the claim: {why}", "warn"))
            self._starter.close(claim_id, "it was not opened in time")
            if event_waiting is not None:
                self._decline(event_waiting, f"the starter host does not open the claim: {why}", 5.0)
            self._controller.apply(slot, op.ClaimCleared())
            return
        held.open = True
        if event_waiting is None:
            return
        if slot.machine.state is op.State.PREEMPTING:  # it is being closed again
            self._decline(event_waiting, "the machine was taken back meanwhile", 5.0)
            return
        granted = claim.ClaimGranted(
            claim_id=claim_id, secret=held.record.secret, slot_name=slot.name, slot_ad=slot.ad.to_bytes(),
            starter_node=self._starter.node, lease_s=held.record.lease_s)
        self._turn.do(Persist(SaveClaim(held.record)), Reply(granted, event_waiting),
                      SetTimer(("lease", claim_id), held.record.lease_s))
        self._leases.idle(held)
        self._publisher.changed(slot, urgent=True)
        if slot.parent is not None:
            self._publisher.changed(slot.parent, urgent=True)

    # ---- a claim is over

    def _claim_over(self, slot: Slot, reason: str) -> None:
        """The slot is free, joined to its parent, or the successor's."""
        held = slot.claim
        assert held is not None
        self._claims.remove(held.claim_id)
        slot.claim = slot.job = None
        self._slots.renew_capability(slot)
        self._turn.do(Persist(DropClaim(held.claim_id)), CancelTimer(("lease", held.claim_id)))
        self._controller.tell_schedd(held, reason, final=True)
        successor = self._successors.pop(slot.name, None)
        if successor is not None:
            self._turn.do(CancelTimer(("successor", slot.name)))
            if slot.parent is not None and not slot.machine.draining:
                slot.machine.go(op.UNCLAIMED, self._turn.now_s)
            self._succeed(successor, slot)
        elif slot.parent is not None:
            self._join(slot)
        self.claim_ended(held.claim_id)

    def _succeed(self, successor: Delivery, slot: Slot) -> None:
        request = successor.message
        job = ClassAd.from_bytes(request.job_ad)
        foreign_job(job, abroad(request.submitter, successor.identity.realm))
        share = self.admissible(slot, job) if slot.machine.claimable else f"the slot is {slot.machine.state.value}"
        if isinstance(share, str) or not self._starter.is_up:
            self._decline(successor, share if isinstance(share, str) else "the starter host is gone")
            if slot.parent is not None:
                self._join(slot)
            return
        self.grant(successor, request, slot, job)

    def _join(self, slot: Slot) -> None:
        parent = self._slots.join(slot, self._turn.now_s)
        self._publisher.removed(slot)
        self._publisher.changed(parent, urgent=True)
