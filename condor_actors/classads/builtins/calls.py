"""Every function that an expression can call, and calls of them as Python functions."""

from __future__ import annotations

from typing import Any

from condor_actors.classads.builtins import (
    argument_lists,
    choice,
    clock,
    contexts,
    conversions,
    environment,
    lists,
    numbers,
    patterns,
    string_lists,
    strings,
    versions,
)
from condor_actors.classads.builtins.registry import TABLE, Builtin
from condor_actors.classads.evaluation.budget import CALL_STEPS, weight
from condor_actors.classads.language.expressions import Call, Expr
from condor_actors.classads.language.python_nodes import Run
from condor_actors.classads.values import ERROR, Value


def compile_call(node: Call) -> Run:
    """Make the closure of a call.

    Args:
        node: The call.

    Returns:
        Its function; one that gives ERROR for an unknown name or a wrong number of arguments.
    """
    builtin = TABLE.get(node.name.lower())
    count = len(node.arguments)
    if builtin is None or not builtin.least <= count <= builtin.most:
        return _error
    apply = builtin.apply
    if builtin.kind == "lazy":
        nodes = node.arguments
        return lambda ad, state: _lazily(apply, ad, state, nodes)
    runs = tuple(argument.run for argument in node.arguments)
    inside = builtin.kind == "inside"

    def run(ad: Any, state: Any) -> Value:
        values = [argument(ad, state) for argument in runs]
        state.charge(CALL_STEPS + sum(map(weight, values)))
        return state.made(apply(ad, state, *values) if inside else apply(*values))

    return run


def _lazily(apply: Any, ad: Any, state: Any, nodes: tuple[Expr, ...]) -> Value:
    state.charge(CALL_STEPS)
    return state.made(apply(ad, state, *nodes))


def _error(ad: Any, state: Any) -> Value:
    return ERROR


def function_names() -> list[str]:
    """The functions there are.

    Returns:
        Their names as people spell them, sorted.
    """
    return sorted(builtin.name for builtin in TABLE.values())


__all__ = [
    "TABLE",
    "Builtin",
    "argument_lists",
    "choice",
    "clock",
    "compile_call",
    "contexts",
    "conversions",
    "environment",
    "function_names",
    "lists",
    "numbers",
    "patterns",
    "string_lists",
    "strings",
    "versions",
]
