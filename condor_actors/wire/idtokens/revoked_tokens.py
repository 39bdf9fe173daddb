"""Tokens that count no longer, by id or by an expression over what they say.

The authority keeps the list in SEC_TOKEN_REVOCATIONS and the other machines have copies of it;
SEC_TOKEN_REVOCATION_EXPR is each daemon's own besides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression
from condor_actors.durable import write_whole
from condor_actors.wire.idtokens.signed_token import BadToken
from condor_actors.written_text import read_plain

MAX_EXPRESSIONS = 1000


@attrs.frozen
class RevokedTokens:
    """What is revoked.

    Attributes:
        ids: of tokens.
        expressions: true of every token that is revoked, over its claims (``sub``, ``kid``, ``iat``, ``jti`` …).
    """

    ids: frozenset[str] = frozenset()
    expressions: tuple[str, ...] = ()
    _parsed: tuple[Expr, ...] = attrs.field(default=(), eq=False, repr=False)

    @classmethod
    def made(cls, ids: Sequence[str], expressions: Sequence[str]) -> RevokedTokens:
        """A list.

        Raises:
            BadToken: an expression is none.
        """
        try:
            parsed = tuple(parse_expression(text) for text in expressions)
        except ClassAdSyntaxError as error:
            raise BadToken(f"the revocation expression cannot be read: {error}") from None
        return cls(frozenset(ids), tuple(expressions), parsed)

    @classmethod
    def read(cls, data: bytes) -> RevokedTokens:
        """The list that a file or a message holds; an empty one when that is empty.

        Raises:
            BadToken: it holds none.
        """
        if not data.strip():
            return cls()
        try:
            found = json.loads(data)
            ids, expressions = [str(each) for each in found["ids"]], [str(each) for each in found["expressions"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadToken(f"the list of revoked tokens cannot be read: {error}") from None
        return cls.made(ids, expressions)

    def text(self) -> bytes:
        """The list as a file or a message holds it."""
        return json.dumps({"ids": sorted(self.ids), "expressions": list(self.expressions)}, indent=1).encode()

    def also(self, ids: Sequence[str], expressions: Sequence[str]) -> RevokedTokens:
        """The list with more on it.

        Raises:
            BadToken: an expression is none, or there are too many.
        """
        every = tuple(dict.fromkeys((*self.expressions, *expressions)))
        if len(every) > MAX_EXPRESSIONS:
            raise BadToken(f"{MAX_EXPRESSIONS} revocation expressions are the most; combine some with ||")
        return self.made(sorted(self.ids | set(ids)), every)

    def reason(self, claims: Mapping[str, Any]) -> str:
        """Why a token that says this counts no longer; empty: it does."""
        if claims.get("jti") in self.ids:
            return f"token {claims['jti']} was revoked"
        ad = ClassAd(dict(claims))
        for text, parsed in zip(self.expressions, self._parsed, strict=True):
            if is_true(parsed.evaluate(ad)):
                return f"tokens of which {text!r} is true were revoked"
        return ""


def kept_revocations(path: Path, own_expression: str = "") -> RevokedTokens:
    """The list in a file, and a daemon's own expression.

    Raises:
        BadToken: one of them cannot be read; nobody is let in on a guess.
    """
    try:
        kept = RevokedTokens.read(read_plain(path))
    except FileNotFoundError:
        kept = RevokedTokens()
    except OSError as error:
        raise BadToken(f"the list of revoked tokens {path} cannot be read: {error.strerror}") from None
    return kept.also((), (own_expression,)) if own_expression.strip() else kept


def keep_revocations(path: Path, revoked: RevokedTokens) -> None:
    """Write the list."""
    write_whole(path, revoked.text())
