"""What any daemon is asked or told, by its address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors import accounts
from condor_actors.api.errors import as_condor_errors
from condor_actors.api.settings import config
from condor_actors.classads import ClassAd
from condor_actors.messages.admin import (
    EVERYTHING_SET,
    DaemonCommand,
    Ping,
    Pong,
    QueryConfig,
    Reconfigure,
    SetConfig,
    Shutdown,
)
from condor_actors.tools.lib import contact
from condor_actors.wire.blocking import Client, WireError, connect

if TYPE_CHECKING:
    from condor_actors.config import Config

NAMES = ("master", "collector", "negotiator", "schedd", "startd")


@attrs.frozen(kw_only=True)
class Answer:
    """Who a daemon is, and who the caller is to it.

    Attributes:
        ad: the daemon's own.
        version: of its program.
        identity, method: who the caller is, and how it was found out.
        levels: what the caller may.
    """

    ad: ClassAd
    version: str
    identity: str
    method: str
    levels: tuple[str, ...]


_met: dict[str, Config] = {}


def met(address: str, pool: Config) -> None:
    """Remember under which configuration an address was heard of: that is how its daemon is spoken to."""
    _met[address] = pool


def _pool_of(address: str) -> Config:
    return _met.get(address) or config()


def is_local(daemon: str, address: str) -> bool:
    """Whether an address is that of this machine's daemon of a name, which answers at its socket."""
    return contact.local_address(_pool_of(address), daemon) == address


def local_ad(daemon: str) -> ClassAd | None:
    """The ad of this machine's daemon of a name, from itself; None: it does not answer at its socket."""
    address = contact.local_address(config(), daemon)
    try:
        with connect(contact.local_node(config(), daemon)) as client:
            pong: Pong = client.ask(contact.ADMIN, Ping())
    except WireError:
        return None
    met(address, config())
    ad = ClassAd.from_bytes(pong.ad)
    ad["MyAddress"] = address
    return ad


def own_name() -> str:
    """The caller's name."""
    return accounts.own_name()


def _line(address: str) -> Client:
    for name in NAMES:
        if is_local(name, address):
            return connect(contact.local_node(_pool_of(address), name))
    return contact.dial(_pool_of(address), address, f"daemon at {address}")


def _ask(address: str, actor: str, message: Any) -> Any:
    with as_condor_errors(), _line(address) as client:
        return client.ask(actor, message)


def ping(address: str) -> Answer:
    """Ask a daemon who it is.

    Raises:
        CondorError: it does not answer.
    """
    pong: Pong = _ask(address, contact.ADMIN, Ping())
    return Answer(ad=ClassAd.from_bytes(pong.ad), version=pong.version, identity=pong.identity, method=pong.method,
                  levels=pong.levels)  # fmt: skip


def config_of(address: str, *names: str) -> dict[str, str]:
    """A daemon's settings: those named, or all that are set.

    Raises:
        CondorError: it does not answer, or refuses.
    """
    answer = _ask(address, contact.ADMIN, QueryConfig(names=names or (EVERYTHING_SET,)))
    return {each.name: each.value for each in answer.values if each.value or each.defined}


def config_names(address: str) -> list[str]:
    """The names of all settings of a daemon: those that are set, and those that have defaults.

    Raises:
        CondorError: it does not answer, or refuses.
    """
    from condor_actors.config import all_parameters

    return list(dict.fromkeys([*config_of(address), *(each.name for each in all_parameters())]))


def set_config(address: str, name: str, value: str | None) -> None:
    """Set something of a daemon until it starts again (None: no longer), in force from `reconfigure` on.

    Raises:
        Refused: this user may not.
    """
    _ask(address, contact.ADMIN, SetConfig(name=name, value=value, persistent=False))


def reconfigure(address: str) -> None:
    """Have a daemon read its configuration again.

    Raises:
        Refused: this user may not, or the configuration is wrong.
    """
    _ask(address, contact.ADMIN, Reconfigure())


def shut_down(address: str, how: str) -> None:
    """Stop a daemon: ``graceful``, ``peaceful`` or ``fast``.

    Raises:
        Refused: this user may not.
    """
    _ask(address, contact.ADMIN, Shutdown(how=how))


def order(address: str, command: str, names: Sequence[str], how: str) -> None:
    """Tell a master to stop (``off``), start (``on``) or restart daemons.

    Raises:
        Refused: this user may not.
    """
    _ask(address, "master", DaemonCommand(command=command, daemons=tuple(names), how=how))
