"""``classad``: the older name of :mod:`.classad2`."""

from __future__ import annotations

from condor_actors.compat.classad2 import (
    ClassAd,
    ClassAdException,
    ExprTree,
    Parser,
    ParserType,
    Value,
    lastError,
    parseAds,
    parseNext,
    parseOne,
    quote,
    unquote,
    version,
)

__all__ = [
    "ClassAd", "ClassAdException", "ExprTree", "Parser", "ParserType", "Value", "lastError", "parseAds", "parseNext",
    "parseOne", "quote", "unquote", "version",
]  # fmt: skip
