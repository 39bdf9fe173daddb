"""The actor that fetches work for a startd's slots, and what the startd has of it.

The decisions are :mod:`condor_actors.cores.fetched_work.fetching`'s; here they meet programs, and runs get actors of
their own.  The startd's store of claims is the only thing that is kept: an actor that is begun anew, in this process or
the next, finds there which fetched jobs have claims, and has their runs looked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

import attrs

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.fetched_work.fetched_job import MOST_BYTES, run_of
from condor_actors.cores.fetched_work.fetched_run import FetchedClaim
from condor_actors.cores.fetched_work.fetching import (
    BeginRun,
    Fetching,
    FetchSettings,
    HookEnded,
    Offer,
    RunHook,
    RunIsOver,
    StopHook,
)
from condor_actors.cores.rights import is_fetched
from condor_actors.cores.site_programs.programs import Mode, SiteProgram
from condor_actors.cores.startd import owner_policy as op
from condor_actors.daemons.fetched_work.run_actor import FetchedRunActor
from condor_actors.daemons.fetched_work.settings import fetch_settings
from condor_actors.daemons.site_programs import site_edge
from condor_actors.daemons.startd_actor import StartdActor
from condor_actors.effects import Effect
from condor_actors.messages.claim import ClaimRevoked
from condor_actors.messages.envelope import Address, Delivery

if TYPE_CHECKING:
    from condor_actors.daemons.startd import Startd

__all__ = ["FETCHER", "FetchActor", "Fetcher"]

FETCHER = "fetched-work"
FIRST_RUN = 1 << 30
"""Runs of hooks are counted from here, so that none has the number of another program of the site."""
PATH = "/usr/local/bin:/usr/bin:/bin"


@attrs.frozen
class NewFetchSettings:
    """Local event: the configuration was read again."""

    settings: FetchSettings


class Fetcher:
    """What a startd has of fetched work.

    Args:
        startd: the daemon; its actor has the slots.

    Raises:
        ConfigError: a value cannot be used.
    """

    def __init__(self, startd: Startd) -> None:
        self.startd = startd
        self.settings = fetch_settings(startd.config)
        self.programs = site_edge(startd.config, startd.world, "fetch")
        self.runs = count(FIRST_RUN)

    def start(self) -> None:
        """Fetch, where there is anything to fetch with, or something fetched before is still here."""
        system = self.startd.system
        if system.actor(FETCHER) is None and (self.settings.hooks or self.kept()):
            system.spawn(FETCHER, lambda: FetchActor(self), inbox_limit=10_000)

    def kept(self) -> list[FetchedClaim]:
        """The claims of fetched jobs that the store has."""
        found = []
        for record in self.startd.claims.records:
            if is_fetched(record.owner) and not record.hosts:
                slot = self.slot_of(record.slot_name)
                found.append(FetchedClaim(slot=slot, claim_id=record.claim_id, secret=record.secret, job=record.job_ad,
                                          slot_ad=self.ad_of(record.slot_name), is_known=True))
        return found

    @staticmethod
    def slot_of(name: str) -> str:
        """The slot that a dynamic one is carved from; or itself."""
        bare, at, host = name.partition("@")
        return f"{bare.partition('_')[0]}{at}{host}"

    def ad_of(self, name: str) -> bytes:
        """A slot's ad now; empty: there is none."""
        actor = self.startd.system.actor("startd")
        slot = actor.core.slots.get(name) if isinstance(actor, StartdActor) else None
        return slot.ad.to_bytes() if slot is not None else b""

    def offers(self) -> Mapping[str, Offer]:
        """The slots that may fetch work, as they are now."""
        actor = self.startd.system.actor("startd")
        if not isinstance(actor, StartdActor):
            return {}
        found = {}
        for slot in actor.core.slots:
            if slot.parent is None:
                is_free = (slot.machine.slot_state in (op.UNCLAIMED, op.BENCHMARKING) and not slot.machine.draining
                           and actor.core.starter.is_up and self.startd.resting is None
                           and (not slot.partitionable or slot.free.cpus >= 1))
                found[slot.name] = Offer(name=slot.name, number=slot.ad.get_int("SlotID"), ad=slot.ad,
                                         capability=slot.capability, is_free=is_free)
        return found

    def starter(self) -> Address | None:
        """Where the starter host is."""
        actor = self.startd.system.actor("startd")
        return actor.core.starter.address if isinstance(actor, StartdActor) else None

    def read(self, config: Config) -> FetchSettings:
        """The settings of another configuration, for :meth:`reconfigure`.

        Raises:
            ConfigError: a value cannot be used.
        """
        return fetch_settings(config)

    def reconfigure(self, settings: FetchSettings) -> None:
        """Take other hooks."""
        self.settings = settings
        if self.startd.system.actor(FETCHER) is None:
            self.start()
        else:
            self.startd.system.tell(Address("", FETCHER), NewFetchSettings(settings))


