"""Patterns: PCRE2's dialect on two engines that end in bounded time."""

from __future__ import annotations

import random
import re

import pytest

from condor_actors.classads import ERROR, parse_expression
from condor_actors.classads.builtins.pattern_cost import most_tries
from condor_actors.classads.builtins.pattern_engines import MAX_TRIES, Match, SafePattern, Unsupported
from condor_actors.classads.builtins.pattern_syntax import Options, parse_pattern
from condor_actors.classads.builtins.pattern_tree import PatternError

MATCHING = [
    *[(r"\h", "\t"), (r"\v", "\n"), (r"\R", "\r\n"), (r"\N", "a"), (r"\Qa.b\E+", "a.bb"), (r"a(?i)B|C", "c")],
    *[(r"(a(?i)B)C", "abC"), (r"\x{41}\o{102}\103", "ABC"), (r"[[:^alpha:]]", "1"), (r"(?<n>a)\k<n>", "aa")],
    *[(r"(?'n'a)\g{n}\g1\g{-1}", "aaaa"), (r"(?^i:A)", "a"), (r"a\Z", "a\n"), (r"[]a]", "]"), (r"[^]a]", "b")],
    *[(r"\p{Lu}", "A"), (r"[\Q]\E]", "]"), (r"a{,2}", "a{,2}"), (r"(a)?(?(1)b|c)", "c"), (r"(?>a+)b++", "aab")],
    *[(r"(?<=a|bc)d", "bcd"), (r"[[:<:]]a[[:>:]]", "-a-"), (r"(?#words)a", "a"), (r"\cA", "\1"), (r"..", "é")],
]
REFUSED = ["a**", "^*", "a{2}{3}", "(a", "a)", "[a", "[z-a]", r"[\d-z]", r"\y", r"\8", "[[:foo:]]", "[:alpha:]"]
REFUSED += ["a{65536}", "(?<n>a)(?<n>b)", r"\2(a)", "(*ACCEPT)", "(?R)", "(?|a)", r"\K", r"\X", "(?<=a+)b", "\\"]
REFUSED += ["(" * 300 + ")" * 300]


@pytest.mark.parametrize(("pattern", "text"), MATCHING)
def test_the_dialect(pattern: str, text: str) -> None:
    assert SafePattern(pattern, Options()).matches(text.encode())


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        SafePattern(pattern, Options())


def generated(dice: random.Random, levels: int) -> str:
    """A pattern of what both engines know."""
    kind = dice.random()
    if levels == 0 or kind < 0.35:
        return dice.choice([*"aab.", r"\d", r"\w", r"\b", r"\B", "[a-c]", "[^a]", "^", "$", r"\z", "é", r"\s", ""])
    if kind < 0.6:
        return generated(dice, levels - 1) + generated(dice, levels - 1)
    if kind < 0.85:
        repeated = dice.choice(["", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??"])
        return f"{dice.choice(['(', '(?:'])}{generated(dice, levels - 1)}){repeated}"
    return f"(?:{generated(dice, levels - 1)}|{generated(dice, levels - 1)})"


def spans(engine: re.Pattern[bytes], text: bytes, groups: int) -> list[tuple[int, int]] | None:
    found = engine.search(text)
    return None if found is None else [found.span(number) for number in range(groups + 1)]


def test_both_engines_agree_where_re2_is_asked() -> None:
    dice = random.Random(1)
    compared = 0
    for _ in range(3000):
        text = "".join(dice.choice("aab1 é\n") for _ in range(dice.randrange(7))).encode()
        try:
            pattern = SafePattern(generated(dice, 4).encode().decode("latin-1"), Options(lines=dice.random() < 0.2))
        except PatternError:
            continue
        for asked, groups in (("whether", -1), ("where", 0), ("groups", pattern._groups)):
            try:
                linear = pattern._linear(text, asked)  # type: ignore[arg-type]
            except Unsupported:
                continue
            compared += 1
            assert spans(linear, text, groups) == spans(pattern._python, text, groups), (pattern._python.pattern, text)
    assert compared > 3000


def tries(pattern: str, size: int) -> float:
    return most_tries(parse_pattern(pattern, Options())[0], size)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(a*)*", "(a|ab|b)*c", "((a?){9}){9}", "(a?){40}a{40}"])
def test_exponential_patterns_are_seen(pattern: str) -> None:
    assert tries(pattern, 200) > MAX_TRIES


@pytest.mark.parametrize("pattern", ["^slot[0-9]+@", "(foo|bar|qux)+", "^(alice|bob)$", "a{3}b{2,5}", r"\d+\.\d+"])
def test_plain_patterns_stay_with_the_quick_engine(pattern: str) -> None:
    assert tries(pattern, 30) < 100_000


def test_a_group_is_there_when_it_or_a_later_one_took_part() -> None:
    match = Match(b"ab", ((0, 2), (-1, -1), (1, 2), (-1, -1)))
    assert [match.group(number) for number in range(5)] == [b"ab", b"", b"b", None, None]


def test_what_neither_engine_does_in_bounded_time_is_an_error() -> None:
    text = "a" * 60
    for pattern in (r"(a+)+(?=b)", r"(a)\\1(a+)+$", r"(?>(a+)+b)"):
        assert parse_expression(f'regexp("{pattern}", "{text}c")').evaluate() is ERROR
