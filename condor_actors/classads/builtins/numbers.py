"""Arithmetic beyond the operators."""

from __future__ import annotations

import math
import random
from typing import Any

from condor_actors.classads.builtins.conversions import real_of, truncated
from condor_actors.classads.builtins.registry import eager, inside
from condor_actors.classads.evaluation.operators import divide
from condor_actors.classads.evaluation.state import State, element
from condor_actors.classads.values import ERROR, INT_MAX, INT_MIN, UNDEFINED, ListValue, Value, wrap


def _rounded(value: Value, how: Any) -> Value:
    if type(value) is int:
        return value
    number = real_of(value)
    if not isinstance(number, float):
        return ERROR
    if math.isinf(number) or math.isnan(number):
        return INT_MIN
    return truncated(float(how(number)))


@eager("floor", least=1)
def _floor(value: Value) -> Value:
    return _rounded(value, math.floor)


@eager("ceiling", "ceil", least=1)
def _ceiling(value: Value) -> Value:
    return _rounded(value, math.ceil)


@eager("round", least=1)
def _round(value: Value) -> Value:
    return _rounded(value, round)


@eager("pow", least=2)
def _pow(number: Value, exponent: Value) -> Value:
    if type(number) is int and type(exponent) is int and exponent >= 0:
        return _integer_power(number, exponent)
    first, second = real_of(number), real_of(exponent)
    if not isinstance(first, float) or not isinstance(second, float):
        return ERROR
    return _real_power(first, second)


def _integer_power(number: int, exponent: int) -> int:
    return truncated(_real_power(float(number), float(exponent)) + 0.5)


def _real_power(number: float, exponent: float) -> float:
    try:
        return math.pow(number, exponent)
    except OverflowError:
        odd = exponent == int(exponent) and int(exponent) % 2 == 1
        return -math.inf if number < 0 and odd else math.inf
    except ValueError:
        if number == 0:
            odd = exponent == int(exponent) and int(exponent) % 2 == 1
            return math.copysign(math.inf, number) if odd else math.inf
        return math.nan


@inside("quantize", least=2)
def _quantize(ad: Any, state: State, value: Value, step: Value) -> Value:
    number = real_of(value)
    if not isinstance(number, float):
        return ERROR
    if isinstance(step, ListValue):
        chosen: Value = UNDEFINED
        for item in step.elements:
            chosen = element(item, ad, state)
            least = real_of(chosen)
            if not isinstance(least, float):
                return ERROR
            if least >= number:
                return chosen
        if chosen is UNDEFINED:
            return value
        step = chosen
    return _multiple(value, number, step)


def _multiple(value: Value, number: float, step: Value) -> Value:
    if type(step) is int and type(value) is int:
        if step == 0:
            return value
        count = divide(wrap(wrap(value + step) - 1), step)
        return wrap(int(count) * step)
    size = real_of(step)
    if not isinstance(size, float):
        return ERROR
    if size == 0:
        return value
    quotient = number / size
    if math.isfinite(quotient):
        quotient = math.copysign(math.ceil(quotient), quotient)
    return quotient * size


@inside("random", least=0, most=1)
def _random(ad: Any, state: State, limit: Value = 1.0) -> Value:
    if type(limit) is int:
        return random.randrange(limit) if limit > 0 else ERROR
    if isinstance(limit, float):
        return random.random() * limit
    return ERROR


__all__ = ["INT_MAX"]
