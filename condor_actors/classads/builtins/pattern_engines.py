"""Patterns that are matched in bounded time, by one of two engines.

Python's engine tries one way after another: quick on short texts and plain patterns, without end on ``(a+)+$``. RE2
tries all ways at once: its time grows with text times pattern, but it costs more to begin with, and knows no
look-around, back references, atomic groups, possessive repetitions or conditions. So the ways that a pattern offers are
counted: as long as they are few for the text at hand, Python's engine takes it, RE2 otherwise. What neither can do in
bounded time is refused.

Both get the pattern as `pattern_syntax` read it, and both see bytes.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any, Final, Literal

import attrs

from condor_actors.classads.builtins.byte_sets import ALL
from condor_actors.classads.builtins.pattern_cost import first_bytes, groups_in, is_empty_last, most_tries, size_of
from condor_actors.classads.builtins.pattern_syntax import Options, parse_pattern
from condor_actors.classads.builtins.pattern_tree import (
    Again,
    At,
    Atomic,
    Choice,
    Depending,
    Group,
    Look,
    Node,
    OneOf,
    PatternError,
    Repeated,
    Sequence,
)
from condor_actors.classads.evaluation.budget import STEP_SHIFT

FEW_TRIES: Final = 100_000
"""Ways that Python's engine may have to try at worst; with more, RE2 is asked."""
MAX_TRIES: Final = 3_000_000
"""The same for patterns that RE2 cannot do; with more, the search is refused."""
MAX_RE2_REPEAT: Final = 1_000
_NO_NEWLINE: Final = ALL & ~(1 << 10)
MAX_WORK: Final = 64_000_000
"""What RE2 may be asked for: bytes of text times nodes of the pattern."""
RE2_SHIFT: Final = 8
"""RE2 does so much work, as a power of two, in the time of a step."""
Asked = Literal["whether", "where", "groups"]
"""What a search must find: whether there is a match, where it is, or its groups too."""


class Unsupported(ValueError):
    """A search that could take without end, and that RE2 cannot do either."""


@attrs.frozen
class Match:
    """Where a match and its groups lie.

    Attributes:
        text: The bytes searched.
        spans: Start and end of the match, then of each group; (-1, -1) where a group took no part.
    """

    text: bytes
    spans: tuple[tuple[int, int], ...]

    def start(self) -> int:
        """Where the match begins."""
        return self.spans[0][0]

    def end(self) -> int:
        """Where the match ends."""
        return self.spans[0][1]

    def group(self, number: int) -> bytes | None:
        """The text of a group.

        Args:
            number: 0 for the whole match.

        Returns:
            The text, empty when the group took no part but a later one did; None when it does not exist, or neither it
            nor a later one took part.
        """
        if all(start < 0 for start, _ in self.spans[number:]):
            return None
        start, end = self.spans[number]
        return b"" if start < 0 else self.text[start:end]


