"""Certificates of one executor.

Theory: the master makes an authority that lives in its memory only, and two certificates: its own, and its workers'.
Each end takes nothing but a certificate of this authority for the other one's purpose.  So nobody speaks with either
who was not given the workers' secret, and who was cannot pose as the master.
"""

from __future__ import annotations

import datetime
import os
import ssl
import tempfile

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from condor_actors.master_worker.worker import NAME

DAY = datetime.timedelta(days=1)
LIFE = 3650 * DAY


@attrs.frozen
class Credentials:
    """What an executor's ends know each other by.

    Attributes:
        context: the master's end of TLS.
        secret: what the workers get: their key and certificate, and the authority's certificate.
    """

    context: ssl.SSLContext
    secret: bytes = attrs.field(repr=False)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(subject: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey,
                 purpose: ObjectIdentifier | None) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    made = (x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name("executor"))
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY).not_valid_after(now + LIFE)
            .add_extension(x509.BasicConstraints(ca=purpose is None, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False))
    if purpose is not None:
        made = (made.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
                .add_extension(x509.SubjectAlternativeName([x509.DNSName(subject)]), critical=False))
    else:
        made = made.add_extension(x509.KeyUsage(
            digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=False, encipher_only=False, decipher_only=False),
            critical=True)  # fmt: skip
    return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())


def make() -> Credentials:
    """Credentials of a new executor."""
    authority, master, workers = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    root = _certificate("executor", authority, authority, None)
    own = _key_text(master) + _certificate(NAME, master, authority, ExtendedKeyUsageOID.SERVER_AUTH)
    secret = _key_text(workers) + _certificate("worker", workers, authority, ExtendedKeyUsageOID.CLIENT_AUTH) + root
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=root.decode())
    with tempfile.NamedTemporaryFile() as file:  # mode 0600; the library reads keys from files only
        file.write(own)
        file.flush()
        context.load_cert_chain(file.name)
    return Credentials(context, secret)


def write_private(path: str, data: bytes, owner: tuple[int, int] | None) -> None:
    """Write a file that its owner alone may read.

    Args:
        owner: uid and gid, where it must belong to another user.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        if owner is not None:
            os.fchown(descriptor, *owner)
