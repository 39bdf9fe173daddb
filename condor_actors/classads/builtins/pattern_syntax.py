"""Regular expressions as PCRE2 reads them, from text to a tree.

The language's patterns are PCRE2's, over bytes and without its UTF mode. No engine at hand reads that dialect whole:
Python's lacks ``\\h``, ``\\Q…\\E`` and options that begin inside a pattern, and means another thing by ``\\v`` and
``\\Z``; RE2 lacks more. So the pattern is read here, once, and written for either (see `pattern_engines`).

Whatever matches one byte is a set of bytes, a number with one bit for each: case and classes are settled here. What is
refused: recursion, calls of groups, verbs ``(*…)``, ``\\K``, ``\\G``, ``\\X`` and branch reset.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from condor_actors.classads.builtins.byte_sets import (
    ALL,
    CONTROL_LETTERS,
    DOWN,
    KINDS,
    folded,
    with_property,
)
from condor_actors.classads.builtins.pattern_classes import read_class
from condor_actors.classads.builtins.pattern_tree import (
    EMPTY,
    Again,
    Anchor,
    At,
    Atomic,
    Choice,
    Depending,
    Group,
    Look,
    Node,
    OneOf,
    PatternError,
    Repeat,
    Repeated,
    Sequence,
    parts_of,
)

MAX_REPEAT: Final = 65_535
MAX_GROUPS: Final = 1_000
MAX_NESTING: Final = 100


@attrs.frozen
class Options:
    """The options in force at a place of the pattern."""

    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    extended: bool = False
    more_extended: bool = False
    no_capture: bool = False


_ANCHORS: Final[dict[str, Anchor]] = {
    "A": "start",
    "z": "end",
    "Z": "end or last newline",
    "b": "boundary",
    "B": "no boundary",
}
_COUNT: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_REFERENCE: Final = re.compile(r"[-+]?[0-9]{1,5}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def parse_pattern(pattern: str, options: Options) -> tuple[Node, int]:
    """Read a pattern.

    Args:
        pattern: Its bytes, one to a character.
        options: Those it begins with.

    Returns:
        The tree, and the number of groups.

    Raises:
        PatternError: When it is none, or asks for what is not to be had.
    """
    parser = Parser(pattern, options)
    node = parser.choice()
    if parser.at < len(pattern):
        raise PatternError("unmatched closing parenthesis")
    if parser.highest > parser.groups:
        raise PatternError("a reference to a group that does not exist")
    return node, parser.groups


class Parser:
    """A pattern being read.

    Attributes:
        at: The next character.
        options: In force there; they end with the group they began in.
        groups: How many groups have begun.
    """

    def __init__(self, pattern: str, options: Options) -> None:
        self.text = pattern
        self.at = 0
        self.options = options
        self.groups = 0
        self.closed: set[int] = set()
        self.names: dict[str, int] = {}
        self.highest = 0
        self.depth = 0

    # -- characters

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, wanted: str) -> bool:
        if self.text.startswith(wanted, self.at):
            self.at += len(wanted)
            return True
        return False

    def next(self) -> str:
        char = self.peek()
        if not char:
            raise PatternError("the pattern ends too early")
        self.at += 1
        return char

    def until(self, closing: str) -> str:
        end = self.text.find(closing, self.at)
        if end < 0:
            raise PatternError(f"missing {closing}")
        found = self.text[self.at : end]
        self.at = end + len(closing)
        return found

    def pass_blanks(self) -> None:
        """Skip what counts for nothing: comments, blanks where the pattern is extended."""
        while True:
            if self.text.startswith("(?#", self.at):
                self.until(")")
            elif self.options.extended and self.peek() and self.peek() in " \t\n\r\f\v":
                self.at += 1
            elif self.options.extended and self.peek() == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end + 1
            elif self.take("\\E"):
                pass
            else:
                return

    # -- structure

    def choice(self) -> Node:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise PatternError("groups are nested too deep")
        ways = [self.sequence()]
        while self.take("|"):
            ways.append(self.sequence())
        self.depth -= 1
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while True:
            self.pass_blanks()
            char = self.peek()
            if not char or char in "|)":
                return parts[0] if len(parts) == 1 else Sequence(tuple(parts))
            if self.take("\\Q"):
                end = self.text.find("\\E", self.at)
                quoted = self.text[self.at :] if end < 0 else self.text[self.at : end]
                self.at = len(self.text) if end < 0 else end + 2
                parts += [self.one_of(1 << ord(char)) for char in quoted]
                if parts and quoted:
                    parts.append(self.quantified(parts.pop()))
                continue
            node = self.item()
            if node is not None:
                parts.append(self.quantified(node))

    def quantified(self, node: Node) -> Node:
        self.pass_blanks()
        counts = self.count()
        if counts is None:
            return node
        if isinstance(node, At):
            raise PatternError("nothing to repeat")
        how: Repeat = "greedy"
        if self.take("?"):
            how = "lazy"
        elif self.take("+"):
            how = "possessive"
        self.pass_blanks()
        if self.count() is not None:
            raise PatternError("nothing to repeat")
        return Repeated(node, *counts, how)

    def count(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return counts
        found = _COUNT.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if least > MAX_REPEAT or (most is not None and (most > MAX_REPEAT or most < least)):
            raise PatternError("counts of a repetition")
        return least, most

    def item(self) -> Node | None:
        char = self.peek()
        if char == "(":
            return self.group()
        if char == "[":
            return read_class(self)
        if self.count() is not None:
            raise PatternError("nothing to repeat")
        self.at += 1
        if char == "\\":
            return self.escape()
        if char == "^":
            return At("line start" if self.options.lines else "start")
        if char == "$":
            return At("line end" if self.options.lines else "end or last newline")
        if char == ".":
            return OneOf(ALL if self.options.dot_all else ALL & ~(1 << 10))
        return self.one_of(1 << ord(char))

    def one_of(self, members: int) -> OneOf:
        return OneOf(folded(members) if self.options.fold else members)

    # -- groups

    def group(self) -> Node | None:
        self.at += 1
        before = self.options
        if self.take("*"):
            raise PatternError("verbs are not to be had")
        if not self.take("?"):
            return self.body(before) if before.no_capture else self.remembered(before, None)
        char = self.next()
        if char == ":":
            return self.body(before)
        if char == ">":
            return Atomic(self.body(before))
        if char in "=!":
            return Look(self.body(before), False, char == "!")
        if char == "<" and self.peek() and self.peek() in "=!":
            return self.behind(before)
        if char == "P" and self.take("="):
            return self.again(self.until(")"))
        if (char == "P" and self.take("<")) or char == "<":
            return self.remembered(before, self.until(">"))
        if char == "'":
            return self.remembered(before, self.until("'"))
        if char == "(":
            return self.depending(before)
        self.at -= 1
        return self.options_here(before)

    def behind(self, before: Options) -> Node:
        negative = self.next() == "!"
        part = self.body(before)
        if _varies(part):
            raise PatternError("a look behind of no fixed length")
        return Look(part, True, negative)

    def body(self, before: Options) -> Node:
        """What stands in a group, up to and with its closing parenthesis."""
        node = self.choice()
        if not self.take(")"):
            raise PatternError("missing closing parenthesis")
        self.options = before
        return node

    def remembered(self, before: Options, name: str | None) -> Node:
        self.groups += 1
        number = self.groups
        if number > MAX_GROUPS:
            raise PatternError("too many groups")
        if name is not None:
            if not _NAME.fullmatch(name) or name in self.names:
                raise PatternError("the name of a group")
            self.names[name] = number
        part = self.body(before)
        self.closed.add(number)
        return Group(number, part)

    def depending(self, before: Options) -> Node:
        name = self.until(")").strip("<>'")
        number = self.number_of(name)
        if number not in self.closed:
            raise PatternError("a condition on a group that is not closed yet")
        node = self.body(before)
        ways = node.ways if isinstance(node, Choice) else (node,)
        if len(ways) > 2:
            raise PatternError("more than two ways behind a condition")
        return Depending(number, ways[0], ways[1] if len(ways) == 2 else EMPTY)

    def number_of(self, name: str) -> int:
        """The group that a reference means; it may follow later."""
        if _REFERENCE.fullmatch(name):
            number = int(name)
            if name[0] in "+-":
                number += self.groups + (name[0] == "-")
        else:
            number = self.names.get(name, 0)
        if not 0 < number <= MAX_GROUPS:
            raise PatternError("a reference to a group that does not exist")
        self.highest = max(self.highest, number)
        return number

    def again(self, name: str) -> Node:
        number = self.number_of(name)
        return Again(number, self.options.fold, number in self.closed)

    def options_here(self, before: Options) -> Node | None:
        """``(?i)`` for the rest of the group, or ``(?i:…)``."""
        found = self.options
        on = True
        if self.take("^"):
            found = Options()
        while True:
            char = self.next()
            if char == ")":
                self.options = found
                return None
            if char == ":":
                self.options = found
                return self.body(before)
            if char == "-" and on:
                on = False
            elif char in _OPTION_FIELDS:
                found = attrs.evolve(found, **{_OPTION_FIELDS[char]: on})
                if char == "x":
                    twice = self.take("x")
                    found = attrs.evolve(found, more_extended=twice and on)
            else:
                raise PatternError(f"(?{char} is unknown or not to be had")

    # -- escapes

    def escape(self) -> Node:
        char = self.next()
        if char in _ANCHORS:
            return At(_ANCHORS[char])
        if char == "N":
            if self.peek() == "{" and not _COUNT.match(self.text, self.at):
                raise PatternError("\\N{ is not to be had")
            return OneOf(ALL & ~(1 << 10))
        if char == "C":
            return OneOf(ALL)
        if char == "R":
            pair = Sequence((OneOf(1 << 13), OneOf(1 << 10)))
            return Atomic(Choice((pair, OneOf(DOWN))))
        if char == "g":
            return self.again(self.braced() if self.peek() == "{" else self.digits("[-+]?[0-9]{1,5}"))
        if char == "k":
            closing = {"<": ">", "'": "'", "{": "}"}.get(self.next())
            if closing is None:
                raise PatternError("\\k without a name")
            return self.again(self.until(closing))
        if char in "123456789":
            self.at -= 1
            number = self.digits("[0-9]{1,5}")
            if len(number) == 1 or int(number) <= self.groups:
                return self.again(number)
            self.at -= len(number)
            if char in "89":
                raise PatternError("a reference to a group that does not exist")
            return self.one_of(1 << (int(self.digits("[0-7]{1,3}"), 8) & 255))
        return self.one_of(self.escaped_set(char))

    def braced(self) -> str:
        if not self.take("{"):
            raise PatternError("missing {")
        return self.until("}").strip(" ")

    def digits(self, form: str) -> str:
        found = re.compile(form).match(self.text, self.at)
        if found is None:
            raise PatternError("digits are missing")
        self.at = found.end()
        return found[0]

    def escaped_set(self, char: str) -> int:
        """The bytes that an escape stands for, in a class or outside."""
        if char.lower() in KINDS:
            members = KINDS[char.lower()]
            return members if char.islower() else ALL & ~members
        if char in CONTROL_LETTERS:
            return 1 << CONTROL_LETTERS[char]
        if char in "pP":
            return self.property(char == "P")
        if char == "c":
            code = ord(self.next().upper())
            if not 32 <= code < 127:
                raise PatternError("\\c must be followed by a printable character")
            return 1 << (code ^ 64)
        if char == "x":
            if self.peek() == "{":
                return self.coded(self.braced(), 16)
            return 1 << int("0" + self.digits("[0-9a-fA-F]{0,2}"), 16)
        if char == "o":
            return self.coded(self.braced(), 8)
        if char in "01234567":
            self.at -= 1
            return 1 << (int(self.digits("[0-7]{1,3}"), 8) & 255)
        if char.isascii() and char.isalnum():
            raise PatternError(f"\\{char} is unknown or not to be had")
        return 1 << ord(char)

    def coded(self, digits: str, base: int) -> int:
        try:
            code = int(digits, base)
        except ValueError:
            raise PatternError("digits are missing") from None
        if not 0 <= code < 256:
            raise PatternError("a character above 255")
        return 1 << code

    def property(self, negated: bool) -> int:
        """``\\p{L}``: of the first 256 characters of Unicode."""
        name = self.braced() if self.peek() == "{" else self.next()
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        members = with_property(name)
        if members is None:
            raise PatternError(f"\\p{{{name}}} is unknown or not to be had")
        return ALL & ~members if negated else members


def _varies(node: Node) -> bool:
    """Whether there is a repetition of no fixed count in a part."""
    return (isinstance(node, Repeated) and node.least != node.most) or any(map(_varies, parts_of(node)))


_OPTION_FIELDS: Final = {"i": "fold", "m": "lines", "s": "dot_all", "x": "extended", "n": "no_capture"}
