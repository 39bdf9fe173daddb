"""The differences that are meant: each with the test that shows it to be one of them, and the reason.

They are the table "Deliberate differences" of ``docs/classads.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, as_expr, parse_expression, unparse
from condor_actors.classads.language.expressions import Binary, Call, ListExpr, Reference
from tests.conformance.classads.engines import SYNTAX, our_text, ours, theirs

_DOTS = re.compile(r"\.\.\d+(?:[eE][-+]?\d+)?")
_IN_CONTEXT = frozenset({"evalineachcontext", "countmatches"})
_TIMES = re.compile(r"\b(splitTime|formatTime|absTime|relTime|interval|get[A-Z]\w+)\(", re.IGNORECASE)


def reason(difference: Mapping[str, Any]) -> str | None:
    """Say why a difference is meant.

    Args:
        difference: as `compare` finds it.

    Returns:
        the reason; None for a difference that nobody meant.
    """
    tests = _OF_TEXTS if "parse" in difference else _OF_VALUES
    return next((why for why, test in tests.items() if test(difference)), None)


def _two_dots(difference: Mapping[str, Any]) -> bool:
    text, count = _DOTS.subn("0.0", difference["parse"])
    return bool(count) and difference["ours"] == SYNTAX and _tight(our_text(text)) == _tight(difference["theirs"])


def _tight(text: str) -> str:
    return text.replace(" ", "")


def _bracket(difference: Mapping[str, Any]) -> bool:
    text = difference["parse"]
    if difference["ours"] == SYNTAX:
        return any(our_text(text[:at]) == difference["theirs"] for at, char in enumerate(text) if char in "];")
    return "]" in text or ";" in text


def _comment(difference: Mapping[str, Any]) -> bool:
    text, found, _ = difference["parse"].partition("/*")
    return bool(found) and difference["ours"] == SYNTAX and our_text(text) == difference["theirs"]


def _before_1970(difference: Mapping[str, Any]) -> bool:
    return "1969-12-31T23:59:59" in difference["parse"]


def _quoted_name(difference: Mapping[str, Any]) -> bool:
    return "'" in difference["parse"] and difference["ours"].replace("'", "") == difference["theirs"].replace("'", "")


def _sign(difference: Mapping[str, Any]) -> bool:
    def plain(text: str) -> str:
        return re.sub(r"([-+!~]) (?=[\d.])", r"\1", re.sub(r" +", " ", text)).replace(", -", ",-").replace("  ", " ")

    return "eval" in difference["expr"].lower() and plain(difference["ours"]) == plain(difference["theirs"])


def _everything(difference: Mapping[str, Any]) -> str:
    return f"{difference['expr']} {difference['my']} {difference['target']}"


def _far_times(difference: Mapping[str, Any]) -> bool:
    """Times that 32 bits cannot hold: theirs wrap around, or are what lay in memory."""
    results = f"{difference['ours']} {difference['theirs']}"
    strange = any(abs(int(number)) >= 2**31 for number in re.findall(r"\d{10,20}", _everything(difference)))
    strange = strange or "1901" in results or any(int(number) >= 10_000 for number in re.findall(r"\d{5,}", results))
    return bool(_TIMES.search(_everything(difference))) and strange


def _divided_time(difference: Mapping[str, Any]) -> bool:
    """A span of time divided by zero: theirs is what lies in memory."""
    my, target = difference["my"], difference["target"]
    try:
        texts = [unparse(node) for node in _divisions(parse_expression(difference["expr"]))]
    except ClassAdSyntaxError:
        return False
    return any(ours(text, my, target) == "error" and "24855" in theirs(text, my, target) for text in texts)


def _divisions(node: Expr) -> list[Expr]:
    found = [node] if isinstance(node, Binary) and node.operator == "/" else []
    for child in node.children():
        found += _divisions(child)
    return found


def _calls(node: Expr, names: frozenset[str]) -> list[Expr]:
    found: list[Expr] = [node] if isinstance(node, Call) and node.name.lower() in names and node.arguments else []
    for child in node.children():
        found += _calls(child, names)
    return found


def _lost_scope(difference: Mapping[str, Any]) -> bool:
    """Theirs: what stands behind such a call in the same expression does not find its ads any more; nor does its second
    argument, where the first was a name found in the other ad."""
    my, target = difference["my"], difference["target"]
    try:
        calls = _calls(parse_expression(difference["expr"]), _IN_CONTEXT)
    except ClassAdSyntaxError:
        return False
    inside = any(name in f"{my} {target}".lower() for name in _IN_CONTEXT)
    texts = [unparse(call) for call in calls if not isinstance(call.children()[0], Reference) or target is None]
    return bool(calls or inside) and all(ours(text, my, target) == theirs(text, my, target) for text in texts)


def _names(node: Expr) -> set[str]:
    found = {node.key} if isinstance(node, Reference) else set()
    for child in node.children():
        found |= _names(child)
    return found


def _asks_itself(difference: Mapping[str, Any]) -> bool:
    """A list whose elements ask the list for its own parts has no end; theirs ends it as the function at hand does."""
    texts = [text for text in (difference["my"], difference["target"]) if text is not None]
    asked: dict[str, set[str]] = {}
    lists = set()
    for ad in map(ClassAd.from_new, texts):
        for name in ad:
            node = as_expr(ad[name])
            asked[name.lower()] = asked.get(name.lower(), set()) | _names(node)
            if isinstance(node, ListExpr):
                lists.add(name.lower())
    for name in lists:
        reached, waiting = set[str](), list(asked[name])
        while waiting:
            key = waiting.pop()
            if key not in reached:
                reached.add(key)
                waiting += asked.get(key, ())
        if name in reached:
            return True
    return False


def _record_in_context(difference: Mapping[str, Any]) -> bool:
    texts = [text for text in (difference["expr"], difference["my"], difference["target"]) if text is not None]
    try:
        calls = [call for text in texts for call in _calls(parse_expression(text), _IN_CONTEXT)]
    except ClassAdSyntaxError:
        return False
    return any("[" in unparse(call.children()[0]) for call in calls if call.children())


def _match_record(difference: Mapping[str, Any]) -> bool:
    """``unresolved()`` of what lies around the two ads of a match."""
    everything = _everything(difference)
    around = r"unresolved\((parent|toplevel|root|other|ad|LEFT|RIGHT|symmetricMatch)\b"
    in_match = difference["target"] is not None and re.search(around, everything) is not None
    return in_match or ("unresolved(" in everything and "R = R" in everything)


def _fails_inside(difference: Mapping[str, Any]) -> bool:
    """Theirs: what cannot be evaluated is no value, so that nothing can be compared with it."""
    try:
        node = parse_expression(difference["expr"])
    except ClassAdSyntaxError:
        return False
    if not isinstance(node, Binary) or node.operator != "=?=" or difference["theirs"] != "error":
        return False
    return ours(unparse(node.left), difference["my"], difference["target"]) == "error"


Test = Callable[[Mapping[str, Any]], bool]
_OF_TEXTS: dict[str, Test] = {
    "two dots before digits are no number": _two_dots,
    "text behind a closing bracket is an error": _bracket,
    "a comment must be closed": _comment,
    "the second before 1970 is a time": _before_1970,
    "names in quotes stay in quotes": _quoted_name,
}
_OF_VALUES: dict[str, Test] = {
    "what the records around a match, or one with an attribute that names itself, leave unresolved": _match_record,
    "a function that fails gives an error like any other": _fails_inside,
    "a sign apart from its number stays a sign when eval() copies a list": _sign,
    "a record in evalInEachContext's expression sees the context": _record_in_context,
    "behind evalInEachContext, names are found as before it": _lost_scope,
    "times beyond 32 bits of seconds": _far_times,
    "a span of time divided by zero": _divided_time,
    "a list that asks itself for its parts is an error": _asks_itself,
}
