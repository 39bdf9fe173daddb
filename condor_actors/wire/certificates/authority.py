"""The pool's own certificate authority: makes it, signs machines, lends proxies, revokes.

Theory: one key pair on one machine is the root of all trust in a pool; its fingerprint is what a join token carries.
Everything is elliptic (P-256), so that a signature costs a tenth of a millisecond.  Files are replaced whole, keys
are readable by their owner only, and what was issued is kept in ``issued.json`` beside the CA's key: a host name that
belongs to one machine is not given to another.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from condor_actors.durable import write_whole
from condor_actors.wire.certificates.credentials import BadCredentials, Credentials
from condor_actors.wire.certificates.renewed_pair import renewed_file, split_pair
from condor_actors.wire.certificates.trust import BACKDATED, NAME_PREFIX, ROLE_PREFIX, ROLES, names_of, proxy_extension
from condor_actors.wire.host_names import canonical_host, is_loopback
from condor_actors.wire.nodes import BadNode, is_address
from condor_actors.written_text import read_plain

CA_LIFE = datetime.timedelta(days=20 * 365)
MACHINE_LIFE = datetime.timedelta(days=365)
PROXY_LIFE = datetime.timedelta(hours=12)
CRL_LIFE = datetime.timedelta(days=3650)


class AuthorityError(ValueError):
    """A certificate that cannot be made; the text says why and what to do."""


@attrs.frozen(kw_only=True)
class PoolFiles:
    """Where the files of a pool are on one machine.

    Attributes:
        ca, host, host_key, crl: every machine has them (the list of revoked ones may be missing).
        partners: the pools that this one trusts; every machine has it, where there are any.
        ca_key: only on the machine that admits others.
        tokens: directory of join tokens given out.
    """

    ca: Path
    ca_key: Path
    host: Path
    host_key: Path
    crl: Path
    tokens: Path
    partners: Path

    @classmethod
    def below(cls, directory: str | os.PathLike[str]) -> PoolFiles:
        """All of them in one directory."""
        top = Path(directory)
        return cls(ca=top / "ca.crt", ca_key=top / "ca.key", host=top / "host.crt", host_key=top / "host.key",
                   crl=top / "revoked.crl", tokens=top / "tokens", partners=top / "partners.json")

    @classmethod
    def of(cls, config: Any) -> PoolFiles:
        """Where the configuration says they are."""
        ca = config.path("POOL_CA")
        return cls(ca=ca, ca_key=config.path("POOL_CA_KEY"), host=config.path("HOST_CERTIFICATE"),
                   host_key=config.path("HOST_KEY"), crl=config.path("POOL_CRL"),
                   tokens=config.path("POOL_TOKENS"), partners=config.path("POOL_PARTNERS"))

    def credentials(self) -> Credentials | None:
        """This machine's credentials; None when it belongs to no pool.

        Raises:
            BadCredentials: a file is missing or wrong.
        """
        if not self.host.exists():
            return None
        try:
            return self._load()
        except BadCredentials:
            return self._load()  # they may have been renewed between the certificate and its key

    def _load(self) -> Credentials:
        try:
            chain, key = split_pair(renewed_file(self.host).read_bytes())
        except (FileNotFoundError, PermissionError):
            chain, key = b"", b""
        return Credentials.load(self.host, self.host_key, self.ca, self.crl, self.partners, renewed=(chain, key))


def machine_credentials(config: Any) -> Credentials | None:
    """The credentials of this machine per its configuration; None when it belongs to no pool.

    Raises:
        BadCredentials: a file is missing or wrong.
    """
    return PoolFiles.of(config).credentials()


# ---- files


def make_key() -> ec.EllipticCurvePrivateKey:
    """A fresh key pair."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM, not encrypted."""
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())


def pem(certificate: x509.Certificate) -> bytes:
    """A certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def fingerprint(certificate: x509.Certificate) -> bytes:
    """SHA-256 of a certificate."""
    return certificate.fingerprint(hashes.SHA256())


def make_request(key: ec.EllipticCurvePrivateKey, name: str) -> bytes:
    """A signing request (PEM) that proves the possession of ``key``."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs_certificates, crl_sign=signs_certificates, encipher_only=False,
        decipher_only=False,
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


