"""``classad``: the older name of :mod:`.classad2`, with a name for each kind of its one exception."""

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

ClassAdEnumError = ClassAdEvaluationError = ClassAdInternalError = ClassAdOSError = ClassAdException
ClassAdParseError = ClassAdTypeError = ClassAdValueError = ClassAdException

__all__ = [
    "ClassAd", "ClassAdEnumError", "ClassAdEvaluationError", "ClassAdException", "ClassAdInternalError",
    "ClassAdOSError", "ClassAdParseError", "ClassAdTypeError", "ClassAdValueError", "ExprTree", "Parser", "ParserType",
    "Value", "lastError", "parseAds", "parseNext", "parseOne", "quote", "unquote", "version",
]  # fmt: skip
