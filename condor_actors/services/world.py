"""The real edges of a daemon, built from its configuration.

TLS needs credentials (``HOST_CERTIFICATE`` and the like, made by ``condor_pool``); a process without them serves
this machine only, over its UNIX socket.
"""

from __future__ import annotations

import errno
import gc
import ipaddress
import os
import secrets
import socket
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any

import attrs
import psutil
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from condor_actors.actors import ActorSystem, World
from condor_actors.actors.slow_edges import SlowEdges
from condor_actors.addresses import MOST_PORT, BadAddress, is_ipv6, split_address
from condor_actors.classads.builtins.choice import listen_to_debug
from condor_actors.classads.evaluation.budget import DEFAULT_BYTES, set_limits
from condor_actors.config import Config, ConfigError
from condor_actors.config.collectors import collector_nodes, gateway_nodes
from condor_actors.config.user_maps import use_user_maps
from condor_actors.machine.privilege.pool_account import pool_uid
from condor_actors.own_files import replace_own
from condor_actors.services.steady_time import SteadyClock, steady_timers
from condor_actors.services.telemetry.audit import AuditLog
from condor_actors.services.telemetry.logs import unwritable
from condor_actors.services.telemetry.traces import SpanSender, span_sender
from condor_actors.wire.admission import Admission
from condor_actors.wire.authorization import Authorization
from condor_actors.wire.certificates.authority import machine_credentials
from condor_actors.wire.certificates.credentials import Credentials
from condor_actors.wire.identity_map import IdentityMap
from condor_actors.wire.idtokens.verifier import TokenVerifier
from condor_actors.wire.nodes import TlsNode, tls_node
from condor_actors.wire.post_office import PostOffice

TAKE_TOKENS = frozenset({"master", "collector", "negotiator", "schedd", "startd", "credd"})
"""The daemons that people ask: they take tokens, and so let in who has no certificate, to show one."""
TRACED = frozenset({"schedd", "shadow-host", "starter-host"})
"""Those that tell traces of jobs."""


@attrs.define(kw_only=True)
class RealWorld:
    """A world, and the listeners of its post office.

    Attributes:
        name: the daemon's name.
        config: the configuration in force.
        world: what the daemon gets.
        post: its post office (also in ``world``).
        authorization: the lists behind ``world.authorize``.
        spans: what sends the spans of jobs' traces; None: nothing does.
    """

    name: str
    config: Config
    world: World
    post: PostOffice
    authorization: Authorization
    spans: SpanSender | None = None
    listens_locally: bool = True
    listens_publicly: bool = True
    _address_file: Path | None = None

    def listen(self) -> None:
        """Open the UNIX socket, then the TLS port, then say where in ``$(RUN)/<name>.address``.

        Raises:
            ConfigError: the folder cannot be made, or the address or port is not to be had.
            OSError: the UNIX socket is taken, or the folder cannot be written.
        """
        folder = self.config.path("RUN")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.config, "RUN", folder, error) from None
        if self.listens_locally:
            self.post.listen_unix(str(folder / f"{self.name}.sock"))
        if self.listens_publicly and self.post.tls is not None:
            self._listen_publicly()
        if self.listens_locally:
            self._address_file = folder / f"{self.name}.address"
            write_whole(self._address_file, f"{self.post.public_node}\n{os.getpid()}\n")

    def _listen_publicly(self) -> None:
        """Open the TLS port: the one that is configured, else the last one, any of LOWPORT to HIGHPORT, or any at all.

        Claims, shadows and clients know a daemon by its address, so one that was killed had better be found again.
        """
        own = bind_address(self.config)
        everywhere = self.config.boolean("BIND_ALL_INTERFACES")
        public = self.config.text("TCP_FORWARDING_HOST") or (own if everywhere else "")
        problem: CannotListenError | None = None
        ports = possible_ports(self.config, self.name, self.world.random)
        last = last_port(self._port_file)
        if last and ports != [last] and (last in ports or 0 in ports):
            ports.insert(0, last)
        for port in ports:
            try:
                node = self.post.listen_tls(_any_like(own) if everywhere else own, port, public_host=public)
            except CannotListenError as error:
                problem = error
                continue
            if self.listens_locally:
                write_whole(self._port_file, f"{node.rpartition(':')[2].rstrip('>')}\n")
            return
        raise cannot_listen(self.config, self.name, own, ports, problem)

    @property
    def _port_file(self) -> Path:
        """Keeps the port beyond the process's life."""
        return self.config.path("RUN") / f"{self.name}.port"

    def reconfigure(self, config: Config) -> None:
        """Take the authorisation lists of a new configuration."""
        self.config = config
        self.authorization.reconfigure(config)
        if self.post.identity_map is not None:
            self.post.identity_map = IdentityMap.of(config)
        self.post.trusted_user_hosts = frozenset(host.lower() for host in config.list_of("TRUSTED_USER_HOSTS"))
        self.post.gateways = gateways_of(config, self.name)
        classads_of(config)

    def close(self) -> Deferred[Any]:
        """Stop listening, end every link, and send the spans that wait."""
        if self._address_file is not None:
            self._address_file.unlink(missing_ok=True)
        stopped = self.post.stop()
        spans = self.spans
        return stopped if spans is None else stopped.addBoth(lambda _: spans.close())


