"""A shadow host on its real edges."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IStreamClientEndpoint

from condor_actors import accounts
from condor_actors.actors import ActorSystem, World
from condor_actors.actors.workers import Workers
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.shadow.chirp_rights import ChirpLimits
from condor_actors.daemons.schedd.completion_mail import CompletionMail
from condor_actors.daemons.shadow.become_user import become_user, home_environment
from condor_actors.daemons.shadow.checkpoints.removal import CheckpointRemover, removal_settings
from condor_actors.daemons.shadow.grid.grid_manager import GridManager
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST
from condor_actors.daemons.shadow.input_files import FileCache
from condor_actors.daemons.shadow.shadow_edges import Bulk, RegistryAccess
from condor_actors.daemons.shadow.shadow_host import HostEdges, HostRecord, ShadowHostActor
from condor_actors.daemons.shadow.standard_shadow import StandardEdges
from condor_actors.machine.native.sessions import NativeSessions
from condor_actors.machine.run.users import account_of_uid
from condor_actors.messages.envelope import Address
from condor_actors.userlog.writer import UserLogs
from condor_actors.wire.nodes import tls_node

__all__ = ["ShadowHostDaemon", "make_shadow_host"]


class ShadowHostDaemon:
    """See ``docs/architecture.md``, "The edges of a daemon"."""

    name = "shadow-host"

    def __init__(self, world: World, edges: HostEdges) -> None:
        self._edges = edges
        self._record = HostRecord()
        self.system: ActorSystem = world.make_system()

    def start(self) -> None:
        """Dial the schedd."""
        self.system.spawn(SHADOW_HOST.actor, lambda: ShadowHostActor(self._edges, self._record), inbox_limit=100_000)

    def stop(self, graceful: bool) -> Deferred[None]:
        """Write what waits for the logs."""
        return self._edges.logs.flush()

    def reconfigure(self, config: Config) -> None:
        """A host lives with the configuration that it was started with."""

    def ad(self) -> ClassAd:
        """A host advertises nothing; this is for the manhole."""
        return ClassAd({"MyType": "ShadowHost", "Name": self._edges.host_id})


def _nobody(config: Config) -> tuple[int, int]:
    """As whom root's jobs do their calls at home: nothing of the pool's runs as root."""
    name = config.needed_text("NOBODY_USER")
    entry = accounts.named(name)
    if entry is None:
        raise KeyError(name)
    return entry.uid, entry.gid


def make_shadow_host(config: Config, world: World, *, schedd_socket: str, host_id: str, bulk: Bulk,
                     use_credential: Callable[[bytes], None], leave: Callable[[], None], reactor: Any,
                     become: Callable[[str, int, int], None] = become_user,
                     endpoint: Callable[[str], IStreamClientEndpoint] | None = None,
                     is_relayed: Callable[[str], bool] = lambda node: False) -> ShadowHostDaemon:
    """A shadow host on these edges.

    Args:
        config: the configuration.
        world: the edges of its actor system.
        schedd_socket: where the schedd listens.
        host_id: what the schedd calls this process.
        bulk: bulk transfers.
        use_credential: takes the owner's proxy certificate.
        leave: ends the process.
        reactor: for mail.
        become: drops to the owner.
        endpoint: how nodes are dialled, for the streams of the standard universe; None: no such jobs run here.
        is_relayed: whether that leads through gateways.
    """
    # What is imported later is imported now: the owner may not be able to read where Python lies.
    import encodings.ascii
    import encodings.idna
    import encodings.latin_1  # noqa: F401

    import twisted.mail.smtp  # noqa: F401

    from condor_actors.machine.run.launch import PosixLauncher
    from condor_actors.machine.supervisor.mail import Mailer

    sessions, active = NativeSessions(reactor), set[str]()

    def server() -> IStreamClientEndpoint | None:
        host = (config.text("CKPT_SERVER_HOST") or "").strip()
        if not host or not config.boolean("USE_CKPT_SERVER") or endpoint is None:
            return None
        try:
            return endpoint(str(tls_node(host, config.integer("CKPT_SERVER_PORT"))))
        except ValueError as error:
            world.log.warn("CKPT_SERVER_HOST = {host}: {error}", host=host, error=error)
            return None

    def standard(spool: str) -> StandardEdges:
        assert endpoint is not None
        return StandardEdges(
            server=server, active=active, is_relayed=is_relayed, nobody_s=config.seconds("VANISHED_MACHINE_TIMEOUT"),
            reactor=reactor, sessions=sessions, endpoint=endpoint, environment=home_environment(),
            folder=lambda job: Path(spool or "/nonexistent") / "checkpoints" / job,
            identity=lambda: _nobody(config) if os.getuid() == 0 else None, list_of=config.list_of)

    workers = Workers(reactor, config.seconds("USER_FILE_TIMEOUT"))
    logs = UserLogs(world.reactor_time, sync=config.boolean("ENABLE_USERLOG_FSYNC"),
                    lock=config.boolean("ENABLE_USERLOG_LOCKING"), log=world.log, in_worker=workers.run)
    edges = HostEdges(
        remover=CheckpointRemover(removal_settings(config), PosixLauncher(reactor), workers.run, world.wall_clock),
        grid=GridManager(config, reactor, logs, workers.run, home_environment).edges,
        schedd=Address(f"unix:{Path(schedd_socket)}", "schedd"), host_id=host_id,
        logs=logs, in_thread=workers.run, cache=FileCache(), bulk=bulk, domain=config.text("FILESYSTEM_DOMAIN") or "",
        mail=CompletionMail(world.mail or Mailer(config, reactor), config.needed_text("UID_DOMAIN")),
        launcher=PosixLauncher(reactor), become=become, use_credential=use_credential, leave=leave,
        standard=standard if endpoint is not None else None,
        local_account=lambda: account_of_uid(_nobody(config)[0]) if os.getuid() == 0 else None,
        chirp=config.settings(ChirpLimits, folders=tuple(config.list_of("LIMIT_DIRECTORY_ACCESS")),
                              delayed=tuple(config.list_of("CHIRP_DELAYED_UPDATE_PREFIX"))),
        credd=f"unix:{config.path('RUN')}/credd.sock", registries=RegistryAccess(
            allowed=tuple(config.list_of("CONTAINER_REGISTRIES")), proxy=config.text("CONTAINER_REGISTRY_PROXY") or "",
            authorities=config.text("AUTH_SSL_CLIENT_CAFILE") or ""),
        tell_span=world.tell_span,
    )
    return ShadowHostDaemon(world, edges)
