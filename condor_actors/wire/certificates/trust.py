"""Who a certificate chain says someone is.

Theory: the pool's own CA signs a certificate for each *machine*; its subject alternative names say everything we use:

==============================  =================================================================================
``condor:name:condor@pool``     (URI) the identity that ``ALLOW_`` lists know
``condor:role:startd``          (URI, repeated) the daemons that the machine may run
host names, addresses           (DNS, IP) under which it may be dialled
==============================  =================================================================================

A machine may sign short-lived proxy certificates (RFC 3820) with its own key: the shadow host of ``alice`` gets one
that says ``shadow:alice@host``.  RFC 3820 forbids alternative names in a proxy, so that identity is the *policy* of its
ProxyCertInfo extension, in a policy language of our own (an object identifier).  It is believed only when the signing
machine has the role ``schedd`` and ``host`` is one of that machine's names; a proxy of a proxy is refused.
**Source**: RFC 3820 sections 3.8 and 4; RFC 5280 section 4.2.1.6 for URIs in alternative names.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Sequence

import attrs
from cryptography import x509
from pyasn1.codec.der import decoder, encoder
from pyasn1.type import namedtype, univ

from condor_actors.messages.envelope import Evidence, Identity
from condor_actors.messages.realm import abroad

PROXY_CERT_INFO = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.14")
POLICY_LANGUAGE = "2.25.187264012914071936871932764919046223431"
"""Our policy language: the policy is an identity, as UTF-8 text (an OID of the 2.25 arc needs no registry)."""

NAME_PREFIX = "condor:name:"
ROLE_PREFIX = "condor:role:"
DELEGATING_ROLE = "schedd"
DELEGATED_ROLES = frozenset({"shadow", "user"})
BACKDATED = datetime.timedelta(days=1)
"""Certificates count from a day before they were made: clocks differ, and clocks are set back."""

MAX_PROXY_LIFE = datetime.timedelta(hours=36) + BACKDATED
ROLES = ("master", "collector", "negotiator", "schedd", "startd", "gateway")


_LOGIN = re.compile(r"[^\x00-\x20\x7f@:/*?,]+")
"""What may stand before the ``@``: nothing that lists or further names would read as something else."""


class BadCertificate(ValueError):
    """A chain that OpenSSL accepts but that is not one of this pool's; says what is missing."""


class _ProxyPolicy(univ.Sequence):  # type: ignore[misc]  # pyasn1 is untyped
    componentType = namedtype.NamedTypes(  # noqa: N815 - pyasn1's
        namedtype.NamedType("policyLanguage", univ.ObjectIdentifier()),
        namedtype.OptionalNamedType("policy", univ.OctetString()),
    )


class _ProxyCertInfo(univ.Sequence):  # type: ignore[misc]
    componentType = namedtype.NamedTypes(  # noqa: N815
        namedtype.OptionalNamedType("pCPathLenConstraint", univ.Integer()),
        namedtype.NamedType("proxyPolicy", _ProxyPolicy()),
    )


def proxy_extension(identity: str) -> x509.UnrecognizedExtension:
    """The ProxyCertInfo extension that says ``identity`` and allows no further proxy."""
    info = _ProxyCertInfo()
    info["pCPathLenConstraint"] = 0
    info["proxyPolicy"]["policyLanguage"] = POLICY_LANGUAGE
    info["proxyPolicy"]["policy"] = identity.encode()
    return x509.UnrecognizedExtension(PROXY_CERT_INFO, encoder.encode(info))


