"""``condor_flock``: which other pools this one trusts, and on which terms they lend each other machines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from condor_actors.tools.lib.command import ToolError, framed, help_of

if TYPE_CHECKING:
    from condor_actors.classads import ClassAd
    from condor_actors.config import Config
    from condor_actors.wire.certificates.authority import PoolFiles
    from condor_actors.wire.partners.partner_store import Partner

TERMS = ("quota", "machines", "times", "rank", "jobs", "users", "refuse", "send-jobs", "send-users", "send-refuse")
OPTIONS: Mapping[str, tuple[str, ...]] = {"invite": ("address", "gateway"), "accept": ("fingerprint",), "limit": TERMS,
                                          "report": ("svg",)}


@framed
def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_flock``; the exit status."""
    words = list(sys.argv[1:] if words is None else words)
    commands = {"invite": invite, "accept": accept, "list": list_partners, "revoke": revoke, "status": status,
                "report": report, "limit": limit}
    if not words or words[0] in ("-h", "-help", "--help"):
        print(help_of("condor_flock"))
        return 0 if words else 1
    if words[0] not in commands:
        sys.stderr.write(f"condor_flock: unknown command {words[0]!r}; one of {', '.join(commands)}\n")
        return 1
    if {"-h", "-help", "--help"} & set(words):
        print(help_of(f"condor_flock {words[0]}"))
        return 0
    try:
        commands[words[0]](words[1:])
    except (ToolError, ValueError) as error:
        sys.stderr.write(f"condor_flock: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"condor_flock: {error.filename or ''}: {error.strerror or error}\n")
        return 1
    return 0


def _setting() -> tuple[Config, PoolFiles]:
    from condor_actors.config import load_config
    from condor_actors.wire.certificates.authority import PoolFiles

    config = load_config(subsystem="TOOL")
    return config, PoolFiles.of(config)


def _values(words: Sequence[str], *options: str) -> tuple[dict[str, str], list[str]]:
    """The values of the options that are given, and the other words."""
    values: dict[str, str] = {}
    rest, left = [], list(words)
    while left:
        word = left.pop(0)
        name, equals, given = word.partition("=")
        option = name.lstrip("-")
        if option in options and name.startswith("-"):
            if not equals and not left:
                raise ToolError(f"--{option} needs a value")
            values[option] = given if equals else left.pop(0)
        elif word.startswith("-") and word != "-":
            raise ToolError(f"unknown option {word}")
        else:
            rest.append(word)
    return values, rest


def _own(config: Config, files: PoolFiles, address: str = "", gateway: str | None = None) -> Partner:
    """This pool, as a partner of others."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    from condor_actors.messages.realm import is_realm
    from condor_actors.wire.nodes import tls_node
    from condor_actors.wire.partners.partner_store import Partner

    try:
        ca = files.ca.read_bytes()
    except FileNotFoundError:
        raise ToolError(f"this machine belongs to no pool ({files.ca} is not here): condor_pool create makes one, "
                        "condor_pool join joins one") from None
    name = str(x509.load_pem_x509_certificate(ca).subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value)
    if not is_realm(name):
        raise ToolError(f"a pool called {name!r} can have no partners: small letters, digits, and _ . - between them "
                        "make a name that can (condor_pool create --name)")
    hosts = config.list_of("COLLECTOR_HOST")
    if not address and not hosts:
        raise ToolError("COLLECTOR_HOST is not set: give the central manager's --address")
    return Partner(name=name, central=str(tls_node(address or hosts[0], config.integer("COLLECTOR_PORT"))), ca=ca,
                   gateways=_gateways(config, gateway))


def _gateways(config: Config, given: str | None) -> tuple[str, ...]:
    """Where other pools dial this one's gateways: those of GATEWAY_HOST, those that are given, or none."""
    from condor_actors.config.collectors import gateway_nodes
    from condor_actors.wire.nodes import tls_node
    from condor_actors.wire.partners.partner_store import MOST_GATEWAYS

    if given is None:
        return gateway_nodes(config)
    if given.strip() == "none":
        return ()
    hosts = [word.strip() for word in given.split(",") if word.strip()]
    if not hosts or len(hosts) > MOST_GATEWAYS:
        raise ToolError(f"--gateway {given!r}: expected none, or up to {MOST_GATEWAYS} times HOST[:PORT], with commas "
                        "between them")
    return tuple(dict.fromkeys(str(tls_node(host, config.integer("GATEWAY_PORT"))) for host in hosts))


def invite(words: Sequence[str]) -> None:
    """Print what another pool needs to trust this one."""
    from condor_actors.wire.nodes import is_address, parse_node
    from condor_actors.wire.partners.invitation import fingerprint_text, invitation_text

    given, rest = _values(words, *OPTIONS["invite"])
    if rest:
        raise ToolError(f"invite takes no {rest[0]!r}")
    config, files = _setting()
    own = _own(config, files, given.get("address", ""), given.get("gateway"))
    reached = own.gateways[0] if own.gateways else own.central
    host = getattr(parse_node(reached), "host", "")
    gateways = f", and its gateway{'s' * (len(own.gateways) > 1)} {', '.join(own.gateways)}" if own.gateways else ""
    print(invitation_text(own))
    print(f"\nThis invites to the pool {own.name}, whose central manager is {own.central}{gateways}.\n"
          f"Give it to the administrators of the other pool, who say: condor_flock accept INVITATION\n"
          f"Tell them by another way (the telephone, say) its fingerprint:\n  {fingerprint_text(own.ca)}",
          file=sys.stderr)
    if host == "localhost" or (is_address(host) and host.startswith("127.")):
        option = "--gateway" if own.gateways else "--address"
        print(f"WARNING: {reached} reaches this machine alone; {option} names one that reaches it from there.",
              file=sys.stderr)


def accept(words: Sequence[str]) -> None:
    """Trust another pool."""
    from condor_actors.machine.privilege.ownership import give_files
    from condor_actors.machine.privilege.pool_account import pool_account
    from condor_actors.wire.partners.invitation import fingerprint_text, parse_invitation
    from condor_actors.wire.partners.partner_store import changed_partners

    options, rest = _values(words, *OPTIONS["accept"])
    if len(rest) != 1:
        raise ToolError("accept takes one invitation, or - to read it from standard input")
    config, files = _setting()
    own = _own(config, files)
    _need_authority(files)
    partner = parse_invitation(sys.stdin.read() if rest[0] == "-" else rest[0])
    if partner.name == own.name:
        raise ToolError(f"this pool is called {own.name}, too: pools that trust each other need names of their own")
    print(f"The pool {partner.name}, with its central manager at {partner.central}, has the fingerprint\n"
          f"  {fingerprint_text(partner.ca)}")
    _compare(fingerprint_text(partner.ca), options.get("fingerprint", ""))
    with changed_partners(files.partners) as partners:
        before = partners.get(partner.name)
        if before is not None and before.ca != partner.ca:
            raise ToolError(f"a partner called {partner.name} is known by another authority; condor_flock revoke "
                            f"{partner.name} forgets it, if its authority was made anew")
        partners[partner.name] = partner if before is None else type(partner)(
            name=partner.name, central=partner.central, ca=partner.ca, crl=before.crl, gateways=partner.gateways,
            terms=before.terms)
    account = pool_account(config) if os.getuid() == 0 else None
    if account is not None:
        give_files((files.partners, files.partners.with_suffix(".lock"), files.partners.parent), account)
    print(f"{partner.name} is a partner now; all machines of this pool know it within half a minute.\n"
          f"To send jobs there, set FLOCK_TO = {partner.name}; to run its jobs here, FLOCK_FROM = {partner.name};\n"
          "then condor_reconfig. There they need this pool's invitation: condor_flock invite.")


def _need_authority(files: PoolFiles) -> None:
    if not os.access(files.ca_key, os.R_OK):
        raise ToolError(f"{files.ca_key} cannot be read: say this on the central manager, as its administrator")


def _compare(fingerprint: str, given: str) -> None:
    """Have the administrator compare the fingerprint.

    Raises:
        ToolError: it differs, or was not compared.
    """
    if given:
        if given.lower().replace(":", "") != fingerprint.replace(":", ""):
            raise ToolError("that is not the fingerprint you gave: the invitation is another pool's, or was changed on "
                            "its way")
        return
    if not sys.stdin.isatty():
        raise ToolError("nobody is here to compare it: give it with --fingerprint, as the other pool's administrators "
                        "told it to you")
    if input("Is that what the other pool's administrators told you? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ToolError("not accepted")


def list_partners(words: Sequence[str]) -> None:
    """List the pools that this one trusts."""
    from condor_actors.wire.partners.invitation import fingerprint_text
    from condor_actors.wire.partners.partner_store import read_partners

    if words:
        raise ToolError(f"list takes no {words[0]!r}")
    config, files = _setting()
    to, source = config.list_of("FLOCK_TO"), config.list_of("FLOCK_FROM")
    partners = read_partners(files.partners)
    for partner in partners:
        uses = [what for what, names in (("FLOCK_TO", to), ("FLOCK_FROM", source)) if partner.name in names]
        print(f"{partner.name:<24} {partner.central:<28} {' '.join(uses) or 'in neither FLOCK_TO nor FLOCK_FROM'}\n"
              f"    {fingerprint_text(partner.ca)}"
              + (f"\n    gateway {', '.join(partner.gateways)}" if partner.gateways else ""))
    if not partners:
        print("This pool trusts no other.")


def revoke(words: Sequence[str]) -> None:
    """Trust pools no longer."""
    from condor_actors.wire.partners.partner_store import changed_partners

    _, names = _values(words)
    if not names:
        raise ToolError("revoke takes the names of pools; condor_flock list shows them")
    _, files = _setting()
    _need_authority(files)
    with changed_partners(files.partners) as partners:
        unknown = [name for name in names if name not in partners]
        if unknown:
            raise ToolError(f"{unknown[0]} is no partner of this pool; condor_flock list shows them")
        for name in names:
            del partners[name]
    for name in names:
        print(f"{name} is trusted no longer; its links end within half a minute, and its jobs are taken off the "
              "machines here. (There they begin again when their leases have run out.)")


def limit(words: Sequence[str]) -> None:
    """Show a partner's terms, or change them."""
    from condor_actors.cores.flock_terms import changed_terms, terms_entry
    from condor_actors.wire.partners.partner_store import changed_partners, read_partners

    given, names = _values(words, *OPTIONS["limit"])
    if len(names) != 1:
        raise ToolError("limit takes the name of one pool; condor_flock list shows them")
    name = names[0]
    _, files = _setting()
    if given:
        _need_authority(files)
        with changed_partners(files.partners) as partners:
            if name not in partners:
                raise ToolError(f"{name} is no partner of this pool; condor_flock list shows them")
            partner = partners[name]
            terms = partner.terms
            for term, text in given.items():
                terms = changed_terms(terms, term.replace("-", "_"), text)
            partners[name] = type(partner)(name=name, central=partner.central, ca=partner.ca, crl=partner.crl,
                                           gateways=partner.gateways, terms=terms)
        print("All machines of this pool go by that within half a minute.")
    found = next((each for each in read_partners(files.partners) if each.name == name), None)
    if found is None:
        raise ToolError(f"{name} is no partner of this pool; condor_flock list shows them")
    entry = terms_entry(found.terms)
    for term in TERMS:
        value = entry.get(term.replace("-", "_"), "below" if term == "rank" else "-")
        print(f"{term:<12} {' '.join(value) if isinstance(value, list) else value}")


def status(words: Sequence[str]) -> None:
    """Say what the gateways of this pool reach and carry."""
    from condor_actors.messages.flock import GatewayState, QueryGateway
    from condor_actors.tools.lib.contact import credentials
    from condor_actors.wire.blocking import connect
    from condor_actors.wire.errors import WireError

    if words:
        raise ToolError(f"status takes no {words[0]!r}")
    config, _ = _setting()
    gateways = _gateways(config, None)
    if not gateways:
        raise ToolError("GATEWAY_HOST is not set: this pool has no gateway, and other pools' machines are dialled")
    for node in gateways:
        try:
            with connect(node, credentials(config)) as client:
                state = client.ask("gateway", QueryGateway())
        except WireError as error:
            print(f"{node}: {error}")
            continue
        assert isinstance(state, GatewayState)
        print(f"The gateway {node} knows {len(state.partners)} partner{'s' * (len(state.partners) != 1)}.")
        for each in state.partners:
            print(f"{each.name:<24} {'reached' if each.is_reached else 'NOT REACHED'}: {each.route}\n"
                  f"    {each.streams} connections now, {each.opening} in the making; {each.carried} so far, "
                  f"{each.refused} refused; {each.bytes_out:,} bytes there, {each.bytes_in:,} back")


def report(words: Sequence[str]) -> None:
    """Say what this pool has lent to each partner, and borrowed from it."""
    from condor_actors.tools.lib.flock_report import Flow, flow_of, report_text
    from condor_actors.wire.partners.partner_store import read_partners

    given, rest = _values(words, *OPTIONS["report"])
    if rest:
        raise ToolError(f"report takes no {rest[0]!r}")
    config, files = _setting()
    own, ours = _own(config, files, "localhost").name, _accounts(config, "")
    flows: list[tuple[str, Flow, Flow | str]] = []
    for partner in read_partners(files.partners):
        borrowed: Flow | str
        try:
            borrowed = flow_of(_accounts(config, partner.name), own)
        except ToolError as error:
            borrowed = " ".join(str(error).split())
        flows.append((partner.name, flow_of(ours, partner.name), borrowed))
    print(report_text(own, flows, _lending(config)) if flows else "This pool trusts no other.")
    if "svg" in given:
        from pathlib import Path

        from condor_actors.durable import naming
        from condor_actors.tools.lib.flock_picture import flow_picture

        with naming(given["svg"]):
            Path(given["svg"]).write_text(flow_picture(own, flows), encoding="utf-8")


def _accounts(config: Config, pool: str) -> list[ClassAd]:
    """The accountant's records of a pool; empty: of this one."""
    from condor_actors.messages.negotiate import QueryPriorities

    return _asked(config, pool, lambda cursor: QueryPriorities(cursor=cursor))


def _lending(config: Config) -> list[ClassAd]:
    """What the negotiator says of partners' terms and holdings."""
    from condor_actors.messages.negotiate import QueryLending

    return _asked(config, "", lambda cursor: QueryLending(cursor=cursor))


def _asked(config: Config, pool: str, question: Callable[[str], object]) -> list[ClassAd]:
    """All pages of a negotiator's answer."""
    from condor_actors.classads import ClassAd
    from condor_actors.messages.advertise import AdsPage
    from condor_actors.tools.lib.contact import negotiator
    from condor_actors.wire.errors import WireError

    ads, cursor = [], ""
    with negotiator(config, pool=pool) as client:
        while True:
            try:
                page = client.ask("negotiator", question(cursor))
            except WireError as error:
                raise ToolError(str(error)) from None
            assert isinstance(page, AdsPage)
            ads += [ClassAd.from_bytes(text) for text in page.ads]
            cursor = page.cursor
            if not cursor:
                return ads


if __name__ == "__main__":
    sys.exit(main())
