"""``python -m condor_actors.services shadow-host``: a shadow host, started by the schedd.

It listens nowhere.  It begins with the rights of the schedd and drops them when it is told whose it is; where the
schedd has none to lend, it is the owner's from the beginning (``--as-owner``), and its log is what it has as standard
error.  In the end it is the owner, and shows a proxy certificate that says so.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from twisted.application.service import IService, Service
from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python import usage

from condor_actors import accounts
from condor_actors.actors.workers import Workers
from condor_actors.config import ConfigError, load_config
from condor_actors.daemons.schedd.shadow_processes import HOST_ID_VARIABLE
from condor_actors.machine.privilege.pool_account import pool_account
from condor_actors.machine.privilege.secret_memory import give_up_rights, keep_private
from condor_actors.services.telemetry.logs import start_logging
from condor_actors.services.world import RealWorld, gateways_of, real_world, watch_edges
from condor_actors.wire.post_office import PostOffice
from condor_actors.wire.relays.dialing import is_relayed

STOP_PATIENCE_S = 10.0
"""How long an end waits for logs that do not answer: the schedd has their events sent again."""

BEGIN_S = 5.0
"""How long a host that begins waits for the user database, of which it may do without all but its owner."""


class Options(usage.Options):
    """Where the schedd is."""

    optParameters = [
        ["schedd-socket", "s", "", "the schedd's UNIX socket"],
    ]
    optFlags = [["as-owner", "o", "it is the owner's already"]]  # noqa: N815

    def postOptions(self) -> None:  # noqa: N802 - Twisted's name
        """The socket, and in the environment what the schedd calls this process."""
        self["host-id"] = os.environ.pop(HOST_ID_VARIABLE, "")
        if not self["schedd-socket"] or not self["host-id"]:
            missing = "--schedd-socket" if not self["schedd-socket"] else HOST_ID_VARIABLE
            raise usage.UsageError(f"{missing} is missing; only the schedd starts shadow hosts")


def makeService(options: Options, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The service of one shadow host."""
    if reactor is None:
        from twisted.internet import reactor as default_reactor

        reactor = default_reactor
    accounts.impatient(BEGIN_S)
    if options["as-owner"]:
        begin_as_owner()
    return ShadowHostService(options["schedd-socket"], options["host-id"], reactor, as_owner=bool(options["as-owner"]))


def begin_as_owner() -> None:
    """Make oneself at home in the account that one was started with: the helper's environment is root's."""
    keep_private()
    give_up_rights()  # those that have kept the owner's other processes away until now
    entry = accounts.numbered(os.getuid())
    assert entry is not None, "the helper starts hosts for users of this machine only"
    os.environ.update({"USER": entry.name, "LOGNAME": entry.name, "HOME": entry.home})
    os.umask(0o022)


class ShadowHostService(Service):
    """Runs one shadow host for as long as the process lives."""

    def __init__(self, schedd_socket: str, host_id: str, reactor: Any, *, as_owner: bool = False) -> None:
        self.name = "condor-shadow-host"
        self.exit_status = 0
        self.log = Logger("condor")
        self._as_owner = as_owner
        self._config = load_config(subsystem="SHADOW", reads_user_file=not as_owner)
        self._schedd_socket = schedd_socket
        self._host_id = host_id
        self._reactor = reactor
        self._real: RealWorld | None = None
        self._daemon: Any = None
        self._bulk: Any = None

    def startService(self) -> None:  # noqa: N802 - Twisted's name
        """Dial the schedd."""
        Service.startService(self)
        from condor_actors.daemons.shadow.host_daemon import make_shadow_host
        from condor_actors.transfer.client import BulkClient
        from condor_actors.wire.membership import RevocationWatch

        start_logging(self._config, "shadow-host", suffix=f".{os.getpid()}", into=2 if self._as_owner else None)
        pool = pool_account(self._config) if self._as_owner else None
        real = self._real = real_world(self._config, "shadow-host", reactor=self._reactor, listens_locally=False,
                                       listens_publicly=False, machine=False,
                                       own_uid=pool.uid if pool is not None else None)
        workers = Workers(self._reactor, self._config.seconds("USER_FILE_TIMEOUT"))
        self._bulk = BulkClient(self._reactor, real.post.endpoint, in_worker=workers.run)
        self._daemon = make_shadow_host(
            self._config, real.world, schedd_socket=self._schedd_socket, host_id=self._host_id, bulk=self._bulk,
            use_credential=self._use_credential, leave=self._leave, reactor=self._reactor,
            endpoint=real.post.endpoint, is_relayed=lambda node: is_relayed(real.post.gateways, node),
        )
        watch_edges(self._daemon.system, self._reactor, self.log)
        self._daemon.system.spawn("revocations", lambda: RevocationWatch(
            self._config.path("POOL_CRL"), self._config.path("POOL_PARTNERS"), real.post))
        self._daemon.start()
        self._reactor.callWhenRunning(self._catch_signals)
        self._reactor.callWhenRunning(accounts.impatient)
        self.log.info("** shadow host (pid {pid}) started", pid=os.getpid())

    def _catch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
            signal.signal(number, lambda *_: self._reactor.callFromThread(self._leave))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _use_credential(self, bundle: bytes) -> None:
        """Show the owner's certificate instead of the machine's."""
        import attrs

        from condor_actors.wire.certificates.credentials import Credentials, TlsDoor
        from condor_actors.wire.partners.partner_store import BadPartners, read_partners

        assert self._real is not None
        try:
            partners = read_partners(self._config.path("POOL_PARTNERS"))
        except BadPartners as error:
            self.log.error("{error}: no machines of other pools are used", error=error)
            partners = ()
        credentials = attrs.evolve(Credentials.from_bundle(bundle), partners=partners)
        post = self._real.post
        if post.tls is None:
            post.tls = TlsDoor(credentials)
        else:
            post.tls.renew(credentials)
        self._take_gateways(post)

    def _take_gateways(self, post: PostOffice) -> None:
        """Reach other pools as the configuration says by now: this process may have waited long for its owner."""
        try:
            config = load_config(subsystem="SHADOW", reads_user_file=not self._as_owner)
            post.gateways = gateways_of(config, "shadow-host")
        except (ConfigError, OSError) as error:
            self.log.error("GATEWAY_HOST is not read again: {error}", error=error)

    def _leave(self) -> None:
        if self._reactor.running:
            self._reactor.stop()

    def stopService(self) -> Deferred[Any]:  # noqa: N802 - Twisted's name
        """Write what waits, and end the links."""
        Service.stopService(self)
        if self._daemon is None:
            return self._close()
        writing: Deferred[Any] = self._daemon.stop(True)
        writing.addTimeout(STOP_PATIENCE_S, self._reactor)
        return writing.addBoth(lambda _: self._daemon.system.stop()).addBoth(lambda _: self._close())

    def _close(self) -> Deferred[Any]:
        if self._bulk is not None:
            self._bulk.stop()
        return self._real.close() if self._real is not None else succeed(None)
