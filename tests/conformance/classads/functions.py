"""Calls of every function with arguments of every kind, and texts at the edges of what it reads.

A seed stands for one call and the two ads it is made in. Arguments are mostly of the kind that a function reads, at
times of any kind, and at times a name that one of the ads binds.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

from condor_actors.classads.builtins.calls import TABLE

CLOCKED: Final = frozenset({"time", "currenttime", "daytime", "random", "debug"})
"""What gives another result each time, or writes to a log."""

POOLS: Final[dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "function_arguments.json").read_text(encoding="utf-8")
)
"""Expressions by kind."""
ANY: Final = tuple(POOLS)
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "regexp": ("pattern", "text", "options"),
    "regexps": ("pattern", "text", "template", "options"),
    "replace": ("pattern", "text", "template", "options"),
    "replaceall": ("pattern", "text", "template", "options"),
    "regexpmember": ("pattern", "list", "options"),
    "stringlist_regexpmember": ("pattern", "text", "delimiters", "options"),
    "member": ("text", "list"),
    "identicalmember": ("text", "list"),
    "anycompare": ("operator", "list", "whole"),
    "allcompare": ("operator", "list", "whole"),
    "split": ("text", "delimiters"),
    "join": ("delimiters", "list", "text"),
    "strcat": ("text", "whole", "real", "time"),
    "substr": ("text", "whole", "whole"),
    "strcmp": ("text", "text"),
    "stricmp": ("text", "text"),
    "userhome": ("name", "text"),
    "usermap": ("text", "name", "text", "text"),
    "splitusername": ("name",),
    "splitslotname": ("name",),
    "formattime": ("time", "layout"),
    "abstime": ("whole", "whole"),
    "reltime": ("real",),
    "interval": ("whole",),
    "splittime": ("time",),
    "quantize": ("real", "list"),
    "pow": ("real", "whole"),
    "ifthenelse": ("other", "expression", "expression"),
    "evalineachcontext": ("expression", "list"),
    "countmatches": ("expression", "list"),
    "unparse": ("named",),
    "unresolved": ("named", "pattern"),
    "eval": ("expression",),
    "mergeenvironment": ("environment", "environment"),
    "envv1tov2": ("environment",),
    "argstolist": ("arguments", "whole"),
    "listtoargs": ("list", "whole"),
    "version_in_range": ("version", "version", "version"),
} | dict.fromkeys(("sum", "avg", "min", "max"), ("list",))


def kinds_of(name: str, place: int) -> tuple[str, ...]:
    """The kinds that an argument is expected to have.

    Args:
        name: The function, in lower case.
        place: Which argument.

    Returns:
        Names of pools.
    """
    known = KINDS.get(name)
    if known is not None:
        return (known[min(place, len(known) - 1)],)
    if name.startswith("stringlist"):
        if place == 0 and ("member" in name or "match" in name or "intersect" in name):
            return ("text", "numeral")
        members = "member" in name or "match" in name or "intersect" in name
        return ("delimiters",) if place == (2 if members else 1) else ("text", "numeral")
    if name.startswith("version"):
        return ("version",)
    if name.startswith("get"):
        return ("time",)
    return ("text", "numeral", "whole", "real", "time", "list", "record")


class FunctionGenerator:
    """Makes one call and its ads.

    Args:
        seed: What to make them from.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.names = sorted(name for name in TABLE if name not in CLOCKED)

    def expression(self) -> str:
        """Make a call, at times of another call's result."""
        name = self.dice.choice(self.names)
        builtin = TABLE[name]
        most = min(builtin.most, builtin.least + 3, 5)
        count = self.dice.randint(builtin.least, most)
        if self.dice.random() < 0.03:
            count = self.dice.randrange(5)
        if name in ("formattime", "abstime"):
            count = max(count, 1)
        call = f"{builtin.name}({','.join(self.argument(name, place) for place in range(count))})"
        outer = self.dice.random()
        if outer < 0.05:
            return f"{call}[0]"
        if outer < 0.08:
            return f"{call}.Seconds"
        if outer < 0.12:
            return f"{call} =?= {self.argument('', 0)}"
        if outer < 0.15:
            return f"size({call})"
        return call

    def argument(self, name: str, place: int) -> str:
        """Make an argument."""
        if self.dice.random() < 0.7:
            return self.dice.choice(POOLS[self.dice.choice(kinds_of(name, place))])
        return self.dice.choice(POOLS[self.dice.choice(ANY)])

    def ad(self, target: bool = False) -> str:
        """Make an ad that binds the names that arguments use."""
        kinds = {"x": "whole", "s": "text", "L": "list", "R": "record", "n": "numeral", "t": "time", "E": "expression"}
        if target:
            kinds = {"y": "whole", "x": "text", "R": "record", "b": "whole", "z": "list"}
        bound = [name for name in kinds if self.dice.random() < 0.8]
        pairs = [f"{name} = {self.dice.choice(POOLS[kinds[name]])}" for name in bound]
        pairs += ["u = undefined", "e = error", "chained = x", "Q = [z = x]", "a = 1"] if not target else []
        return f"[{'; '.join(pairs)}]"
