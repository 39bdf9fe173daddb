"""One daemon as a Twisted service: world, listeners, signals, admin actor, orderly end.

The order of a start: configuration (already valid), the end of root where the daemon needs it no more, log,
credentials, daemon built from its store, listeners, ``$(RUN)/<name>.address``, daemon started, master told.  The order
of an end is the reverse.  Signals: TERM stops gracefully, QUIT fast, HUP reads the configuration again; everything also
goes by message (:mod:`..daemons.admin`).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twisted.application.service import IService, Service
from twisted.internet import task
from twisted.internet.defer import Deferred, inlineCallbacks, maybeDeferred
from twisted.logger import Logger

from condor_actors import accounts
from condor_actors.actors import Daemon, World
from condor_actors.addresses import joined_address
from condor_actors.config import Config, ConfigError
from condor_actors.daemons.admin import AdminActor, AdminEdges
from condor_actors.machine.privilege.drop import drop_root
from condor_actors.machine.privilege.helper import process_helper
from condor_actors.machine.privilege.pool_account import PoolAccount
from condor_actors.machine.privilege.secret_memory import keep_out_of_dumps
from condor_actors.machine.run.process_watch import ProcessWatch
from condor_actors.services.no_room import cannot_start
from condor_actors.services.options import DaemonOptions
from condor_actors.services.settings import store_setting
from condor_actors.services.shutdown_expression import NOT_AGAIN, ShutdownExpression
from condor_actors.services.telemetry.audit import AuditLog, open_audit_log
from condor_actors.services.telemetry.logs import start_logging
from condor_actors.services.valid_config import valid_config
from condor_actors.services.world import RealWorld, real_world, watch_edges
from condor_actors.store.database import StoreError
from condor_actors.wire.idtokens.token_issuer import TokenIssuer
from condor_actors.wire.membership import keep_membership

MakeDaemon = Callable[[Config, World], Daemon]
HELPER_GONE = 71
"""The exit status of a daemon whose helper has ended."""
WITHOUT_ROOT = frozenset({"collector", "negotiator", "ckpt_server", "credd", "defrag", "gateway", "rooster", "web"})
"""What needs no other account's rights: started as root, these are the pool's account before they do anything."""
STOP_LIMITS = {"graceful": "SHUTDOWN_GRACEFUL_TIMEOUT", "fast": "SHUTDOWN_FAST_TIMEOUT"}
"""The parameters that say how long a daemon may take to stop before the process ends anyway.

