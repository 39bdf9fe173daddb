"""The actor that runs programs of the site for a startd or a schedd.

The decisions are :mod:`condor_actors.cores.site_programs.schedule`'s; here they meet processes.  The ads that come of
them are the daemon's own: a core that is built anew begins without any, and the daemon keeps the last ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from condor_actors import accounts
from condor_actors.actors import ActorSystem, CoreActor, World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.site_programs.programs import Mode, SiteAd, SiteSettings
from condor_actors.cores.site_programs.schedule import (
    Changed,
    Demanded,
    DemandOver,
    HangUp,
    ProgramEnded,
    ProgramWrote,
    SiteSchedule,
    StartProgram,
    StopProgram,
    TellAds,
    TellDemandOver,
)
from condor_actors.daemons.site_settings import site_settings
from condor_actors.effects import Effect
from condor_actors.machine.privilege.pool_account import pool_account
from condor_actors.machine.run.site_programs import PosixSitePrograms, SitePrograms
from condor_actors.machine.run.users import Account
from condor_actors.messages.envelope import Address

if TYPE_CHECKING:
    from condor_actors.messages.envelope import Delivery

__all__ = ["SITE_PROGRAMS", "SiteHost", "SiteProgramsActor", "site_edge"]

SITE_PROGRAMS = "site-programs"
NOBODY = "nobody"


def site_edge(config: Config, world: World, part: str = "") -> SitePrograms:
    """What runs programs of the site for the daemon of this configuration; ``part``: for one thing of several."""
    mark = f"{config.path('RUN')}/{config.needed_text('LOCALNAME')}{part and f'/{part}'}"
    return world.programs or PosixSitePrograms(world.reactor_time, mark, lambda: account_for_programs(config))


def account_for_programs(config: Config) -> Account | None:
    """As whom programs of the site run: None: as this process, which is not root.

    A daemon that has stayed root runs them as the pool's account, or where there is none as ``nobody``.

    Raises:
        LookupError: there is neither, or the user database has not answered so far.
    """
    if os.geteuid() != 0:
        return None
    found = pool_account(config)
    if found is not None:
        return Account(found.name, found.uid, found.gid, found.home)
    nobody = accounts.named(NOBODY)
    if nobody is None:
        raise LookupError("this daemon has root's rights, and there is neither a pool's account (CONDOR_IDS) nor a "
                          "user nobody to run it as")
    return Account(nobody.name, nobody.uid, nobody.gid, nobody.home)


class SiteHost:
    """What a daemon has of programs of the site: the actor that runs them, and what they say.

    Args:
        config: of the daemon.
        family: ``STARTD_CRON`` or ``SCHEDD_CRON``.
        system: of the daemon; the actor is there once there are programs.
        to: the actor that is told.
        programs: runs them.
        facts: gives the ad that conditions are evaluated in.

    Attributes:
        ads: what they say now.
        is_demanded: whether those on demand are to run, or do; an actor that is begun anew runs them again.

    Raises:
        ConfigError: a value cannot be used.
    """

    def __init__(self, config: Config, family: str, system: ActorSystem, to: str, programs: SitePrograms,
                 facts: Callable[[], ClassAd]) -> None:
        self._family = family
        self._system = system
        self.settings = site_settings(config, family, os.environ)
        self.to = Address("", to)
        self.programs = programs
        self.facts = facts
        self.ads: tuple[SiteAd, ...] = ()
        self.is_demanded = False

    def start(self) -> None:
        """Run them."""
        if self.settings.programs and self._system.actor(SITE_PROGRAMS) is None:
            self._system.spawn(SITE_PROGRAMS, lambda: SiteProgramsActor(self))

    @property
    def has_on_demand(self) -> bool:
        """Whether any program runs on demand."""
        return any(each.mode is Mode.ON_DEMAND for each in self.settings.programs)

    def demand(self, *, on: bool) -> bool:
        """Have the programs on demand run, or end; whether there is anything to wait for (:class:`DemandOver`)."""
        self.is_demanded = on and self.has_on_demand
        if self._system.actor(SITE_PROGRAMS) is not None:
            self._system.tell(Address("", SITE_PROGRAMS), Demanded(self.is_demanded))
        return self.is_demanded

    def read(self, config: Config) -> SiteSettings:
        """The settings of another configuration, for :meth:`reconfigure`.

        Raises:
            ConfigError: a value cannot be used.
        """
        return site_settings(config, self._family, os.environ)

    def reconfigure(self, settings: SiteSettings) -> None:
        """Take other programs."""
        self.settings = settings
        if self._system.actor(SITE_PROGRAMS) is None:
            self.start()
        else:
            self._system.tell(Address("", SITE_PROGRAMS), Changed(settings))


class SiteProgramsActor(CoreActor):
    """Feeds the core, runs what it wants run, and passes the ads on."""

    core: SiteSchedule

    def __init__(self, host: SiteHost) -> None:
        super().__init__(SiteSchedule(host.settings, host.facts))
        self._host = host
        self._programs = host.programs

    def started(self) -> None:
        """Run them."""
        self._programs.close()  # what ran for an actor that has crashed
        self.context.perform(self.core.start(self.context.now_s(), demanded=self._host.is_demanded))

    def stopped(self) -> None:
        """The daemon ends."""
        self._programs.close()

    def dropped(self) -> None:
        """Another actor takes this one's place, and begins anew."""
        self._programs.close()

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Processes, and what they have said."""
        context, programs = self.context, self._programs
        if isinstance(effect, StartProgram):
            name, run = effect.program.name, effect.run
            wrote = context.as_turn(lambda data: self._heard(ProgramWrote(name=name, run=run, data=data)))
            over = context.as_turn(lambda status, problem, said: self._heard(
                ProgramEnded(name=name, run=run, status=status, problem=problem, said=said)))
            program = effect.program
            context.after_commit(lambda: programs.start(program, run, wrote, over))
        elif isinstance(effect, StopProgram):
            run, fast = effect.run, effect.fast
            context.after_commit(lambda: programs.stop(run, fast=fast))
        elif isinstance(effect, HangUp):
            run = effect.run
            context.after_commit(lambda: programs.hang_up(run))
        elif isinstance(effect, TellAds):
            host, told = self._host, effect.told
            context.after_commit(lambda: setattr(host, "ads", told.ads))
            context.tell(host.to, told)
        elif isinstance(effect, TellDemandOver):
            host = self._host
            context.after_commit(lambda: setattr(host, "is_demanded", False))
            context.tell(host.to, DemandOver())
        else:
            super().perform_own(effect, delivery)

    def _heard(self, event: ProgramWrote | ProgramEnded) -> None:
        self.context.perform(self.core.handle(event, self.context.now_s()))
