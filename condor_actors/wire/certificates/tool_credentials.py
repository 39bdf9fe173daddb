"""The TLS of a tool, by the standard library.

Theory: a person has no certificate of the pool.  The machine has one, and its daemons lend a short-lived proxy
certificate to local users (see :mod:`condor_actors.wire.certificates.authority`); root and the pool's own user read the
machine's files directly.
"""

from __future__ import annotations

import os
import ssl
import time
from pathlib import Path
from typing import Any

import attrs

from condor_actors.config.collectors import gateway_nodes
from condor_actors.durable import write_whole
from condor_actors.wire.certificates.renewed_pair import renewed_file
from condor_actors.wire.errors import NotTrusted, WireError

FRESH_S = 7 * 3600.0
"""A borrowed certificate is used for so long; it counts for an hour more."""
SPARE_S = 3600.0

LENDERS = ("master", "schedd", "startd", "collector")


@attrs.frozen(kw_only=True)
class ToolCredentials:
    """What a tool shows, and whom it believes.

    Attributes:
        certificate, key, ca: paths of PEM files: our certificate chain, its key, the pool's CA.  A borrowed
            certificate and its key are one file: several programs of a user borrow at the same time, and none may read
            the certificate of one with the key of another.
        partners: path of the list of partners.
        gateways: nodes of this pool's gateways, through which machines of partners are reached; none: directly.
    """

    certificate: str
    key: str
    ca: str
    partners: str = ""
    gateways: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Any) -> ToolCredentials | None:
        """The machine's own credentials when this user may read them, else the user's; None when there are none.

        A user's certificate (``USER_CERTIFICATE``) is borrowed from a daemon of this machine when it is missing or was
        made more than :data:`FRESH_S` ago.
        """
        ca = _path(config, "POOL_CA")
        partners, gateways = _path(config, "POOL_PARTNERS"), gateway_nodes(config)
        machine = cls(certificate=_path(config, "HOST_CERTIFICATE"), key=_path(config, "HOST_KEY"), ca=ca,
                      partners=partners, gateways=gateways)
        if machine.is_readable():
            return machine
        own = cls(certificate=_path(config, "USER_CERTIFICATE"), key=_path(config, "USER_CERTIFICATE"), ca=ca,
                  partners=partners, gateways=gateways)
        if not own.is_fresh():
            own = own.borrow(str(config.path("RUN")))
        return own if own.is_usable() else None

    def is_readable(self) -> bool:
        """Whether all the files can be read."""
        return all(os.access(path, os.R_OK) for path in (self.certificate, self.key, self.ca))

    def is_fresh(self) -> bool:
        """Whether a borrowed certificate is there, of this pool, and was made lately."""
        return self._age_s() < FRESH_S and self._is_of_this_pool()

    def is_usable(self) -> bool:
        """Whether all the files can be read, and a borrowed certificate is of this pool and still counts."""
        return self.is_readable() and self._age_s() < FRESH_S + SPARE_S and self._is_of_this_pool()

    def _is_of_this_pool(self) -> bool:
        """Whether the chain ends with the pool's CA: a user of two pools has one home directory."""
        try:
            with open(self.ca, "rb") as authority, open(self.certificate, "rb") as bundle:
                return authority.read().strip() in bundle.read()
        except OSError:
            return False

    def _age_s(self) -> float:
        try:
            return time.time() - os.stat(self.certificate).st_mtime
        except OSError:
            return float("inf")

    def borrow(self, run: str) -> ToolCredentials:
        """Get a certificate in our name from a daemon of this machine.

        Args:
            run: the directory of the daemons' sockets.

        Returns:
            These, if the certificate is in our file or none was lent; where the file cannot be written (a home that is
            full, or not ours), others that last as long as this process.
        """
        from condor_actors.messages.pool import BorrowCertificate
        from condor_actors.wire.blocking import connect

        for daemon in LENDERS:
            try:
                with connect(f"unix:{run}/{daemon}.sock", timeout_s=5.0) as client:
                    lent = client.ask("certificates", BorrowCertificate(), timeout_s=5.0)
            except (WireError, OSError):
                continue
            try:
                self.keep(lent.bundle)
            except OSError:
                path = _in_memory(lent.bundle)
                return attrs.evolve(self, certificate=path, key=path)
            break
        return self

    def keep(self, bundle: bytes) -> None:
        """Have a borrowed certificate with its key (PEM) in our file, at once; ``OSError``: it cannot be written."""
        os.makedirs(os.path.dirname(self.certificate), mode=0o700, exist_ok=True)
        write_whole(Path(self.certificate), bundle, 0o600)

    def introduce(self, connection: ssl.SSLSocket, node: str) -> None:
        """Nothing remains to be shown: the handshake has shown the certificate."""

    def context(self, realm: str = "") -> ssl.SSLContext:
        """A client's context: only the pool's CA, only TLS 1.3, names checked.

        Args:
            realm: the partner to whose machine it is; empty: this pool's.

        Raises:
            NotTrusted: the files cannot be used, or there is no such partner.
        """
        try:
            context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=None if realm else self.ca,
                                                 cadata=self._authority_of(realm) if realm else None)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            self._show(context)
        except (OSError, ssl.SSLError) as error:
            raise NotTrusted(f"{self.certificate}: {error}") from None
        return context

    def _show(self, context: ssl.SSLContext) -> None:
        """Load what we show.  While a renewed pair is put into place, its one file has what the two do not yet have."""
        renewed = str(renewed_file(Path(self.certificate)))
        for certificate, key in ((self.certificate, self.key), (renewed, renewed)):
            try:
                return _load_pair(context, certificate, key)
            except (OSError, ssl.SSLError):
                continue  # the last try below says what is wrong
        _load_pair(context, self.certificate, self.key)

    def _authority_of(self, realm: str) -> str:
        from condor_actors.wire.partners.partner_store import BadPartners, read_partners

        try:
            found = {each.name: each.ca.decode() for each in read_partners(Path(self.partners))}
        except BadPartners as error:
            raise NotTrusted(str(error)) from None
        if realm not in found:
            raise NotTrusted(f"the pool {realm} is no partner of this one (condor_flock list)")
        return found[realm]


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Both from the same file, if they are in one, even while another takes its place."""
    if certificate != key:
        context.load_cert_chain(certificate, key)
        return
    with open(certificate, "rb") as file:
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")


def _in_memory(bundle: bytes) -> str:
    """The path of a file that nobody else can open, and that goes with this process."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    os.write(descriptor, bundle)
    return f"/proc/self/fd/{descriptor}"


def _path(config: Any, name: str) -> str:
    return os.path.expanduser(str(config.path(name)))
