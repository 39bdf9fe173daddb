"""Peers that are refused for their certificates: what an administrator learns of it."""

from __future__ import annotations

import datetime
from pathlib import Path

import attrs
import pytest
from cryptography import x509
from OpenSSL import SSL
from twisted.internet.testing import StringTransport

from condor_actors.wire.certificates.credentials import Credentials, TlsDoor
from condor_actors.wire.certificates.strangers import EXPIRED, NOT_YET_VALID, Strangers, refused_because, stranger_at
from condor_actors.wire.nodes import TlsNode, parse_node
from condor_actors.wire.partners.invitation import fingerprint_text
from tests.unit.wire.test_partners import partner, pool


class Transport:
    """What has a TLS connection."""

    def __init__(self, connection: SSL.Connection) -> None:
        self._connection = connection

    def getHandle(self) -> SSL.Connection:  # noqa: N802 - Twisted's
        return self._connection


def refusals(client: Credentials, server: Credentials) -> tuple[str, str]:
    """What each end says of the other after they have met."""
    realm = "".join(f"%{each.name}" for each in client.partners)
    dialled = parse_node(f"<10.0.0.1{realm}:9618>")
    assert isinstance(dialled, TlsNode)
    ends = (TlsDoor(client).dialling(dialled).clientConnectionForTLS(None),
            TlsDoor(server).listening().serverConnectionForTLS(None))
    ends[0].set_connect_state()
    ends[1].set_accept_state()
    for _ in range(20):
        for one, other in (ends, ends[::-1]):
            try:
                one.do_handshake()
            except SSL.Error:
                pass
            try:
                other.bio_write(one.bio_read(1 << 16))
            except SSL.WantReadError:
                continue
    first, second = (stranger_at(Transport(end)) for end in ends)
    return first, second


class Gone:
    """A socket that Twisted has let go of."""

    def getHandle(self) -> object:  # noqa: N802 - Twisted's
        raise AttributeError("'Server' object has no attribute 'socket'")


def test_a_connection_without_tls_has_refused_nobody() -> None:
    for transport in (None, StringTransport(), Gone()):
        assert stranger_at(transport) == ""


def test_a_pool_that_is_called_otherwise_now_is_named_with_what_to_do(tmp_path: Path) -> None:
    math, physics, astro = (pool(tmp_path, name) for name in ("math", "physics", "astro"))
    knows_physics = attrs.evolve(math, partners=(partner(physics, "physics"),))
    said, _ = refusals(knows_physics, attrs.evolve(astro, partners=(partner(math, "math"),)))
    assert said.startswith("it calls itself a machine of the pool astro, with the authority ")
    assert fingerprint_text(astro.ca) in said
    assert "condor_flock accept" in said
    _, said = refusals(attrs.evolve(astro, partners=(partner(math, "math"),)), knows_physics)
    assert said.startswith("it calls itself a machine of the pool astro, with the authority ")
    trusted = refusals(knows_physics, attrs.evolve(physics, partners=(partner(math, "math"),)))
    assert trusted == ("", "")


def test_a_partner_whose_authority_was_made_anew_is_to_be_invited_again(tmp_path: Path) -> None:
    math, before, after = pool(tmp_path, "math"), pool(tmp_path / "1", "physics"), pool(tmp_path / "2", "physics")
    said, _ = refusals(attrs.evolve(math, partners=(partner(before, "physics"),)), after)
    assert fingerprint_text(after.ca) in said
    assert "condor_flock revoke physics, and accept its new invitation" in said


def test_a_machine_of_a_pool_that_was_made_anew_has_to_join_again(tmp_path: Path) -> None:
    before, after = pool(tmp_path / "1", "math"), pool(tmp_path / "2", "math")
    assert "has to join anew" in refusals(before, after)[0]


@pytest.mark.parametrize(("error", "words"), [(NOT_YET_VALID, "counts only from"), (EXPIRED, "counted until")])
def test_clocks_that_differ_too_much_are_to_be_compared(tmp_path: Path, error: int, words: str) -> None:
    shown = pool(tmp_path, "math").certificates()[0]
    said = refused_because(shown, error, (), "math")
    assert words in said
    assert "compare its clock" in said


def test_an_authority_without_a_name_that_a_pool_can_have_is_not_quoted(tmp_path: Path) -> None:
    strange = pool(tmp_path, "Evil\nPool: do this")
    said = refused_because(strange.authority(), 19, (), "math")
    assert said == "its certificate is signed by an authority that is not known here"
    assert isinstance(strange.authority(), x509.Certificate)


def test_each_is_told_once_a_minute_and_only_so_many_are_kept() -> None:
    seen = Strangers()
    minute_s = datetime.timedelta(minutes=1).total_seconds()
    assert seen.note("it is a", "10.0.0.9", 0.0)
    assert not seen.note("it is a", "10.0.0.9", minute_s / 2)
    assert seen.note("it is a", "10.0.0.9", minute_s + 1.0)
    for number in range(40):
        seen.note(f"it is {number}", "10.0.0.9", minute_s + 2.0)
    assert len(seen.recent(minute_s + 2.0)) == 16
    assert not seen.note("one more", "10.0.0.9", minute_s + 2.0)
    assert seen.recent(minute_s + 2.0)[-1] == "10.0.0.9 was refused: it is a"
    assert seen.recent(minute_s * 30) == ()
    assert seen.note("one more", "10.0.0.9", minute_s * 30)
