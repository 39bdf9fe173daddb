"""``condor_pool``: make a pool's authority, let machines in, put them out."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condor_actors.tools.lib.command import framed, help_of

if TYPE_CHECKING:
    from condor_actors.config import Config
    from condor_actors.wire.certificates.authority import PoolFiles
    from condor_actors.wire.tokens import Token

CONFIG_NAME = "05-pool.config"
FIRST_FILE = Path("/etc/condor/condor_config")
"""Written on a machine that has no configuration at all."""
OPTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "create": (("name", "host", "interface"), ("no-config",)),
    "token": (("lifetime", "roles", "address", "stay"), ()),
    "join": (("host",), ("no-config", "execute", "submit")),
}
"""Of each word: the options that take a value, and those that take none."""
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class PoolToolError(Exception):
    """What went wrong, for the person at the terminal."""


@framed
def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_pool``; the exit status."""
    from condor_actors.config import ConfigError
    from condor_actors.wire.certificates.authority import AuthorityError
    from condor_actors.wire.certificates.credentials import BadCredentials
    from condor_actors.wire.errors import WireError
    from condor_actors.wire.nodes import BadNode
    from condor_actors.wire.tokens import BadToken

    words = list(sys.argv[1:] if words is None else words)
    commands = {"create": create, "token": token, "join": join, "list": list_issued, "revoke": revoke, "show": show}
    if not words or words[0] in ("-h", "-help", "--help"):
        print(help_of("condor_pool"))
        return 0 if words else 1
    if words[0] not in commands:
        sys.stderr.write(f"condor_pool: unknown command {words[0]!r}; one of {', '.join(commands)}\n")
        return 1
    if {"-h", "-help", "--help"} & set(words):
        print(help_of(f"condor_pool {words[0]}"))
        return 0
    try:
        commands[words[0]](words[1:])
    except (PoolToolError, AuthorityError, BadCredentials, BadNode, BadToken, ConfigError, WireError) as error:
        sys.stderr.write(f"condor_pool: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"condor_pool: {error.filename or ''}: {error.strerror or error}\n")
        return 1
    return 0


def _options(words: Sequence[str], values: Sequence[str], switches: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Options (a list for each that takes a value, True for a switch) and operands."""
    found: dict[str, Any] = {}
    operands = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or word == "-":
            operands.append(word)
        elif name in switches:
            found[name] = True
        elif name in values:
            if not equals and not rest:
                raise PoolToolError(f"--{name} needs a value")
            found.setdefault(name, []).append(value if equals else rest.pop(0))
        else:
            raise PoolToolError(f"unknown option {word}")
    return found, operands


def _setting() -> tuple[Config, PoolFiles]:
    from condor_actors.config import load_config
    from condor_actors.wire.certificates.authority import PoolFiles

    config = load_config(subsystem="TOOL")
    return config, PoolFiles.of(config)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


# ---- create


def create(words: Sequence[str]) -> None:
    """Make the pool's authority and this machine's certificate; configure it as the central manager."""
    from condor_actors.messages.realm import is_realm
    from condor_actors.wire.certificates.authority import create_pool
    from condor_actors.wire.idtokens.signing_keys import SigningKeys

    options, operands = _options(words, *OPTIONS["create"])
    if operands:
        raise PoolToolError(f"create takes no {operands[0]!r}")
    config, files = _setting()
    place = _place_of_settings(config, options)
    hosts = _own_names(config, options)
    name = options.get("name", [hosts[0].lower().replace(":", "-")])[-1]
    if not is_realm(name):
        raise PoolToolError(f"--name {name!r}: a pool's name is of small letters and digits, and of _ . - behind the "
                            "first of them; at most 63")
    create_pool(files, name, hosts)
    SigningKeys.of(config).make_pool_key()
    _give_to_daemons(config, files)
    _say(f"The pool {name!r} has its authority in {files.ca.parent} (keep {files.ca_key} safe).")
    _say(f"This machine is known as {', '.join(hosts)}.")
    if place is not None:
        lines = {"CONDOR_HOST": hosts[0], "TRUST_DOMAIN": name,
                 "DAEMON_LIST": "MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD"}
        if "interface" in options:
            lines["NETWORK_INTERFACE"] = options["interface"][-1]
            lines["CONDOR_HOST"] = options["interface"][-1]
        _say(f"Its configuration: {_write_config(place, lines)}")
        if "interface" not in options:
            others = ", ".join(_addresses()) or "none now"
            _say(f"It serves this machine only (NETWORK_INTERFACE); for others set an address of its own: {others}.")
    _say("Add a machine: condor_pool token here, then condor_pool join TOKEN there.")


def _own_names(config: Config, options: dict[str, Any]) -> list[str]:
    full = config.full_hostname
    names = [*options.get("host", ()), full, full.partition(".")[0], *options.get("interface", ()), "localhost",
             "127.0.0.1"]
    names += _addresses()
    return list(dict.fromkeys(name for name in names if name))


def _addresses() -> list[str]:
    import psutil

    found = []
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET and not address.address.startswith("127."):
                found.append(address.address)
    return found


def _give_to_daemons(config: Config, files: PoolFiles) -> None:
    """As root: let the account of the daemons read what they need."""
    from condor_actors.machine.privilege.ownership import give_files
    from condor_actors.machine.privilege.pool_account import pool_account
    from condor_actors.wire.idtokens.signing_keys import SigningKeys

    account = pool_account(config) if os.getuid() == 0 else None
    if account is not None:
        register, key = files.ca_key.with_name("issued.json"), SigningKeys.of(config).pool_key
        give_files((files.host_key, files.ca_key, register, files.ca_key.parent, key, key.parent), account)


def _place_of_settings(config: Config, options: dict[str, Any]) -> Path | None:
    """The folder for the pool's settings; None with ``--no-config``.

    Raises:
        PoolToolError: there is none, and this machine is configured by a file that has to name one.
    """
    from condor_actors.config.loader import find_root_file

    if "no-config" in options:
        return None
    directories = config.list_of("LOCAL_CONFIG_DIR")
    if directories:
        return Path(directories[0])
    if find_root_file(os.environ) is None and "CONDOR_CONFIG" not in os.environ and os.getuid() == 0:
        return FIRST_FILE.parent / "config.d"
    raise PoolToolError("LOCAL_CONFIG_DIR is not set, so there is no place for the pool's settings: set it in the "
                        "configuration, or use --no-config and set CONDOR_HOST, TRUST_DOMAIN, DAEMON_LIST and "
                        "NETWORK_INTERFACE by hand. (condor_personal start makes a pool for one user.)")


def _write_config(folder: Path, lines: dict[str, str]) -> Path:
    from condor_actors.config.loader import find_root_file
    from condor_actors.durable import write_whole

    folder.mkdir(parents=True, exist_ok=True)
    if find_root_file(os.environ) is None:
        write_whole(FIRST_FILE, b"# Settings of your own go into files below LOCAL_CONFIG_DIR.\n"
                                b"LOCAL_CONFIG_DIR = $(CONFIG_ROOT)/config.d\n")
    path = folder / CONFIG_NAME
    text = "".join(f"{name} = {value}\n" for name, value in lines.items())
    write_whole(path, f"# Written by condor_pool; files that come later in this folder win.\n{text}".encode())
    return path


# ---- token


def token(words: Sequence[str]) -> None:
    """Print a one-time token."""
    from condor_actors.wire.certificates.trust import ROLES
    from condor_actors.wire.tokens import DEFAULT_LIFE_S

    options, operands = _options(words, *OPTIONS["token"])
    if operands:
        raise PoolToolError(f"token takes no {operands[0]!r}")
    config, files = _setting()
    life_s = _seconds(options["lifetime"][-1]) if "lifetime" in options else DEFAULT_LIFE_S
    roles = tuple(options["roles"][-1].split(",")) if "roles" in options else ("master", "schedd", "startd")
    if set(roles) - set(ROLES):
        raise PoolToolError(f"unknown role {min(set(roles) - set(ROLES))!r}; one of {', '.join(ROLES)}")
    _say(make_token(config, files, roles=roles, life_s=life_s, address=options.get("address", [""])[-1],
                    stay_s=_seconds(options["stay"][-1]) if "stay" in options else 0.0).text())
    if config.text("NETWORK_INTERFACE") in (None, "127.0.0.1"):
        sys.stderr.write("Warning: NETWORK_INTERFACE keeps this pool on loopback; other machines cannot reach it.\n")
    sys.stderr.write(f"Good for one machine, for {life_s / 60:.0f} minutes, as {', '.join(roles)}.\n")


def make_token(config: Config, files: PoolFiles, *, roles: Sequence[str], life_s: float, address: str = "",
               stay_s: float = 0.0) -> Token:
    """A token with which one machine may join.

    Args:
        roles: what it may be; life_s: for how long it counts.
        address: where the central manager is dialled; empty: COLLECTOR_HOST.
        stay_s: how long the machine may be a member; 0: for good.

    Raises:
        PoolToolError: nobody says where the central manager is.
        AuthorityError: the pool's authority is not here.
    """
    from condor_actors.tools.lib.tool_audit import note_tool_action
    from condor_actors.wire.certificates.authority import Authority, fingerprint
    from condor_actors.wire.nodes import tls_node
    from condor_actors.wire.tokens import TokenStore

    authority = Authority.load(files)
    address = address or next(iter(config.list_of("COLLECTOR_HOST")), "")
    if not address:
        raise PoolToolError("COLLECTOR_HOST is not set; say --address HOST[:PORT]")
    note_tool_action(config, "issue-join-token", f"roles={','.join(roles)} lifetime_s={life_s:.0f} stay_s={stay_s:.0f}")
    node = tls_node(address, config.integer("COLLECTOR_PORT"))
    made = TokenStore(files.tokens).issue(str(node), fingerprint(authority.certificate), life_s=life_s, roles=roles,
                                          stay_s=stay_s)
    if os.getuid() == 0:
        _share_tokens(config, files)
    return made


def _share_tokens(config: Config, files: PoolFiles) -> None:
    """As root: the collector, which redeems tokens, runs under another account."""
    from condor_actors.machine.privilege.ownership import give_files
    from condor_actors.machine.privilege.pool_account import pool_account

    account = pool_account(config)
    if account is not None:
        give_files((files.tokens, *files.tokens.iterdir()), account)


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text)
    if match is None:
        raise PoolToolError(f"{text!r} is no time; expected 3600, 90m, 24h or 7d")
    return float(match[1]) * _UNITS[match[2]]


# ---- join


def join(words: Sequence[str]) -> None:
    """Make this machine a member."""
    from condor_actors.wire import joining
    from condor_actors.wire.nodes import TlsNode, tls_node
    from condor_actors.wire.tokens import Token

    options, operands = _options(words, *OPTIONS["join"])
    if not 1 <= len(operands) <= 2:
        raise PoolToolError("join takes the token, and the central manager's address if it is not the token's")
    config, files = _setting()
    place = _place_of_settings(config, options)
    if files.ca_key.exists():
        raise PoolToolError(f"this machine is the authority of a pool ({files.ca_key} is here)")
    parsed = Token.parse(sys.stdin.readline().strip() if operands[0] == "-" else operands[0])
    node = tls_node(operands[1]) if len(operands) == 2 else tls_node(parsed.address)
    full = config.full_hostname
    joined = joining.join(parsed, node, [*options.get("host", ()), full], files)
    _give_to_daemons(config, files)
    _say(f"This machine, known as {', '.join(joined.hosts)}, belongs to the pool {joined.pool!r} now.")
    if place is not None:
        manager = str(TlsNode(node.host, node.port))[1:-1]
        daemons = " ".join(["MASTER", *_wanted_daemons(options, joined.roles)])
        lines = {"CONDOR_HOST": node.host, "COLLECTOR_HOST": manager, "NETWORK_INTERFACE": joined.address,
                 "TRUST_DOMAIN": joined.pool, "DAEMON_LIST": daemons}
        _say(f"Its configuration: {_write_config(place, lines)}")
    _say("Start it: condor_master (or restart it).")


def _wanted_daemons(options: dict[str, Any], roles: Sequence[str]) -> list[str]:
    """The daemons to run: what was asked for, else all that the token allows.

    Raises:
        PoolToolError: the token does not allow what was asked for.
    """
    asked = [role for option, role in (("submit", "schedd"), ("execute", "startd")) if option in options]
    forbidden = [role for role in asked if role not in roles]
    if forbidden:
        raise PoolToolError(f"the token does not allow a {forbidden[0]}; this machine joined as {', '.join(roles)}")
    return [role.upper() for role in asked or ("schedd", "startd", "gateway") if role in roles]


# ---- list, revoke, show


def list_issued(words: Sequence[str]) -> None:
    """Every certificate issued."""
    from condor_actors.wire.certificates.authority import Authority

    _, files = _setting()
    issued = Authority.load(files).issued()
    now = time.time()
    for serial, entry in sorted(issued.items(), key=lambda item: float(item[1]["issued_s"])):
        state = "revoked" if entry.get("revoked") else "expired" if entry["ends_s"] < now else "good"
        until = time.strftime("%Y-%m-%d", time.localtime(entry["ends_s"]))
        _say(f"{serial:40} {state:8} until {until}  {', '.join(entry['hosts'])}")


def revoke(words: Sequence[str]) -> None:
    """Put certificates out of use."""
    from condor_actors.tools.lib.tool_audit import note_tool_action
    from condor_actors.wire.certificates.authority import Authority

    if not words:
        raise PoolToolError("revoke takes serial numbers or host names; condor_pool list shows them")
    config, files = _setting()
    authority = Authority.load(files)
    note_tool_action(config, "revoke-certificates", f"certificates={' '.join(words)}")
    authority.revoke(words)
    _say("Revoked. The machines of the pool hear of it within half a minute, and end its links.")


def show(words: Sequence[str]) -> None:
    """What this machine is to its pool."""
    from condor_actors.wire.certificates.authority import fingerprint
    from condor_actors.wire.certificates.trust import names_of

    _, files = _setting()
    credentials = files.credentials()
    if credentials is None:
        raise PoolToolError("this machine belongs to no pool; condor_pool create or join")
    identity, certificate = credentials.identity(), credentials.certificates()[0]
    _say(f"identity     {identity.name}")
    _say(f"roles        {', '.join(sorted(identity.roles))}")
    _say(f"known as     {', '.join(names_of(certificate))}")
    _say(f"until        {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC")
    _say(f"authority    {fingerprint(credentials.authority()).hex()}")


if __name__ == "__main__":
    sys.exit(main())
