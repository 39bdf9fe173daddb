"""condor_token_create, condor_token_fetch, condor_token_list, condor_token_revoke: what people prove who they are with.

**Source**: the manual, condor_token_create, condor_token_fetch, condor_token_list.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from condor_actors.messages.tokens import FetchToken, RevokeTokens, TokenIssued
from condor_actors.tools.lib.command import ToolError, Words, operands_of, reminder_of, run, senseless, values_of
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.daemon_lines import PLACE_FLAGS, line_to
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.tool_audit import note_tool_action
from condor_actors.wire.idtokens.private_files import write_private
from condor_actors.wire.idtokens.signed_token import LONGEST_LIFE_S, BadToken, levels_of, parted, read_claims, sign
from condor_actors.wire.idtokens.signing_keys import SigningKeys
from condor_actors.wire.idtokens.token_files import own_tokens, token_folder

if TYPE_CHECKING:
    from condor_actors.config import Config

TOKENS = "tokens"
"""The actor that gives them."""
ASKED = (Flag("authz", 1, 1), Flag("lifetime", 1, 1), Flag("token", 1, 1))
COMMON = (Flag("help", 1), Flag("version", 4), Flag("debug", 1, idle=NO_DEBUG))
TABLES: Mapping[str, tuple[Flag, ...]] = {
    "condor_token_create": (*COMMON, Flag("identity", 1, 1), Flag("key", 1, 1), *ASKED),
    "condor_token_fetch": (*COMMON, *PLACE_FLAGS, Flag("key", 1, 1), *ASKED),
    "condor_token_list": (*COMMON, Flag("dir", 2, 1)),
    "condor_token_revoke": (*COMMON, *PLACE_FLAGS, Flag("expr", 1, 1)),
}


def of_tokens(name: str, act: Callable[[Sequence[Given]], int], tables: Mapping[str, tuple[Flag, ...]]) -> int:
    """Run one of the commands about tokens."""
    return run(tables[name], name, act, words=Words.of(name))


def create() -> int:
    """Entry of ``condor_token_create``."""
    return of_tokens("condor_token_create", _create, TABLES)


def fetch() -> int:
    """Entry of ``condor_token_fetch``."""
    return of_tokens("condor_token_fetch", _fetch, TABLES)


def list_tokens() -> int:
    """Entry of ``condor_token_list``."""
    return of_tokens("condor_token_list", _list, TABLES)


def revoke() -> int:
    """Entry of ``condor_token_revoke``."""
    return of_tokens("condor_token_revoke", _revoke, TABLES)


def asked_levels(given: Sequence[Given]) -> tuple[str, ...]:
    """The levels of ``-authz``.

    Raises:
        ToolError: one is none.
    """
    try:
        return levels_of([item.values[0] for item in given if item.name == "authz"])
    except BadToken as error:
        raise ToolError(f"ERROR: {error}") from None


def asked_life(values: dict[str, str]) -> float:
    """The seconds of ``-lifetime``; 0 without.

    Raises:
        ToolError: it is no positive number.
    """
    text = values.get("lifetime", "")
    if text and not (text.isascii() and text.isdecimal() and 0 < int(text) <= LONGEST_LIFE_S):
        raise ToolError(f"ERROR: -lifetime {text}: expected a number of seconds from 1 to {LONGEST_LIFE_S:.0f} "
                        "(without -lifetime, a token has no end but that of SEC_ISSUED_TOKEN_EXPIRATION)")
    return float(text or 0)


def keep(config: Config, values: dict[str, str], token: str) -> None:
    """Write a token to the file of ``-token`` in the folder of tokens, or print it.

    Raises:
        ToolError: it cannot be written.
    """
    name = values.get("token", "")
    if not name:
        print(token)
        return
    path = Path(name) if os.sep in name else token_folder(config) / name
    try:
        write_private(path, token.encode() + b"\n")
    except OSError as error:
        raise ToolError(f"ERROR: {path}: {error.strerror}") from None
    print(f"The token is in {path}.", file=sys.stderr)


def _create(given: Sequence[Given]) -> int:
    values, config = values_of(given), load()
    subject = values.get("identity", "")
    if not subject or operands_of(given):
        raise ToolError(f"ERROR: whose token? Say -identity USER@DOMAIN\n{reminder_of('condor_token_create')}")
    keys = SigningKeys.of(config)
    key_id = values.get("key") or keys.default
    try:
        token = sign(keys.secret(key_id), key_id, config.needed_text("TRUST_DOMAIN"), subject, now_s=time.time(),
                     levels=asked_levels(given), life_s=asked_life(values))
        token_id, levels = read_claims(parted(token)[0]).token_id, ",".join(asked_levels(given)) or "all"
        note_tool_action(config, "create-token", f"identity={subject} id={token_id} key={key_id} levels={levels} "
                                          f"lifetime_s={asked_life(values):.0f}")
    except BadToken as error:
        raise ToolError(f"ERROR: {error}") from None
    except OSError as error:
        raise ToolError(f"ERROR: no token is made that no audit log tells of: {error}") from None
    keep(config, values, token)
    return 0


def no_words(given: Sequence[Given], name: str) -> None:
    """Refuse words that would have no effect.

    Raises:
        ToolError: there are some.
    """
    if operands_of(given):
        raise ToolError(senseless(name))


def _fetch(given: Sequence[Given]) -> int:
    no_words(given, "condor_token_fetch")
    values, config = values_of(given), load()
    _, client = line_to(config, values, "collector")
    with client:
        answer = client.ask(TOKENS, FetchToken(levels=asked_levels(given), lifetime_s=asked_life(values),
                                               key_id=values.get("key", "")))
    assert isinstance(answer, TokenIssued)
    keep(config, values, answer.token)
    return 0


def _list(given: Sequence[Given]) -> int:
    no_words(given, "condor_token_list")
    values, config = values_of(given), load()
    folder = Path(values["dir"]) if "dir" in values else None
    try:
        if folder is not None:
            os.scandir(folder).close()
    except OSError as error:
        raise ToolError(f"ERROR: -dir {folder}: {error.strerror}; give a folder with tokens in it") from None
    tokens, problems = own_tokens(config, folder)
    for place, token in tokens.items():
        try:
            claims = read_claims(parted(token)[0])
        except BadToken as error:
            problems.append(f"{place}: {error}")
            continue
        said = ", ".join(f'"{name}":{value}' if isinstance(value, int) else f'"{name}":"{value}"'
                         for name, value in claims.attributes().items() if name != "kid")
        print(f'Header: {{"alg":"HS256","kid":"{claims.key_id}"}} Payload: {{{said}}} File: {place}')
    for problem in problems:
        print(f"WARNING: {problem}", file=sys.stderr)
    return 0


def _revoke(given: Sequence[Given]) -> int:
    values, ids = values_of(given), operands_of(given)
    expressions = tuple(item.values[0] for item in given if item.name == "expr")
    if not ids and not expressions:
        raise ToolError("ERROR: which tokens? condor_token_list shows the ids (jti) of yours\n"
                        + reminder_of("condor_token_revoke"))
    _, client = line_to(load(), values, "collector")
    with client:
        print(client.ask(TOKENS, RevokeTokens(ids=tuple(ids), expressions=expressions)).text)
    return 0
