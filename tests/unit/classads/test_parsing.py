"""Text to trees and back, and what is said of text that is none."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression, parse_long_expression, quote, unparse
from condor_actors.classads.language.parser import parse_records


@pytest.mark.parametrize(
    ("text", "unparsed"),
    [
        ("1+2*3", "1 + 2 * 3"),
        ("(1+2)*3", "(1 + 2) * 3"),
        ("a=?=b", "a is b"),
        ("a IsNt b", "a isnt b"),
        ("-5/2", "-5 / 2"),
        ("- 5", " -5"),
        ("!!a", " ! !a"),
        ("a?:b?:c", "a ?: b ?: c"),
        ("a ? b : c ? d : e", "a ? b : c ? d : e"),
        ('"a" "b"', '"ab"'),
        (r'"\101\n\q"', r'"A\nq"'),
        ('"é"', r'"\303\251"'),
        ("1e3", "1.000000000000000E+03"),
        (".5", "5.000000000000000E-01"),
        ("1E+400", 'real("INF")'),
        ("{1,'a b'}", "{ 1,'a b' }"),
        ("[b=1;A=2;;B=3]", "[ A = 2; b = 3 ]"),
        ("foo ( 1 , a )", "foo(1,a)"),
        ("a . b [ 0 ]", "a.b[0]"),
        ("parent.x", "'parent'.x"),
        ("9223372036854775808", "0"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1 /* two */ + // three\n 4", "1 + 4"),
        ('absTime("2020-01-01")', 'absTime("2020-01-01T00:00:00-00:00")'),
        ('relTime("1d2h3m4s")', 'relTime("1+02:03:04")'),
    ],
)
def test_unparsed_form(text: str, unparsed: str) -> None:
    assert unparse(parse_expression(text)) == unparsed


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("a + \n (b", 2, 4, "expected ')'"),
        ("1 2", 1, 3, "expected the end"),
        ('"open', 1, 1, "closing"),
        ("a === b", 1, 5, "'='"),
        ("{1,,2}", 1, 4, "operand"),
        ("f(1", 1, 4, "arguments of f"),
        ("a.true", 1, 3, "attribute name"),
        ("010", 1, 1, "octal"),
        ("[a=1 b=2]", 1, 6, "';'"),
        ("$(X)", 1, 1, "'$'"),
        ('"a\\0b"', 1, 1, "NUL"),
        ("", 1, 1, "found the end"),
    ],
)
def test_errors_name_the_place(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(ClassAdSyntaxError) as caught:
        parse_expression(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert reason in caught.value.reason
    shown, caret = caught.value.caret().split("\n")
    assert len(caret) <= len(shown) + 1


def test_equal_texts_share_one_tree() -> None:
    assert parse_expression("Memory > 17") is parse_expression("Memory > 17")


def test_trees_compare_by_what_they_say() -> None:
    assert parse_expression("a  +  1") == parse_expression("a+1")
    assert parse_expression("a + 1") != parse_expression("A + 1")
    assert len({parse_expression("a +1"), parse_expression("a+ 1")}) == 1


def test_styles() -> None:
    node = parse_expression(r'a =?= "x\\y\"z" && b == 1.5')
    assert unparse(node, style="tools") == r'a =?= "x\y\"z" && b == 1.5'
    assert unparse(node, style="wire") == r'a =?= "x\\y\"z" && b == 1.5'
    assert unparse(node) == r'a is "x\\y\"z" && b == 1.500000000000000E+00'
    assert unparse(0.1 + 0.2, style="wire") == "0.30000000000000004"
    assert unparse([1, "a", ClassAd({"b": None})]) == '{ 1,"a",[ b = undefined ] }'
    assert quote("a\nb") == r'"a\nb"'


def test_records_in_a_row() -> None:
    assert [unparse(record) for record in parse_records("[a=1], [b=2]\n[c=3]")] == [
        "[ a = 1 ]",
        "[ b = 2 ]",
        "[ c = 3 ]",
    ]
    assert len(list(parse_records("{[a=1],[b=2]}"))) == 2


def test_numbers_as_the_library_reads_them() -> None:
    def read(text: str) -> str:
        return unparse(parse_expression(text, library_numbers=True))

    assert read("010 + 0x1F + 00") == "10 + 0 + 0"
    assert read("{ 010,0X2 }") == "{ 10,0 }"
    for text in ("08", "1K", "0x", "0x1G", "0x10K"):
        with pytest.raises(ClassAdSyntaxError):
            parse_expression(text, library_numbers=True)


def test_the_long_forms_backslashes() -> None:
    assert parse_long_expression(r'"a\nb"').evaluate() == r"a\nb"
    assert parse_long_expression(r'a == "x\"y"') == parse_expression(r'a == "x\"y"')
    assert parse_long_expression('"C:\\"').evaluate() == "C:\\"
