"""How a tool finds its pool and its daemons.

Theory: a tool talks to the daemons of its own machine over their UNIX sockets in ``$(RUN)``; to others over TLS, whose
address it asks of the collector.  The configuration says where both are; it is found even when the caller changed HOME
or PYTHONPATH (``CONDOR_CONFIG``, ``/etc/condor/condor_config``, and one beside the installed tools).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from condor_actors import records
from condor_actors.tools.lib.command import ToolError
from condor_actors.wire.blocking import Client, RequestRefused, Unreachable, WireError, connect
from condor_actors.wire.nodes import BadNode
from condor_actors.wire.partners import pool_contact
from condor_actors.wire.partners.pool_contact import (
    BadContact,
    ads_of,
    collector_node,
    connect_as_user,
    schedd_constraint,
)

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

    from condor_actors.classads import ClassAd
    from condor_actors.config import Config
    from condor_actors.messages.advertise import AdKind
    from condor_actors.messages.credentials import CredentialFacts
    from condor_actors.wire.certificates.tool_credentials import ToolCredentials
    from condor_actors.wire.idtokens.bearer import TokenCredentials

QUEUE = "schedd"
"""The schedd's actor for jobs."""
COLLECTOR = "collector"
NEGOTIATOR = "negotiator"
ADMIN = "admin"
CREDD = "credd"
"""The credential daemon's name, and its actor's."""
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
        if f"{subsystem}_CLASSAD_USER_MAP_NAMES" in config.macros:  # set: its default is none
            from condor_actors.config.user_maps import use_user_maps

            use_user_maps(config)
        return config
    except ConfigError as error:
        raise ToolError(f"ERROR: {error}") from None


def config_beside_tools() -> str | None:
    """``etc/condor/condor_config`` below the folder that holds the tools' ``bin``."""
    path = os.path.join(sys.prefix, "etc", "condor", "condor_config")
    return path if os.path.isfile(path) else None


@records.frozen(kw_only=True)
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

    def ask_on(self, message: Any, following: Callable[[Any], Any], timeout_s: float = 60.0) -> Iterator[Any]:
        """The schedd's answers to a question and to those that follow from them; see `Client.ask_on`."""
        return self.client.ask_on(QUEUE, message, following, timeout_s)


def full_name(config: Config, daemon: str) -> str:
    """The name of a daemon of this machine in its ad."""
    host = config.full_hostname
    wanted = config.text(f"{daemon.upper()}_NAME")
    return host if not wanted else wanted if "@" in wanted else f"{wanted}@{host}"


def local_node(config: Config, daemon: str) -> str:
    """The UNIX socket of a daemon of this machine."""
    return f"unix:{config.path_text('RUN')}/{daemon}.sock"


def local_address(config: Config, daemon: str) -> str:
    """The public address of a daemon of this machine, ``<127.0.0.1:0>`` while it has none."""
    try:
        with open(f"{config.path_text('RUN')}/{daemon}.address", encoding="utf-8") as file:
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
    from condor_actors.messages.advertise import AdKind

    constraint = schedd_constraint(name) if name else ""
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
        if as_user:
            return connect_as_user(config, address, _warn)
        return connect(address, credentials(config))
    except BadContact as error:
        raise ToolError(f"ERROR: {error}") from None
    except WireError as error:
        raise ToolError(unreachable(who, error)) from None


def credentials(config: Config, *, as_user: bool = False) -> ToolCredentials | TokenCredentials | None:
    """What this user shows over TLS, None when there is nothing (`pool_contact.credentials`).

    Raises:
        ToolError: a method of authentication is none.
    """
    try:
        return pool_contact.credentials(config, as_user=as_user, warn=_warn)
    except BadContact as error:
        raise ToolError(f"ERROR: {error}") from None


def _warn(problem: str) -> None:
    print(f"WARNING: {problem}", file=sys.stderr)


def collector(config: Config, *, pool: str = "") -> Client:
    """A line to the collector: this machine's when it has one, else the pool's.

    Raises:
        ToolError: there is none.
    """
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
            return connect(collector_node(config, host, may_be_partner=bool(pool)), credentials(config))
        except BadContact as error:
            raise ToolError(f"ERROR: {error}") from None
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


def credd(config: Config, address: str = "") -> Client:
    """A line to the credential daemon: this machine's, or the one at an address or CREDD_HOST.

    Raises:
        ToolError: there is none, or it does not answer.
    """
    place = address or config.text("CREDD_HOST") or ""
    if place:
        node = place if place.startswith("<") else f"<{place}>"
        return dial(config, node, f"credential daemon at {place}", as_user=True)
    try:
        return connect(local_node(config, CREDD))
    except WireError as error:
        raise ToolError(unreachable("the credential daemon", error) + "\nAn administrator starts it by adding CREDD to "
                        "DAEMON_LIST.") from None


def facts_of(client: Client, user: str = "") -> Iterator[CredentialFacts]:
    """What the daemon keeps of a user (empty: the caller; ``*``: everybody).

    Raises:
        WireError: it refuses, or does not answer.
    """
    from condor_actors.messages.credentials import QueryCredentials

    cursor = ""
    while True:
        page = client.ask(CREDD, QueryCredentials(user=user, cursor=cursor))
        yield from page.credentials
        cursor = page.cursor
        if not cursor:
            return


def query(
    config: Config, kind: AdKind, constraint: str = "", projection: tuple[str, ...] = (), *, pool: str = ""
) -> list[ClassAd]:
    """Ads from the collector.

    Raises:
        ToolError: it cannot be reached or refuses.
    """
    with collector(config, pool=pool) as client:
        try:
            return ads_of(client, kind, constraint, projection)
        except WireError as error:
            raise ToolError(refused(error)) from None


def unreachable(who: str, error: Exception) -> str:
    """The sentence for a daemon that cannot be talked to, and where to look."""
    if not isinstance(error, Unreachable):
        return f"Error: {who}: {error}"
    return (f"Error: Can't find address of {who}\n({error}; condor_who -daemons says what runs on this machine, "
            "CONDOR_CONFIG which pool is meant, condor_personal start begins a pool of one's own)")  # fmt: skip


def refused(error: Exception) -> str:
    """The sentence for a request that was refused or got no answer."""
    return f"Error: {error.text if isinstance(error, RequestRefused) and hasattr(error, 'text') else error}"
