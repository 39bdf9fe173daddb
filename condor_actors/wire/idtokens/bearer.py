"""What a tool shows that has tokens and no certificate."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import attrs

from condor_actors.wire.errors import LinkLost, NotTrusted, ProtocolError
from condor_actors.wire.frames import TOKEN_LINE

MAX_ANSWER_BYTES = 16 * 1024


@attrs.frozen(kw_only=True)
class TokenCredentials:
    """The pool's CA, by which the other side is known, and tokens, by which we are.

    Attributes:
        ca: path of the CA's certificate (PEM).
        tokens: by the file that each is in.
        gateways: none: tokens count in this pool only.
    """

    ca: str
    tokens: Mapping[str, str] = attrs.field(repr=False)
    gateways: tuple[str, ...] = ()

    def context(self, realm: str = "") -> ssl.SSLContext:
        """A client's context: only the pool's CA, only TLS 1.3, names checked, nothing of our own.

        Raises:
            NotTrusted: the CA's certificate cannot be used; or ``realm`` is another pool, where no token counts.
        """
        if realm:
            raise NotTrusted(f"a token of this pool does not count in the pool {realm}")
        if not os.path.isfile(self.ca):
            raise NotTrusted(f"{self.ca} is not here: copy it (POOL_CA) from a machine of the pool")
        try:
            context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
        except (OSError, ssl.SSLError) as error:
            raise NotTrusted(f"{self.ca}: {error}") from None
        return context

    def introduce(self, connection: ssl.SSLSocket, node: str) -> None:
        """Show a token to the daemon at the other end, whose certificate has been verified.

        Raises:
            NotTrusted: no token fits, or the one that does is refused; with the reason.
            LinkLost, ProtocolError: it did not answer, or something else.
        """
        from condor_actors.wire.idtokens.exchange import fitting, show
        from condor_actors.wire.idtokens.signed_token import BadToken

        certificate = connection.getpeercert(binary_form=True)
        assert certificate is not None
        try:
            connection.sendall(TOKEN_LINE)
            offer = _line(connection, node)
            connection.sendall(show(fitting(dict(self.tokens), offer), offer, certificate))
            answer = _fields(_line(connection, node))
        except BadToken as error:
            raise NotTrusted(f"{node}: {error}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ProtocolError(f"{node} does not take tokens") from None
        except OSError as error:
            raise LinkLost(f"{node} hung up: {error.strerror or error}") from None
        if "error" in answer:
            raise NotTrusted(f"{node} does not take the token: {answer['error']}")


def _line(connection: ssl.SSLSocket, node: str) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(1)
        if not more or len(data) > MAX_ANSWER_BYTES:
            raise LinkLost(f"{node} hung up instead of judging a token")
        data += more
    return data


def _fields(line: bytes) -> dict[str, str]:
    import json

    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("no fields")
    return found
