"""A machine that joins: its line at the authority's door, its signing request, and the answer that it gets."""

from __future__ import annotations

import base64
import json
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import Logger

from condor_actors.wire.certificates.authority import Authority, PoolFiles, create_pool, make_key, make_request
from condor_actors.wire.enrolment import Enrolment, EnrolmentDoor
from condor_actors.wire.joining import read_answer
from condor_actors.wire.tokens import TokenStore
from tests.fuzz.folders import fuzz_folder

__all__ = ["ask_at_the_door", "join_answers", "join_requests", "read_join_answer", "sign_a_request", "signing_requests"]


class _Pool:
    """An authority whose one token is never used up, and whose register stays empty."""

    def __init__(self) -> None:
        self.files = PoolFiles.below(fuzz_folder())
        create_pool(self.files, "pool", ["manager.pool", "127.0.0.1"])
        self.token = TokenStore(self.files.tokens).issue("<127.0.0.1:9618>", bytes(32), life_s=10**9)
        self._record = (self.files.tokens / f"{self.token.token_id}.json").read_bytes()
        self._register = self.files.ca_key.with_name("issued.json")
        self._issued = self._register.read_bytes()

    def fresh(self) -> PoolFiles:
        """As it was at first."""
        (self.files.tokens / f"{self.token.token_id}.json").write_bytes(self._record)
        self._register.write_bytes(self._issued)
        return self.files


@cache
def _pool() -> _Pool:
    return _Pool()


def join_requests() -> list[bytes]:
    """Lines of newcomers, the first of them good."""
    token = _pool().token
    good = {"token_id": token.token_id, "secret": token.secret, "hosts": ["new.pool", "10.0.0.7"],
            "request": make_request(make_key(), "new.pool").decode()}
    names: list[object] = [["localhost"], ["MANAGER.pool."], ["*.pool"], [["a"], {}], "abc", [],
                           ["::ffff:1.2.3.4", "1.2.3"], ["\ud800"], [1, None]]
    others = [{**good, "hosts": hosts} for hosts in names]
    others += [{**good, "token_id": "../" + token.token_id}, {**good, "secret": "\ud800"}, {**good, "request": ""},
               {**good, "request": ["x"]}, {"hosts": ["a"]}]
    lines = [json.dumps(each).encode() + b"\n" for each in (good, *others)]
    return [*lines, b"[]\n", b"null\n", b"[" * 60_000 + b"\n", b'{"hosts": ' + b"[" * 60_000 + b"\n", b"x" * 70_000,
            lines[0] + lines[0]]


def ask_at_the_door(data: bytes) -> None:
    """Give it to the door, piece by piece; the answer is a line of JSON, or the door hangs up."""
    transport, clock = StringTransport(), Clock()
    door = EnrolmentDoor(Enrolment(_pool().fresh()), clock, Logger("fuzz"))
    door.makeConnection(transport)
    for start in range(0, len(data), 5_000):
        if not transport.disconnecting:
            door.dataReceived(data[start:start + 5_000])
    clock.advance(100.0)
    assert transport.disconnecting
    said = transport.value()
    assert not said or isinstance(json.loads(said), dict)
    assert said.count(b"\n") <= 1


def signing_requests() -> list[bytes]:
    """DER, of keys of several kinds: mutations of PEM are mostly no base64."""
    subject = x509.Name([])
    keys: list[tuple[object, hashes.HashAlgorithm | None]] = [
        (make_key(), hashes.SHA256()), (ec.generate_private_key(ec.SECP521R1()), hashes.SHA512()),
        (rsa.generate_private_key(65537, 2048), hashes.SHA256()), (ed25519.Ed25519PrivateKey.generate(), None)]
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    return [builder.sign(key, algorithm).public_bytes(serialization.Encoding.DER)  # type: ignore[arg-type]
            for key, algorithm in keys]


def sign_a_request(data: bytes) -> None:
    """Have the authority sign it."""
    body = base64.encodebytes(data)
    request = b"-----BEGIN CERTIFICATE REQUEST-----\n" + body + b"-----END CERTIFICATE REQUEST-----\n"
    signed = Authority.load(_pool().fresh()).sign_request(request, ["new.pool"], ["startd"])
    extensions = x509.load_pem_x509_certificate(signed).extensions
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def join_answers() -> list[bytes]:
    """Lines of a central manager."""
    good = {"certificate": "-----BEGIN", "ca": "-----BEGIN", "crl": "", "pool": "p", "roles": ["startd"]}
    others = [{"error": "no"}, {"error": ["no"]}, {**good, "roles": "startd"}, {**good, "roles": [1]},
              {**good, "ca": None}, {**good, "certificate": "\ud800"}, {}]
    return [*(json.dumps(each).encode() + b"\n" for each in (good, *others)), b"[]\n", b"7\n", b"[" * 100_000, b"\xff"]


def read_join_answer(data: bytes) -> None:
    """Read it as the newcomer does."""
    read_answer(data, "someone")
