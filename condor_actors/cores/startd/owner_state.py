"""What the startd knows of its machine's owner, and what the owner may tell it.

Theory: readings come in (polled, and as events), the policy of every slot is evaluated again, and what is known of the
owner goes into ads.  The owner of a desktop need not be an administrator: the person at the machine may see what runs
there and pause it (:mod:`condor_actors.cores.startd.owner_pause`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from condor_actors.classads import ClassAd, quote
from condor_actors.cores.site_programs.programs import SiteAdsTold
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd import slot_ad
from condor_actors.cores.startd.availability import Availability
from condor_actors.cores.startd.claims.claim import SaveFact
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.draining import Draining, expectation
from condor_actors.cores.startd.idleness import Idleness, kind_of
from condor_actors.cores.startd.latched_expressions import latch
from condor_actors.cores.startd.owner_pause import Pause, bad_wish, begin_pause
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.startd_events import (
    Benchmarked,
    DiskGrew,
    Observed,
    Probed,
    RunBenchmarks,
    SensorSpoke,
    StartdSettings,
    StopBenchmarks,
)
from condor_actors.cores.turn import Turn
from condor_actors.effects import CancelTimer, Note, Persist, Reply, SetTimer
from condor_actors.messages import admin, owner
from condor_actors.messages.envelope import Delivery, Done, Identity

__all__ = ["OwnerState"]

SHOWN = ("State", "Activity", "RemoteUser", "RemoteOwner", "JobId", "JobStart", "ClientMachine", "Cpus",
         "Memory", "MemoryUsage", "RemoteUserCpu", "EnteredCurrentActivity")


THURSDAY = 4
"""The first of January 1970, with Sunday as 0."""


class OwnerState:
    """Minds the owner; see the module.

    Args:
        turn: of the core.
        slots: of the machine.
        claims: of the startd; a machine with one is wanted.
        controller: gives slots their events; keeps the pause.
        publisher: is told which slots have changed.
        idleness: what sensors have said.
        draining: the drain under way.
        settings: who owns the machine.
    """

    def __init__(self, turn: Turn, slots: Slots, claims: ClaimIndex, controller: SlotController,
                 publisher: SlotPublisher, idleness: Idleness, draining: Draining, settings: StartdSettings) -> None:
        self._turn = turn
        self._slots = slots
        self._claims = claims
        self._controller = controller
        self._publisher = publisher
        self._idleness = idleness
        self._draining = draining
        self._settings = settings
        self._observed = Observed(total_load=0.0, own_load=0.0)
        self._availability = Availability()
        self._benchmarking = False
        self._refused: set[str] = set()

    def recall(self, facts: Mapping[str, Any], now_s: float) -> None:
        """Take up what the store remembers beside claims: a pause, the history of availability."""
        self._availability = Availability.from_plain(facts.get("availability") or ())
        self._slots.machine_ad["LastBenchmark"] = 0
        for name, value in (facts.get("benchmarks") or {}).items():
            self._slots.machine_ad[name] = value
        plain = facts.get("pause")
        if plain is not None:
            pause = Pause.from_plain(plain)
            if pause.until_s > now_s:
                self._controller.pause = pause
                self._show_pause()
                self._turn.do(SetTimer("pause", pause.until_s - now_s))
            else:
                self._turn.do(Persist(SaveFact("pause", None)))

    # ---- readings

    def observe(self, event: Any, observed: Observed) -> None:
        """Readings of the host."""
        self._observed = observed
        now_s = self._turn.now_s
        for source, idle_s, text in observed.idle:
            self._idleness.report(source, idle_s, now_s, text)
        self._idleness.forget_silent(now_s)
        self.reevaluate()

    def sensor_spoke(self, event: Any, word: SensorSpoke) -> None:
        """A sensor of this machine saw the owner."""
        if self._idleness.report(word.source, 0.0, self._turn.now_s):
            self.reevaluate()

    def idle_reading(self, event: Delivery, reading: admin.IdleReading) -> None:
        """A session of this machine says how long its owner has been idle."""
        idle_s = reading.idle_s if reading.known else None
        uid = event.identity.uid
        source = reading.source if uid in (None, 0) else f"{reading.source}/{uid}"  # nobody speaks for another's eyes
        if self._idleness.report(source, idle_s, self._turn.now_s, reading.text):
            self.reevaluate()
        self._turn.do(Reply(Done(), event))

    def reevaluate(self) -> None:
        """Write readings into the ads and apply every slot's policy to them."""
        keyboard_s = self._idleness.keyboard_idle_s(self._turn.now_s)
        console_s = self._idleness.console_idle_s(self._turn.now_s)
        settings = self._slots.settings
        observed = self._observed
        cpus = max(1, sum(slot.total.cpus for slot in self._slots if slot.parent is None))
        foreign = max(0.0, observed.total_load - observed.own_load)
        self._show_owner(observed)
        for slot in self._slots:
            number = slot.plan.number
            boost_s = 0.0 if number <= settings.keyboard_slots else settings.idle_boost_s
            share = observed.own_load * slot.total.cpus / cpus if slot.claim is not None else 0.0
            mine = min(foreign, float(slot.total.cpus)) if number == 1 or slot.partitionable else 0.0
            slot_ad.write_readings(
                slot.ad, load=mine + share, own_load=share, total_load=observed.total_load,
                total_own_load=observed.own_load,
                keyboard_idle_s=None if keyboard_s is None else keyboard_s + boost_s,
                console_idle_s=None if console_s is None or number > settings.console_slots else console_s)
            self._offer_disk(slot)
            latch(slot.ad, settings.latches, slot.job if slot.claim is not None else None, self._turn.now_s)
            self._controller.reevaluate(slot)
            self._controller.checkpoint_if_due(slot)
        self._note_availability()
        _write(self._slots.machine_ad, expectation(self._slots, self._turn.now_s))
        self._mind_benchmarks()

    def _offer_disk(self, slot: Slot) -> None:
        """Not more than the disk has: others write on it too."""
        free_kib = self._observed.disk_free_kib
        if free_kib is not None and slot.claim is None:
            slot.ad["Disk"] = max(0, min(slot.free.disk_kib, free_kib - self._slots.settings.reserved_disk_kib))
            self._publisher.disk_changed(slot)

    def _show_owner(self, observed: Observed) -> None:
        """What all slots' ads say of the owner."""
        minutes = int(self._turn.now_s + observed.utc_offset_s) // 60
        days = minutes // 1440 + THURSDAY
        facts: dict[str, Any] = {"ScreenLocked": observed.screen_locked,
                                 "ClockMin": minutes % 1440, "ClockDay": days % 7}
        if observed.disk_free_kib is not None:
            facts["DiskFree"] = observed.disk_free_kib
        _write(self._slots.machine_ad, facts)

    def _note_availability(self) -> None:
        first = next(iter(self._slots), None)
        if first is None:
            return
        available = not first.machine.evaluation.is_owner and not self._draining.request
        if self._availability.note(available, self._turn.now_s):
            self._turn.do(Persist(SaveFact("availability", self._availability.to_plain())))
        _write(self._slots.machine_ad, self._availability.attributes(self._turn.now_s))

    # ---- the machine's speed

    def _mind_benchmarks(self) -> None:
        """Begin to measure when a slot says so, stop when the machine is wanted."""
        wanted = any(slot.machine.slot_state == op.BENCHMARKING for slot in self._slots)
        taken = bool(self._claims) or any(slot.machine.evaluation.is_owner for slot in self._slots)
        if self._benchmarking and (taken or not wanted):
            self._benchmarking = False
            self._turn.do(StopBenchmarks())
        elif wanted and not taken and not self._benchmarking:
            self._benchmarking = True
            self._turn.do(RunBenchmarks())

    def benchmarked(self, event: Any, done: Benchmarked) -> None:
        """The machine has measured its speed."""
        if not self._benchmarking:
            return
        self._benchmarking = False
        found: dict[str, Any] = {**dict(done.found), "LastBenchmark": int(self._turn.now_s)}
        _write(self._slots.machine_ad, found)
        if done.text:
            self._turn.do(Note(f"the machine's speed is unknown: {done.text}", "warn"))
        self._turn.do(Persist(SaveFact("benchmarks", found)))
        self.reevaluate()
        self._publisher.all_changed()

    def probed(self, event: Any, done: Probed) -> None:
        """What the machine can do was tried out."""
        _write(self._slots.machine_ad, dict(done.found))
        self.reevaluate()
        self._publisher.all_changed()

    def disk_grew(self, event: Any, grew: DiskGrew) -> None:
        """The disk was full when the slots were made, say: they get their shares of what there is now."""
        self._slots.grow_disk(grew.disk_kib, self._turn.now_s)
        _write(self._slots.machine_ad, {"TotalDisk": grew.total_kib})
        self._turn.do(Note(f"the disk has more room than was known: {grew.total_kib} KiB are divided among the slots"))
        self.reevaluate()
        self._publisher.all_changed()

    def site_ads_told(self, event: Any, told: SiteAdsTold) -> None:
        """Programs of the site have said something new."""
        wrong = self._slots.take_site_ads(told.ads) - self._refused
        if wrong:
            self._refused |= wrong
            self._turn.do(Note(f"programs of the site may not say {', '.join(sorted(wrong))}: the startd does, or the "
                               "machine's facts do; give the program a PREFIX", "warn"))
        self.reevaluate()
        if told.now:
            self._publisher.all_changed()

    # ---- the owner's own word

    def may_pause(self, identity: Identity) -> bool:
        """Whether someone is the machine's owner: sits at it, is named as its owner, runs the daemon, or is root."""
        if identity.method == "self":
            return True
        if identity.method != "local" or identity.uid is None:
            return False
        return (identity.uid in (0, self._settings.own_uid) or identity.uid in self._observed.console_uids
                or identity.user in self._settings.owners)

    def pause(self, event: Delivery, wish: owner.PauseMachine) -> None:
        """The owner pauses the machine."""
        problem = bad_wish(wish.duration_s, wish.how)
        if problem:
            return self._turn.refuse(event, "invalid", problem)
        if not self.may_pause(event.identity):
            return self._turn.refuse(event, "denied",
                                     f"{event.identity.user} does not sit at this machine (no session at its "
                                     "seat, no console) and is not among DESKTOP_OWNERS")
        pause = self._controller.pause = begin_pause(wish.duration_s, wish.how, event.identity.user, self._turn.now_s)
        self._turn.do(Persist(SaveFact("pause", pause.to_plain())), SetTimer("pause", wish.duration_s),
                      Note(f"{pause.by} pauses the machine for {wish.duration_s:.0f} s ({pause.how})"),
                      Reply(Done(text=str(int(pause.until_s))), event))
        self._show_pause()
        return self._changed()

    def resume(self, event: Delivery, wish: owner.ResumeMachine) -> None:
        """The owner ends the pause."""
        if not self.may_pause(event.identity):
            return self._turn.refuse(event, "denied", f"{event.identity.user} does not sit at this machine")
        was = self._controller.pause is not None
        self.end_pause()
        self._turn.do(Reply(Done(text="" if was else "the machine was not paused"), event))
        return None

    def end_pause(self) -> None:
        """The pause is over."""
        self._controller.pause = None
        self._turn.do(Persist(SaveFact("pause", None)), CancelTimer("pause"))
        self._show_pause()
        self._changed()

    def _changed(self) -> None:
        self.reevaluate()
        self._publisher.all_changed(urgent=True)

    def _show_pause(self) -> None:
        pause = self._controller.pause
        _write(self._slots.machine_ad, {
            "OwnerPausedUntil": None if pause is None else int(pause.until_s),
            "OwnerPausedBy": None if pause is None else pause.by,
            "OwnerPauseHow": None if pause is None else pause.how})

    def query(self, event: Delivery, question: owner.QueryOwner) -> None:
        """The owner asks what goes on at the machine."""
        self._turn.do(Reply(owner.OwnerView(ad=self.ad().to_bytes(), may_pause=self.may_pause(event.identity)), event))

    def ad(self) -> ClassAd:
        """Sensors, slots and pause as one ad."""
        now_s = self._turn.now_s
        ad = ClassAd({"MyType": "Owner", "Machine": self._slots.settings.host, "MyCurrentTime": int(now_s)})
        for name in ("OwnerPausedUntil", "OwnerPausedBy", "OwnerPauseHow", "ScreenLocked", "AvailableSince",
                     "AvailabilityMean", "ExpectedAvailability"):
            if name in self._slots.machine_ad:
                ad[name] = self._slots.machine_ad[name]
        observed = self._observed
        ad["OwnerLoad"] = round(max(0.0, observed.total_load - observed.own_load), 3)
        ad["PoolLoad"] = round(observed.own_load, 3)
        for name, idle_s in (("KeyboardIdle", self._idleness.keyboard_idle_s(now_s)),
                             ("ConsoleIdle", self._idleness.console_idle_s(now_s))):
            if idle_s is not None:
                ad[name] = int(idle_s)
        ad.insert_text("Sensors", self.sensors_text())
        ad.insert_text("Slots", "{" + ", ".join(self._slot_text(slot) for slot in self._slots) + "}")
        return ad

    def sensors_text(self) -> str:
        """All readings as a list of records."""
        load = max(0.0, self._observed.total_load - self._observed.own_load)
        reports = tuple((each.source, each.text, None if each.last_input_s is None else int(each.last_input_s))
                        for each in self._idleness.readings(self._turn.now_s))
        return _sensors_text(f"{load:.2f}", reports)

    @staticmethod
    def _slot_text(slot: Slot) -> str:
        ad = slot.ad
        shown = ClassAd({"Name": slot.name, "Lowered": slot.machine.lowered})
        if slot.job is not None and slot.claim is not None and slot.claim.job_id:
            shown["JobProgram"] = slot.job.get_str("Cmd")
        for name in SHOWN:
            if name in ad:
                shown[name] = ad.evaluate(name)
        return "[ " + "; ".join(line for line in shown.to_bytes().decode().splitlines() if line) + " ]"


def _write(ad: ClassAd, values: Mapping[str, Any]) -> None:
    """Set attributes; None takes one out."""
    for name, value in values.items():
        if value is not None:
            ad[name] = value
        elif name.lower() in ad.own:
            del ad[name]


@lru_cache(maxsize=64)
def _sensors_text(load: str, reports: tuple[tuple[str, str, int | None], ...]) -> str:
    """Source, comment and last input of each sensor, and the load, as a list of records."""
    records = []
    for source, text, last_input_s in reports:
        kind = kind_of(source)
        parts = [f"Source = {quote(source)}", f"Says = {quote(text)}"]
        if last_input_s is not None:
            parts.append(f"LastInput = {last_input_s}")
        if kind is not None:
            parts += [f"Reads = {quote(kind.reads)}", f"Accuracy = {quote(kind.error)}"]
        records.append("[ " + "; ".join(parts) + " ]")
    records.append(f'[ Source = "load:"; Says = "{load} that is not the pool\'s"; Reads = "the kernel\'s load average '
                   'less the processor time of the jobs"; Accuracy = "settles within five minutes" ]')
    return "{" + ", ".join(records) + "}"