# ---- the authority


class Authority:
    """The CA of a pool, on the machine that has its key."""

    def __init__(self, files: PoolFiles, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.files = files
        self.certificate = certificate
        self._key = key

    @classmethod
    def create(cls, files: PoolFiles, pool: str) -> Authority:
        """Make the CA of a new pool.

        Raises:
            AuthorityError: there is one.
        """
        if files.ca_key.exists() or files.ca.exists():
            raise AuthorityError(f"{files.ca} exists: this machine belongs to a pool already; it leaves that one when "
                                 f"its daemons are stopped and {files.ca.parent} is removed")
        key = make_key()
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, pool[:64]),
                          x509.NameAttribute(NameOID.COMMON_NAME, "Condor pool authority")])
        now = _now()
        certificate = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - BACKDATED)
            .not_valid_after(now + CA_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_whole(files.ca_key, key_pem(key), 0o600)
        write_whole(files.ca, pem(certificate))
        return cls(files, certificate, key)

    @classmethod
    def load(cls, files: PoolFiles) -> Authority:
        """The CA whose key this machine has.

        Raises:
            AuthorityError: it has none.
        """
        try:
            certificate = x509.load_pem_x509_certificate(read_plain(files.ca))
            key = serialization.load_pem_private_key(read_plain(files.ca_key), None)
        except FileNotFoundError as error:
            raise AuthorityError(f"{error.filename} is not here; ask on the machine where condor_pool create"
                                 " was called") from None
        except OSError as error:
            raise AuthorityError(f"{error.filename}: {error.strerror}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise AuthorityError(f"{files.ca_key} holds no key of a pool")
        return cls(files, certificate, key)

    @property
    def pool(self) -> str:
        """The pool's name."""
        values = self.certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        return str(values[0].value) if values else "pool"

    def sign_request(self, request: bytes, hosts: Sequence[str], roles: Sequence[str] = ROLES,
                     life: datetime.timedelta = MACHINE_LIFE, renews: str = "", stay_s: float = 0.0,
                     peer: str = "") -> bytes:
        """A machine's certificate (PEM) for the key of a signing request.

        A name belongs to the machine that enrolled under it until its certificates are revoked.  That of a guest, a
        machine that may stay for a time only, is free again when that is over; until then guests that have joined from
        one place may share an address, because several of them may be on one machine of a cluster.

        Args:
            request: PEM; it proves that the newcomer has the key.
            hosts: names and addresses of the machine, its own name first.
            roles: the daemons it may run.
            life: of the certificate.
            renews: serial number (hex) of the machine's certificate that this one follows; empty: a newcomer.
            stay_s: of a guest: how many seconds it may stay; 0: it is none.
            peer: the address that a newcomer speaks from.

        Raises:
            AuthorityError: the request is not one, a role is unknown, or a name belongs to another machine.
        """
        try:
            parsed = x509.load_pem_x509_csr(request)
            is_signed, public = parsed.is_signature_valid, parsed.public_key()
        except Exception as error:  # noqa: BLE001 - the door: cryptography has errors of its own for unknown algorithms
            raise AuthorityError(f"the request cannot be read: {error}") from None
        if not is_signed:
            raise AuthorityError("the request is not signed by its own key")
        if not isinstance(public, ec.EllipticCurvePublicKey):
            raise AuthorityError("the request is not for an elliptic key")
        try:
            names = tuple(dict.fromkeys(canonical_host(host) for host in hosts))
        except BadNode as error:
            raise AuthorityError(str(error)) from None
        with self._register_lock():
            before = self.issued().get(renews, {})
            if renews and not before:
                raise AuthorityError("the certificate that is to be renewed is not among those that were issued")
            leaves_s = before.get("leaves_s", 0.0) if renews else stay_s and _now().timestamp() + stay_s
            origin = before.get("origin", "") if renews else peer
            return self._sign(public, names, roles, life, renews, leaves_s, origin)

    def _sign(self, public: ec.EllipticCurvePublicKey, hosts: Sequence[str], roles: Sequence[str],
              life: datetime.timedelta, renews: str, leaves_s: float, origin: str) -> bytes:
        unknown = set(roles) - set(ROLES)
        if unknown or not hosts:
            raise AuthorityError(f"unknown role {min(unknown)!r}" if unknown else "a machine needs a host name")
        names: list[x509.GeneralName] = [
            x509.IPAddress(ip_address(host)) if is_address(host) else x509.DNSName(host) for host in hosts
        ]
        names.append(x509.UniformResourceIdentifier(f"{NAME_PREFIX}condor@{self.pool}"))
        names += [x509.UniformResourceIdentifier(ROLE_PREFIX + role) for role in roles]
        now = _now()
        end = min(now + life, self.certificate.not_valid_after_utc)
        if leaves_s:
            end = min(end, datetime.datetime.fromtimestamp(leaves_s, datetime.UTC))
            if end <= now:
                raise AuthorityError(f"{hosts[0]} was to stay for a time that is over")
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, self.pool[:64]),
                                     x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])]))
            .issuer_name(self.certificate.subject).public_key(public)
            .serial_number(x509.random_serial_number()).not_valid_before(now - BACKDATED)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                           critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                           critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._register(certificate, hosts, public, renews, leaves_s, origin)
        return pem(certificate)

    # ---- what was issued

    @property
    def _register_path(self) -> Path:
        return self.files.ca_key.with_name("issued.json")

    @contextlib.contextmanager
    def _register_lock(self) -> Iterator[None]:
        """Let one process at a time read and change the register; each does so within milliseconds."""
        path = self._register_path.with_suffix(".lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def issued(self) -> dict[str, dict[str, Any]]:
        """Every certificate issued: by serial number (hex), its hosts, roles, key and end."""
        try:
            found: dict[str, dict[str, Any]] = json.loads(self._register_path.read_text())
        except FileNotFoundError:
            return {}
        return found

    def _register(self, certificate: x509.Certificate, hosts: Sequence[str], public: ec.EllipticCurvePublicKey,
                  renews: str, leaves_s: float, origin: str) -> None:
        issued, now_s = self.issued(), _now().timestamp()
        key = x509.SubjectKeyIdentifier.from_public_key(public).digest.hex()
        line = issued[renews].get("line", renews) if renews in issued else f"{certificate.serial_number:x}"
        for serial, entry in issued.items():
            guest_s = entry.get("leaves_s", 0.0)
            if guest_s and guest_s < now_s:
                continue
            taken = {host for host in {name.lower() for name in entry["hosts"]} & set(hosts)
                     if not is_loopback(host) and not (guest_s and leaves_s and is_address(host)
                                                       and entry.get("origin", origin) == origin)}
            if taken and entry["key"] != key and entry.get("line", serial) != line and not entry.get("revoked"):
                raise AuthorityError(f"{min(taken)} belongs to the machine with certificate {serial};"
                                     f" condor_pool revoke {serial} frees the name")
        issued[f"{certificate.serial_number:x}"] = {
            "hosts": list(hosts), "machine": hosts[0], "key": key, "line": line,
            "ends_s": certificate.not_valid_after_utc.timestamp(), "issued_s": now_s,
            **({"leaves_s": leaves_s, "origin": origin} if leaves_s else {}),
        }
        write_whole(self._register_path, json.dumps(issued, indent=1).encode(), 0o600)

    def revoke(self, serials: Sequence[str]) -> None:
        """Put certificates (serial numbers in hex, or host names) on the revocation list.

        Raises:
            AuthorityError: one was never issued.
        """
        with self._register_lock():
            self._revoke(serials)

    def _revoke(self, serials: Sequence[str]) -> None:
        issued = self.issued()
        for wanted in serials:
            matching = [serial for serial, entry in issued.items()
                        if serial == wanted or wanted.lower().removesuffix(".") in entry["hosts"]]
            if not matching:
                raise AuthorityError(f"no certificate {wanted!r} was issued here; condor_pool list shows all")
            matching += [serial for serial, entry in issued.items()
                         if any(_follows(entry, issued[each], each) for each in matching)]
            for serial in matching:
                issued[serial]["revoked"] = True
        write_whole(self._register_path, json.dumps(issued, indent=1).encode(), 0o600)
        self._write_crl([serial for serial, entry in issued.items() if entry.get("revoked")])

    def _write_crl(self, serials: Sequence[str]) -> None:
        now = _now()
        builder = (x509.CertificateRevocationListBuilder().issuer_name(self.certificate.subject)
                   .last_update(now).next_update(now + CRL_LIFE))
        for serial in serials:
            revoked = x509.RevokedCertificateBuilder().serial_number(int(serial, 16)).revocation_date(now).build()
            builder = builder.add_revoked_certificate(revoked)
        crl = builder.sign(self._key, hashes.SHA256())
        write_whole(self.files.crl, crl.public_bytes(serialization.Encoding.PEM))


def _follows(entry: dict[str, Any], revoked: dict[str, Any], serial: str) -> bool:
    """Whether a certificate was given for the key of one that is revoked: who had that key may hold it."""
    same = entry.get("line", "") == revoked.get("line", serial)
    return bool(same and entry["issued_s"] >= revoked["issued_s"])


def create_pool(files: PoolFiles, pool: str, hosts: Sequence[str], *, roles: Sequence[str] = ROLES,
                life: datetime.timedelta = MACHINE_LIFE) -> Authority:
    """Make a pool's CA and the certificate of this machine, its first.

    Args:
        files: where to.
        pool: the pool's name, for people and identities (``condor@POOL``).
        hosts: names and addresses under which this machine is dialled, its own name first.
        roles: the daemons it may run.
        life: of the machine's certificate.

    Raises:
        AuthorityError: there is a pool.
    """
    authority = Authority.create(files, pool)
    key = make_key()
    certificate = authority.sign_request(make_request(key, hosts[0]), hosts, roles, life)
    write_whole(files.host_key, key_pem(key), 0o600)
    write_whole(files.host, certificate)
    return authority


def lend_proxy(signer: Credentials, identity: str, life: datetime.timedelta = PROXY_LIFE) -> Credentials:
    """A proxy certificate (RFC 3820) that says ``identity``, signed with the machine's key.

    Args:
        signer: the machine's credentials.
        identity: ``shadow:<owner>@<host>`` or ``user:<name>@<host>``; ``host`` one of the machine's names.
        life: how long it counts; never longer than the machine's own certificate.

    Raises:
        BadCredentials: the machine's name is not in ``identity``, or its key is of another kind.
    """
    machine = signer.certificates()[0]
    machine_key = serialization.load_pem_private_key(signer.key, None)
    if not isinstance(machine_key, ec.EllipticCurvePrivateKey):
        raise BadCredentials("the machine's key is not one of a pool")
    if identity.rpartition("@")[2] not in names_of(machine):
        raise BadCredentials(f"this machine is not {identity.rpartition('@')[2]!r} in its certificate")
    key = make_key()
    serial = x509.random_serial_number()
    now = _now()
    # RFC 3820 3.4: the proxy's subject is its issuer's with one more common name.
    proxy_name = x509.NameAttribute(NameOID.COMMON_NAME, f"{serial % (1 << 63):d}")
    subject = x509.Name([*machine.subject.rdns, x509.RelativeDistinguishedName([proxy_name])])
    certificate = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(machine.subject)
        .public_key(key.public_key()).serial_number(serial).not_valid_before(now - BACKDATED)
        .not_valid_after(min(now + life, machine.not_valid_after_utc))
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(proxy_extension(identity), critical=True)
        .sign(machine_key, hashes.SHA256())
    )
    return Credentials(chain=pem(certificate) + pem(machine), key=key_pem(key), ca=signer.ca, crl=signer.crl)


def renewal_due(certificate: x509.Certificate, now_s: float) -> bool:
    """Whether two thirds of a certificate's life, from when it was made, are over."""
    begin, end = (certificate.not_valid_before_utc + BACKDATED).timestamp(), certificate.not_valid_after_utc.timestamp()
    return now_s >= begin + (end - begin) * 2.0 / 3.0


def new_secret() -> str:
    """A random text that nobody guesses (claims, tokens, transfer keys)."""
    return secrets.token_urlsafe(24)
