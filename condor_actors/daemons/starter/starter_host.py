"""The starter host as a process: what its gates and runs need of this machine; see :mod:`starter_gates`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.threads import deferToThread

from condor_actors.actors import World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_spec import RunSettings
from condor_actors.daemons.starter.claim_registry import ActiveClaim, StarterHost
from condor_actors.daemons.starter.standard_starter import accept_stream
from condor_actors.machine.run.cgroups import Cgroups
from condor_actors.machine.run.launch import Launcher, PosixLauncher
from condor_actors.machine.run.run_host import RunHost
from condor_actors.machine.run.users import Account
from condor_actors.machine.standard.channel import FarChannel
from condor_actors.machine.standard.execute_endpoint import ExecuteEndpoint
from condor_actors.messages.envelope import Address, Identity
from condor_actors.transfer.service import BulkService

__all__ = ["ActiveClaim", "StarterHost", "StarterHostDaemon", "make_starter_host"]

MANIFEST_LIMIT = 1000
SWEEP_S = 60.0
HELLO_TIMEOUT_S = 20.0
ASSIGNED, UNASSIGNED = "ENVIRONMENT_FOR_ASSIGNED", "ENVIRONMENT_VALUE_FOR_UNASSIGNED_"
"""With the name of a resource behind them: variables that tell a job its units, and what they say without one."""


class StarterHostDaemon:
    """The process; see ``Daemon``.

    Args:
        config, world: as for every daemon; ``world.blobs`` is a :class:`BulkService` when there is one already.
        startd: where the startd listens.
        beside: runs a function where it does not hold the actors up.
    """

    name = "starter-host"

    def __init__(self, config: Config, world: World, startd: Address,
                 in_thread: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self.in_thread = in_thread
        self.config = config
        self.world = world
        self.startd = startd
        self.system = world.make_system()
        self.host: RunHost = world.host or RunHost()
        self.root = self.host.sandboxes(str(config.path("EXECUTE")),
                                        self._nobody() if self.host.may_change_user() else None)
        if self.root.notice:
            world.log.warn("{notice}", notice=self.root.notice)
        spool = config.path("SPOOL")
        self.store = self.host.blobs(spool / "starter_blobs", config.integer("STARTER_BLOB_CACHE") << 20)
        self.bulk: BulkService = world.blobs or BulkService(world.reactor_time, world.log)
        self.cgroups = Cgroups.find(self._base()) if config.boolean("USE_CGROUPS") else None
        self.launcher: Launcher = world.processes or PosixLauncher(world.reactor_time, config.text("JOB_LAUNCHER"))
        self._read(config)

    def _read(self, config: Config) -> None:
        """What a reconfiguration may change."""
        self.config = config
        self.memory_policy = config.needed_text("CGROUP_MEMORY_LIMIT_POLICY")
        self.allow_owner = config.boolean("STARTER_ALLOW_RUNAS_OWNER")
        self.enforce_disk = config.boolean("STARTD_ENFORCE_DISK_LIMITS")
        self.private_folders = tuple(word.strip('"') for word in config.list_of("MOUNT_UNDER_SCRATCH"))
        self.private_memory = config.boolean("MOUNT_PRIVATE_DEV_SHM")
        variables: dict[str, tuple[str, ...]] = {}
        unassigned: dict[str, str] = {}
        for name in config.names_like(ASSIGNED):
            variables[name.rpartition(ASSIGNED)[2].lower()] = config.list_of(name)
        for name in config.names_like(UNASSIGNED):
            if (text := config.text(name)) is not None:
                unassigned[name.rpartition(UNASSIGNED)[2].lower()] = text
        common = dict(word.partition("=")[::2] for word in config.list_of("STARTER_JOB_ENVIRONMENT"))
        weight = config.text("JOB_IO_WEIGHT")
        self.run_settings = RunSettings(
            uid_domain=config.text("UID_DOMAIN") or "", authorities=config.text("AUTH_SSL_CLIENT_CAFILE") or "",
            renice=config.expression("JOB_RENICE_INCREMENT"),
            cpu_weight=config.integer("JOB_CPU_WEIGHT"), io_weight=int(weight) if weight else None,
            idle=config.text("JOB_SCHEDULING") == "idle",
            environment=common, device_variables=variables, unassigned=unassigned,
            update_interval_s=config.seconds("STARTER_UPDATE_INTERVAL"),
            first_update_s=config.seconds("STARTER_INITIAL_UPDATE_INTERVAL"),
            max_processes=config.integer("MAX_JOB_PROCESSES"))

    def _base(self) -> str:
        """Each EXECUTE has groups of its own, so that several startds of a machine do not meet."""
        base = self.config.needed_text("BASE_CGROUP")
        return f"{base}/{self.root.path.strip('/').replace('/', '_')}"

    def _nobody(self) -> Account:
        return self._named(self.config.needed_text("NOBODY_USER"))

    def _named(self, name: str) -> Account:
        account = self.host.account(name)
        if account is None:
            raise OSError(f"there is no user {name!r} on this machine")
        return account

    def slot_account(self, slot_name: str) -> Account:
        """SLOT<N>_USER, else NOBODY_USER.

        Raises:
            OSError: there is no such account, or it is root's.
        """
        bare = slot_name.partition("@")[0]
        number = bare.removeprefix("slot")
        name = self.config.text(f"SLOT{number.upper()}_USER") or self.config.text(
            f"SLOT{number.partition('_')[0]}_USER")
        account = self._named(name) if name else self._nobody()
        if account.uid == 0:
            raise OSError(f"jobs of {slot_name} would run as root")
        return account

    @property
    def public_node(self) -> str:
        """Where shadows reach this process."""
        return self.world.post.public_node or f"unix:{self.config.path('RUN') / 'starter-host.sock'}"

    def sweep(self) -> None:
        """Remove what an earlier host of this EXECUTE has left: processes, groups, directories."""
        if self.cgroups is not None:
            for name in self.cgroups.names():
                group = self.cgroups.group(name)
                group.kill()
                group.remove()
        else:
            self.host.kill_marked(f"{self.root.path}:")
        for path in self.root.leftovers():
            self.host.remove_tree(path)

    def standard_stream(self, identity: Identity) -> ExecuteEndpoint | None:
        """A stream that a shadow has dialled for a job of the standard universe."""
        host = self.system.actor("starter-host")
        if not isinstance(host, StarterHost):
            return None
        return ExecuteEndpoint(self.world.reactor_time, local=identity.method == "local", accept=accept_stream(host))

    def standard_channel(self, identity: Identity) -> FarChannel | None:
        """A connection that a shadow has dialled for the first process of such a job."""
        host = self.system.actor("starter-host")
        if not isinstance(host, StarterHost):
            return None
        return FarChannel(self.world.reactor_time, accept_stream(host))

    # ---- Daemon

    def start(self) -> None:
        """Spawn the host actor."""
        self.host.become_parent_of_orphans()
        self.system.spawn("starter-host", lambda: StarterHost(self), inbox_limit=100_000)

    def stop(self, graceful: bool) -> Deferred[None]:
        """End every run, at once: the startd has vacated the claims before it stops a starter host."""
        done: Deferred[None] = Deferred()
        host = self.system.actor("starter-host")
        if not isinstance(host, StarterHost) or not (host.runs or host.leaving):
            self._leave()
            done.callback(None)
            return done
        for run in tuple(host.runs.values()):
            run.decide(jr.Abandon())

        def look() -> None:
            if any(run.core.state not in (jr.StarterState.ENDED, jr.StarterState.GONE) for run in host.runs.values()):
                self.world.reactor_time.callLater(0.05, look)
                return
            for run in tuple(host.runs.values()):
                run.decide(jr.Abandon())
            DeferredList(list(host.leaving.values())).addCallback(leave)

        def leave(_: object) -> None:
            self._leave()
            done.callback(None)

        look()
        return done

    def _leave(self) -> None:
        """What is empty now is not needed any more."""
        self.root.leave()
        if self.cgroups is not None:
            for name in self.cgroups.names():
                self.cgroups.group(name).remove()
            self.cgroups.leave()

    def reconfigure(self, config: Config) -> None:
        """Take new settings for runs to come."""
        self._read(config)
        host = self.system.actor("starter-host")
        if isinstance(host, StarterHost):
            host.settings = self.run_settings
            host.enforce_disk = self.enforce_disk

    def ad(self) -> ClassAd:
        """For ``condor_ping`` and its like; a starter host does not advertise itself."""
        return ClassAd({"MyType": "StarterHost", "Name": "starter-host", "MyAddress": self.public_node})


def make_starter_host(config: Config, world: World, startd: Address) -> StarterHostDaemon:
    """The starter host, not started.

    Raises:
        ConfigError: a setting cannot be used.
        OSError: EXECUTE cannot be used.
    """
    return StarterHostDaemon(config, world, startd)
