"""The ClassAd language: ads, expressions, evaluation, matching, and their forms as text, JSON and XML.

The package needs nothing but attrs beside the standard library. Text becomes a tree (`parse_expression`), a tree
becomes a Python function when it is evaluated, an ad (`ClassAd`) binds names to trees and plain values, and two ads
judge each other (`match_ads`).
"""

from __future__ import annotations

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.errors import ClassAdSyntaxError
from condor_actors.classads.forms.long_form import parse_long_expression
from condor_actors.classads.language.expressions import Expr, as_expr
from condor_actors.classads.language.parser import parse_expression
from condor_actors.classads.language.unparse import quote, unparse
from condor_actors.classads.matching.pairs import match_ads, rank, requirements_hold
from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, RelativeTime, is_true

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
