"""What the configuration says to the credential daemon: its files and its services."""

from __future__ import annotations

import os
import re
import urllib.parse
from pathlib import Path

import attrs
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from condor_actors.config import Config
from condor_actors.cores.credd.services import LocalIssuer, OAuthService
from condor_actors.daemons.credd.ticket_renewal import Renewer
from condor_actors.machine.privilege.ownership import pool_folders
from condor_actors.messages.credentials import KRB
from condor_actors.wire.idtokens.private_files import read_private

__all__ = ["CreddSettings", "Services"]

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_CONFIGURABLE = re.compile(r"[a-z][a-z0-9]*")
_KEY_KINDS = {"ES256": ec.EllipticCurvePrivateKey, "RS256": rsa.RSAPrivateKey}


@attrs.frozen(kw_only=True)
class CreddSettings:
    """Its files, how much one user may have, and with what tickets are renewed."""

    database: Path
    key_file: Path
    most: int
    renewer: Renewer

    @classmethod
    def of(cls, config: Config) -> CreddSettings:
        """As configured."""
        kinit = config.text("CREDD_KINIT") or ""
        return cls(database=config.path("CREDD_DATABASE"), key_file=config.path("CREDD_KEY_FILE"),
                   most=config.integer("CREDD_MAX_CREDENTIALS_PER_USER"),
                   renewer=Renewer(kinit=kinit, is_there=os.path.isfile(kinit) and os.access(kinit, os.X_OK),
                                   configuration=config.text("CREDD_KRB5_CONFIG") or "",
                                   folder=config.path("RUN") / "tickets", hidden=_secret_folders(config)))


def _secret_folders(config: Config) -> tuple[str, ...]:
    """The folders of the pool's account, and of the secrets and keys of services."""
    files = [config.text(name) for name in config.names_like("")
             if name == "CREDD_DATABASE" or name.endswith(("_CLIENT_SECRET_FILE", "_PRIVATE_KEY"))]
    own = {str(folder) for folder in pool_folders(config)}
    return tuple(sorted(own | {os.path.dirname(file) for file in files if file and os.path.isabs(file)}))


class Services:
    """The services that tokens are had of, by name.

    Raises:
        ConfigError: an issuer's key cannot be used, or a token URL is none.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._issuers = {name.lower(): _issuer(config, name)
                         for name in config.list_of("LOCAL_CREDMON_PROVIDER_NAMES")}
        if KRB in self._issuers:
            raise config.unusable("LOCAL_CREDMON_PROVIDER_NAMES", f"{KRB} stands for Kerberos tickets", "another name")
        for name in config.names_like(""):
            if name.endswith("_TOKEN_URL"):
                self.oauth(name.removesuffix("_TOKEN_URL").lower())

    def issuer(self, service: str) -> LocalIssuer | None:
        """The issuer of this pool that a service stands for; None: it does not."""
        return self._issuers.get(service)

    def oauth(self, service: str) -> OAuthService | None:
        """The server that a service stands for; None: there is no ``<SERVICE>_TOKEN_URL`` in the configuration.

        Raises:
            ConfigError: its URL cannot be used, or it has no client id.
        """
        if not _CONFIGURABLE.fullmatch(service):
            return None
        config, capitals = self._config, service.upper()
        url = config.text(f"{capitals}_TOKEN_URL")
        if not url:
            return None
        if service == KRB:
            raise config.unusable(f"{capitals}_TOKEN_URL", f"{KRB} stands for Kerberos tickets", "another name",
                                  value=url)
        _check_url(config, f"{capitals}_TOKEN_URL", url)
        client = config.text(f"{capitals}_CLIENT_ID")
        if not client:
            raise config.unusable(f"{capitals}_CLIENT_ID", f"{capitals}_TOKEN_URL is set, and {capitals}_CLIENT_ID is "
                                  "not", "the name by which that service knows this pool")
        return OAuthService(name=service, token_url=url, client_id=client,
                            secret_file=config.text(f"{capitals}_CLIENT_SECRET_FILE") or "",
                            ca_file=config.text("CREDD_CA_FILE") or "")


def _check_url(config: Config, name: str, url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        fits = is_safe and bool(parts.hostname) and (parts.port or 1) > 0 and "@" not in parts.netloc
    except ValueError:
        fits = False
    if not fits or not url.isascii() or not url.isprintable() or " " in url:
        raise config.unusable(name, f"{name}: tokens are not asked for there", "an https URL (http on this machine)",
                              value=url)


def _issuer(config: Config, name: str) -> LocalIssuer:
    """One of LOCAL_CREDMON_PROVIDER_NAMES; each setting may be given for it alone (LOCAL_CREDMON_<NAME>_ISSUER)."""
    def place(setting: str) -> str:
        own = f"LOCAL_CREDMON_{name.upper()}_{setting.removeprefix('LOCAL_CREDMON_')}"
        return own if config.text(own) else setting

    def said(setting: str) -> str:
        return config.text(place(setting)) or ""

    algorithm = said("LOCAL_CREDMON_PRIVATE_KEY_ALGORITHM").upper()
    key = _private_key(config, place("LOCAL_CREDMON_PRIVATE_KEY"), algorithm,
                       place("LOCAL_CREDMON_PRIVATE_KEY_ALGORITHM"))
    return LocalIssuer(
        name=name.lower(), issuer=said("LOCAL_CREDMON_ISSUER"), key_id=said("LOCAL_CREDMON_KEY_ID"),
        algorithm=algorithm, private_key=key, template=said("LOCAL_CREDMON_AUTHZ_TEMPLATE"),
        audience=tuple(said("LOCAL_CREDMON_TOKEN_AUDIENCE").split()), version=said("LOCAL_CREDMON_TOKEN_VERSION"),
        life_s=float(config.seconds("LOCAL_CREDMON_TOKEN_LIFETIME")),
        is_json=config.boolean("LOCAL_CREDMON_TOKEN_USE_JSON"))


def _private_key(config: Config, name: str, algorithm: str, algorithm_name: str) -> bytes:
    """The PEM text of a key that signs by an algorithm.

    Raises:
        ConfigError: there is no such key, or no such algorithm.
    """
    kind, path = _KEY_KINDS.get(algorithm), config.text(name) or ""
    if kind is None:
        raise config.unusable(algorithm_name, f"tokens are not signed with {algorithm!r}", "ES256 or RS256")
    try:
        key = read_private(Path(path), {0, os.getuid()})
        loaded = load_pem_private_key(key, None)
    except (OSError, ValueError, TypeError) as error:
        why = f"{error.strerror}" if isinstance(error, OSError) else "it is no private key in PEM form"
        raise config.unusable(name, f"{path}: {why}", f"a private key for {algorithm}") from None
    is_other_curve = isinstance(loaded, ec.EllipticCurvePrivateKey) and loaded.curve.name != "secp256r1"
    if not isinstance(loaded, kind) or is_other_curve:
        raise config.unusable(name, f"{path}: it is no key for {algorithm}", f"a private key for {algorithm}")
    return key
