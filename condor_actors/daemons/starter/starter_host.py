"""The starter host as a process: its settings and edges; see :mod:`~condor_actors.daemons.starter.claim_registry`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.threads import deferToThread

from condor_actors.actors import World
from condor_actors.actors.workers import Workers
from condor_actors.addresses import split_address
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.starter.chirp_session import ChirpSettings
from condor_actors.cores.starter.disk_bound import DiskSettings
from condor_actors.cores.starter.run_account import DomainTrust
from condor_actors.cores.starter.run_spec import RunSettings
from condor_actors.daemons.starter.claim_registry import ActiveClaim, StarterHost
from condor_actors.daemons.starter.hooks.hook_settings import hook_settings
from condor_actors.daemons.starter.run_history import RunHistory, run_history_settings
from condor_actors.daemons.starter.run_streams import accept_stream
from condor_actors.daemons.starter.starter_edges import (
    LOOPBACK,
    RegistrySettings,
    StarterEdges,
    StarterSettings,
    Volume,
)
from condor_actors.daemons.starter.starter_events import EndAllRuns
from condor_actors.machine.containers.image_store import ImageStore
from condor_actors.machine.run.before_drop import group_base
from condor_actors.machine.run.cgroups import Cgroups
from condor_actors.machine.run.confinement import PARTS, folders_of_pool, wanted_parts
from condor_actors.machine.run.launch import Launcher, PosixLauncher
from condor_actors.machine.run.run_host import RunHost
from condor_actors.machine.run.users import Account
from condor_actors.machine.standard.channel import FarChannel
from condor_actors.machine.standard.execute_endpoint import ExecuteEndpoint
from condor_actors.machine.standard.resuming import FarLine
from condor_actors.messages.envelope import Address, Identity
from condor_actors.messages.references.image_reference import BadReference, check_proxy, mirrors_of
from condor_actors.transfer.service import BulkService

__all__ = ["ActiveClaim", "StarterHost", "StarterHostDaemon", "make_starter_host"]

ASSIGNED, UNASSIGNED = "ENVIRONMENT_FOR_ASSIGNED", "ENVIRONMENT_VALUE_FOR_UNASSIGNED"
"""With the name of a resource behind them: variables that tell a job its units, and what they say without one."""


class StarterHostDaemon:
    """The process; see ``Daemon``.

    Args:
        config, world: as for every daemon; ``world.blobs`` is a :class:`BulkService` when there is one already.
        startd: where the startd listens.
        in_thread: runs a function where it does not hold the actors up.

    Attributes:
        edges: what its runs need; claims: the open ones: both outlive the actor ``starter-host``.
    """

    name = "starter-host"

    def __init__(self, config: Config, world: World, startd: Address,
                 in_thread: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self.config = config
        self.world = world
        self.startd = startd
        self.system = world.make_system()
        self._told_confinement = False
        self.host: RunHost = world.host or RunHost()
        self.root = self.host.sandboxes(str(config.path("EXECUTE")),
                                        self._nobody() if self.host.may_change_user() else None)
        if self.root.notice:
            world.log.warn("{notice}", notice=self.root.notice)
        spool = config.path("SPOOL")
        base = group_base(config, self.root.path)
        self.cgroups = Cgroups.find(base) if config.boolean("USE_CGROUPS") else None
        launcher: Launcher = world.processes or PosixLauncher(world.reactor_time, config.text("JOB_LAUNCHER"))
        self.edges = StarterEdges(
            reactor=world.reactor_time, in_thread=in_thread, log=world.log, host=self.host, root=self.root,
            cgroups=self.cgroups, launcher=launcher, startd=startd, node=lambda: self.public_node,
            store=self.host.blobs(spool / "starter_blobs", config.integer("STARTER_BLOB_CACHE") << 20,
                                  config.integer("STARTER_BLOB_CACHE_LEAVES") << 20),
            bulk=world.blobs or BulkService(world.reactor_time, world.log), settings=self._settings(config),
            slot_account=self.slot_account, own_hosts=self.own_hosts,
            service_ports=self.service_ports,
            libraries=self.host.libraries(spool / "starter_libraries", config.integer("STARTER_LIBRARY_CACHE") << 20,
                                          config.integer("STARTER_BLOB_CACHE_LEAVES") << 20),
            images=ImageStore(self.root.path, config.integer("CONTAINER_IMAGE_CACHE") << 20),
            tell_span=world.tell_span)
        self._trim_libraries()
        self._history = RunHistory(run_history_settings(config), world.log, clock=world.reactor_time)
        if isinstance(self.host, RunHost):  # this machine, and no simulated one
            self.edges.run_over = self._history.run_over
            reactor: Any = world.reactor_time
            self.edges.elsewhere = Workers(reactor).run
        self.claims: dict[str, ActiveClaim] = {}

    def _settings(self, config: Config) -> StarterSettings:
        """What a reconfiguration may change."""
        return StarterSettings(
            run=self._run_settings(config),
            memory_policy=config.needed_text("CGROUP_MEMORY_LIMIT_POLICY"),
            allow_owner=config.boolean("STARTER_ALLOW_RUNAS_OWNER"), trust=DomainTrust(
                config.needed_text("UID_DOMAIN"), config.boolean("TRUST_UID_DOMAIN"),
                config.boolean("TRUST_LOCAL_UID_DOMAIN")),
            disk=DiskSettings(
                enforce=config.boolean("STARTD_ENFORCE_DISK_LIMITS"), limit=config.expression("JOB_DISK_LIMIT"),
                leaves_kib=config.integer("JOB_DISK_LEAVES") << 10),
            private_folders=tuple(word.strip('"') for word in config.list_of("MOUNT_UNDER_SCRATCH")),
            private_memory=config.boolean("MOUNT_PRIVATE_DEV_SHM"), confine=self._confinement(config),
            read_only=tuple(config.list_of("JOB_READ_ONLY")), hidden=folders_of_pool(config),
            hide_devices=config.boolean("STARTER_HIDE_GPU_DEVICES"),
            image_limit_bytes=config.integer("CONTAINER_IMAGE_LIMIT") << 20,
            registries=self._registries(config), volumes=self._volumes(config), hooks=hook_settings(config),
            wrapper=str(config.path("USER_JOB_WRAPPER")) if config.text("USER_JOB_WRAPPER") else "",
            namespaces=self.host.may_change_user() or config.boolean("USE_PID_NAMESPACES"))

    def _registries(self, config: Config) -> RegistrySettings:
        """From where images are fetched; a mirror or proxy that cannot be used is told of, here and by the runs."""
        found = RegistrySettings(
            allowed=tuple(config.list_of("CONTAINER_REGISTRIES")),
            mirrors=tuple(config.list_of("CONTAINER_REGISTRY_MIRRORS")),
            proxy=config.text("CONTAINER_REGISTRY_PROXY") or "", most_s=config.seconds("CONTAINER_IMAGE_TIME"))
        try:
            mirrors_of("", found.mirrors)
            check_proxy(found.proxy)
        except BadReference as error:
            self.world.log.warn("images of registries cannot be fetched: {why}", why=error)
        return found

    def _volumes(self, config: Config) -> tuple[Volume, ...]:
        """DOCKER_MOUNT_VOLUMES; one that cannot be used is left out, and told of."""
        found, known = [], {name.upper() for name in config.list_of("DOCKER_VOLUMES")}
        for name in config.list_of("DOCKER_MOUNT_VOLUMES"):
            parts = (config.text(f"DOCKER_VOLUME_DIR_{name}") or "").split(":")
            shut = len(parts) > 1 and parts[-1] in ("ro", "rw")
            source, target = parts[0], parts[1] if len(parts) - shut > 1 else parts[0]
            if name.upper() not in known or not (source.startswith("/") and target.startswith("/")):
                self.world.log.warn("DOCKER_MOUNT_VOLUMES has {name}: that needs to be one of DOCKER_VOLUMES, and "
                                    "DOCKER_VOLUME_DIR_{name} = /PATH or /PATH:/PATH-IN-THE-IMAGE[:ro]", name=name)
                continue
            found.append(Volume(source=source, target=target, read_only=shut and parts[-1] == "ro",
                                condition=config.expression(f"DOCKER_VOLUME_DIR_{name}_MOUNT_IF")))
        return tuple(found)

    def _confinement(self, config: Config) -> tuple[str, ...]:
        """The parts of JOB_CONFINEMENT that work here; told once where some do not."""
        wanted = frozenset(wanted_parts(config))
        unknown = sorted(wanted - set(PARTS))
        if unknown:
            self.world.log.warn("JOB_CONFINEMENT knows {parts}, and no {unknown}", parts=", ".join(PARTS),
                                unknown=", ".join(unknown))
        found: tuple[str, ...] = self.host.confinement(wanted)
        missing = sorted(wanted & set(PARTS) - set(found))
        if missing and not self._told_confinement:
            self._told_confinement = True
            self.world.log.warn("the kernel does not allow these parts of JOB_CONFINEMENT: {missing}",
                                missing=", ".join(missing))
            if "processes" in missing and not self.host.may_change_user():
                self.world.log.warn("the kernel gives this user no namespaces: jobs can reach the processes of the "
                                    "pool (USE_PID_NAMESPACES)")
        return found

    def _run_settings(self, config: Config) -> RunSettings:
        variables: dict[str, tuple[str, ...]] = {}
        unassigned: dict[str, str] = {}
        for name in config.names_like(ASSIGNED):
            variables[name.rpartition(ASSIGNED)[2].lower()] = config.list_of(name)
        for name in config.names_like(UNASSIGNED):
            if (text := config.text(name)) is not None:
                unassigned[name.rpartition(UNASSIGNED)[2].removeprefix("_").lower()] = text
        common = dict(word.partition("=")[::2] for word in config.list_of("STARTER_JOB_ENVIRONMENT"))
        weight = config.text("JOB_IO_WEIGHT")
        return RunSettings(
            authorities=config.text("AUTH_SSL_CLIENT_CAFILE") or "",
            chirp=config.settings(ChirpSettings, delayed=tuple(config.list_of("CHIRP_DELAYED_UPDATE_PREFIX"))),
            fetch_s=config.seconds("MAX_FILE_TRANSFER_PLUGIN_LIFETIME"),
            renice=config.expression("JOB_RENICE_INCREMENT"),
            cpu_weight=config.integer("JOB_CPU_WEIGHT"), io_weight=int(weight) if weight else None,
            idle=config.text("JOB_SCHEDULING") == "idle",
            environment=common, device_variables=variables, unassigned=unassigned,
            update_interval_s=config.seconds("STARTER_UPDATE_INTERVAL"),
            first_update_s=config.seconds("STARTER_INITIAL_UPDATE_INTERVAL"),
            max_processes=config.integer("MAX_JOB_PROCESSES"))

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

    def own_hosts(self) -> tuple[str, ...]:
        """The names of this machine, as its certificate has them."""
        tls = getattr(self.world.post, "tls", None)
        return tuple(tls.own_hosts) if tls is not None else ()

    @property
    def public_node(self) -> str:
        """Where shadows reach this process."""
        return self.world.post.public_node or f"unix:{self.config.path('RUN') / 'starter-host.sock'}"

    def service_ports(self) -> tuple[str, int, int]:
        """Where ports lead to the services of jobs: the address at which this process listens, and the least and the
        greatest of them; 0: any."""
        low, high = self.config.value("LOWPORT"), self.config.value("HIGHPORT")
        try:
            host = str(ipaddress.ip_address(split_address(self.public_node)[0]))
        except ValueError:
            host = LOOPBACK  # it is reached from this machine alone, or through another
        if host != LOOPBACK and self.config.boolean("BIND_ALL_INTERFACES"):
            host = "::" if ":" in host else "0.0.0.0"  # noqa: S104 - as the administrator wants it
        return (host, low, high) if isinstance(low, int) and isinstance(high, int) else (host, 0, 0)

    def standard_stream(self, identity: Identity) -> ExecuteEndpoint:
        """A stream that a shadow has dialled for a job of the standard universe."""
        return ExecuteEndpoint(self.world.reactor_time, local=identity.method == "local",
                               accept=accept_stream(self.edges))

    def standard_channel(self, identity: Identity) -> FarChannel:
        """A connection that a shadow has dialled for the first process of such a job."""
        return FarChannel(self.world.reactor_time, accept_stream(self.edges))

    def standard_resumed(self, identity: Identity) -> FarLine:
        """A connection on which such a stream goes on whose own has broken."""
        return FarLine(self.world.reactor_time, accept_stream(self.edges))

    # ---- Daemon

    def start(self) -> None:
        """Spawn the host actor."""
        self.host.become_parent_of_orphans()
        self._ask_plugins()
        self.system.spawn("starter-host", lambda: StarterHost(self.edges, self.claims), inbox_limit=100_000)

    def stop(self, graceful: bool) -> Deferred[None]:
        """End every run, at once: the startd has vacated the claims before it stops a starter host."""
        done: Deferred[None] = Deferred()
        edges = self.edges

        def at_rest() -> None:
            edges.at_rest = None
            DeferredList(list(edges.leaving.values())).addCallback(leave)

        def leave(_: object) -> None:
            self._leave()
            done.callback(None)

        if edges.runs:
            edges.at_rest = at_rest
            self.system.tell(Address("", "starter-host"), EndAllRuns())
        else:
            at_rest()
        return done

    def _leave(self) -> None:
        """What is empty now is not needed any more; what waits to be written is."""
        self._history.file.write_waiting()
        self.root.leave()
        if self.cgroups is not None:
            for name in self.cgroups.names():
                self.cgroups.group(name).remove()
            self.cgroups.leave()

    def reconfigure(self, config: Config) -> None:
        """Take new settings for runs to come."""
        self.config = config
        self.edges.settings = self._settings(config)
        self._history.file.settings = run_history_settings(config)
        self._ask_plugins()
        self.edges.images.quota_bytes = config.integer("CONTAINER_IMAGE_CACHE") << 20
        self.edges.remove_folders(self.edges.images.prune())
        if self.edges.libraries is not None:
            self.edges.libraries.limit_bytes = config.integer("STARTER_LIBRARY_CACHE") << 20
        self._trim_libraries()

    def _trim_libraries(self) -> None:
        libraries = self.edges.libraries
        if libraries is not None:
            libraries.turns.run(self.edges.in_thread, libraries.trim).addErrback(
                lambda why: self.world.log.warn("contents of files that are kept here: {why}", why=why.value))

    def _ask_plugins(self) -> None:
        """What the transfer plugins can do; runs that need one wait for it."""
        self.edges.plugins.ask(self.config.list_of("FILETRANSFER_PLUGINS"),
                               self.config.seconds("FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT"))

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
