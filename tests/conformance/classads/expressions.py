"""A seeded generator of expressions and ads: valid text mostly, with every corner of the language in reach.

Nothing it makes depends on the clock, on chance or on the machine, so any two engines can be compared on it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

NAMES = ("a", "b", "c", "d", "e", "f", "g", "Memory", "Arch", "x", "y", "Nope")
STRINGS = (
    '""',
    '"a"',
    '"A"',
    '"abc"',
    '"x86_64"',
    '"X86_64"',
    '"1"',
    '"2.5"',
    '" 7 "',
    '"a,b,c"',
    '"a b"',
    '"1,2,3"',
    '"1.5 2"',
    '"true"',
    '"7.10.1"',
    '"7.9"',
    '"u@d.e"',
    '"A=1 B=2"',
    '"A=1;B=x y"',
    r'"q\"q"',
    r'"back\\slash"',
    r'"tab\tnl\n"',
    '"é"',
    r'"\101\302\251"',
    '"a.c"',
    '"^a"',
    '"(b)|c"',
    '"[a-c]+"',
    '"UNDEFINED"',
    '"it\'s"',
)
INTEGERS = (
    *("0", "1", "2", "3", "5", "7", "10", "-1", "-3", "63", "64", "100", "1024"),
    *("9223372036854775807", "-9223372036854775808"),
)
REALS = ("0.0", "1.0", "1.5", "-2.5", "0.1", "3.14159", "1e3", "1E-7", "1e300", "-0.0", "2.5", "100.0", "1e20", ".5")
CONSTANTS = ("true", "false", "undefined", "error", "TRUE", "False")
OPERATORS = (
    *("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "=?=", "=!=", "is", "isnt"),
    *("&&", "||", "&", "|", "^", "<<", ">>", ">>>"),
)
COMPARISONS = ('"<"', '"<="', '"=="', '">"', '">="', '"!="', '"is"', '"isnt"')
LAYOUTS = ('"%Y"', '"%F %T"', '"%j"', '"x"')
OPTIONS = ('"i"', '"m"', '"g"', '"f"', '"gi"', '""')


class Generator:
    """Expressions and ads from one seed.

    Args:
        seed: what decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds: list[tuple[int, Callable[[int], str]]] = [
            (24, self.binary),
            (14, self.leaf),
            (18, self.call),
            (5, self.unary),
            (5, self.conditional),
            (5, self.parenthesis),
            (4, self.listing),
            (3, self.record),
            (3, self.selection),
            (3, self.subscript),
            (2, self.scoped),
        ]
        self.weights = [weight for weight, _ in self.kinds]

    def pick(self, choices: tuple[str, ...]) -> str:
        """One of several.

        Args:
            choices: the texts.

        Returns:
            one.
        """
        return self.random.choice(choices)

    def expression(self, depth: int = 4) -> str:
        """An expression.

        Args:
            depth: how deep it may nest.

        Returns:
            its text.
        """
        if depth <= 0:
            return self.leaf(0)
        make = self.random.choices(self.kinds, self.weights)[0][1]
        return make(depth - 1)

    def leaf(self, depth: int) -> str:
        kind = self.random.randrange(11)
        if kind < 3:
            return self.pick(NAMES)
        if kind < 5:
            return self.pick(INTEGERS)
        if kind < 6:
            return self.pick(REALS)
        if kind < 8:
            return self.pick(STRINGS)
        if kind < 9:
            return self.pick(("MY.", "TARGET.")) + self.pick(NAMES)
        if kind < 10:
            return self.time()
        return self.pick(CONSTANTS)

    def time(self) -> str:
        return self.pick(
            (
                'absTime("2020-02-03T04:05:06+00:00")',
                'absTime("2020-02-03T05:05:06+01:00")',
                'relTime("1+02:03:04")',
                "relTime(90)",
                "relTime(1.5)",
                "absTime(1000,0)",
                'relTime("-00:00:05")',
            )
        )

    def binary(self, depth: int) -> str:
        return f"{self.expression(depth)} {self.pick(OPERATORS)} {self.expression(depth)}"

    def unary(self, depth: int) -> str:
        return f"{self.pick(('-', '+', '!', '~', '- '))}{self.expression(depth)}"

    def conditional(self, depth: int) -> str:
        if self.random.random() < 0.3:
            return f"{self.expression(depth)} ?: {self.expression(depth)}"
        return f"{self.expression(depth)} ? {self.expression(depth)} : {self.expression(depth)}"

    def parenthesis(self, depth: int) -> str:
        return f"({self.expression(depth)})"

    def listing(self, depth: int) -> str:
        return "{" + ",".join(self.expression(depth) for _ in range(self.random.randrange(4))) + "}"

    def record(self, depth: int) -> str:
        count = self.random.randrange(4)
        return "[" + ";".join(f"{self.pick(NAMES)}={self.expression(depth)}" for _ in range(count)) + "]"

    def selection(self, depth: int) -> str:
        return f"{self.record(depth)}.{self.pick(NAMES)}"

    def subscript(self, depth: int) -> str:
        container = self.pick(("d", "e")) if self.random.random() < 0.4 else self.listing(depth)
        if self.random.random() < 0.2:
            container = self.record(depth)
        return f"{container}[{self.expression(depth)}]"

    def scoped(self, depth: int) -> str:
        return self.pick((".", "MY.", "TARGET.", "parent.", "self.", "e.", "d.")) + self.pick(NAMES)

    def call(self, depth: int) -> str:
        name, shapes = self.random.choice(FUNCTIONS)
        shape = self.random.choice(shapes)
        arguments = [self.argument(kind, depth) for kind in shape]
        if self.random.random() < 0.02:
            arguments.append("1")
        if self.random.random() < 0.1:
            name = name.upper()
        return f"{name}({', '.join(arguments)})"

    def argument(self, kind: str, depth: int) -> str:
        if self.random.random() < 0.12:
            return self.expression(depth)
        if kind == "s":
            return self.pick(STRINGS)
        if kind == "n":
            return self.pick(INTEGERS + REALS)
        if kind == "i":
            return self.pick(INTEGERS[:12])
        if kind == "u":
            return self.pick(("0", "60", "3600", "-7200"))
        if kind == "l":
            return self.pick(("d",)) if self.random.random() < 0.2 else self.listing(min(depth, 1))
        if kind == "r":
            return "{" + ",".join(self.record(min(depth, 1)) for _ in range(self.random.randrange(3))) + "}"
        if kind == "t":
            return self.time()
        if kind == "c":
            return self.pick(COMPARISONS)
        if kind == "f":
            return self.pick(LAYOUTS)
        if kind == "o":
            return self.pick(OPTIONS)
        if kind == "a":
            return self.pick(NAMES)
        if kind == ",":
            return self.pick(('","', '" "', '";,"'))
        return self.expression(depth)

    def ad(self, target: bool = False) -> str:
        """An ad in the new form, with attributes of every type.

        Args:
            target: whether it is to be the other ad of the pair.

        Returns:
            its text.
        """
        pairs = {
            "a": self.pick(INTEGERS),
            "b": self.pick(STRINGS),
            "c": self.pick(REALS),
            "d": self.listing(1),
            "e": self.record(1),
        }
        for name in ("f", "g", "x", "Memory", "Arch", "y"):
            if self.random.random() < 0.5:
                pairs[name] = self.expression(2)
        if target:
            for name in ("a", "b", "c", "d", "e"):
                if self.random.random() < 0.5:
                    del pairs[name]
        return "[" + ";".join(f"{name}={text}" for name, text in pairs.items()) + "]"

    def damaged(self) -> str:
        """Text that is probably no expression.

        Returns:
            an expression with some characters changed.
        """
        text = list(self.expression(3))
        for _ in range(self.random.randrange(1, 3)):
            at = self.random.randrange(len(text) + 1)
            change = self.random.randrange(3)
            if change == 0 and at < len(text):
                del text[at]
            elif change == 1:
                text.insert(at, self.random.choice("()[{}.,\"'+-*/=<>!&|?:ab1 0"))
            elif at < len(text):
                text[at] = self.random.choice("()[{}.,\"'+-=<>!&|?:ab1 ")
        return "".join(text)


FUNCTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((name, ("e",)) for name in (
        "isUndefined", "isError", "isString", "isInteger", "isReal", "isList", "isClassAd", "isBoolean", "isAbstime",
        "isReltime", "int", "real", "string", "bool", "floor", "ceiling", "round", "toUpper", "toLower", "size",
        "eval", "debug", "interval",
    )),
    ("int", ("s", "n")),
    ("real", ("s", "n")),
    ("floor", ("n",)),
    ("ceiling", ("n",)),
    ("round", ("n",)),
    ("pow", ("ni", "nn", "ee")),
    ("quantize", ("nn", "nl", "ee", "ii")),
    ("ifThenElse", ("eee",)),
    ("member", ("el", "sl", "nl")),
    ("identicalMember", ("el", "sl")),
    ("anyCompare", ("cle", "cln")),
    ("allCompare", ("cle", "cln")),
    ("sum", ("l",)),
    ("avg", ("l",)),
    ("min", ("l",)),
    ("max", ("l",)),
    ("strcat", ("ee", "sss", "sn", "")),
    ("join", ("sl", "sss", "l", "see")),
    ("substr", ("si", "sii", "se")),
    ("strcmp", ("ss", "ee")),
    ("stricmp", ("ss", "ee")),
    ("versioncmp", ("ss", "ee")),
    ("versionGT", ("ss",)),
    ("versionLE", ("ss",)),
    ("versionEQ", ("ss",)),
    ("version_in_range", ("sss",)),
    ("split", ("s", "s,")),
    ("splitUserName", ("s", "e")),
    ("splitSlotName", ("s", "e")),
    ("formatTime", ("if", "tf", "ef")),
    ("envV1ToV2", ("s", "e")),
    ("mergeEnvironment", ("ss", "s", "ee")),
    ("stringListSize", ("s", "s,", "e")),
    ("stringListSum", ("s", "s,")),
    ("stringListAvg", ("s",)),
    ("stringListMin", ("s",)),
    ("stringListMax", ("s",)),
    ("stringListMember", ("ss", "ss,", "ee")),
    ("stringListIMember", ("ss",)),
    ("stringListsIntersect", ("ss", "ee")),
    ("stringListSubsetMatch", ("ss", "ee")),
    ("stringListISubsetMatch", ("ss",)),
    ("regexp", ("ss", "sso", "ee")),
    ("regexpMember", ("sl", "slo")),
    ("regexps", ("sss", "ssso")),
    ("replace", ("sss",)),
    ("replaceAll", ("sss",)),
    ("stringList_regexpMember", ("ss", "ss,", "ss,o")),
    ("evalInEachContext", ("er", "ar", "el")),
    ("countMatches", ("er", "ar", "el")),
    ("unparse", ("a", "e")),
    ("relTime", ("i", "s")),
    ("absTime", ("iu",)),
    ("splitTime", ("t", "e")),
    ("getYear", ("t",)),
    ("getMonth", ("t",)),
    ("getDayOfWeek", ("t",)),
    ("getHours", ("t", "e")),
    ("getMinutes", ("t",)),
    ("getDays", ("t",)),
    ("userMap", ("ss", "ssss")),
    ("notAFunction", ("e",)),
)
