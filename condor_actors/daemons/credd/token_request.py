"""One question to an OAuth2 server: an access token for a refresh token (RFC 6749, section 6).

Theory: it runs on a worker.  The server's certificate is verified, redirections are not followed, the answer is
bounded, and every read has a deadline.  What is said of a failure never holds what was sent; of the server's words it
holds the error code alone, which RFC 6749 names.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

import attrs

from condor_actors.cores.credd.credentials import MOST_TOKEN_BYTES
from condor_actors.cores.credd.services import OAuthService
from condor_actors.cores.credd.token_lives import Failed, Received
from condor_actors.wire.idtokens.private_files import read_private

__all__ = ["Answered", "ask_for_token"]

TIMEOUT_S = 20.0
MOST_ANSWER_BYTES = 256 * 1024
FINAL = frozenset({"invalid_grant", "invalid_scope", "unauthorized_client", "invalid_target"})
"""Errors that the same refresh token and scopes will always have."""
_ERROR = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_TOKEN = re.compile(r"[\x21-\x7e]+")


@attrs.frozen
class Answered:
    """What came.

    Attributes:
        event: a token or a failure.
        refresh_token: takes the place of the one that was shown, or of the ticket that was renewed; empty: none does.
        problem: why there is no newer token than the one of before; empty: there is, or there need be none.
    """

    event: Received | Failed
    refresh_token: str = attrs.field(default="", repr=False)
    problem: str = ""


def ask_for_token(service: OAuthService, refresh_token: str, scopes: str, audience: str) -> Answered:
    """Ask the server of a service.

    Args:
        service: whom, and as whom.
        refresh_token: the user's.
        scopes, audience: for what; empty: as the server has it.
    """
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    if scopes:
        form["scope"] = scopes
    if audience:
        form |= {"resource": audience, "audience": audience}
    try:
        status, body = _post(service, form)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answered(Failed(f"{_place(service)} could not be asked: {_reason(error)}", is_final=False))
    return _read(service, status, body)


def _place(service: OAuthService) -> str:
    return urllib.parse.urlsplit(service.token_url).netloc.rpartition("@")[2]


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or type(error).__name__)
    return type(error).__name__


def _post(service: OAuthService, form: dict[str, str]) -> tuple[int, bytes]:
    """Send the form; status and body.

    Raises:
        OSError, http.client.HTTPException, ValueError: it could not be sent, or no answer came.
    """
    url = urllib.parse.urlsplit(service.token_url)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json",
               "Connection": "close"}
    if service.secret_file:
        secret = read_private(Path(service.secret_file), {0, os.getuid()}).strip().decode("ascii")
        pair = ":".join(urllib.parse.quote(each, safe="") for each in (service.client_id, secret))
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    else:
        form = {**form, "client_id": service.client_id}
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=service.ca_file or None)
        connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT_S)
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", path, urllib.parse.urlencode(form), headers)
        response = connection.getresponse()
        return response.status, response.read(MOST_ANSWER_BYTES + 1)
    finally:
        connection.close()


def _read(service: OAuthService, status: int, body: bytes) -> Answered:
    try:
        fields = json.loads(body) if len(body) <= MOST_ANSWER_BYTES else None
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return Answered(Failed(f"{_place(service)} answered {status} with no JSON object", is_final=False))
    if status != http.HTTPStatus.OK:
        code = fields.get("error")
        code = code if isinstance(code, str) and _ERROR.fullmatch(code) else "no error code"
        return Answered(Failed(f"{_place(service)} answered {status}: {code}", is_final=code in FINAL))
    token = _text(fields, "access_token")
    if not token:
        return Answered(Failed(f"{_place(service)} sent no access token that can be used", is_final=False))
    life = fields.get("expires_in")
    if isinstance(life, str) and life.isascii() and life.isdecimal() and len(life) < 12:
        life = int(life)
    life_s = float(life) if isinstance(life, (int, float)) and not isinstance(life, bool) and 0 < life < 1e10 else 0.0
    return Answered(Received(token, life_s), _text(fields, "refresh_token"))


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    fits = isinstance(value, str) and len(value) <= MOST_TOKEN_BYTES and _TOKEN.fullmatch(value)
    return str(value) if fits else ""
