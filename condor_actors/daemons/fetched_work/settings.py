"""Hooks that fetch work as the configuration has them: ``<KEYWORD>_HOOK_FETCH_WORK`` and its like.

A wrong value is a ConfigError that names file, line and name.
"""

from __future__ import annotations

import re

from condor_actors.config import Config
from condor_actors.cores.fetched_work.fetching import FetchHooks, FetchSettings
from condor_actors.numerals import numeral

__all__ = ["fetch_settings"]

_FETCH = re.compile(r"([A-Z0-9_]+)_HOOK_FETCH_WORK")
_SLOT = re.compile(r"SLOT([0-9]+)_JOB_HOOK_KEYWORD")


def fetch_settings(config: Config) -> FetchSettings:
    """All of it.

    Raises:
        ConfigError: a path is not absolute, or a keyword has no hook that fetches.
    """
    names = {name.rpartition(".")[2].upper() for name in config.names()}
    hooks = {}
    for keyword in sorted(match[1] for name in names if (match := _FETCH.fullmatch(name)) is not None):
        fetch = _path(config, f"{keyword}_HOOK_FETCH_WORK")
        if fetch:
            hooks[keyword] = FetchHooks(
                keyword=keyword, fetch=fetch, reply=_path(config, f"{keyword}_HOOK_REPLY_FETCH"),
                evict=_path(config, f"{keyword}_HOOK_EVICT_CLAIM"))
    keywords = {}
    for name in names:
        match = _SLOT.fullmatch(name)
        number = numeral(match[1]) if match is not None else None
        if number is not None and config.text(name):
            keywords[number] = _keyword(config, name, hooks)
    return config.settings(
        FetchSettings, hooks=hooks, keyword=_keyword(config, "STARTD_JOB_HOOK_KEYWORD", hooks), keywords=keywords,
        delay=config.expression("FETCHWORKDELAY"), domain=config.needed_text("UID_DOMAIN"))


def _keyword(config: Config, name: str, hooks: dict[str, FetchHooks]) -> str:
    text = (config.text(name) or "").upper()
    if text and text not in hooks:
        raise config.unusable(name, f"there is no {text}_HOOK_FETCH_WORK", "a keyword with such a hook")
    return text


def _path(config: Config, name: str) -> str:
    text = config.text(name) or ""
    if text and not text.startswith("/"):
        raise config.unusable(name, f"{text} is no absolute path", "an absolute path")
    return text
