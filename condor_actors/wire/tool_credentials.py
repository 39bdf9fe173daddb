"""The TLS of a tool, by the standard library.

Theory: a person has no certificate of the pool.  The machine has one, and its daemons lend a short-lived proxy
certificate to local users (see :mod:`condor_actors.wire.authority`); root and the pool's own user read the machine's
files directly.
"""

from __future__ import annotations

import os
import ssl
from typing import Any

import attrs

from condor_actors.wire.errors import NotTrusted


@attrs.frozen(kw_only=True)
class ToolCredentials:
    """Paths of PEM files: our certificate chain, its key, the pool's CA."""

    certificate: str
    key: str
    ca: str

    @classmethod
    def of(cls, config: Any) -> ToolCredentials | None:
        """The credentials that this user may read: their own, else the machine's; None when neither."""
        ca = str(config.path("POOL_CA"))
        for certificate, key in (("USER_CERTIFICATE", "USER_KEY"), ("HOST_CERTIFICATE", "HOST_KEY")):
            paths = [os.path.expanduser(str(config.path(name))) for name in (certificate, key)]
            if all(os.access(path, os.R_OK) for path in (*paths, ca)):
                return cls(certificate=paths[0], key=paths[1], ca=ca)
        return None

    def context(self) -> ssl.SSLContext:
        """A client's context: only the pool's CA, only TLS 1.3, names checked.

        Raises:
            NotTrusted: the files cannot be used.
        """
        try:
            context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise NotTrusted(f"{self.certificate}: {error}") from None
        return context
