"""The services of a configuration: what can be used, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from condor_actors.config import Config, ConfigError, load_config
from condor_actors.daemons.credd.settings import Services


def configured(folder: Path, text: str) -> Config:
    path = folder / "condor_config"
    path.write_text(f"LOCAL_DIR = {folder}\nETC = {folder}\n{text}")
    return load_config(files=[path], environ={}, subsystem="CREDD")


def key(folder: Path, made: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> Path:
    path = folder / "key.pem"
    path.write_bytes(made.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                        serialization.NoEncryption()))
    path.chmod(0o600)
    return path


def test_a_service_is_what_has_a_token_url(tmp_path: Path) -> None:
    services = Services(configured(tmp_path, "box_token_url = https://box.example/t\nBOX_CLIENT_ID = pool\n"))
    box = services.oauth("box")
    assert box is not None
    assert (box.token_url, box.client_id, box.secret_file) == ("https://box.example/t", "pool", "")
    assert services.oauth("gdrive") is None
    assert services.oauth("a-b") is None
    assert services.issuer("box") is None


@pytest.mark.parametrize("url", ["http://box.example/t", "ftp://x", "https://", "https://user:pass@x/", "https://x:99999/",
                                 "https://x/a b", "//x", "https://[x"])
def test_a_url_that_tokens_are_not_asked_at(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="an https URL") as caught:
        Services(configured(tmp_path, f"BOX_TOKEN_URL = {url}\nBOX_CLIENT_ID = pool\n"))
    assert "line 3" in str(caught.value)


def test_a_server_without_a_client_id(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="BOX_CLIENT_ID is not"):
        Services(configured(tmp_path, "BOX_TOKEN_URL = https://box.example/t\n"))


def test_an_issuer_has_settings_of_its_own(tmp_path: Path) -> None:
    path = key(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    services = Services(configured(tmp_path, f"""
LOCAL_CREDMON_PROVIDER_NAMES = SciTokens other
LOCAL_CREDMON_PRIVATE_KEY = {path}
LOCAL_CREDMON_ISSUER = https://all.example
LOCAL_CREDMON_OTHER_ISSUER = https://other.example
LOCAL_CREDMON_OTHER_TOKEN_AUDIENCE = a b
"""))
    first, other = services.issuer("scitokens"), services.issuer("other")
    assert first is not None
    assert other is not None
    assert (first.issuer, first.audience, first.algorithm) == ("https://all.example", (), "ES256")
    assert (other.issuer, other.audience) == ("https://other.example", ("a", "b"))
    assert b"PRIVATE" not in repr(first).encode()


@pytest.mark.parametrize(("made", "mode", "algorithm", "why"), [
    (ec.generate_private_key(ec.SECP384R1()), 0o600, "ES256", "no key for ES256"),
    (rsa.generate_private_key(65537, 2048), 0o600, "ES256", "no key for ES256"),
    (ec.generate_private_key(ec.SECP256R1()), 0o600, "RS256", "no key for RS256"),
    (ec.generate_private_key(ec.SECP256R1()), 0o644, "ES256", "chmod 600"),
    (None, 0o600, "ES256", "No such file"),
    (b"no key", 0o600, "ES256", "no private key in PEM form"),
])
def test_a_key_that_does_not_sign(tmp_path: Path, made: object, mode: int, algorithm: str, why: str) -> None:
    path = tmp_path / "key.pem"
    if isinstance(made, bytes):
        path.write_bytes(made)
    elif made is not None:
        key(tmp_path, made)  # type: ignore[arg-type]
    if made is not None:
        path.chmod(mode)
    with pytest.raises(ConfigError, match=why):
        Services(configured(tmp_path, f"LOCAL_CREDMON_PROVIDER_NAMES = scitokens\nLOCAL_CREDMON_PRIVATE_KEY = {path}\n"
                                      f"LOCAL_CREDMON_PRIVATE_KEY_ALGORITHM = {algorithm}\n"))
