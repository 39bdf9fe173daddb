"""The words by which a token is shown on a TLS connection, before its first line.

::

    bearer   condor token 1
    daemon   {"issuer": "physics", "keys": ["POOL"], "nonce": "…"}      keys null: the collector knows
    bearer   {"token": "<header>.<claims>", "nonce": "…", "proof": "…"}
    daemon   {"name": "alice@physics"}   or   {"error": "it has run out …"}, and hangs up

Then the connection goes on as any other: ``condor actors 1`` …
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from condor_actors.messages.envelope import Identity
from condor_actors.wire.idtokens.signed_token import (
    MAX_TOKEN_CHARACTERS,
    BadToken,
    binding_of,
    parted,
    proof_of,
    read_claims,
)
from condor_actors.wire.idtokens.verifier import Shown, TokenVerifier

NONCE_BYTES = 32
MAX_LINE_BYTES = MAX_TOKEN_CHARACTERS + 512


def packed(data: bytes) -> str:
    """Bytes in a line of JSON."""
    return base64.b64encode(data).decode()


def unpacked(text: Any, length: int) -> bytes:
    """The opposite of :func:`packed`.

    Raises:
        ValueError: it is not that.
    """
    data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    if len(data) != length:
        raise ValueError("a number of another length")
    return data


class TokenExchange:
    """The daemon's side of it, for one connection.

    Args:
        verifier: judges.
        certificate: that this end of the connection showed (DER).
        write: sends a line.
        done: gets the identity, or the reason why there is none.
    """

    def __init__(self, verifier: TokenVerifier, certificate: bytes, write: Callable[[bytes], None],
                 done: Callable[[Identity | BadToken], None]) -> None:
        self._verifier = verifier
        self._certificate = certificate
        self._write = write
        self._done = done
        self._buffer = b""
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._judging = False

    def begin(self) -> None:
        """Say what counts here."""
        self._say(issuer=self._verifier.issuer, keys=self._verifier.keys.names() or None, nonce=packed(self._nonce))

    def _say(self, **fields: Any) -> None:
        self._write(json.dumps(fields).encode() + b"\n")

    def received(self, data: bytes) -> None:
        """Bytes of the bearer."""
        self._buffer += data
        line, newline, rest = self._buffer.partition(b"\n")
        if len(self._buffer) > MAX_LINE_BYTES or rest or (self._judging and data):
            self._refuse(BadToken("more was said than a token"))
        elif newline:
            self._judging = True
            self._judge(line)

    def _judge(self, line: bytes) -> None:
        try:
            asked = json.loads(line)
            shown = Shown(token=str(asked["token"]), proof=unpacked(asked["proof"], 32),
                          binding=binding_of(self._certificate, self._nonce, unpacked(asked["nonce"], NONCE_BYTES)))
        except (ValueError, KeyError, TypeError, RecursionError):
            self._refuse(BadToken("what it showed cannot be read"))
            return
        judged: Deferred[Any] = self._verifier.identify(shown)
        judged.addCallbacks(self._accept, self._failed)

    def _accept(self, identity: Identity) -> None:
        self._say(name=identity.name)
        self._done(identity)

    def _failed(self, failure: Failure) -> None:
        if failure.check(BadToken) is None:
            self._refuse(BadToken("it could not be judged here"))
            failure.raiseException()
        self._refuse(failure.value)  # type: ignore[arg-type]  # checked above

    def _refuse(self, error: BadToken) -> None:
        self._say(error=str(error))
        self._done(error)


def show(token: str, offer: bytes, server_certificate: bytes) -> bytes:
    """The bearer's line in answer to a daemon's.

    Args:
        token: the whole token.
        offer: what the daemon said.
        server_certificate: that it showed, and that was verified (DER).

    Raises:
        BadToken: it is no token.
        ValueError: the daemon said something else.
    """
    shown, signature = parted(token)
    server_nonce = unpacked(json.loads(offer)["nonce"], NONCE_BYTES)
    own_nonce = secrets.token_bytes(NONCE_BYTES)
    proof = proof_of(signature, binding_of(server_certificate, server_nonce, own_nonce))
    return json.dumps({"token": shown, "nonce": packed(own_nonce), "proof": packed(proof)}).encode() + b"\n"


def fitting(tokens: dict[str, str], offer: bytes) -> str:
    """The first of our tokens that counts at a daemon.

    Args:
        tokens: by the file that each is in.
        offer: what the daemon said.

    Raises:
        BadToken: none does; says which there are.
        ValueError: the daemon said something else.
    """
    said = json.loads(offer)
    issuer, keys = str(said["issuer"]), said["keys"]
    others = []
    for place, token in tokens.items():
        claims = read_claims(parted(token)[0])
        if claims.issuer == issuer and (keys is None or claims.key_id in keys):
            return token
        others.append(f"{place} is of {claims.issuer} (key {claims.key_id})")
    known = f" with a key of {', '.join(map(str, keys))}" if keys else ""
    raise BadToken(f"it takes tokens of {issuer}{known}; " + ("; ".join(others) or "there is none here"))
