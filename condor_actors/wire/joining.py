"""The newcomer's side of enrolment: one blocking connection to the central manager.

Theory: at first the newcomer trusts nobody.  It believes the certificate chain that the other side shows when the
CA in it has the fingerprint of the token, the other side's certificate is signed by that CA and says that it is a
central manager.  Only then it sends the token's secret.
"""

from __future__ import annotations

import datetime
import json
import socket
from collections.abc import Sequence

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from OpenSSL import SSL

from condor_actors.durable import write_whole
from condor_actors.messages.pool import MachineEnrolled
from condor_actors.wire.certificates.authority import PoolFiles, key_pem, make_key, make_request
from condor_actors.wire.certificates.trust import BadCertificate, identity_of_machine
from condor_actors.wire.errors import NotTrusted, RequestRefused, Unreachable
from condor_actors.wire.frames import ENROL_LINE
from condor_actors.wire.nodes import TlsNode
from condor_actors.wire.tokens import Token

JOIN_S = 20.0
MAX_ANSWER_BYTES = 256 * 1024


@attrs.frozen(kw_only=True)
class Joined:
    """What came of joining: the pool's name, our roles, our names, and the address by which the pool sees us."""

    pool: str
    roles: tuple[str, ...]
    hosts: tuple[str, ...]
    address: str


def join(token: Token, node: TlsNode, hosts: Sequence[str], files: PoolFiles) -> Joined:
    """Get this machine's certificate and write it, its key and the pool's CA.

    Args:
        token: from ``condor_pool token``.
        node: the central manager.
        hosts: names of this machine, its own first; the address it speaks from is added.
        files: where to write.

    Raises:
        Unreachable, NotTrusted, RequestRefused: why not.
    """
    try:
        plain = socket.create_connection((node.host, node.port), timeout=JOIN_S)
    except OSError as error:
        raise Unreachable(f"nobody answers at {node}: {error.strerror or error}") from None
    with plain:
        address = plain.getsockname()[0]
        names = tuple(dict.fromkeys((*hosts, address)))
        connection = _handshake(plain, node)
        _check(connection, token, node)
        key = make_key()
        request = {"token_id": token.token_id, "secret": token.secret, "hosts": names,
                   "request": make_request(key, names[0]).decode()}
        connection.sendall(ENROL_LINE + json.dumps(request).encode() + b"\n")
        answer = read_answer(_line(connection, node), str(node))
    write_whole(files.host_key, key_pem(key), 0o600)
    write_whole(files.ca, answer.ca)
    if answer.crl:
        write_whole(files.crl, answer.crl)
    write_whole(files.host, answer.certificate)
    return Joined(pool=answer.pool, roles=answer.roles, hosts=names, address=address)


def _handshake(plain: socket.socket, node: TlsNode) -> SSL.Connection:
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.set_timeout(int(JOIN_S))
    plain.setblocking(True)  # pyOpenSSL wants it; the kernel keeps the time
    limit = int(JOIN_S).to_bytes(8, "little") + bytes(8)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection = SSL.Connection(context, plain)
    connection.set_connect_state()
    try:
        connection.do_handshake()
    except (SSL.Error, OSError) as error:
        raise NotTrusted(f"{node} does not speak our TLS: {error}") from None
    return connection


def _check(connection: SSL.Connection, token: Token, node: TlsNode) -> None:
    chain = [certificate.to_cryptography() for certificate in connection.get_peer_cert_chain() or ()]
    authority = next((each for each in chain if each.fingerprint(hashes.SHA256()) == token.ca_fingerprint), None)
    if authority is None:
        raise NotTrusted(f"{node} is not of the pool that gave the token: its authority has another fingerprint")
    try:
        chain[0].verify_directly_issued_by(authority)
        machine = identity_of_machine(chain[0])
    except (BadCertificate, ValueError, TypeError) as error:
        raise NotTrusted(f"{node}: {error}") from None
    except Exception as error:  # noqa: BLE001 - the door: cryptography's InvalidSignature is a bare Exception
        raise NotTrusted(f"{node} shows a certificate that is not signed by its authority") from error
    _check_dates(chain[0], node)
    if "collector" not in machine.roles:
        raise NotTrusted(f"{node} is a machine of the pool, but not its central manager")


def _check_dates(certificate: x509.Certificate, node: TlsNode) -> None:
    now = datetime.datetime.now(datetime.UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise NotTrusted(f"the certificate of {node} does not count now; are both clocks right?")


def _line(connection: SSL.Connection, node: TlsNode) -> bytes:
    data = b""
    try:
        while not data.endswith(b"\n"):
            data += connection.recv(65536)
            if len(data) > MAX_ANSWER_BYTES:
                raise NotTrusted(f"{node} answers too much")
    except (SSL.Error, OSError):
        raise Unreachable(f"{node} hung up; does it admit machines (condor_pool create was called there)?") from None
    return data


def read_answer(line: bytes, who: str) -> MachineEnrolled:
    """What the central manager answers.

    Raises:
        RequestRefused: it refuses; NotTrusted: that is no answer.
    """
    try:
        found = json.loads(line)
        if isinstance(found, dict) and "error" in found:
            raise RequestRefused("denied", str(found["error"])[:1000])
        texts = [found[name] for name in ("certificate", "ca", "crl", "pool")]
        roles = found["roles"]
        if not isinstance(roles, list) or not all(isinstance(text, str) for text in (*texts, *roles)):
            raise TypeError("only texts")
        certificate, ca, crl = (text.encode("ascii") for text in texts[:3])
        return MachineEnrolled(certificate=certificate, ca=ca, crl=crl, pool=texts[3], roles=tuple(roles))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotTrusted(f"{who} answers nonsense") from None
