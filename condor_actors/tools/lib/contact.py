"""How a tool finds its pool and its daemons.

Theory: a tool talks to the daemons of its own machine over their UNIX sockets in ``$(RUN)``; to others over TLS, whose
address it asks of the collector.  The configuration says where both are; it is found even when the caller changed HOME
or PYTHONPATH (``CONDOR_CONFIG``, ``/etc/condor/condor_config``, and one beside the installed tools).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.tools.lib.command import ToolError
from condor_actors.wire.blocking import Client, LinkLost, NotTrusted, RequestRefused, Unreachable, WireError, connect

if TYPE_CHECKING:
    from condor_actors.classads import ClassAd
    from condor_actors.config import Config
    from condor_actors.messages.advertise import AdKind
    from condor_actors.wire.idtokens.bearer import TokenCredentials
    from condor_actors.wire.tool_credentials import ToolCredentials

TOKEN_METHODS = ("IDTOKENS", "IDTOKEN", "TOKENS", "TOKEN")
QUEUE = "schedd"
"""The schedd's actor for jobs."""
COLLECTOR = "collector"
NEGOTIATOR = "negotiator"
ADMIN = "admin"
ACTION_TIMEOUT_S = 3600.0
"""For what may change a million jobs: a schedd that has hung up is noticed anyhow."""


def load(subsystem: str = "TOOL", overrides: Mapping[str, str] | None = None) -> Config:
    """The configuration of the pool this tool belongs to.

    Args:
        subsystem: whose settings apply.
        overrides: set last of all.

    Raises:
        ToolError: it cannot be read, with file and line.
    """
    from condor_actors.config import ConfigError, load_config

    environ = dict(os.environ)
    if not environ.get("CONDOR_CONFIG"):
        beside = config_beside_tools()
        if beside is not None:
            environ["CONDOR_CONFIG"] = beside
    try:
        config = load_config(subsystem=subsystem, environ=environ, overrides=overrides)
        if config.text(f"{subsystem}_CLASSAD_USER_MAP_NAMES"):
            from condor_actors.config.user_maps import use_user_maps

            use_user_maps(config)
        return config
    except ConfigError as error:
        raise ToolError(f"ERROR: {error}") from None


def config_beside_tools() -> str | None:
    """``etc/condor/condor_config`` below the folder that holds the tools' ``bin``."""
    path = os.path.join(sys.prefix, "etc", "condor", "condor_config")
    return path if os.path.isfile(path) else None


@attrs.frozen(kw_only=True)
class Schedd:
    """A schedd as found: its name, its public address, and an open line to it."""

    name: str
    address: str
    client: Client
    machine: str = ""

    def __enter__(self) -> Schedd:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def ask(self, message: Any, timeout_s: float = 60.0) -> Any:
        """The schedd's answer about jobs."""
        return self.client.ask(QUEUE, message, timeout_s)

    def ask_all(self, messages: Iterable[Any], timeout_s: float = 60.0) -> Iterator[Any]:
        """The schedd's answers in their order; a `RequestRefused` where it refuses."""
        return self.client.ask_all(QUEUE, messages, timeout_s)


def full_name(config: Config, daemon: str) -> str:
    """The name of a daemon of this machine in its ad."""
    host = config.full_hostname
    wanted = config.text(f"{daemon.upper()}_NAME")
    return host if not wanted else wanted if "@" in wanted else f"{wanted}@{host}"


def local_node(config: Config, daemon: str) -> str:
    """The UNIX socket of a daemon of this machine."""
    return f"unix:{config.path('RUN')}/{daemon}.sock"


def local_address(config: Config, daemon: str) -> str:
    """The public address of a daemon of this machine, ``<127.0.0.1:0>`` while it has none."""
    try:
        with open(f"{config.path('RUN')}/{daemon}.address", encoding="ascii") as file:
            return file.readline().strip()
    except OSError:
        return "<127.0.0.1:0>"


