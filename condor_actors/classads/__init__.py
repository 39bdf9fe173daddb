"""The ClassAd language: ads, expressions, evaluation, matching, and their forms as text, JSON and XML.

The package needs nothing but attrs beside the standard library. Text becomes a tree (`parse_expression`), a tree
becomes a Python function when it is evaluated, an ad (`ClassAd`) binds names to trees and plain values, and two ads
judge each other (`match_ads`).
"""

from __future__ import annotations

from .ad import ClassAd
from .errors import ClassAdSyntaxError
from .expr import Expr, as_expr
from .matching import match_ads, rank, requirements_hold
from .parser import parse_expression
from .text_form import parse_long_expression
from .unparse import quote, unparse
from .values import ERROR, UNDEFINED, AbsoluteTime, RelativeTime, is_true

__all__ = [
    "ERROR",
    "UNDEFINED",
    "AbsoluteTime",
    "ClassAd",
    "ClassAdSyntaxError",
    "Expr",
    "RelativeTime",
    "as_expr",
    "is_true",
    "match_ads",
    "parse_expression",
    "parse_long_expression",
    "quote",
    "rank",
    "requirements_hold",
    "unparse",
]
