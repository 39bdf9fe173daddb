"""A real OAuth2 server (oauthlib's) with a token endpoint over TLS: refresh tokens in, access tokens of seconds out."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from oauthlib.oauth2 import LegacyApplicationServer, RequestValidator

CLIENT, SECRET = "this-pool", "a secret of the client's: 1+1/2"
SCOPES = ["read", "write"]


class Validator(RequestValidator):
    """Knows one client, and the refresh tokens that were given out.

    Attributes:
        refresh: the refresh tokens that count.
        access: the access tokens that were given, oldest first, with their scopes.
        used: the refresh tokens that were shown, oldest first.
        rotates: whether each answer brings a new refresh token; the old one counts until the new one is shown, since
            a client may die before it has written it down.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.refresh: dict[str, str] = {"refresh-of-alice": "alice"}
        self.access: list[tuple[str, str]] = []
        self.used: list[str] = []
        self.before: dict[str, str] = {}
        self.rotates = True

    def client_authentication_required(self, request: Any, *_: Any, **__: Any) -> bool:
        return True

    def authenticate_client(self, request: Any, *_: Any, **__: Any) -> bool:
        import base64
        import urllib.parse

        kind, _, pair = request.headers.get("Authorization", "").partition(" ")
        name, _, secret = base64.b64decode(pair).decode().partition(":")
        request.client = type("Client", (), {"client_id": urllib.parse.unquote(name)})()
        return (kind, urllib.parse.unquote(name), urllib.parse.unquote(secret)) == ("Basic", CLIENT, SECRET)

    def validate_grant_type(self, client_id: str, grant_type: str, *_: Any, **__: Any) -> bool:
        return grant_type == "refresh_token"

    def validate_refresh_token(self, refresh_token: str, client: Any, request: Any, *_: Any, **__: Any) -> bool:
        with self.lock:
            request.user = self.refresh.get(refresh_token)
        return request.user is not None

    def get_original_scopes(self, refresh_token: str, request: Any, *_: Any, **__: Any) -> list[str]:
        return SCOPES

    def rotate_refresh_token(self, request: Any) -> bool:
        return self.rotates

    def save_bearer_token(self, token: dict[str, Any], request: Any, *_: Any, **__: Any) -> None:
        with self.lock:
            self.used.append(request.refresh_token)
            if self.rotates:
                self.refresh.pop(self.before.pop(request.refresh_token, ""), None)
                self.before[token["refresh_token"]] = request.refresh_token
                self.refresh[token["refresh_token"]] = request.user
            self.access.append((token["access_token"], token.get("scope", "")))


class OAuthServer:
    """Listens on loopback; its certificate is signed by nobody but itself (``ca_file``).

    Args:
        folder: for the certificate.
        life_s: of an access token.
    """

    def __init__(self, folder: Path, life_s: int) -> None:
        self.validator = Validator()
        self.ca_file = folder / "oauth-ca.pem"
        self._key_file = folder / "oauth-key.pem"
        self._certify()
        endpoint = LegacyApplicationServer(self.validator, token_expires_in=life_s)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802 - http.server's name
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                headers, text, status = endpoint.create_token_response(
                    f"https://localhost{self.path}", "POST", body, dict(self.headers))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca_file, self._key_file)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The token endpoint."""
        return f"https://127.0.0.1:{self._server.server_address[1]}/token"

    def __enter__(self) -> OAuthServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    def _certify(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test's OAuth2 server")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
            .sign(key, hashes.SHA256()))
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self._key_file.write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