def real_world(config: Config, name: str, *, reactor: Any, credentials: Credentials | None = None,
               listens_locally: bool = True, listens_publicly: bool = True,
               machine: bool = True, witness: AuditLog | None = None, own_uid: int | None = None) -> RealWorld:
    """The edges of the daemon ``name``.

    Args:
        config: read for this subsystem.
        name: ``schedd``, ``starter-host`` …
        reactor: Twisted's.
        credentials: in place of the machine's own (a shadow host's proxy certificate).
        machine: show the machine's certificate; False for a process that will be a user's: it never sees the key.
        listens_locally, listens_publicly: which doors :meth:`RealWorld.listen` opens.
        witness: writes down what others do here.
        own_uid: whose processes the pool's daemons are, where this process cannot tell.

    Raises:
        ConfigError: an authorisation list is not valid, or TRACES_ENDPOINT cannot be used.
        BadCredentials: a certificate file is missing or wrong.
    """
    steady_timers(reactor)
    classads_of(config)
    random = Random(secrets.randbits(128))
    log = Logger("condor")
    domain = config.needed_text("UID_DOMAIN")
    post = PostOffice(reactor, random=random, process=name, uid_domain=domain,
                      credentials=credentials or (machine_credentials(config) if machine else None),
                      guests=name in TAKE_TOKENS, log=log)
    if listens_publicly and name in TAKE_TOKENS:
        post.tokens = TokenVerifier.of(config)
    if listens_locally or listens_publicly:
        post.identity_map = IdentityMap.of(config)
    post.admission = Admission(
        config.integer("SEC_MAX_LINKS"), config.integer("SEC_MAX_LINKS_PER_SOURCE"),
        config.integer("SEC_MAX_SILENT_LINKS"), frozenset({0, os.getuid(), pool_uid(config)}))
    post.trusted_user_hosts = frozenset(host.lower() for host in config.list_of("TRUSTED_USER_HOSTS"))
    post.gateways = gateways_of(config, name)
    authorization = Authorization(config, own_uid=pool_uid(config) if own_uid is None else own_uid,
                                  partners=post.partners)
    spans = span_sender(config, name, reactor) if name in TRACED else None
    world = World(reactor_time=reactor, wall_clock=SteadyClock(), random=random, post=post, log=log,
                  authorize=authorization.allows, witness=witness, tell_span=spans, set_aside=gc.freeze)
    return RealWorld(name=name, config=config, world=world, post=post, authorization=authorization, spans=spans,
                     listens_locally=listens_locally, listens_publicly=listens_publicly)


def gateways_of(config: Config, name: str) -> tuple[TlsNode, ...]:
    """The gateways through which a daemon reaches machines of other pools; a gateway itself dials its partners."""
    return () if name == "gateway" else tuple(map(tls_node, gateway_nodes(config)))


def watch_edges(system: ActorSystem, reactor: Any, log: Logger) -> None:
    """Have everything measured that runs on the reactor of this process."""
    slow = system.loop.slow = SlowEdges(log)
    slow.watch_reactor(reactor)


def classads_of(config: Config) -> None:
    """Give the ClassAd language what it has from the configuration: limits, user maps, and a log for ``debug()``."""
    made_bytes = config.size("CLASSAD_EVALUATION_MAX_BYTES") or DEFAULT_BYTES
    set_limits(config.integer("CLASSAD_EVALUATION_MAX_STEPS"), made_bytes)
    use_user_maps(config)
    listen_to_debug(_tell_debug if config.is_debugged(config.subsystem) else None)


def _tell_debug(line: str) -> None:
    Logger("classads").info("Classad debug: {line}", line=line)


def _any_like(address: str) -> str:
    """All addresses of its family."""
    return "::" if ":" in address else "0.0.0.0"


