"""Registries that want a login: by a file of passwords, and by a server that gives tokens for them."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import secrets
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.harness.registry import localhost_certificate

__all__ = ["PASSWORD", "USER", "TokenServer", "logins", "passwords", "token_server"]

USER, PASSWORD = "alice", "open: sesame"
ISSUER, SERVICE = "a test", "the registry"


def logins(folder: Path, host: str, *, user: str = USER, password: str = PASSWORD, **more: str) -> Path:
    """What docker login writes: ``config.json`` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = base64.b64encode(f"{user}:{password}".encode()).decode()
    file = folder / "config.json"
    file.write_text(json.dumps({"auths": {host: {"auth": packed, **more}}}))
    return file


def passwords(folder: Path) -> dict[str, Any]:
    """The configuration of a registry that knows one user."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import crypt
    folder.mkdir(parents=True, exist_ok=True)
    hashed = crypt.crypt(PASSWORD, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))
    (folder / "htpasswd").write_text(f"{USER}:{hashed}\n")
    return {"htpasswd": {"realm": "a test", "path": str(folder / "htpasswd")}}


@attrs.define(eq=False)
class TokenServer:
    """One that gives tokens.

    Attributes:
        auth: the configuration of a registry that believes it.
        asked: what each question showed: the header Authorization, or the token of a form.
        refresh: the token that is worth a login.
    """

    auth: dict[str, Any]
    asked: list[str] = attrs.field(factory=list)
    refresh: str = attrs.field(factory=lambda: secrets.token_hex(16))


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextlib.contextmanager
def token_server(folder: Path) -> Iterator[TokenServer]:
    """One that listens; it knows the user, and what its tokens open is what was asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    files = localhost_certificate(folder)
    key = serialization.load_pem_private_key(Path(files["key"]).read_bytes(), None)
    chain = x509.load_pem_x509_certificate(Path(files["certificate"]).read_bytes())
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    made = TokenServer({})

    def token(scope: str, user: str) -> str:
        kind, name, actions = scope.split(":")
        now = int(time.time())
        said = {"iss": ISSUER, "sub": user, "aud": SERVICE, "iat": now, "nbf": now - 60, "exp": now + 600,
                "jti": secrets.token_hex(8), "access": [{"type": kind, "name": name, "actions": actions.split(",")}]}
        head = {"typ": "JWT", "alg": "ES256", "x5c": [base64.b64encode(
            chain.public_bytes(serialization.Encoding.DER)).decode()]}
        body = ".".join(_packed(json.dumps(each).encode()) for each in (head, said))
        pair = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{body}.{_packed(b''.join(each.to_bytes(32, 'big') for each in pair))}"

    class Answers(http.server.BaseHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            """Says nothing."""

        def do_GET(self) -> None:
            shown = self.headers.get("Authorization") or ""
            made.asked.append(shown)
            query = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
            self._answer(shown == f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}", query)

        def do_POST(self) -> None:
            form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            made.asked.append(form.get("refresh_token", ""))
            self._answer(form.get("refresh_token") == made.refresh and form["grant_type"] == "refresh_token", form)

        def _answer(self, known: bool, query: dict[str, str]) -> None:
            if not known or query.get("service") != SERVICE:
                self.send_error(401)
                return
            content = json.dumps({"access_token": token(query["scope"], USER)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    made.auth = {"token": {"realm": f"http://127.0.0.1:{server.server_address[1]}/token", "service": SERVICE,
                           "issuer": ISSUER, "rootcertbundle": files["certificate"]}}
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
