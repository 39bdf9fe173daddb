"""What a startd says and does: each event goes to the part of the core that answers it.

Theory: everything the startd hears is an event here: messages (as the :class:`Delivery` they came in), readings of the
host, timers, answers, and the coming and going of the starter host.  The parts share the turn; each knows the few
others that it needs:

==================  ================================================================================================
claim_granting      schedds ask for slots; claims begin and end
claim_joining       several claims become one
claim_leases        claims are renewed and given back; schedds are asked about those on which nothing runs
starter_reports     what the starter host says of claims and runs
draining            the machine is emptied
owner_state         readings, pauses, what owners are told
hibernation         the machine is put to sleep
slot_controller     brings events to a slot; decisions are :mod:`owner_policy`'s
slot_publisher      sends ads that have changed
==================  ================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.site_programs.programs import SiteAdsTold
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim import Claim, ClaimRecord, DropClaim
from condor_actors.cores.startd.claims.claim_granting import ClaimGranting
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.claims.claim_joining import ClaimJoining
from condor_actors.cores.startd.claims.claim_leases import SCHEDD_ACTOR, ClaimLeases
from condor_actors.cores.startd.draining import DrainControl, Draining
from condor_actors.cores.startd.hibernation import (
    Hibernation,
    HibernationDue,
    PowerKnown,
    SleepOver,
    SleepState,
    SleepTold,
)
from condor_actors.cores.startd.idleness import Idleness
from condor_actors.cores.startd.owner_state import OwnerState
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.slot_resources import Share
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.startd_events import (
    Benchmarked,
    DiskGrew,
    NeedStarter,
    Observed,
    Probed,
    SensorSpoke,
    StartdSettings,
    StarterDied,
)
from condor_actors.cores.startd.starter_link import StarterLink
from condor_actors.cores.startd.starter_reports import StarterReports
from condor_actors.cores.turn import Turn
from condor_actors.effects import Answer, Effect, Note, Persist, Reply, SetTimer
from condor_actors.messages import admin, claim, negotiate, owner
from condor_actors.messages.envelope import Address, Delivery, Done, TimerFired
from condor_actors.messages.pool import PartnersKnown
from condor_actors.messages.realm import parted
from condor_actors.numerals import numeral

__all__ = ["StartdCore"]


class StartdCore:
    """The core of the startd; see the module.

    Args:
        slots: the slots, already created.
        settings: times and addresses.
        birth_s: when this startd began; part of its claims' ids.
        new_secret: gives fresh secrets.
        numbers: of claims, none twice while the process lives: a core that is made anew goes on with them.
        idleness: what sensors have said, and draining: the drain under way; both outlive a core that is made anew.

    Attributes:
        slots, settings, idleness, draining: as above.
        starter: where the starter host is.
        owner: what is known of the machine's owner.
    """

    def __init__(self, slots: Slots, settings: StartdSettings, *, birth_s: float, new_secret: Callable[[], str],
                 numbers: Iterator[int] | None = None, idleness: Idleness | None = None,
                 draining: Draining | None = None) -> None:
        self.slots = slots
        self.settings = settings
        self.idleness = idleness if idleness is not None else Idleness()
        self.draining = draining if draining is not None else Draining()
        birth, numbers = int(birth_s), numbers if numbers is not None else count(1)
        turn = self._turn = Turn(birth_s)
        index = self._claims = ClaimIndex()
        self.starter = StarterLink(turn, settings.open_timeout_s)
        publisher = self._publisher = SlotPublisher(turn, slots, settings.spacing_s)
        controller = self._controller = SlotController(turn, slots, self.starter, publisher)
        self._leases = ClaimLeases(turn, index, controller, settings.address)
        self._granting = ClaimGranting(
            turn, slots, index, self.starter, controller, publisher, self._leases, settings,
            new_claim_id=lambda: f"{settings.address}#{birth}#{next(numbers)}", new_secret=new_secret)
        self._joining = ClaimJoining(turn, slots, index, self.starter, controller, self._granting)
        self._reports = StarterReports(turn, index, self.starter, controller, publisher, self._leases, self._granting,
                                       self._joining)
        self._drain = DrainControl(turn, slots, index, controller, publisher, self.draining, birth)
        self.owner = OwnerState(turn, slots, index, controller, publisher, self.idleness, self.draining, settings)
        self._hibernation = Hibernation(turn, slots, index, publisher, self.draining)
        self._granting.may_be_claimed = self._hibernation.may_be_claimed
        self._table = self._steps()

    def _steps(self) -> dict[type, Callable[[Any, Any], None]]:
        return {
            claim.RequestClaim: self._granting.request,
            negotiate.MatchNotice: self._granting.match_notice,
            claim.JoinClaims: self._joining.request,
            claim.RenewClaims: self._leases.renew,
            claim.DeclineMatch: self._granting.match_declined,
            claim.ReleaseClaim: self._leases.release,
            claim.StarterHostHello: self._reports.hello,
            claim.ClaimActivity: self._reports.activity,
            StarterDied: self._reports.died,
            admin.Drain: self._drain.drain,
            admin.CancelDrain: self._drain.cancel,
            admin.VacateSlots: self._vacate,
            PartnersKnown: self._partners_known,
            admin.IdleReading: self.owner.idle_reading,
            owner.QueryOwner: self.owner.query,
            owner.PauseMachine: self.owner.pause,
            owner.ResumeMachine: self.owner.resume,
            SensorSpoke: self.owner.sensor_spoke,
            Benchmarked: self.owner.benchmarked,
            Probed: self.owner.probed,
            DiskGrew: self.owner.disk_grew,
            SiteAdsTold: self.owner.site_ads_told,
            Observed: self.owner.observe,
            PowerKnown: self._hibernation.known,
            SleepTold: self._power,
            SleepOver: self._power,
            Answer: self._answered,
            TimerFired: self._timer,
        }

    # ---- turns

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from ``event`` at ``now_s``."""
        self._turn.begin(now_s)
        what = event.message if isinstance(event, Delivery) else event
        step = self._table.get(type(what))
        if step is None:
            self._turn.refuse(event, "invalid", f"a startd does not take {type(what).__name__}")
        else:
            step(event, what)
        self._drain.check()
        return self._turn.end()

    def start(self, records: tuple[ClaimRecord, ...], now_s: float,
              facts: Mapping[str, Any] | None = None) -> tuple[Effect, ...]:
        """The first turn: take up what the store remembers, offer the slots, ask for a starter host."""
        self._turn.begin(now_s)
        self._turn.do(NeedStarter())
        self.owner.recall(facts or {}, now_s)
        for record in records:
            self._restore(record)
        self._leases.ask_schedds()
        for slot in self.slots:
            self._controller.reevaluate(slot)
            self._publisher.changed(slot, urgent=True)
        self._drain.go_on()
        self._hibernation.begin()
        self._turn.do(SetTimer("heartbeat", self.settings.update_interval_s))
        return self._turn.end()

    def refresh(self, now_s: float) -> tuple[Effect, ...]:
        """Policy or attributes have changed: evaluate and show everything again."""
        self._turn.begin(now_s)
        self.owner.reevaluate()
        self._hibernation.begin()
        self._publisher.all_changed(urgent=True)
        return self._turn.end()

    def finish(self, now_s: float) -> tuple[Effect, ...]:
        """Take no new claims, let what runs finish, then end the startd."""
        self._turn.begin(now_s)
        self._drain.finish()
        self._drain.check()
        return self._turn.end()

    def vacate_all(self, now_s: float, *, fast: bool) -> tuple[Effect, ...]:
        """End every claim, for a startd that stops for good."""
        self._turn.begin(now_s)
        for slot in self.slots:
            if slot.claim is not None:
                event = op.EvictRequested("the startd is shutting down", "kill" if fast else "vacate")
                self._controller.apply(slot, event)
        return self._turn.end()

    # ---- what is seen from outside

    @property
    def claims(self) -> tuple[Slot, ...]:
        """The slots that are claimed."""
        return self._claims.slots

    @property
    def is_awake(self) -> bool:
        """Whether the machine neither sleeps nor is about to."""
        return self._hibernation.state is SleepState.AWAKE

    @property
    def opening(self) -> frozenset[str]:
        """The claims that the starter host has still to open."""
        return frozenset(self._claims.opening)

    def story(self, slot_name: str) -> tuple[tuple[float, str, str], ...]:
        """What made the slot what it is: (when, event, state afterwards)."""
        slot = self.slots.get(slot_name)
        return tuple(slot.machine.story) if slot is not None else ()

    def validate(self) -> None:
        """Check what holds between two turns, of the slots and of the claims.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        self.slots.validate()
        self._claims.validate(self.slots)
        self._hibernation.validate()

    # ---- steps that concern several parts

    def _restore(self, record: ClaimRecord) -> None:
        """Take up a claim of the startd's former life."""
        slot = self.slots.get(record.slot_name)
        if slot is None:
            bare, _, host = record.slot_name.partition("@")
            front, _, number = bare.rpartition("_")
            parent = self.slots.get(f"{front}@{host}")
            numbered = numeral(number)
            if parent is None or not parent.partitionable or numbered is None or not _covers(parent, record.share):
                self._turn.do(Note(f"the claim {record.claim_id} fits no slot any more", "warn"),
                              Persist(DropClaim(record.claim_id)))
                return
            slot = self.slots.carve(parent, record.share, self._turn.now_s, numbered)
        elif slot.total.custom != record.share.custom:  # its devices are others now, and these may be another slot's
            self._turn.do(Note(f"the claim {record.claim_id} has devices that {slot.name} has not any more", "warn"),
                          Persist(DropClaim(record.claim_id)))
            return
        schedd = Address(record.schedd_node, SCHEDD_ACTOR) if record.schedd_node else None
        slot.claim = Claim(record=record, schedd=schedd, renewed_s=self._turn.now_s, heard=False)
        self._leases.found(record.claim_id)
        slot.job = ClassAd.from_bytes(record.job_ad)
        slot.machine.go(op.CLAIMED, self._turn.now_s)
        self._claims.add(record.claim_id, slot)
        self.slots.refresh(slot, self._turn.now_s)
        self._leases.begin(slot.claim)

    def _partners_known(self, event: Any, message: PartnersKnown) -> None:
        """Jobs of pools that are trusted no longer leave."""
        known = {"", *(partner.name for partner in message.partners)}
        for slot in self._claims.slots:
            assert slot.claim is not None
            realms = {parted(host)[1] for host in slot.claim.record.hosts}
            if not realms <= known and slot.machine.state is not op.State.PREEMPTING:
                pools = ", ".join(sorted(realms - known))
                self._controller.apply(slot, op.EvictRequested(f"the pool {pools} is trusted no longer", "fast"))

    def _answered(self, event: Any, answer: Answer) -> None:
        about, what = answer.tag
        if about == "kept":
            self._leases.schedd_answered(what, answer.message)
        else:
            self._granting.opened(what, answer.message)

    def _power(self, event: Any, what: SleepTold | SleepOver) -> None:
        """News of a sleep."""
        self._hibernation.handle(what)

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
            self._controller.apply(slot, op.EvictRequested(message.reason or "condor_vacate", how))
        self._turn.do(Reply(Done(text=f"{count} claims are being vacated"), event))

    def _timer(self, event: Any, fired: TimerFired) -> None:
        key = fired.key
        if key == "publish":
            self._publisher.publish()
        elif key == "heartbeat":
            self._publisher.all_changed()
            self._turn.do(SetTimer("heartbeat", self.settings.update_interval_s))
        elif key == "kept":
            self._leases.ask_schedds()
        elif key == "hibernate":
            self._hibernation.handle(HibernationDue())
        elif key == "pause":
            self._turn.do(Note("the owner's pause is over"))
            self.owner.end_pause()
        elif key == "starter-wait":
            self._granting.starter_does_not_start()
        elif key[0] == "lease":
            self._leases.expire(key[1])
        elif key[0] == "early":
            self._granting.no_notice(key[1])
        elif key[0] == "join":
            self._joining.waited(key[1])
        elif key[0] == "successor":
            self._granting.successor_waited(key[1])
        elif key[0] == "slot":
            self._slot_timer(key[1], key[2])

    def _slot_timer(self, name: str, what: str) -> None:
        slot = self.slots.get(name)
        if slot is None:
            return
        void = what == "kill" and not self.starter.is_up
        self._controller.apply(slot, op.ClaimCleared() if void else op.TimerExpired(what))


def _covers(parent: Slot, share: Share) -> bool:
    left = parent.free.minus(share)
    return min(left.cpus, left.memory_mib, left.disk_kib) >= 0 and all(
        have.amount >= 0 and (have.amount == len(have.ids) or not parent.free.custom[name].ids)
        for name, have in left.custom.items()) and share.custom.keys() <= left.custom.keys()
