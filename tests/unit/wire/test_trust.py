"""What certificate chains say, and the lies that are not believed."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from condor_actors.wire.certificates.authority import PoolFiles, create_pool, lend_proxy, make_key, renewal_due
from condor_actors.wire.certificates.credentials import BadCredentials, Credentials, name_matches
from condor_actors.wire.certificates.trust import (
    BACKDATED,
    PROXY_CERT_INFO,
    BadCertificate,
    identity_of_chain,
    proxy_extension,
    proxy_identity,
)
from condor_actors.wire.nodes import BadNode, TlsNode, UnixNode, parse_node, tls_node


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    files = PoolFiles.below(tmp_path_factory.mktemp("pool"))
    create_pool(files, "p", ["submit.example", "10.0.0.1"])
    found = files.credentials()
    assert found is not None
    return found


def chain(credentials: Credentials) -> list[x509.Certificate]:
    return [*credentials.certificates(), credentials.authority()]


def test_a_machine(machine: Credentials) -> None:
    identity = identity_of_chain(chain(machine))
    assert identity.name == "condor@p"
    assert identity.host == "submit.example"
    assert "schedd" in identity.roles


def test_proxies(machine: Credentials) -> None:
    shadow = identity_of_chain(chain(lend_proxy(machine, "shadow:alice@submit.example")))
    assert (shadow.name, shadow.roles) == ("shadow:alice@submit.example", {"shadow"})
    user = identity_of_chain(chain(lend_proxy(machine, "user:bob@10.0.0.1")))
    assert (user.name, user.roles) == ("bob@10.0.0.1", {"user"})


@pytest.mark.parametrize("claim", ["shadow:alice@other.example", "root@submit.example", "daemon:x@submit.example",
                                   "shadow:@submit.example", "", "shadow:alice"])
def test_a_proxy_that_claims_what_its_signer_may_not_say(machine: Credentials, claim: str) -> None:
    with pytest.raises(BadCertificate):
        identity_of_chain([_lying_proxy(machine, claim), *chain(machine)])


@pytest.mark.parametrize("claim", ["shadow:alice@other.example", "", "shadow:alice"])
def test_no_proxy_is_lent_in_the_name_of_another_machine(machine: Credentials, claim: str) -> None:
    with pytest.raises(BadCredentials):
        lend_proxy(machine, claim)


def _lying_proxy(machine: Credentials, claim: str) -> x509.Certificate:
    """What a machine that is hostile signs, whatever :func:`lend_proxy` thinks of it."""
    key = serialization.load_pem_private_key(machine.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = datetime.datetime.now(datetime.UTC)
    signer = machine.certificates()[0]
    return (x509.CertificateBuilder().subject_name(signer.subject).issuer_name(signer.subject)
            .public_key(make_key().public_key()).serial_number(7).not_valid_before(now)
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(proxy_extension(claim), critical=True).sign(key, hashes.SHA256()))


def test_a_proxy_of_a_proxy_and_one_that_lives_too_long(machine: Credentials) -> None:
    good = lend_proxy(machine, "shadow:alice@submit.example")
    with pytest.raises(BadCertificate):
        identity_of_chain([good.certificates()[0], *chain(good)])
    with pytest.raises(BadCertificate, match="too long"):
        identity_of_chain(chain(lend_proxy(machine, "shadow:alice@submit.example", datetime.timedelta(days=3))))


def test_revoked_signers_take_their_proxies_with_them(machine: Credentials) -> None:
    serial = machine.certificates()[0].serial_number
    with pytest.raises(BadCertificate, match="revoked"):
        identity_of_chain(chain(lend_proxy(machine, "shadow:a@submit.example")), {serial})


def test_chains_of_other_shapes(machine: Credentials) -> None:
    whole = chain(machine)
    for wrong in ([], whole[:1], [whole[0], whole[0], whole[1]]):
        with pytest.raises(BadCertificate):
            identity_of_chain(wrong)


def _with_extension(value: bytes) -> x509.Certificate:
    key = make_key()
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([])
    return (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.UnrecognizedExtension(PROXY_CERT_INFO, value), critical=True)
            .sign(key, hashes.SHA256()))


@pytest.mark.parametrize("value", [b"", b"\x30\x00", b"\xff" * 30, b"\x30\x80", bytes(100),
                                   proxy_extension("x").value + b"\x00"])
def test_hostile_proxy_extensions(value: bytes) -> None:
    with pytest.raises(BadCertificate):
        proxy_identity(_with_extension(value))


def test_names_are_matched_as_names_and_addresses_as_addresses(machine: Credentials) -> None:
    certificate = machine.certificates()[0]
    assert name_matches(certificate, "submit.example")
    assert name_matches(certificate, "10.0.0.1")
    for other in ("other.example", "10.0.0.2", "submit.example.evil", ""):
        assert not name_matches(certificate, other), other


def test_bundles(machine: Credentials) -> None:
    lent = lend_proxy(machine, "shadow:alice@submit.example")
    again = Credentials.from_bundle(lent.bundle())
    assert again.identity() == lent.identity()
    for wrong in (b"", b"nonsense", lent.chain, lent.key):
        with pytest.raises(BadCredentials):
            Credentials.from_bundle(wrong)
    assert "PRIVATE" not in repr(lent)


def test_files_that_are_missing_or_wrong(tmp_path: Path) -> None:
    files = PoolFiles.below(tmp_path)
    assert files.credentials() is None
    create_pool(files, "p", ["h"])
    files.host_key.write_bytes(b"nonsense")
    with pytest.raises(BadCredentials, match=r"host\.key"):
        files.credentials()
    files.host_key.unlink()
    with pytest.raises(BadCredentials, match="condor_pool"):
        files.credentials()


def test_renewal_is_due_after_two_thirds(machine: Credentials) -> None:
    certificate = machine.certificates()[0]
    begin = (certificate.not_valid_before_utc + BACKDATED).timestamp()
    assert abs(begin - time.time()) < 600
    whole = certificate.not_valid_after_utc.timestamp() - begin
    assert not renewal_due(certificate, begin + 0.6 * whole)
    assert renewal_due(certificate, begin + 0.7 * whole)


def test_nodes() -> None:
    assert parse_node("unix:/run/x.sock") == UnixNode("/run/x.sock")
    assert parse_node("<10.0.0.1:9618>") == TlsNode("10.0.0.1", 9618)
    assert parse_node("<10.0.0.1:9618?alias=x&y=z>") == TlsNode("10.0.0.1", 9618)
    assert parse_node("<[::1]:80>") == TlsNode("::1", 80)
    assert str(TlsNode("::1", 80)) == "<[::1]:80>"
    assert tls_node("host") == TlsNode("host", 9618)
    assert tls_node("host:1") == tls_node("<host:1>") == TlsNode("host", 1)
    assert tls_node("[::1]:2") == TlsNode("::1", 2)
    assert tls_node("::1") == TlsNode("::1", 9618)
    for wrong in ("", "x", "<x>", "<x:0>", "<x:99999>", "unix:relative", "in:1", "<:1>"):
        with pytest.raises(BadNode):
            parse_node(wrong)
    for wrong in ("", "host:", "host:x", "[::1]:x"):
        with pytest.raises(BadNode):
            tls_node(wrong)
