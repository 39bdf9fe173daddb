"""The actor of the startd: what its core decides meets the sensors and the starter host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
from twisted.python.failure import Failure

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd
from condor_actors.cores.site_programs.schedule import DemandOver
from condor_actors.cores.startd.hibernation import AskPower, FallAsleep, SleepOver, SleepTold, TellSleep
from condor_actors.cores.startd.slots import SlotSettings
from condor_actors.cores.startd.startd_events import (
    Benchmarked,
    EndStartd,
    Hide,
    NeedStarter,
    Observed,
    RunBenchmarks,
    SensorSpoke,
    Show,
    StarterDied,
    StopBenchmarks,
)
from condor_actors.daemons.advertiser import ADVERTISER, Advertise, Withdraw
from condor_actors.daemons.run_questions import sight_of
from condor_actors.daemons.startd_power import confirm, known_power
from condor_actors.effects import Effect
from condor_actors.machine.sensors.readings import IdleNow
from condor_actors.messages.admin import IdleReading
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.claim import ClaimActivity, StarterHostHello
from condor_actors.messages.envelope import Address, Delivery, PeerDown, Refused, TimerFired
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.shadow_host import SayHello

if TYPE_CHECKING:
    from condor_actors.daemons.startd import Startd

__all__ = ["FinishClaims", "NewSlotSettings", "StartdActor", "VacateAll"]

HELLO_WAIT_S = 20.0
STARVED_S = 600.0
"""For so long a starter host that is silent for want of the processor is not taken for one that hangs."""
SHOW_SENSORS_S = 15.0
LOCAL_ONLY = (StarterHostHello, ClaimActivity, IdleReading)


@attrs.frozen
class VacateAll:
    """Local event: the process is to end; every claim does before."""

    fast: bool


@attrs.frozen
class FinishClaims:
    """Local event: the process is to end when what runs has finished."""


@attrs.frozen
class NewSlotSettings:
    """Local event: the configuration was read again."""

    settings: SlotSettings


class StartdActor(Actor):
    """Gives the core its events and performs what it decides."""

    def __init__(self, startd: Startd) -> None:
        self.startd = startd
        self.core = startd.make_core()
        self._shown: tuple[float, str] = (0.0, "")
        self._starved_since_s: float | None = None
        self._measured: Benchmarked | None = None
        self._demands = False

    def started(self) -> None:
        """Take up former claims, take the first readings."""
        claims = self.startd.claims
        self.startd.power.close()  # an actor that has crashed may have begun to put the machine to sleep
        facts = dict(getattr(claims, "facts", {}))
        if self.startd.site.has_on_demand and not self.startd.site.ads and facts.get("benchmarks"):
            facts["benchmarks"] = {**facts["benchmarks"], "LastBenchmark": 0}  # what the site's found is not kept
        self.context.perform(self.core.start(claims.records, self.context.now_s(), facts))
        if self.startd.sensors is not None:
            self.startd.sensors.start(self.context.system.clock, self._sensed, lambda: self.core.starter.pid)
        self._poll()
        if self.startd.last_hello is not None:  # an actor that is built anew does not know what runs by now
            self.context.tell(self.startd.last_hello.sender, SayHello())
        elif self.startd.resting is not None:
            self.startd.rest()

    def receive(self, delivery: Delivery) -> None:
        """One event for the core."""
        message = delivery.message
        if isinstance(message, TimerFired) and message.key == "poll":
            self._poll()
            return
        if isinstance(message, TimerFired) and message.key == "no-hello":
            self._start_starter()
            return
        if isinstance(message, TimerFired) and message.key == "no-word":
            self._starter_hangs()
            return
        if isinstance(message, (Benchmarked, DemandOver)):
            self._speed_known(message)
            return
        if isinstance(message, QueryJobs):
            self._answer_history(delivery, message)
            return
        if isinstance(message, (VacateAll, FinishClaims, NewSlotSettings, StarterDied)):
            self._of_the_process(message)
            return
        if isinstance(message, PeerDown):
            if self.core.starter.address is not None and self.core.starter.address.node == message.node:
                self.startd.starters.lacks_processor(self.core.starter.pid)  # from now on
                self.context.set_timer("no-word", HELLO_WAIT_S)
            return
        if isinstance(message, LOCAL_ONLY) and not self._is_ours(delivery):
            self.context.log.warn("{kind} from {who} refused: not of this machine", kind=type(message).__name__,
                                  who=delivery.identity.name)
            self.context.reply(delivery, Refused(code="denied", text="only this machine's own processes say that"))
            return
        if isinstance(message, StarterHostHello):
            self.context.cancel_timer("no-hello")
            self.context.cancel_timer("no-word")
            self._starved_since_s = None
            self.context.watch(delivery.sender.node)
            self.startd.heard_hello(delivery)
        self.decide(delivery if hasattr(message, "KIND") else message)
        if isinstance(message, StarterHostHello) and self.startd.resting is not None:
            self._of_the_process(VacateAll(fast=False))  # an actor that was built anew has not asked them to go

    def _speed_known(self, message: Benchmarked | DemandOver) -> None:
        """The machine has measured its speed when the pool's own benchmarks and those of the site are over."""
        if isinstance(message, Benchmarked):
            self._measured = message
        else:
            self._demands = False
        if self._measured is not None and not self._demands:
            measured, self._measured = self._measured, None
            self.decide(measured)

    def _of_the_process(self, message: VacateAll | FinishClaims | NewSlotSettings | StarterDied) -> None:
        """What the daemon tells its actor."""
        core, now_s = self.core, self.context.now_s()
        if isinstance(message, StarterDied):
            self.context.cancel_timer("no-hello")
            self.context.cancel_timer("no-word")
            self.decide(message)
            if not core.starter.is_up:
                self.need_starter()
        elif isinstance(message, NewSlotSettings):
            instead = core.slots.settings.start_instead
            core.slots.reconfigure(attrs.evolve(message.settings, start_instead=instead))
            self.context.perform(core.refresh(now_s))
        elif isinstance(message, FinishClaims):
            self.context.perform(core.finish(now_s))
            self._keep_drain()
        elif core.claims and core.starter.is_up:
            self.context.perform(core.vacate_all(now_s, fast=message.fast))
        else:
            self.startd.rest()

    def _answer_history(self, delivery: Delivery, question: QueryJobs) -> None:
        """Which jobs ran here: those who may pause the machine see all, any other user the jobs that are theirs."""
        identity = delivery.identity
        if question.source != "startd":
            self.context.reply(delivery, Refused(code="invalid", text="the queue and its history are the schedd's"))
            return
        sees_all = self.core.owner.may_pause(identity) or (identity.is_local and identity.uid in self.startd.own_uids)
        self.context.defer_to_turn(self.startd.history.answer(question, sight_of(identity, sees_all=sees_all)),
                                   lambda answer: self._history_answered(delivery, answer))

    def _history_answered(self, delivery: Delivery, answer: Any) -> None:
        if isinstance(answer, Failure):
            answer = Refused(code="invalid", text=answer.getErrorMessage())
        self.context.reply(delivery, answer)

    def _is_ours(self, delivery: Delivery) -> bool:
        """Said by a process of this machine; about jobs, by root or by the account of the daemons."""
        identity = delivery.identity
        if identity.method == "self":
            return True
        trusted = isinstance(delivery.message, IdleReading) or identity.uid in (0, *self.startd.own_uids)
        return identity.method == "local" and trusted

    def decide(self, event: Any) -> None:
        """Let the core decide about an event."""
        delivery = event if isinstance(event, Delivery) else None
        self.context.perform(self.core.handle(event, self.context.now_s()), delivery)
        self._keep_drain()
        if self.startd.resting is not None and not self.core.claims:
            self.startd.rest()

    def _keep_drain(self) -> None:
        if self.core.draining != self.startd.draining:
            kept = attrs.evolve(self.core.draining)
            self.context.after_commit(lambda: setattr(self.startd, "draining", kept))

    def _poll(self) -> None:
        startd = self.startd
        sensors = startd.sensors
        loads, free_kib = startd.readings.loads(self.core.starter.pid), startd.readings.disk_free_kib(startd.execute)
        grew = startd.disk_grows(free_kib)
        if grew is not None:
            self.decide(grew)
        words = startd.readings.idle()
        if sensors is not None:
            words = sensors.idle(words)
        self.decide(Observed(
            total_load=loads.total, own_load=loads.own, idle=tuple((each.source, each.idle_s,
                                                                    each.text) for each in words),
            disk_free_kib=free_kib, utc_offset_s=startd.utc_offset_s(),
            console_uids=sensors.console_users() if sensors is not None else frozenset(),
            screen_locked=sensors.screen_locked() if sensors is not None else None))
        self._remember_input()
        self._show_sensors()
        self.context.set_timer("poll", startd.poll_s)

    def _sensed(self, word: IdleNow) -> None:
        """A sensor saw the owner: a turn of its own."""
        self.context.tell(self.context.address, SensorSpoke(word.source))

    def _remember_input(self) -> None:
        idle_s = self.core.idleness.keyboard_idle_s(self.context.now_s())
        if self.startd.sensors is not None and idle_s is not None:
            self.startd.sensors.remember(idle_s)

    def _show_sensors(self) -> None:
        """The startd's own ad shows what the sensors say; anew when something was said, and once a minute."""
        now_s = self.context.now_s()
        if now_s - self._shown[0] < SHOW_SENSORS_S:
            return
        text = self.core.owner.sensors_text()
        if text != self._shown[1]:
            self._shown = (now_s, text)
            ad = self.startd.ad()
            ad.update(self.core.owner.ad())
            ad["MyType"] = "StartDaemon"
            self.context.tell(Address("", ADVERTISER), Advertise(AdKind.STARTD, ad))

    def stopped(self) -> None:
        """Let go of the sensors."""
        if self.startd.sensors is not None:
            self.startd.sensors.stop()
        self.startd.benchmarks.stop()
        self.startd.power.close()

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Advertise, and mind the starter host."""
        if isinstance(effect, Show):
            slot = effect.slot
            private = ClassAd({"Name": slot.name, "Capability": slot.capability}).to_bytes()
            self.context.tell(Address("", ADVERTISER), Advertise(
                AdKind.SLOT, slot.ad.to_bytes(), private, name=slot.name, my_address=self.core.settings.address,
                lasting=not self.core.is_awake))
        elif isinstance(effect, Hide):
            self.context.tell(Address("", ADVERTISER), Withdraw(AdKind.SLOT, effect.name))
        elif isinstance(effect, NeedStarter):
            self.need_starter()
        elif isinstance(effect, RunBenchmarks):
            self._measured, self._demands = None, self.startd.site.demand(on=True)
            self.startd.benchmarks.run(lambda found, text: self.context.tell(
                self.context.address, Benchmarked(found=found, text=text)))
        elif isinstance(effect, StopBenchmarks):
            self._measured, self._demands = None, self.startd.site.demand(on=False)
            self.startd.benchmarks.stop()
        elif isinstance(effect, EndStartd):
            self.startd.end(effect.how)
        elif isinstance(effect, (AskPower, TellSleep, FallAsleep)):
            self._sleep(effect)
        else:
            super().perform_own(effect, delivery)

    def _sleep(self, effect: AskPower | TellSleep | FallAsleep) -> None:
        """What it takes to put the machine to sleep."""
        startd, context = self.startd, self.context
        if isinstance(effect, AskPower):
            known = context.as_turn(lambda states, method, problem: self.decide(known_power(states, method, problem)))
            context.after_commit(lambda: startd.power.ask(known))
        elif isinstance(effect, TellSleep):
            number = effect.number
            confirm(context, startd.collectors, [slot.ad.to_bytes() for slot in self.core.slots],
                    int(self.core.settings.update_interval_s), lambda problem: self.decide(SleepTold(number, problem)))
        else:
            number, state = effect.number, f"S{effect.level}"
            over = context.as_turn(lambda problem: self.decide(SleepOver(number, problem)))
            context.after_commit(lambda: startd.power.sleep(state, over))

    def need_starter(self) -> None:
        """One that lives says hello by itself; else start one, a little later after each failure."""
        if self.context.has_timer("no-hello") or self.core.starter.is_up or self.startd.resting is not None:
            return
        pid = self.startd.starters.living()
        if pid:
            self.startd.watch_starter(pid)
            self.context.set_timer("no-hello", HELLO_WAIT_S)
        else:
            self.context.set_timer("no-hello", self.startd.next_start_s(self.context.now_s()))

    def _starter_hangs(self) -> None:
        """Its link broke (90 s of silence break one) and it lives but does not come back: nothing there can be
        suspended or vacated any more, so its jobs end with it."""
        pid = self.core.starter.pid
        if pid and self.startd.starters.living() == pid:
            if self._is_starved(pid):
                self.context.set_timer("no-word", HELLO_WAIT_S)
                return
            self.context.log.error("the starter host (pid {pid}) hangs: it is killed", pid=pid)
            self.startd.starters.kill(pid)

    def _is_starved(self, pid: int) -> bool:
        """Whether a silent starter host wants the processor and does not get it: that will end, and nothing is wrong
        with its jobs."""
        now_s = self.context.now_s()
        if not self.startd.starters.lacks_processor(pid):
            self._starved_since_s = None
            return False
        if self._starved_since_s is None:
            self._starved_since_s = now_s
            self.context.log.warn("the starter host (pid {pid}) is silent because it hardly gets the processor: it is "
                                  "waited for", pid=pid)
        return now_s - self._starved_since_s < STARVED_S

    def _start_starter(self) -> None:
        if self.core.starter.is_up or self.startd.resting is not None:
            return
        stuck = self.startd.starters.living()
        if stuck:  # it has not said hello in time; the next one is started when its end is seen
            self.startd.watch_starter(stuck)
            if not self._is_starved(stuck):
                self.context.log.error("the starter host (pid {pid}) does not say hello: it is killed", pid=stuck)
                self.startd.starters.kill(stuck)
            self.context.set_timer("no-hello", HELLO_WAIT_S)
            return
        try:
            pid = self.startd.starters.start()
        except OSError as error:
            self.context.log.error("the starter host cannot be started: {error}", error=error)
        else:
            self.startd.watch_starter(pid)
        self.context.set_timer("no-hello", HELLO_WAIT_S)
