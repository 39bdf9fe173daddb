"""condor_ping: does a daemon answer, who am I to it, and what may I do?

**Source**: the manual, condor_ping.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from condor_actors.messages.admin import Ping, Pong
from condor_actors.messages.envelope import Level
from condor_actors.tools.lib.command import ToolError, Words, run, values_of
from condor_actors.tools.lib.contact import ADMIN, load, unreachable
from condor_actors.tools.lib.daemon_lines import PLACE_FLAGS, line_to
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.wire.blocking import WireError

FLAGS = (
    Flag("help", 1),
    Flag("version", 4),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("config", 1, 1),
    *PLACE_FLAGS,
    Flag("quiet", 1),
    Flag("table", 1),
    Flag("verbose", 1),
    Flag("long", 1),
)


def main() -> int:
    """Entry of ``condor_ping``."""
    wrong = "ERROR: unrecognized or incomplete argument {word}\n{usage}"
    return run(FLAGS, "condor_ping", _answer, words=Words(unknown=wrong, missing=wrong))


def _answer(given: Sequence[Given]) -> int:
    values = values_of(given)
    if "config" in values:
        os.environ["CONDOR_CONFIG"] = os.path.abspath(values["config"])
    tokens = [item.values[0].upper() for item in given if not item.name] or ["WRITE"]
    levels = [level.value for level in Level]
    unknown = [token for token in tokens if token not in levels and token != "ALL"]
    if unknown:
        raise ToolError(f"ERROR: {unknown[0]} is no authorization level; expected one of ALL {' '.join(levels)}")
    if "ALL" in tokens:
        tokens = levels
    try:
        where, pong = _ping(values)
    except ToolError as error:
        if "quiet" not in values:
            print(f"{tokens[0]} failed!\n{error.text}")
        return 1
    allowed = [token in pong.levels for token in tokens]
    if "quiet" not in values:
        _show(values, where, pong, tokens)
    return 0 if all(allowed) else 1


def _ping(values: dict[str, str]) -> tuple[str, Pong]:
    config = load()
    kind = "collector" if "pool" in values and "name" not in values else "schedd"
    where, client = line_to(config, values, kind)
    with client:
        try:
            pong = client.ask(ADMIN, Ping())
        except WireError as error:
            raise ToolError(unreachable(where, error)) from None
    assert isinstance(pong, Pong)
    return where, pong


def _show(values: dict[str, str], where: str, pong: Pong, tokens: list[str]) -> None:
    method = {"local": "FS", "tls": "SSL", "token": "IDTOKENS"}.get(pong.method, pong.method.upper())
    crypto = "none" if pong.method == "local" else "TLSv1.3"
    decisions = {each.level: each for each in pong.decisions}
    if "long" in values:
        for token in tokens:
            print(f"# {token} command to {where} is {'ALLOWED' if token in pong.levels else 'DENIED'}")
        print(
            f'AuthMethods = "{method}"\nMyRemoteUserName = "{pong.identity}"\nRemoteVersion = "{pong.version}"\n'
            f'Encryption = "{crypto}"\nPid = {pong.pid}\n'
        )
        return
    if "table" in values:
        print(f"{'Instruction':<20} {'Authentication':<14} {'Encryption':<10} {'Decision':<8} Identity")
    for token in tokens:
        decided = decisions[token]
        verdict = "succeeded" if decided.allowed else "failed"
        if "table" in values:
            yes_or_no = "ALLOW" if decided.allowed else "DENY"
            print(f"{token:<20} {method:<14} {crypto:<10} {yes_or_no:<8} {pong.identity}")
        elif "verbose" in values:
            print(
                f"Destination:                 {where}\nRemote Version:              {pong.version}\n"
                f"Instruction:                 {token}\nEncryption:                  {crypto}\n"
                f"Authenticated using:         {method}\nRemote Mapping:              {pong.identity}\n"
                f"Authorized:                  {'TRUE' if decided.allowed else 'FALSE'}\n"
                f"Rule:                        {decided.rule}"
            )
            print(f"What would help:             {decided.remedy}\n" if decided.remedy else "")
        else:
            print(f"{token} command using ({crypto}, {method}) {verdict} as {pong.identity} to {where}.")
            if not decided.allowed:
                print(f"    Why not: {decided.rule}.\n    What would help: {decided.remedy}.")


if __name__ == "__main__":
    sys.exit(main())
