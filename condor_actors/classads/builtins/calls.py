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
from condor_actors.classads.language.expressions import Call
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
        return lambda ad, state: apply(ad, state, *nodes)
    runs = tuple(argument.run for argument in node.arguments)
    if builtin.kind == "inside":
        return lambda ad, state: apply(ad, state, *[run(ad, state) for run in runs])
    if count == 1:
        only = runs[0]
        return lambda ad, state: apply(only(ad, state))
    if count == 2:
        first, second = runs
        return lambda ad, state: apply(first(ad, state), second(ad, state))
    return lambda ad, state: apply(*[run(ad, state) for run in runs])


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