def schedd(config: Config, *, name: str = "", pool: str = "", address: str = "") -> Schedd:
    """A line to the schedd: this machine's, or the one named.

    Args:
        name: its ``Name``, or a host's name.
        pool: central manager to ask for it.
        address: ``<host:port>``, when it is known.

    Raises:
        ToolError: there is none, or it does not answer.
    """
    ours = full_name(config, "schedd")
    name = name or (config.text("SCHEDD_HOST") or "" if not pool and not address else "")
    if address:
        return Schedd(
            name=name or address, address=address, client=dial(config, address, f"schedd at {address}", as_user=True)
        )
    if not pool and (not name or name.lower() in (ours.lower(), ours.partition(".")[0].lower(), "localhost")):
        try:
            client = connect(local_node(config, "schedd"))
        except WireError as error:
            raise ToolError(unreachable("local schedd", error)) from None
        return Schedd(name=ours, address=local_address(config, "schedd"), client=client)
    from condor_actors.classads import quote
    from condor_actors.messages.advertise import AdKind

    constraint = ""
    if name:
        text = quote(name)
        constraint = f'Name == {text} || Machine == {text} || (regexp(strcat("^", {text}, "\\\\."), Name))'
    found = query(config, AdKind.SCHEDD, constraint, ("Name", "MyAddress", "Machine"), pool=pool)
    if not found:
        raise ToolError(f"Error: Can't find address of schedd {name or 'in pool ' + pool}")
    there = found[0].get_str("MyAddress")
    full = found[0].get_str("Name")
    return Schedd(name=full, address=there, client=dial(config, there, f"schedd {full}", as_user=True),
                  machine=found[0].get_str("Machine"))  # fmt: skip


def all_schedds(config: Config, *, pool: str = "") -> Iterator[ClassAd]:
    """The ads of the pool's schedds."""
    from condor_actors.messages.advertise import AdKind

    yield from query(config, AdKind.SCHEDD, "", ("Name", "MyAddress", "Machine"), pool=pool)


def dial(config: Config, address: str, who: str, *, as_user: bool = False) -> Client:
    """A line to ``<host:port>`` over TLS.

    Args:
        as_user: show the caller's own certificate even where the machine's could be read: whose job it is follows from
            it.

    Raises:
        ToolError: there is none.
    """
    try:
        shown = credentials(config, as_user=as_user)
        try:
            return connect(address, shown)
        except (NotTrusted, LinkLost):
            if not as_user or hasattr(shown, "tokens"):  # who shows a token is its bearer or nobody
                raise
            return connect(address, credentials(config, as_user=True, is_anew=True))
    except WireError as error:
        raise ToolError(unreachable(who, error)) from None


def credentials(config: Config, *, as_user: bool = False,
                is_anew: bool = False) -> ToolCredentials | TokenCredentials | None:
    """What this user shows over TLS, None when there is nothing: a certificate or a token, whichever comes first in
    SEC_CLIENT_AUTHENTICATION_METHODS and is there.

    Args:
        is_anew: borrow a certificate even if there is a fresh one; it may be another pool's.

    Raises:
        ToolError: a method is none.
    """
    found: ToolCredentials | TokenCredentials | None = None
    for method in config.list_of("SEC_CLIENT_AUTHENTICATION_METHODS"):
        if method.upper() == "SSL":
            found = _certificate(config, as_user=as_user, is_anew=is_anew)
        elif method.upper() in TOKEN_METHODS:
            found = _tokens(config)
        elif method.upper() != "FS":  # that is for sockets of this machine, where nothing is shown
            raise ToolError(f"ERROR: SEC_CLIENT_AUTHENTICATION_METHODS: {method} is none of SSL, IDTOKENS, FS")
        if found is not None:
            break
    return found


def _tokens(config: Config) -> TokenCredentials | None:
    from condor_actors.wire.idtokens.bearer import TokenCredentials
    from condor_actors.wire.idtokens.token_files import own_tokens

    tokens, problems = own_tokens(config)
    for problem in problems:
        print(f"WARNING: {problem}", file=sys.stderr)
    return TokenCredentials(ca=os.path.expanduser(str(config.path("POOL_CA"))), tokens=tokens) if tokens else None


def _certificate(config: Config, *, as_user: bool, is_anew: bool) -> ToolCredentials | None:
    from condor_actors.config.collectors import gateway_nodes
    from condor_actors.wire.tool_credentials import ToolCredentials

    if as_user:
        paths = {"certificate": "USER_CERTIFICATE", "key": "USER_KEY", "ca": "POOL_CA",
                 "partners": "POOL_PARTNERS"}
        own = ToolCredentials(**{what: os.path.expanduser(config.text(name) or "") for what, name in paths.items()},
                              gateways=gateway_nodes(config))
        if is_anew or not own.is_fresh():
            own.borrow(str(config.path("RUN")))
        if own.is_usable():
            return own
    return ToolCredentials.of(config)