def proxy_identity(certificate: x509.Certificate) -> str | None:
    """The identity that a proxy certificate claims; None when it is no proxy.

    Raises:
        BadCertificate: a proxy, but not one of ours.
    """
    try:
        extension = certificate.extensions.get_extension_for_oid(PROXY_CERT_INFO)
    except x509.ExtensionNotFound:
        return None
    value = extension.value
    assert isinstance(value, x509.UnrecognizedExtension)
    try:
        info, rest = decoder.decode(value.value, asn1Spec=_ProxyCertInfo())
        policy = info["proxyPolicy"]
        language, text = str(policy["policyLanguage"]), bytes(policy["policy"]).decode()
    except Exception as error:  # noqa: BLE001 - the door: pyasn1 raises a dozen kinds on hostile bytes
        raise BadCertificate(f"its ProxyCertInfo cannot be read: {error}") from None
    if rest or language != POLICY_LANGUAGE:
        raise BadCertificate("it is a proxy in a policy language that is not ours")
    return text


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The host names and addresses of a certificate."""
    names = _alternative_names(certificate)
    if names is None:
        return ()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)


def _alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def identity_of_machine(certificate: x509.Certificate, realm: str = "") -> Identity:
    """The identity of a machine's certificate.

    Args:
        certificate: signed by the pool's authority, or a partner's.
        realm: the partner; empty: this pool.

    Raises:
        BadCertificate: it has none.
    """
    names = _alternative_names(certificate)
    uris = names.get_values_for_type(x509.UniformResourceIdentifier) if names is not None else []
    identities = [uri.removeprefix(NAME_PREFIX) for uri in uris if uri.startswith(NAME_PREFIX)]
    roles = frozenset(uri.removeprefix(ROLE_PREFIX) for uri in uris if uri.startswith(ROLE_PREFIX))
    if len(identities) != 1 or "@" not in identities[0]:
        raise BadCertificate("it has no name of a pool")
    if realm and identities[0].partition("@")[2] != realm:
        raise BadCertificate(f"it is called {identities[0]}, and its authority is that of the pool {realm}")
    hosts = tuple(abroad(host.lower(), realm) for host in names_of(certificate))
    return Identity(name=identities[0], roles=roles, host=hosts[0] if hosts else "", method="tls",
                    hosts=frozenset(hosts), realm=realm)


def identity_of_chain(chain: Sequence[x509.Certificate], revoked: Collection[int] = (), realm: str = "") -> Identity:
    """Who stands at the leaf of a chain that OpenSSL has verified up to the pool's CA, or a partner's.

    Args:
        chain: the leaf first, the CA last.
        revoked: serial numbers that the CA has revoked.
        realm: the partner whose CA it is; empty: the pool's own.

    Raises:
        BadCertificate: someone of another kind, or revoked.
    """
    if len(chain) < 2:
        raise BadCertificate("it is not signed by the pool's CA")
    for certificate in chain[:-1]:
        if certificate.serial_number in revoked:
            raise BadCertificate(f"certificate {certificate.serial_number:x} was revoked")
    claimed = proxy_identity(chain[0])
    if claimed is None:
        if len(chain) != 2:
            raise BadCertificate("there is someone between it and the pool's CA")
        found = identity_of_machine(chain[0], realm)
    elif len(chain) != 3 or proxy_identity(chain[1]) is not None:
        raise BadCertificate("it is a proxy of something that may not sign proxies")
    else:
        found = _delegated(claimed, chain[0], chain[1], realm)
    return attrs.evolve(found, evidence=Evidence(serials=frozenset(each.serial_number for each in chain[:-1])))


def _delegated(claimed: str, proxy: x509.Certificate, signer: x509.Certificate, realm: str) -> Identity:
    machine = identity_of_machine(signer, realm)
    if DELEGATING_ROLE not in machine.roles:
        raise BadCertificate(f"it was signed by {machine.host}, which has no role {DELEGATING_ROLE!r}")
    if proxy.not_valid_after_utc - proxy.not_valid_before_utc > MAX_PROXY_LIFE:
        raise BadCertificate("it is a proxy that lives too long")
    role, colon, rest = claimed.partition(":")
    owner, _, host = rest.rpartition("@")
    if not colon or role not in DELEGATED_ROLES or not _LOGIN.fullmatch(owner) or host not in names_of(signer):
        raise BadCertificate(f"{machine.host} may not say that someone is {claimed!r}")
    name = claimed if role == "shadow" else rest
    return Identity(name=abroad(name, realm), roles=frozenset({role}), host=abroad(host, realm), method="tls",
                    realm=realm)
