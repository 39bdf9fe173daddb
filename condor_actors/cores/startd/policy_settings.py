"""The owner's policy as the configuration has it: expressions by name."""

from __future__ import annotations

from condor_actors.classads import ClassAdSyntaxError, Expr, parse_expression
from condor_actors.config import Config
from condor_actors.cores.startd.policy_evaluation import POLICY_NAMES, UNIVERSE_SUFFIXES

__all__ = ["expression", "latches_of", "policy_of"]


def expression(config: Config, name: str) -> Expr | None:
    """The expression ``name``, whether the table knows the name or not; None when undefined.

    Raises:
        ConfigError: it is no expression.
    """
    text = config.text(name)
    if text is None:
        return None
    try:
        return parse_expression(text)
    except ClassAdSyntaxError as error:
        raise config.unusable(name, f"{name} is not a ClassAd expression: {error}", "a ClassAd expression") from None


def policy_of(config: Config, prefix: str = "") -> dict[str, Expr]:
    """The policy's expressions by upper-case name, universe variants too.

    Raises:
        ConfigError: one of them is no expression.
    """
    found = {}
    for name in POLICY_NAMES:
        for key in (name, *(f"{name}_{suffix}" for suffix in UNIVERSE_SUFFIXES.values())):
            value = expression(config, prefix + key)
            if value is not None:
                found[key] = value
    if not prefix and config.source("PREEMPT").file == "<Default>":
        vacate = expression(config, "VACATE")
        if vacate is not None:
            found["PREEMPT"] = vacate
    return found


def latches_of(config: Config) -> dict[str, Expr]:
    """The expressions of STARTD_LATCH_EXPRS."""
    names = dict.fromkeys(config.list_of("STARTD_LATCH_EXPRS"))
    return {name: value for name in names if (value := expression(config, name)) is not None}
