"""Other pools: their names here, what their certificates may say, and what FLOCK_FROM and FLOCK_TO give them."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from OpenSSL import SSL

from condor_actors.messages.envelope import Identity, Level
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import abroad, is_realm, node_abroad, parted, realm_of_host
from condor_actors.wire.authorization import Authorization
from condor_actors.wire.certificates.authority import Authority, PoolFiles, create_pool, lend_proxy
from condor_actors.wire.certificates.credentials import BadCredentials, Credentials, TlsDoor
from condor_actors.wire.certificates.trust import BadCertificate
from condor_actors.wire.nodes import TlsNode, parse_node
from condor_actors.wire.partners.invitation import BadInvitation, fingerprint_text, invitation_text, parse_invitation
from condor_actors.wire.partners.partner_store import (
    BadPartners,
    Partner,
    changed_partners,
    parse_partners,
    partners_text,
    read_partners,
)


def pool(folder: Path, name: str, *hosts: str) -> Credentials:
    files = PoolFiles.below(folder / name.replace("/", "_"))
    create_pool(files, name, hosts or ["submit.example", "10.0.0.1"])
    found = files.credentials()
    assert found is not None
    return found


def partner(credentials: Credentials, name: str) -> Partner:
    return Partner(name=name, central="<10.0.0.1:9618>", ca=credentials.ca, crl=credentials.crl)


def shake(client: TlsDoor, server: TlsDoor, node: TlsNode) -> tuple[SSL.Connection, SSL.Connection]:
    """The two ends of a handshake in memory."""
    ends = (client.dialling(node).clientConnectionForTLS(None), server.listening().serverConnectionForTLS(None))
    ends[0].set_connect_state()
    ends[1].set_accept_state()
    for _ in range(20):
        for one, other in (ends, ends[::-1]):
            try:
                one.do_handshake()
            except SSL.WantReadError:
                pass
            try:
                other.bio_write(one.bio_read(1 << 16))
            except SSL.WantReadError:
                continue
    return ends


@pytest.fixture
def two(tmp_path: Path) -> tuple[Credentials, Credentials]:
    """Two pools that trust each other, whose machines have the same names."""
    math, physics = pool(tmp_path, "math"), pool(tmp_path, "physics")
    return (attrs.evolve(math, partners=(partner(physics, "physics"),)),
            attrs.evolve(physics, partners=(partner(math, "math"),)))


# ---- names


@pytest.mark.parametrize(("node", "expected"), [
    ("<10.0.0.5:9618>", "<10.0.0.5%math:9618>"), ("<desk.math:1>", "<desk.math%math:1>"),
    ("<[fd00::1]:9618>", "<[fd00::1%math]:9618>"), ("<10.0.0.5:9618?alias=x>", "<10.0.0.5%math:9618>"),
    ("<10.0.0.5%physics:9618>", ""), ("unix:/run/schedd.sock", ""), ("in:7", ""), ("", ""), ("<:1>", ""),
])
def test_the_nodes_of_another_pool_are_marked_and_no_others_can_be_named(node: str, expected: str) -> None:
    assert node_abroad(node, "math") == expected
    assert node_abroad(node, "") == node
    if expected:
        parsed = parse_node(expected)
        assert isinstance(parsed, TlsNode)
        assert (parsed.realm, str(parsed)) == ("math", expected)
        assert "%" not in parsed.name


def test_names() -> None:
    assert abroad("alice@dom", "math") == "alice@dom%math"
    assert abroad("alice@dom%physics", "math") == "alice@dom_physics%math"
    assert abroad("alice@dom", "") == "alice@dom"
    assert parted("alice@dom%math") == ("alice@dom", "math")
    assert parted("alice@dom") == ("alice@dom", "")
    assert realm_of_host("fe80::1%eth0") == ""
    assert [name for name in ("math", "m", "a.b-c_d", "", "Math", "a%b", "-a", "a b", "x" * 64) if is_realm(name)] == [
        "math", "m", "a.b-c_d"]


# ---- certificates


def test_a_partners_machine_is_known_by_its_pool(two: tuple[Credentials, Credentials]) -> None:
    math, physics = TlsDoor(two[0]), TlsDoor(two[1])
    client, server = shake(math, physics, TlsNode("submit.example%physics", 9618))
    at_server, at_client = physics.identify(server), math.identify(client)
    assert at_server is not None
    assert at_client is not None
    assert (at_server.name, at_server.realm, at_server.host) == ("condor@math", "math", "submit.example%math")
    assert at_server.hosts == {"submit.example%math", "10.0.0.1%math"}
    assert at_client.realm == "physics"
    assert not at_server.speaks_for("submit.example")


@pytest.mark.parametrize(("host", "door"), [("submit.example", 1), ("submit.example%physics", 0),
                                            ("submit.example%biology", 1)])
def test_nobody_answers_for_a_machine_of_another_pool(two: tuple[Credentials, Credentials], host: str,
                                                     door: int) -> None:
    with pytest.raises(SSL.Error):
        shake(TlsDoor(two[0]), TlsDoor(two[door]), TlsNode(host, 9618))


def test_a_shadow_of_another_pool_is_no_shadow_of_ours(two: tuple[Credentials, Credentials]) -> None:
    shadow = attrs.evolve(lend_proxy(two[0], "shadow:alice@submit.example"), partners=two[0].partners)
    physics = TlsDoor(two[1])
    _, server = shake(TlsDoor(shadow), physics, TlsNode("10.0.0.1%physics", 9618))
    identity = physics.identify(server)
    assert identity is not None
    assert (identity.name, identity.host) == ("shadow:alice@submit.example%math", "submit.example%math")


def test_a_certificate_that_names_another_pool_than_its_authority(tmp_path: Path) -> None:
    liar = pool(tmp_path, "math")
    door = TlsDoor(attrs.evolve(pool(tmp_path, "physics"), partners=(partner(liar, "biology"),)))
    _, server = shake(TlsDoor(attrs.evolve(liar, partners=(partner(door.credentials, "physics"),))), door,
                      TlsNode("10.0.0.1%physics", 9618))
    with pytest.raises(BadCertificate, match="authority is that of the pool biology"):
        door.identify(server)


def test_revocations_count_in_the_pool_whose_authority_made_them(tmp_path: Path) -> None:
    math, physics = pool(tmp_path, "math"), pool(tmp_path, "physics")
    files = PoolFiles.below(tmp_path / "math")
    Authority.load(files).revoke([f"{math.certificates()[0].serial_number:x}"])
    revoked = partner(attrs.evolve(math, crl=files.crl.read_bytes()), "math")
    door = TlsDoor(attrs.evolve(physics, partners=(revoked,)))
    _, server = shake(TlsDoor(attrs.evolve(math, partners=(partner(physics, "physics"),))), door,
                      TlsNode("10.0.0.1%physics", 9618))
    with pytest.raises(BadCertificate, match="revoked"):
        door.identify(server)
    assert door.revoked("") == frozenset()
    assert door.revoked("math") == {math.certificates()[0].serial_number}
    assert door.revoked("biology") is None


def test_a_list_signed_by_another_authority_or_an_authority_twice(two: tuple[Credentials, Credentials]) -> None:
    math, physics = two
    for partners in ((attrs.evolve(physics.partners[0], ca=physics.ca),),
                     (physics.partners[0], attrs.evolve(physics.partners[0], name="other"))):
        with pytest.raises(BadCredentials):
            TlsDoor(attrs.evolve(physics, partners=partners))
    assert math.realms()[physics.authority().fingerprint(SHA256())].name == "physics"


# ---- the list


def test_partners_are_written_and_read(tmp_path: Path, two: tuple[Credentials, Credentials]) -> None:
    path = tmp_path / "pool" / "partners.json"
    assert read_partners(path) == ()
    with changed_partners(path) as partners:
        partners["physics"] = two[0].partners[0]
    assert read_partners(path) == two[0].partners
    with changed_partners(path) as partners:
        partners.clear()
    assert read_partners(path) == ()
    assert parse_partners(partners_text({}), "x") == ()


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', '{"A": {"central": "h", "ca": ""}}', '{"a": {"ca": ""}}',
                                  '{"a": {"central": "", "ca": ""}}', '{"a": {"central": "h", "ca": "\u00e9"}}',
                                  "[" * 100_000, json.dumps({f"p{n}": {"central": "h", "ca": ""} for n in range(300)})])
def test_a_list_that_is_none_names_its_file(text: str) -> None:
    with pytest.raises(BadPartners, match=r"partners\.json"):
        parse_partners(text.encode(), "partners.json")


def test_invitations(two: tuple[Credentials, Credentials]) -> None:
    invited = attrs.evolve(two[0].partners[0], crl=b"")
    text = invitation_text(invited)
    assert parse_invitation(text) == invited
    assert parse_invitation("\n".join(text[at:at + 60] for at in range(0, len(text), 60))) == invited
    assert len(fingerprint_text(invited.ca).split(":")) == 32


@pytest.mark.parametrize("change", [
    lambda text: text[:-40], lambda text: text[1:], lambda text: "", lambda text: text + "A" * 20_000,
    lambda text: "condor-flock1.", lambda text: "condor-flock1.W10", lambda text: text[:60] + "A" + text[61:],
])
def test_a_text_that_invites_nobody(two: tuple[Credentials, Credentials], change: object) -> None:
    assert callable(change)
    with pytest.raises(BadInvitation):
        parse_invitation(change(invitation_text(two[0].partners[0])))


def test_an_invitation_in_the_name_of_another_pool(two: tuple[Credentials, Credentials]) -> None:
    with pytest.raises(BadInvitation, match="biology"):
        parse_invitation(invitation_text(attrs.evolve(two[0].partners[0], name="biology")))
    machine = attrs.evolve(two[0].partners[0], ca=two[1].chain)
    with pytest.raises(BadInvitation):
        parse_invitation(invitation_text(machine))


# ---- rights

MATH = KnownPartner(name="math", central="<10.0.0.1%math:9618>")


class Lists:
    """A configuration of nothing but lists."""

    def __init__(self, subsystem: str, **lists: str) -> None:
        self.subsystem = subsystem
        self._lists = lists

    def text(self, name: str) -> str | None:
        """One of them."""
        return self._lists.get(name)

    def where(self, name: str) -> tuple[str, int]:
        """Nowhere."""
        return "", 0


def foreigner(role: str) -> Identity:
    host = "submit.example%math"
    name = f"{role}@submit.example%math" if role == "user" else "condor@math"
    return Identity(name=name, roles=frozenset({role}), host=host, hosts=frozenset({host}), method="tls", realm="math",
                    address="10.0.0.1")


def has(subsystem: str, role: str, **lists: str) -> set[str]:
    authorization = Authorization(Lists(subsystem, **lists), 1, lambda: (MATH,))
    return {level.value for level in Level if authorization.allows(foreigner(role), level)}


@pytest.mark.parametrize("role", ["schedd", "startd", "negotiator", "collector", "master", "user", "shadow"])
@pytest.mark.parametrize("subsystem", ["collector", "schedd", "startd", "negotiator", "master"])
def test_a_partner_that_no_list_names_has_nothing(subsystem: str, role: str) -> None:
    assert has(subsystem, role) == {"CLIENT"}
    everybody = {f"ALLOW_{level.value}": "*, 10.0.0.0/8, *@*" for level in Level}
    assert has(subsystem, role, **everybody) == {"CLIENT"}


@pytest.mark.parametrize("entry", ["math", "submit.example", "*.example"])
def test_jobs_from_there(entry: str) -> None:
    for subsystem in ("collector", "startd", "schedd"):
        assert has(subsystem, "schedd", FLOCK_FROM=entry) == {"CLIENT", "READ", "ADVERTISE_SCHEDD"}
        assert has(subsystem, "user", FLOCK_FROM=entry) == {"CLIENT", "READ"}
        assert has(subsystem, "shadow", FLOCK_FROM=entry) == {"CLIENT"}
        assert has(subsystem, "startd", FLOCK_FROM=entry) == {"CLIENT", "READ"}
        assert has(subsystem, "schedd", FLOCK_FROM=entry, DENY_READ="*%math") == {"CLIENT", "ADVERTISE_SCHEDD"}


@pytest.mark.parametrize("entry", ["math", "10.0.0.1", "10.0.0.1:9618", "<10.0.0.1:9618>"])
def test_jobs_to_there(entry: str) -> None:
    assert has("schedd", "negotiator", FLOCK_TO=entry) == {"CLIENT", "READ", "NEGOTIATOR"}
    assert has("schedd", "startd", FLOCK_TO=entry) == {"CLIENT", "READ", "ADVERTISE_STARTD"}
    assert has("schedd", "schedd", FLOCK_TO=entry) == {"CLIENT", "READ"}
    for subsystem in ("collector", "startd", "negotiator"):
        assert has(subsystem, "negotiator", FLOCK_TO=entry) == {"CLIENT", "READ"}


def test_a_list_that_names_the_pool_gives_its_level() -> None:
    assert has("schedd", "user", ALLOW_WRITE="user@submit.example%math") == {"CLIENT", "READ", "WRITE"}
    assert "ADVERTISE_SCHEDD" in has("collector", "schedd", ALLOW_ADVERTISE_SCHEDD="*%math")