def collector(config: Config, *, pool: str = "") -> Client:
    """A line to the collector: this machine's when it has one, else the pool's.

    Raises:
        ToolError: there is none.
    """
    from condor_actors.wire.nodes import BadNode, tls_node

    here = ""
    if not pool:
        try:
            return connect(local_node(config, "collector"))
        except Unreachable as error:
            here = f"\n(on this machine {error}; condor_who -daemons says what runs here)"
        except WireError as error:
            raise ToolError(unreachable("collector", error)) from None
    hosts: Sequence[str] = [pool] if pool else config.list_of("COLLECTOR_HOST")
    problem = "Error: COLLECTOR_HOST is not configured"
    for host in hosts:
        try:
            node = _partner(config, host) if pool else ""
            return connect(node or str(tls_node(host, config.integer("COLLECTOR_PORT"))), credentials(config))
        except (BadNode, WireError) as error:
            problem = unreachable(f"collector {host}", error)
    raise ToolError(problem + here)


def negotiator(config: Config, *, name: str = "", pool: str = "") -> Client:
    """A line to the negotiator: this machine's, or the pool's.

    Raises:
        ToolError: there is none.
    """
    if not name and not pool:
        try:
            return connect(local_node(config, NEGOTIATOR))
        except Unreachable:
            pass
        except WireError as error:
            raise ToolError(f"Error: negotiator: {error}") from None
    from condor_actors.classads import quote
    from condor_actors.messages.advertise import AdKind

    constraint = f"Name == {quote(name)} || Machine == {quote(name)}" if name else ""
    ads = query(config, AdKind.NEGOTIATOR, constraint, ("Name", "MyAddress"), pool=pool)
    if not ads:
        raise ToolError(f"Error: Can't locate negotiator {name or 'in ' + (pool or 'the local pool')}")
    return dial(config, ads[0].get_str("MyAddress"), f"negotiator {ads[0].get_str('Name')}")


def _partner(config: Config, pool: str) -> str:
    """The central manager's node of the partner that is called ``pool``; empty: there is none."""
    from pathlib import Path

    path = Path(os.path.expanduser(str(config.path("POOL_PARTNERS"))))
    if not path.exists():
        return ""
    from condor_actors.wire.partners.partner_store import BadPartners, read_partners

    try:
        partners = [each.known() for each in read_partners(path)]
    except BadPartners as error:
        raise ToolError(f"ERROR: {error}") from None
    return next((each.central for each in partners if each.is_called(pool)), "")


def query(
    config: Config, kind: AdKind, constraint: str = "", projection: tuple[str, ...] = (), *, pool: str = ""
) -> list[ClassAd]:
    """Ads from the collector.

    Raises:
        ToolError: it cannot be reached or refuses.
    """
    from condor_actors.classads import ClassAd
    from condor_actors.messages.advertise import AdsPage, QueryAds

    with collector(config, pool=pool) as client:
        ads: list[ClassAd] = []
        cursor = ""
        while True:
            try:
                page = client.ask(
                    COLLECTOR, QueryAds(ad_kind=kind, constraint=constraint, projection=projection, cursor=cursor)
                )
            except WireError as error:
                raise ToolError(refused(error)) from None
            assert isinstance(page, AdsPage)
            ads += [_from_there(ClassAd.from_bytes(text), client.node) for text in page.ads]
            cursor = page.cursor
            if not cursor:
                return ads


def _from_there(ad: ClassAd, collector: str) -> ClassAd:
    """An ad with addresses that can be dialled here, wherever the collector is that had it."""
    if "%" in collector:
        from condor_actors.messages.realm import node_abroad
        from condor_actors.wire.nodes import TlsNode, parse_node

        parsed = parse_node(collector)
        if isinstance(parsed, TlsNode) and parsed.realm and ad.find("myaddress") is not None:
            ad["MyAddress"] = node_abroad(ad.get_str("MyAddress"), parsed.realm)
    return ad


def unreachable(who: str, error: Exception) -> str:
    """The sentence for a daemon that cannot be talked to, and where to look."""
    if not isinstance(error, Unreachable):
        return f"Error: {who}: {error}"
    return (f"Error: Can't find address of {who}\n({error}; condor_who -daemons says what runs on this machine, "
            "CONDOR_CONFIG which pool is meant, condor_personal start begins a pool of one's own)")  # fmt: skip


def refused(error: Exception) -> str:
    """The sentence for a request that was refused or got no answer."""
    return f"Error: {error.text if isinstance(error, RequestRefused) and hasattr(error, 'text') else error}"