def bind_address(config: Config) -> str:
    """Where to listen: NETWORK_INTERFACE, an address, a pattern of addresses, or an interface's name or pattern.

    Raises:
        ConfigError: no interface of this machine fits.
    """
    wanted = config.needed_text("NETWORK_INTERFACE")
    family = socket.AF_INET
    if ":" in wanted:
        family = socket.AF_INET6
        wanted = _bare(wanted)
    addresses = [
        (name, address.address)
        for name, many in psutil.net_if_addrs().items()
        for address in many
        if address.family == family
    ]
    fitting = [ip for name, ip in addresses if fnmatchcase(ip, wanted) or fnmatchcase(name, wanted)]
    if not fitting and _is_loopback(wanted):
        return wanted
    if not fitting:
        known = ", ".join(f"{name} ({ip})" for name, ip in addresses)
        raise config.unusable("NETWORK_INTERFACE", f"NETWORK_INTERFACE: no interface fits; this machine has {known}",
                              "an address or interface of this machine", value=wanted)
    return min(fitting, key=lambda ip: (ipaddress.ip_address(ip).is_loopback, ipaddress.ip_address(ip).is_private))


def _bare(address: str) -> str:
    """An IPv6 address in its one spelling, without brackets; a pattern of addresses as it is."""
    try:
        host, port = split_address(address)
    except BadAddress:
        return address
    return host if port is None and is_ipv6(host) else address


def _is_loopback(wanted: str) -> bool:
    """Whether it is another loopback address that this machine has: all of 127.0.0.0/8 on Linux, one elsewhere."""
    if not wanted.startswith("127."):
        return False
    try:
        with socket.socket() as probe:
            probe.bind((wanted, 0))
    except OSError:
        return False
    return True


def port_parameter(config: Config, name: str) -> str:
    """The parameter that gives a daemon its port."""
    if name == "collector" and next(iter(collector_nodes(config)), ""):
        return "COLLECTOR_HOST"
    return f"{name.upper().replace('-', '_')}_PORT"


def listening_port(config: Config, name: str) -> int:
    """The port of a daemon: the collector's (COLLECTOR_HOST or COLLECTOR_PORT) and the gateway's are known to all;
    others take ``<NAME>_PORT`` or any free one."""
    if name == "collector":
        first = next(iter(collector_nodes(config)), "")
        return split_address(first)[1] or 0 if first else config.integer("COLLECTOR_PORT")
    if name == "gateway":
        return config.integer("GATEWAY_PORT")
    parameter = port_parameter(config, name)
    wanted = config.text(parameter)
    if wanted and not (wanted.isascii() and wanted.isdecimal() and int(wanted) <= MOST_PORT):
        raise config.unusable(parameter, f"{wanted[:200]!r} is no port", f"a whole number from 0 to {MOST_PORT}")
    return int(wanted) if wanted else 0


def possible_ports(config: Config, name: str, random: Random) -> list[int]:
    """The ports that a daemon may take, in the order to try; 0 is any free one.

    Raises:
        ConfigError: HIGHPORT is below LOWPORT.
    """
    fixed = listening_port(config, name)
    low, high = config.value("LOWPORT"), config.value("HIGHPORT")
    if fixed or not isinstance(low, int) or not isinstance(high, int):
        return [fixed]
    if high < low:
        raise config.unusable("HIGHPORT", f"HIGHPORT = {high} is below LOWPORT = {low}", f"at least {low}")
    ports = list(range(low, high + 1))
    random.shuffle(ports)
    return ports


def cannot_listen(config: Config, name: str, host: str, ports: Sequence[int],
                  problem: CannotListenError | None) -> ConfigError:
    """Why a daemon cannot listen, and the parameter that says where.

    Args:
        host: the address; ports: those that were tried.
        problem: what the last of them met.
    """
    number = getattr(problem.socketError, "errno", None) if problem is not None else None
    if number == errno.EADDRNOTAVAIL:
        return config.unusable("NETWORK_INTERFACE", f"cannot listen at {host}: it is no address of this machine",
                               "one that 'ip address' lists")
    ranged = config.text("LOWPORT") is not None and not config.where(port_parameter(config, name))[1]
    if len(ports) > 1 or (ranged and ports[0] == config.integer("HIGHPORT")):
        return config.unusable("HIGHPORT", f"cannot listen at {host}: none of the ports {min(ports)} to {max(ports)} "
                               f"(LOWPORT to HIGHPORT) can be had: {problem}", "a range with free ports")
    if number == errno.EADDRINUSE:
        return config.unusable(port_parameter(config, name), f"cannot listen at {host}, port {ports[0]}: another "
                               "program has it, which 'ss -ltnp' names", "a free port, or that program stopped")
    return config.unusable(port_parameter(config, name), f"cannot listen at {host}, port {ports[0]}: {problem}",
                           "a port that this account may have")


def last_port(file: Path) -> int:
    """The port that a former process of a daemon had; 0 when none is known."""
    try:
        text = file.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else 0


def write_whole(path: Path, text: str) -> None:
    """Replace a small file at once: readers see the old text or the new one."""
    replace_own(path, text.encode())