The master takes as long as its daemons do; it hurries them itself."""


Prepare = Callable[[Config, PoolAccount], Sequence[str]]
"""What a daemon does as root before it drops that; returns the policy of its helper."""


def daemon_service(name: str, make_daemon: MakeDaemon, options: DaemonOptions, reactor: Any = None,
                   prepare: Prepare | None = None) -> IService:
    """The service of the daemon ``name``; with ``prepare``, one whose helper keeps root's rights.

    Raises:
        ConfigError: the configuration is not valid; nothing listens yet.
    """
    if reactor is None:
        from twisted.internet import reactor as default_reactor

        reactor = default_reactor
    local_name = options["local-name"]

    return DaemonService(name, lambda: valid_config(name, local_name), make_daemon, reactor, prepare)


class DaemonService(Service):
    """Runs one daemon for as long as the process lives; see the module."""

    def __init__(self, name: str, load: Callable[[], Config], make_daemon: MakeDaemon, reactor: Any,
                 prepare: Prepare | None = None) -> None:
        self.name = f"condor-{name}"
        self.daemon_name = name
        self.config = load()
        self.exit_status = 0
        self._load = load
        self._make_daemon = make_daemon
        self._prepare = prepare
        self._reactor = reactor
        self._how = "graceful"
        self._finishing = False
        self._started_s = time.time()
        self._real: RealWorld | None = None
        self._daemon: Daemon | None = None
        self._stop_log: Callable[[], None] | None = None
        self._audit: AuditLog | None = None
        self._manhole: Any = None
        self._metrics: Any = None
        self._wish: ShutdownExpression | None = None
        self._tokens: TokenIssuer | None = None
        self.log = Logger("condor")

    # ---- start

    def startService(self) -> None:  # noqa: N802 - Twisted's name
        """Build the daemon and open its doors."""
        Service.startService(self)
        try:
            self._start()
        except (ConfigError, OSError, ValueError, StoreError) as error:
            self.exit_status, why = cannot_start(error, self.config)
            self.log.error("{name} cannot start: {why}", name=self.daemon_name, why=why)
            os.write(2, f"condor-{self.daemon_name}: {why}\n".encode())
            self._reactor.callWhenRunning(self._reactor.stop)

    def _start(self) -> None:
        keep_out_of_dumps()
        dropped = self._drop()
        if dropped:
            self.config = self._load()  # with what root's daemons do not read
        self._stop_log = start_logging(self.config, self.daemon_name)
        self.log.info("** condor-{name} (pid {pid}) starting up", name=self.daemon_name, pid=os.getpid())
        if dropped:
            self.log.info("** {dropped}", dropped=dropped)
        audit = self._audit = open_audit_log(self.config, self.daemon_name)
        is_shown = self.daemon_name == "master" and self.config.text("METRICS_PORT") is not None
        if is_shown:
            from condor_actors.services.telemetry.metrics import metrics_door

            metrics_door(self.config)
        real = self._real = real_world(self.config, self.daemon_name, reactor=self._reactor, witness=audit)
        daemon = self._daemon = self._make_daemon(self.config, real.world)
        watch_edges(daemon.system, self._reactor, self.log)
        edges = AdminEdges(
            daemon=daemon,
            config=lambda: self.config,
            reload_config=self._reload,
            store_setting=lambda name, value, persistent: store_setting(self.config, name, value, persistent),
            explain=real.authorization.explain,
            shut_down=self.shut_down,
            started_s=self._started_s,
            master_socket=os.environ.get("CONDOR_MASTER_SOCKET", ""),
            public_node=lambda: real.post.public_node,
            metrics=lambda: self._exposition(daemon),
        )
        daemon.system.spawn("admin", lambda: AdminActor(edges))
        self._tokens = keep_membership(self.config, self.daemon_name, real.post, daemon.system, real.world.authorize)
        real.listen()
        daemon.start()
        self._reactor.callWhenRunning(accounts.impatient)
        self._catch_signals()
        if self.config.text("MANHOLE") not in (None, "off"):
            from condor_actors.services.telemetry.manhole import open_manhole

            self._manhole = open_manhole(self.config, self.daemon_name, daemon, self._reactor,
                                         self._real.post if self._real is not None else None, self._audit)
        if is_shown:
            self._open_metrics(daemon)
        self._wish = ShutdownExpression(lambda: self.config, daemon, self._stop_for_good)
        self._wish.start(self._reactor)
        self.log.info("** condor-{name} listens at {node}", name=self.daemon_name, node=real.world.post.public_node)

    def _exposition(self, daemon: Daemon) -> str:
        from condor_actors.services.telemetry.metrics import exposition

        spans = self._real.spans if self._real is not None else None
        return exposition(self.daemon_name, daemon, self._started_s, spans)

    def _open_metrics(self, daemon: Any) -> None:
        """The master shows the metrics of all daemons of its machine."""
        from condor_actors.daemons.metrics_actor import ACTOR, MetricsActor, MetricsEdges
        from condor_actors.services.telemetry.metrics import open_metrics

        offered: list[Callable[..., None]] = []
        file = self.config.text("METRICS_DISCOVERY_FILE")
        edges = MetricsEdges(sockets=daemon.sockets, own=lambda: self._exposition(daemon),
                             collectors=lambda: daemon.collectors, file=Path(file) if file else None)
        daemon.system.spawn(ACTOR, lambda: MetricsActor(edges, offered.append))
        self._metrics = open_metrics(self.config, lambda then: offered[-1](then), self._reactor)  # noqa: PLW0108 - later
        host = self._metrics.getHost()
        shown = self.config.full_hostname if host.host in ("0.0.0.0", "::") else host.host
        daemon.metrics_address = joined_address(shown, host.port)
        self.log.info("** metrics are at {address}", address=daemon.metrics_address)

    def _drop(self) -> str:
        """Drop root where this daemon can; what became of that."""
        prepare, config = self._prepare, self.config
        if prepare is not None:
            dropped = drop_root(config, lambda account: prepare(config, account))
        else:
            dropped = drop_root(config) if self.daemon_name in WITHOUT_ROOT else ""
        helper = process_helper()
        if helper is not None:
            ProcessWatch(helper.pid, self._reactor, self._helper_ended)
        return dropped

    def _helper_ended(self) -> None:
        """Without its helper the daemon can neither start nor end anything: it is started again, with a new one."""
        self.log.error("** condor_root, the helper of condor-{name}, is gone: exiting at once", name=self.daemon_name)
        os._exit(HELPER_GONE)

    def _stop_for_good(self, how: str) -> None:
        self.log.info("** its DAEMON_SHUTDOWN has come true")
        self.exit_status = NOT_AGAIN
        self.shut_down(how)

    # ---- signals and administration

    def _catch_signals(self) -> None:
        def catch(number: int, action: Callable[[], None]) -> None:
            signal.signal(number, lambda *_: self._reactor.callFromThread(action))

        self._reactor.callWhenRunning(catch, signal.SIGTERM, lambda: self.shut_down("graceful"))
        self._reactor.callWhenRunning(catch, signal.SIGINT, lambda: self.shut_down("fast"))
        self._reactor.callWhenRunning(catch, signal.SIGQUIT, lambda: self.shut_down("fast"))
        self._reactor.callWhenRunning(catch, signal.SIGHUP, self._reload_by_signal)

    def _reload(self) -> None:
        """Read the files again; the old configuration stays in force where the daemon cannot take the new one."""
        config = self._load()
        if self._daemon is not None:
            self._daemon.reconfigure(config)
        if self._real is not None:
            self._real.reconfigure(config)
        if self._tokens is not None:
            self._tokens.reconfigure(config)
        self.config = config

    def _reload_by_signal(self) -> None:
        try:
            self._reload()
            self.log.info("** reconfigured")
        except ConfigError as error:
            self.log.error("not reconfigured: {error}", error=error)

    def shut_down(self, how: str) -> None:
        """End the process: ``graceful``, ``fast``, or ``peaceful``, which lets jobs finish first; a second, faster wish
        overtakes the first."""
        rest_peacefully = getattr(self._daemon, "rest_peacefully", None)
        if how == "peaceful" and rest_peacefully is not None and self.running:
            if not self._finishing:
                self._finishing = True
                self.log.info("** condor-{name} ends when what runs has finished", name=self.daemon_name)
                rest_peacefully(lambda: self.shut_down("graceful"))
            return
        self.log.info("** condor-{name} shutting down ({how})", name=self.daemon_name, how=how)
        already = self._how if not self.running else None
        self._how = how
        if already is None and self._reactor.running:
            self._reactor.stop()
        elif how == "fast" and self._daemon is not None:
            self._daemon.stop(False)

    # ---- end

    def stopService(self) -> Deferred[None]:  # noqa: N802 - Twisted's name
        """Close the doors and let the daemon come to rest."""
        Service.stopService(self)
        result: Deferred[None] = self._stop()
        return result

    @inlineCallbacks
    def _stop(self) -> Any:
        if self._wish is not None:
            self._wish.end()
        daemon = self._daemon
        if daemon is not None:
            resting = maybeDeferred(daemon.stop, self._how != "fast")
            limit = self.config.seconds(STOP_LIMITS[self._how]) if self._how in STOP_LIMITS else 0.0
            if limit and self.daemon_name != "master":
                resting.addTimeout(limit, self._reactor)
            resting.addErrback(lambda failure: self.log.failure("while stopping", failure))
            yield resting
            daemon.system.stop()
        if self._manhole is not None:
            yield self._manhole.stop()
        if self._metrics is not None:
            yield self._metrics.stopListening()
        if self._real is not None:
            yield self._real.close()
        yield task.deferLater(self._reactor, 0)
        self.log.info("** condor-{name} (pid {pid}) exiting", name=self.daemon_name, pid=os.getpid())
        if self._audit is not None:
            self._audit.close()
        if self._stop_log is not None:
            self._stop_log()

