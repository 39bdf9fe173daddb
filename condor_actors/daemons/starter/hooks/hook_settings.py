"""The hooks of a machine as its configuration has them: ``<KEYWORD>_HOOK_…``.

A wrong value is a ConfigError that names file, line and name.
"""

from __future__ import annotations

import re

from condor_actors.config import Config
from condor_actors.cores.argument_quoting import UnbalancedQuote, split_raw
from condor_actors.cores.starter.hooks import EXIT_S, PREPARE_S, Hooks, HookSettings

__all__ = ["hook_settings"]

_KEYWORD = re.compile(r"([A-Z0-9_]+)_HOOK_(?:PREPARE_JOB(?:_BEFORE_TRANSFER)?|UPDATE_JOB_INFO|JOB_EXIT)")


def hook_settings(config: Config) -> HookSettings:
    """All hooks.

    Raises:
        ConfigError: a path is not absolute, or a time or arguments cannot be read.
    """
    keywords = dict.fromkeys(match[1] for name in config.names()
                             if (match := _KEYWORD.fullmatch(name.rpartition(".")[2].upper())) is not None)
    return HookSettings(
        hooks={keyword: hooks for keyword in keywords if (hooks := _hooks(config, keyword)) is not None},
        forced=config.text("STARTER_JOB_HOOK_KEYWORD") or "",
        default=config.text("STARTER_DEFAULT_JOB_HOOK_KEYWORD") or "")


def _hooks(config: Config, keyword: str) -> Hooks | None:
    prepare = _path(config, f"{keyword}_HOOK_PREPARE_JOB")
    transfer = _path(config, f"{keyword}_HOOK_PREPARE_JOB_BEFORE_TRANSFER")
    update, ending = _path(config, f"{keyword}_HOOK_UPDATE_JOB_INFO"), _path(config, f"{keyword}_HOOK_JOB_EXIT")
    if not (transfer or prepare or update or ending):
        return None
    return Hooks(
        keyword=keyword, before_transfer=transfer, prepare=prepare, update=update, exit=ending,
        prepare_arguments=_words(config, f"{keyword}_HOOK_PREPARE_JOB_ARGS"),
        prepare_s=_seconds(config, f"{keyword}_HOOK_PREPARE_JOB_TIMEOUT", PREPARE_S),
        exit_s=_seconds(config, f"{keyword}_HOOK_JOB_EXIT_TIMEOUT", EXIT_S))


def _path(config: Config, name: str) -> str:
    text = config.text(name) or ""
    if text and not text.startswith("/"):
        raise config.unusable(name, f"{text} is no absolute path", "an absolute path")
    return text


def _seconds(config: Config, name: str, default: float) -> float:
    return config.seconds(name) if config.text(name) is not None else default


def _words(config: Config, name: str) -> tuple[str, ...]:
    text = config.text(name) or ""
    if not text.startswith('"'):
        return tuple(text.split())
    try:
        return tuple(split_raw(text.strip('"').replace('""', '"')))
    except UnbalancedQuote as error:
        raise config.unusable(name, str(error), "words, or \"words 'with blanks'\"") from None