class SafePattern:
    """A compiled pattern whose searches end in bounded time.

    Args:
        pattern: The regular expression in PCRE2's dialect, one byte to a character.
        options: Those it begins with.

    Raises:
        PatternError: When it is none, or asks for what is not to be had.
    """

    def __init__(self, pattern: str, options: Options) -> None:
        self._tree, self._groups = parse_pattern(pattern, options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._python = re.compile(_for_python(self._tree).encode("latin-1"))
            except (re.error, OverflowError) as why:
                raise PatternError(str(why)) from None
        self._re2: dict[Asked, Any] = {}
        self._quick_to = -1  # bytes of the longest text known to leave Python's engine few ways
        self._quick_cost = 0
        self._size = size_of(self._tree)
        self._slow_from = sys.maxsize  # bytes of the shortest known to leave it many

    def _engine(self, text: bytes, asked: Asked) -> Any:
        """The engine to search a text with."""
        size = len(text)
        if size <= self._quick_to:
            return self._python
        if size < self._slow_from:
            if most_tries(self._tree, size) <= FEW_TRIES:
                self._quick_to = size
                self._quick_cost = int(most_tries(self._tree, size)) >> STEP_SHIFT
                return self._python
            self._slow_from = size
        try:
            return self._linear(text, asked)
        except Unsupported:
            if most_tries(self._tree, size) <= MAX_TRIES:
                return self._python
            raise

    def cost(self, size: int) -> int:
        """Say what a search costs.

        Args:
            size: Bytes of the text.

        Returns:
            Steps of an evaluation, at most so many.
        """
        if size <= self._quick_to:
            return self._quick_cost
        if size >= self._slow_from and not any(isinstance(known, Unsupported) for known in self._re2.values()):
            return size * self._size >> RE2_SHIFT
        return int(min(most_tries(self._tree, size), MAX_TRIES)) >> STEP_SHIFT

    def _linear(self, text: bytes, asked: Asked) -> Any:
        """The pattern for RE2, which cannot see that a newline is the last."""
        if len(text) * self._size > MAX_WORK:
            raise Unsupported("too long a text for so large a pattern")
        compiled = self._re2.get(asked)
        if compiled is None:
            try:
                compiled = _compile_for_re2(self._tree, asked)
            except Unsupported as why:
                compiled = why
            self._re2[asked] = compiled
        if isinstance(compiled, Unsupported):
            raise Unsupported(*compiled.args)
        pattern, sees_newline = compiled
        if sees_newline and text.endswith(b"\n"):
            raise Unsupported("the last newline counts")
        return pattern

    def matches(self, text: bytes) -> bool:
        """Say whether there is a match.

        Args:
            text: Where to look.

        Returns:
            True when there is one.

        Raises:
            Unsupported: When the search could take without end.
        """
        return self._engine(text, "whether").search(text) is not None

    def finditer(self, text: bytes, groups: bool = True) -> Iterator[Match]:
        """Find all matches.

        Args:
            text: Where to look.
            groups: Whether to find the groups too.

        Yields:
            Matches that do not overlap; behind an empty one, those from the next byte.

        Raises:
            Unsupported: When the search could take without end.
        """
        engine = self._engine(text, "groups" if groups else "where")
        position = 0
        while position <= len(text):
            found = engine.search(text, position)
            if found is None:
                return
            match = Match(text, tuple(found.span(number) for number in range(self._groups + 1 if groups else 1)))
            yield match
            position = match.end() + (match.end() == match.start())

    def search(self, text: bytes) -> Match | None:
        """Find the first match.

        Args:
            text: Where to look.

        Returns:
            The match, None when there is none.

        Raises:
            Unsupported: When the search could take without end.
        """
        return next(self.finditer(text), None)


def _compile_for_re2(tree: Node, asked: Asked) -> tuple[Any, bool]:
    writer = _ForRe2(asked)
    text = writer.write(tree)
    re2 = importlib.import_module("re2")  # 5 to 10 ms, which most patterns never need
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    try:
        return re2.compile(text.encode("latin-1"), options), writer.sees_newline
    except re2.error as why:
        raise Unsupported(str(why)) from None


# -- writing


def _members_text(members: int) -> str:
    """A set of bytes as both engines read it."""
    if members == _NO_NEWLINE:
        return "."
    if members == ALL:
        return "(?s:.)"
    if members and not members & (members - 1):
        return _char(members.bit_length() - 1)
    if not members:
        return r"[^\x00-\xff]"
    ranges = []
    code = 0
    while members >> code:
        if members >> code & 1:
            end = code
            while members >> (end + 1) & 1:
                end += 1
            ranges.append(_in_class(code) + (f"-{_in_class(end)}" if end > code else ""))
            code = end
        code += 1
    return f"[{''.join(ranges)}]"


def _in_class(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{code:02x}"


def _char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in " _@:,;/<>=!%&'\"~`-") else f"\\x{code:02x}"


_PYTHON_PLACES: Final = {
    "start": r"\A",
    "line start": r"(?:\A|(?<=\n)(?!\Z))",
    "end": r"\Z",
    "end or last newline": "$",
    "line end": "(?m:$)",
    "boundary": r"\b",
    "no boundary": r"(?!\b)",
}
_RE2_PLACES: Final = _PYTHON_PLACES | {
    "line start": "(?m:^)",
    "end": r"\z",
    "end or last newline": r"\z",
    "no boundary": r"\B",
}


def _counts(node: Repeated) -> str:
    counts = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((node.least, node.most))
    if counts is None:
        most = "" if node.most is None else str(node.most)
        counts = f"{{{node.least}}}" if node.least == node.most else f"{{{node.least},{most}}}"
    return counts + ("?" if node.how == "lazy" else "")


class _Writer:
    """Writes a pattern for an engine."""

    places: dict[str, str]

    def write(self, node: Node) -> str:
        if isinstance(node, OneOf):
            return _members_text(node.members)
        if isinstance(node, Sequence):
            return "".join(self.part(part) for part in node.parts)
        if isinstance(node, Choice):
            return "|".join(self.write(way) for way in node.ways)
        if isinstance(node, Group):
            return f"({self.write(node.part)})"
        if isinstance(node, At):
            return self.place(node)
        if isinstance(node, Repeated):
            return self.repeated(node)
        return self.special(node)

    def part(self, node: Node) -> str:
        return f"(?:{self.write(node)})" if isinstance(node, (Choice, Sequence)) else self.write(node)

    def place(self, node: At) -> str:
        return self.places[node.place]

    def repeated(self, node: Repeated) -> str:
        alone = isinstance(node.part, (OneOf, Group))
        return (self.write(node.part) if alone else f"(?:{self.write(node.part)})") + _counts(node)

    def special(self, node: Node) -> str:
        raise Unsupported(f"{type(node).__name__} takes more than one pass")


class _ForPython(_Writer):
    """Writes for Python's engine.

    Attributes:
        loops: Groups in the repetitions around the part being written.
    """

    places = _PYTHON_PLACES

    def __init__(self) -> None:
        self.loops: list[set[int]] = []

    def repeated(self, node: Repeated) -> str:
        self.loops.append(groups_in(node) if node.most != 1 else set())
        text = super().repeated(attrs.evolve(node, how="greedy") if node.how == "possessive" else node)
        self.loops.pop()
        return f"(?>{text})" if node.how == "possessive" else text

    def special(self, node: Node) -> str:
        if isinstance(node, Look):
            sign = ("<" if node.behind else "") + ("!" if node.negative else "=")
            ways = node.part.ways if node.behind and isinstance(node.part, Choice) else (node.part,)
            looks = [f"(?{sign}{self.write(way)})" for way in ways]
            return "".join(looks) if node.negative or len(looks) == 1 else f"(?:{'|'.join(looks)})"
        if isinstance(node, Atomic):
            return f"(?>{self.write(node.part)})"
        if isinstance(node, Again):
            if node.closed:
                return f"(?{'i' if node.fold else ''}:\\{node.number})"
            if any(node.number in groups for groups in self.loops):
                raise PatternError("a reference, within a repetition, to a group that is not closed yet")
            return "(?!)"
        assert isinstance(node, Depending)
        return f"(?({node.number}){self.part(node.then)}|{self.part(node.otherwise)})"


class _ForRe2(_Writer):
    """Writes for RE2.

    Attributes:
        sees_newline: Whether a newline at the end of a text would make a difference that RE2 does not see.
    """

    places = _RE2_PLACES

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.sees_newline = False

    def write(self, node: Node) -> str:
        if isinstance(node, Group) and self.asked != "groups":
            return f"(?:{super().write(node.part)})"
        return super().write(node)

    def place(self, node: At) -> str:
        self.sees_newline |= node.place in ("end or last newline", "line start")
        return super().place(node)

    def repeated(self, node: Repeated) -> str:
        if node.how == "possessive" or max(node.least, node.most or 0) > MAX_RE2_REPEAT:
            raise Unsupported("a repetition that takes more than one pass")
        if node.most != 1 and self.asked != "whether" and first_bytes(node.part) is None:
            if groups_in(node) if self.asked == "groups" else not is_empty_last(node.part):
                raise Unsupported("an empty turn of a repetition ends it, which RE2 does not know")
        return super().repeated(node)


def _for_python(tree: Node) -> str:
    return _ForPython().write(tree)
