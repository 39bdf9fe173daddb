"""What the startd knows of its machine's owner, and what the owner may tell it.

Theory: readings come in (polled, and as events), the policy of every slot is looked at again, and what is known of the
owner goes into ads.  The owner of a desktop need not be an administrator: the person at the machine may see what runs
there and pause it (:mod:`condor_actors.cores.startd.owner_pause`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from condor_actors.classads import ClassAd, quote
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd import slot_ad
from condor_actors.cores.startd.availability import Availability
from condor_actors.cores.startd.claim import SaveFact
from condor_actors.cores.startd.draining import expectation
from condor_actors.cores.startd.idleness import kind_of
from condor_actors.cores.startd.latched_expressions import latch
from condor_actors.cores.startd.owner_pause import Pause, bad_wish, begin_pause
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.startd.slots import Slot
from condor_actors.cores.startd.startd_events import Benchmarked, Observed, RunBenchmarks, SensorSpoke, StopBenchmarks
from condor_actors.effects import CancelTimer, Note, Persist, Reply, SetTimer
from condor_actors.messages import admin, owner
from condor_actors.messages.envelope import Delivery, Done, Identity

__all__ = ["OwnerState"]

SHOWN = ("State", "Activity", "RemoteUser", "RemoteOwner", "JobId", "JobStart", "ClientMachine", "Cpus",
         "Memory", "MemoryUsage", "RemoteUserCpu", "EnteredCurrentActivity")


THURSDAY = 4
"""The first of January 1970, with Sunday as 0."""


class OwnerState(SlotController):
    """The part of the desk that minds the owner; see the module."""

    availability: Availability
    _benchmarking = False

    def recall(self, facts: Mapping[str, Any], now_s: float) -> None:
        """Take up what the store remembers beside claims: a pause, the history of availability."""
        self.availability = Availability.from_plain(facts.get("availability") or ())
        self.slots.machine_ad["LastBenchmark"] = 0
        for name, value in (facts.get("benchmarks") or {}).items():
            self.slots.machine_ad[name] = value
        plain = facts.get("pause")
        if plain is not None:
            pause = Pause.from_plain(plain)
            if pause.until_s > now_s:
                self.pause = pause
                self._show_pause()
                self._do(SetTimer("pause", pause.until_s - now_s))
            else:
                self._do(Persist(SaveFact("pause", None)))

    # ---- readings

    def _observe(self, event: Any, observed: Observed) -> None:
        self._observed = observed
        now_s = self._now_s
        for source, idle_s, text in observed.idle:
            self.idleness.report(source, idle_s, now_s, text)
        self.idleness.forget_silent(now_s)
        self._look_at_all()

    def _sensor_spoke(self, event: Any, word: SensorSpoke) -> None:
        if self.idleness.report(word.source, 0.0, self._now_s):
            self._look_at_all()

    def _idle_reading(self, event: Delivery, reading: admin.IdleReading) -> None:
        idle_s = reading.idle_s if reading.known else None
        uid = event.identity.uid
        source = reading.source if uid in (None, 0) else f"{reading.source}/{uid}"  # nobody speaks for another's eyes
        if self.idleness.report(source, idle_s, self._now_s, reading.text):
            self._look_at_all()
        self._do(Reply(Done(), event))

    def _look_at_all(self) -> None:
        keyboard_s = self.idleness.keyboard_idle_s(self._now_s)
        console_s = self.idleness.console_idle_s(self._now_s)
        settings = self.slots.settings
        observed = self._observed
        cpus = max(1, sum(slot.total.cpus for slot in self.slots if slot.parent is None))
        foreign = max(0.0, observed.total_load - observed.own_load)
        self._show_owner(observed)
        for slot in self.slots:
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
            latch(slot.ad, settings.latches, slot.job if slot.claim is not None else None, self._now_s)
            self._policy(slot, self._look(slot))
            self._checkpoint_if_due(slot)
        self._note_availability()
        _write(self.slots.machine_ad, expectation(self.slots, self._now_s))
        self._mind_benchmarks()

    def _offer_disk(self, slot: Slot) -> None:
        """Not more than the disk has: others write on it too."""
        free_kib = self._observed.disk_free_kib
        if free_kib is not None and slot.claim is None:
            slot.ad["Disk"] = max(0, min(slot.free.disk_kib, free_kib - self.slots.settings.reserved_disk_kib))

    def _show_owner(self, observed: Observed) -> None:
        """What all slots' ads say of the owner."""
        minutes = int(self._now_s + observed.utc_offset_s) // 60
        days = minutes // 1440 + THURSDAY
        facts: dict[str, Any] = {"ScreenLocked": observed.screen_locked,
                                 "ClockMin": minutes % 1440, "ClockDay": days % 7}
        if observed.disk_free_kib is not None:
            facts["DiskFree"] = observed.disk_free_kib
        _write(self.slots.machine_ad, facts)

    def _note_availability(self) -> None:
        first = next(iter(self.slots), None)
        if first is None:
            return
        if self.availability.note(not first.machine.evaluation.is_owner and not self.draining.request, self._now_s):
            self._do(Persist(SaveFact("availability", self.availability.to_plain())))
        _write(self.slots.machine_ad, self.availability.attributes(self._now_s))

    # ---- the machine's speed

    def _mind_benchmarks(self) -> None:
        """Begin to measure when a slot says so, stop when the machine is wanted."""
        wanted = any(slot.machine.slot_state == op.BENCHMARKING for slot in self.slots)
        taken = bool(self._by_claim) or any(slot.machine.evaluation.is_owner for slot in self.slots)
        if self._benchmarking and (taken or not wanted):
            self._benchmarking = False
            self._do(StopBenchmarks())
        elif wanted and not taken and not self._benchmarking:
            self._benchmarking = True
            self._do(RunBenchmarks())

    def _benchmarked(self, event: Any, done: Benchmarked) -> None:
        if not self._benchmarking:
            return
        self._benchmarking = False
        found: dict[str, Any] = {**dict(done.found), "LastBenchmark": int(self._now_s)}
        _write(self.slots.machine_ad, found)
        if done.text:
            self._do(Note(f"the machine's speed is unknown: {done.text}", "warn"))
        self._do(Persist(SaveFact("benchmarks", found)))
        self._look_at_all()
        for slot in self.slots:
            self._dirty_slot(slot)

    # ---- the owner's own word

    def may_pause(self, identity: Identity) -> bool:
        """Whether someone is the machine's owner: sits at it, is named as its owner, runs the daemon, or is root."""
        if identity.method == "self":
            return True
        if identity.method != "local" or identity.uid is None:
            return False
        return (identity.uid in (0, self.settings.own_uid) or identity.uid in self._observed.console_uids
                or identity.user in self.settings.owners)

    def _pause(self, event: Delivery, wish: owner.PauseMachine) -> None:
        problem = bad_wish(wish.duration_s, wish.how)
        if problem:
            return self._refuse(event, "invalid", problem)
        if not self.may_pause(event.identity):
            return self._refuse(event, "denied",
                                f"{event.identity.user} does not sit at this machine (no session at its "
                                "seat, no console) and is not among DESKTOP_OWNERS")
        pause = self.pause = begin_pause(wish.duration_s, wish.how, event.identity.user, self._now_s)
        self._do(Persist(SaveFact("pause", pause.to_plain())), SetTimer("pause", wish.duration_s),
                 Note(f"{pause.by} pauses the machine for {wish.duration_s:.0f} s ({pause.how})"),
                 Reply(Done(text=str(int(pause.until_s))), event))
        self._show_pause()
        return self._changed()

    def _resume(self, event: Delivery, wish: owner.ResumeMachine) -> None:
        if not self.may_pause(event.identity):
            return self._refuse(event, "denied", f"{event.identity.user} does not sit at this machine")
        was = self.pause is not None
        self._end_pause()
        self._do(Reply(Done(text="" if was else "the machine was not paused"), event))
        return None

    def _end_pause(self) -> None:
        self.pause = None
        self._do(Persist(SaveFact("pause", None)), CancelTimer("pause"))
        self._show_pause()
        self._changed()

    def _changed(self) -> None:
        self._look_at_all()
        for slot in self.slots:
            self._dirty_slot(slot, urgent=True)

    def _show_pause(self) -> None:
        pause = self.pause
        _write(self.slots.machine_ad, {
            "OwnerPausedUntil": None if pause is None else int(pause.until_s),
            "OwnerPausedBy": None if pause is None else pause.by,
            "OwnerPauseHow": None if pause is None else pause.how})

    def _query_owner(self, event: Delivery, question: owner.QueryOwner) -> None:
        self._do(Reply(owner.OwnerView(ad=self.owner_ad().to_bytes(), may_pause=self.may_pause(event.identity)), event))

    def owner_ad(self) -> ClassAd:
        """Sensors, slots and pause as one ad."""
        now_s = self._now_s
        ad = ClassAd({"MyType": "Owner", "Machine": self.slots.settings.host, "MyCurrentTime": int(now_s)})
        for name in ("OwnerPausedUntil", "OwnerPausedBy", "OwnerPauseHow", "ScreenLocked", "AvailableSince",
                     "AvailabilityMean", "ExpectedAvailability"):
            if name in self.slots.machine_ad:
                ad[name] = self.slots.machine_ad[name]
        observed = self._observed
        ad["OwnerLoad"] = round(max(0.0, observed.total_load - observed.own_load), 3)
        ad["PoolLoad"] = round(observed.own_load, 3)
        for name, idle_s in (("KeyboardIdle", self.idleness.keyboard_idle_s(now_s)),
                             ("ConsoleIdle", self.idleness.console_idle_s(now_s))):
            if idle_s is not None:
                ad[name] = int(idle_s)
        ad.insert_text("Sensors", self.sensors_text())
        ad.insert_text("Slots", "{" + ", ".join(self._slot_text(slot) for slot in self.slots) + "}")
        return ad

    def sensors_text(self) -> str:
        """All readings as a list of records."""
        load = max(0.0, self._observed.total_load - self._observed.own_load)
        reports = tuple((each.source, each.text, None if each.last_input_s is None else int(each.last_input_s))
                        for each in self.idleness.readings(self._now_s))
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
