"""Texts of few kinds of letters and great length: to read them takes no more time than others of that length.

A regular expression that looks for something behind each of many blanks takes the square of their number: an ad, or the
constraint of a question, that was nothing but blanks kept a daemon busy for hours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression
from condor_actors.classads.forms.long_form import read_long
from condor_actors.cores.argument_quoting import UnbalancedQuote, split_raw
from condor_actors.cores.shadow.slot_expansion import CannotExpand, expand_slot_references
from condor_actors.messages.references.image_reference import BadReference, ImageReference
from tests.harness.processor_time import at_most

MOST_S = 3.0
"""Of processor time, for what takes a few hundredths of a second, and took hours."""
LENGTH = 60_000
UNITS = (" ", "\n", "a", "1", "'", '"', "\\", '\\"', "$$(", "$$([", "$$(a:", "(", "/*", "a-", "=", "\ud800")
FRAMES = ("{}", "A = {}", "A = {}\x01", "A = 1{}x", 'A = "{}', "A{}= 1", "A = '{}", 'relTime("{}x")', 'absTime("{}x")',
          'A = relTime("-{}x")', 'A = relTime("1{}+1{}:1{}")')


def as_ad(text: str) -> object:
    return ClassAd.from_bytes(text.encode("utf-8", "surrogatepass"))


def expanded(text: str) -> object:
    return expand_slot_references(ClassAd({"Arguments": text.replace("\ud800", "?")}), ClassAd())


READERS: dict[str, Callable[[str], object]] = {
    "ad": as_ad, "expression": parse_expression, "long form": read_long, "slot references": expanded,
    "arguments": split_raw, "image": lambda text: ImageReference.read(f"docker://{text}"),
}


@pytest.mark.parametrize("text", ["1" * 5000 + ":00", "1" * 400 + ":00", "1" * 400, "9" * 20 + "+00:00:00", "1e400",
                                  "1" * 5000 + "+00:00:00", "-" + "9" * 400 + "d"])
@pytest.mark.parametrize("name", ["relTime", "absTime"])
def test_times_that_are_none(name: str, text: str) -> None:
    """It is no time, and no error of the program; one that was one was written so that nobody could read it again."""
    with suppress(ClassAdSyntaxError):
        read = ClassAd.from_bytes(f'A = {name}("{text}")\n'.encode())
        assert ClassAd.from_bytes(read.to_bytes()) == read
    for value in (f'{name}("{text}")', f'{name}(strcat("{text}", ""))'):
        with suppress(ClassAdSyntaxError):
            parse_expression(value).evaluate()


@pytest.mark.parametrize("expression", [
    'int("{5000}")', 'real("{5000}")', 'stringListSum("{5000}")', 'versioncmp("{5000}", "1")',
    'formatTime({300}, "%Y")',
    'substr("a", {30})', "pow(10, {300})", "round(1e300)", "interval(1e300)", "absTime(1e300)", "relTime(1e300)",
    'splitTime(absTime("2020-01-01T00:00:00") + 1e18)', 'stringListAvg("1e308,1e308")', "quantize({15}, -1)",
    "-9223372036854775808 / -1", "-9223372036854775808 % -1", "1 << -9223372036854775808", "random(1e300)"])
def test_no_function_breaks_of_a_number(expression: str) -> None:
    """Whatever it is, its value is one of the language's: an exception would be the daemon's."""
    text = re.sub(r"\{(\d+)\}", lambda found: "9" * int(found[1]), expression)
    with at_most(MOST_S), suppress(ClassAdSyntaxError):
        ClassAd({"A": parse_expression(text)}).evaluate("A")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("reader", READERS)
def test_whatever_is_repeated(reader: str, unit: str) -> None:
    for frame in FRAMES:
        text = frame.replace("{}", unit * (LENGTH // len(unit)))
        with at_most(MOST_S), suppress(BadReference, CannotExpand, ClassAdSyntaxError, UnbalancedQuote):
            READERS[reader](text)
