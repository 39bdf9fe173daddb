"""Two ads, each judging the other: a match when both ``Requirements`` are true."""

from __future__ import annotations

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.evaluation.running import run_attribute
from condor_actors.classads.language.expressions import Binary, Expr
from condor_actors.classads.native import core
from condor_actors.classads.values import UNDEFINED, Value, is_true

TYPE_CHECKING = False  # typing is not loaded


def _attribute(key: str, ad: ClassAd, target: ClassAd, now_s: float | None) -> Value:
    value = ad.own.get(key)
    if value is None or value.__class__ is not Binary:
        value = ad.find(key)
    if isinstance(value, Expr):
        return run_attribute(value, ad, target, now_s)
    return UNDEFINED if value is None else value


def requirements_hold(ad: ClassAd, target: ClassAd, now_s: float | None = None) -> bool:
    """Say whether an ad accepts another.

    Args:
        ad: The ad whose ``Requirements`` decide.
        target: The other one.
        now_s: The time, the clock's by default.

    Returns:
        True when they evaluate to true; a missing ``Requirements`` accepts nobody.
    """
    return is_true(_attribute("requirements", ad, target, now_s))


def match_ads(left: ClassAd, right: ClassAd, now_s: float | None = None) -> bool:
    """Say whether two ads accept each other.

    Args:
        left: One.
        right: The other.
        now_s: The time, the clock's by default.

    Returns:
        True when both ``Requirements`` are true.
    """
    return is_true(_attribute("requirements", left, right, now_s)) and is_true(
        _attribute("requirements", right, left, now_s)
    )


def rank(left: ClassAd, right: ClassAd, now_s: float | None = None) -> float:
    """How much an ad likes another.

    Args:
        left: The ad whose ``Rank`` counts.
        right: The other one.
        now_s: The time, the clock's by default.

    Returns:
        The rank; 0.0 when it is no number.
    """
    value = _attribute("rank", left, right, now_s)
    return float(value) if isinstance(value, (int, float)) else 0.0


if core is not None and not TYPE_CHECKING:  # the functions above are its oracle
    requirements_hold, match_ads, rank = core.requirements_hold, core.match_ads, core.rank