class FetchActor(Actor):
    """Feeds the core, runs programs, and has an actor for each run."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self.core = Fetching(fetcher.settings, fetcher.offers, next(fetcher.runs) << 8)
        self._runs: dict[str, str] = {}
        self._printed: dict[int, bytes] = {}

    def started(self) -> None:
        """Look for the runs of claims that there are; then fetch."""
        for claim in self._fetcher.kept():
            self._begin(claim)
        self.context.perform(self.core.start(self.context.now_s()))

    def stopped(self) -> None:
        """The startd ends: what is being fetched is nobody's."""
        self._stop_all()

    def dropped(self) -> None:
        """Another actor takes this one's place, and begins anew."""
        self._stop_all()

    def _stop_all(self) -> None:
        for run in tuple(self._printed):
            self._fetcher.programs.stop(run, fast=True)

    def receive(self, delivery: Delivery) -> None:
        """What this process says; nobody else has anything to say here."""
        message = delivery.message
        if delivery.identity.method != "self":
            self.context.log.warn("{kind} from {who} refused: work is fetched by this machine alone",
                                  kind=type(message).__name__, who=delivery.identity.name)
        elif isinstance(message, NewFetchSettings):
            self.context.perform(self.core.reconfigure(message.settings, self.context.now_s()))
        elif isinstance(message, ClaimRevoked):
            if message.claim_id in self._runs:  # it was granted a moment ago, and its run has not renewed it so far
                self.context.tell(Address("", self._runs[message.claim_id]), message)
        else:
            if isinstance(message, RunIsOver) and message.is_last:
                name = f"shadow/{run_of(ClassAd.from_bytes(message.job))}"
                self._runs = {claim: actor for claim, actor in self._runs.items() if actor != name}
            self.context.perform(self.core.handle(message, self.context.now_s()), delivery)

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Programs and runs."""
        if isinstance(effect, RunHook):
            hook = effect
            self.context.after_commit(lambda: self._run_hook(hook))
        elif isinstance(effect, StopHook):
            run = effect.run
            self.context.after_commit(lambda: self._fetcher.programs.stop(run, fast=True))
        elif isinstance(effect, BeginRun):
            granted = effect.granted
            self._begin(FetchedClaim(slot=effect.slot, claim_id=granted.claim_id, secret=granted.secret, job=effect.job,
                                     slot_ad=granted.slot_ad))
        else:
            super().perform_own(effect, delivery)

    def _begin(self, claim: FetchedClaim) -> None:
        name = f"shadow/{claim.run_id}"
        self._runs[claim.claim_id] = name
        fetcher, listener = self._fetcher, self.context.address
        self.context.spawn(name, lambda: FetchedRunActor(fetcher.startd, claim, listener, fetcher.starter))

    def _run_hook(self, hook: RunHook) -> None:
        run = hook.run
        environment = {"PATH": PATH, "HOME": "/", "LANG": "C.UTF-8"}
        if "CONDOR_CONFIG" in os.environ:
            environment["CONDOR_CONFIG"] = os.environ["CONDOR_CONFIG"]
        self._printed[run] = b""

        def wrote(data: bytes) -> None:
            self._printed[run] = (self._printed.get(run, b"") + data)[:MOST_BYTES + 1]
            if len(self._printed[run]) > MOST_BYTES:
                self._fetcher.programs.stop(run, fast=True)

        def over(status: int, problem: str, said: str) -> None:
            printed = self._printed.pop(run, b"")
            if status or problem:
                self.context.log.warn("{title} ended with status {status}{problem}{said}", title=hook.title,
                                      status=status, problem=problem and f": {problem}", said=said and f": {said}")
            self.context.perform(self.core.handle(HookEnded(
                run=run, printed=printed, is_cut=len(printed) > MOST_BYTES, status=status, problem=problem),
                self.context.now_s()))

        self._fetcher.programs.start(SiteProgram(
            name=f"{hook.title} {run}", executable=hook.program, arguments=hook.arguments, mode=Mode.ONE_SHOT,
            environment=tuple(sorted(environment.items())), stdin=hook.stdin), run, self.context.as_turn(wrote),
            self.context.as_turn(over))
