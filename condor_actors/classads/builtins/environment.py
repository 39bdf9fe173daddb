"""Environments of jobs as strings, homes of users, and maps of users."""

from __future__ import annotations

import re

from condor_actors import accounts
from condor_actors.classads.builtins.registry import eager
from condor_actors.classads.builtins.user_maps import groups_of
from condor_actors.classads.values import ERROR, UNDEFINED, Value


def parse_environment(text: str) -> dict[str, str] | None:
    """Read the new environment syntax.

    Args:
        text: ``A=1 B='two words' C='it''s'``.

    Returns:
        The variables, None when the text is malformed.
    """
    words: list[str] = []
    word: list[str] | None = None
    at, size = 0, len(text)
    while at < size:
        char = text[at]
        if char in " \t\n\r":
            if word is not None:
                words.append("".join(word))
                word = None
            at += 1
            continue
        word = [] if word is None else word
        if char != "'":
            word.append(char)
            at += 1
            continue
        at += 1
        while True:
            end = text.find("'", at)
            if end < 0:
                return None
            word.append(text[at:end])
            at = end + 1
            if text[at : at + 1] != "'":
                break
            word.append("'")
            at += 1
    if word is not None:
        words.append("".join(word))
    found: dict[str, str] = {}
    for entry in words:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            return None
        found[name] = value
    return found


def environment_text(variables: dict[str, str]) -> str:
    """Write the new environment syntax.

    Args:
        variables: The variables.

    Returns:
        One string, sorted by name, blanks and quotes enclosed in single quotes.
    """
    ordered = sorted(variables.items(), key=lambda pair: pair[0].encode("utf-8", "surrogateescape"))
    return " ".join(_SPECIAL.sub(_enclosed, f"{name}={value}") for name, value in ordered)


_SPECIAL = re.compile(r"[ \t\n\r']+")


_SEPARATORS = frozenset("!#$%&*+,-/:;<>?@^`|~")
"""What an environment in the old syntax may begin with, to say that it separates the entries."""


def _enclosed(match: re.Match[str]) -> str:
    return "'" + match[0].replace("'", "''") + "'"


@eager("envV1ToV2", least=1)
def _env_v1_to_v2(text: Value) -> Value:
    if text is UNDEFINED:
        return UNDEFINED
    if not isinstance(text, str):
        return ERROR
    found: dict[str, str] = {}
    separator = ";"
    if text[:1] in _SEPARATORS and text:
        separator, text = text[0], text[1:]
    for entry in re.split(f"[{re.escape(separator)}\n]", text):
        name, equals, value = entry.lstrip(" \t\n\r").partition("=")
        if not equals and not name:
            continue
        if not equals or not name:
            return ERROR
        found[name] = value
    return environment_text(found)


@eager("mergeEnvironment", least=0, most=1_000_000)
def _merge_environment(*texts: Value) -> Value:
    merged: dict[str, str] = {}
    for text in texts:
        if text is UNDEFINED:
            continue
        found = parse_environment(text) if isinstance(text, str) else None
        if found is None:
            return ERROR
        merged.update(found)
    return environment_text(merged)


@eager("userHome", least=1, most=2)
def _user_home(user: Value, default: Value = UNDEFINED) -> Value:
    fallback = default if isinstance(default, str) and default else UNDEFINED
    if not isinstance(user, str):
        return ERROR if fallback is UNDEFINED and user is not UNDEFINED else fallback
    try:
        found = accounts.named(user, by_stranger=True)
    except accounts.NotYet:
        return fallback
    return found.home if found is not None else fallback


@eager("userMap", least=2, most=4)
def _user_map(name: Value, user: Value, preferred: Value = None, default: Value = UNDEFINED) -> Value:
    if name is ERROR or user is ERROR:
        return ERROR
    if not isinstance(name, str) or not isinstance(user, str):
        return default
    groups = groups_of(name, user)
    if not groups:
        return default
    if preferred is None:
        return ",".join(groups)
    if isinstance(preferred, str):
        for group in groups:
            if group.lower() == preferred.lower():
                return group
    return groups[0]
