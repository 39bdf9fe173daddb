"""Trees to Python source, for expressions that are evaluated again and again.

A closure tree costs a call per node; one generated function costs a few bytecodes per node. The price is about a
millisecond of compiling, so `Expr` asks for it only once an expression has proved hot. What the closures do stays the
reference: everything that is not a plain value of the expected type goes to the very same functions.

At entry the function binds the dictionaries that names are found in:

========  ===========================================================================
``own``   attributes of the record
``up``    behind them for bare names: the chained ad, or the other ad of a match
``base``  behind them for ``MY.``: the chained ad
``tgt``   attributes of the other ad
========  ===========================================================================

A hit that is a plain value is used at once; a miss, an expression or a record takes the slow road.
"""

from __future__ import annotations

import ast
import math
from types import FunctionType
from typing import Any, Final

from .evaluation import PLAIN, SPECIAL_NAMES, absolute, bare, look_up, mine, select, subscript, theirs
from .expr import (
    Binary,
    Call,
    Conditional,
    Expr,
    ListExpr,
    Literal,
    Reference,
    Run,
    SpanLiteral,
    Subscript,
    Unary,
)
from .operators import BINARY, UNARY, fold, truth
from .values import ERROR, INT_MAX, INT_MIN, UNDEFINED, ListValue, wrap

_MAX_LINES: Final = 600
_MAX_BLOCKS: Final = 12
_PYTHON: Final = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_NAMED: Final = {
    "+": "ADD",
    "-": "SUB",
    "*": "MUL",
    "/": "DIV",
    "%": "MOD",
    "&": "BAND",
    "|": "BOR",
    "^": "BXOR",
    "<<": "SHL",
    ">>": "SHR",
    ">>>": "USHR",
    "==": "EQ",
    "!=": "NE",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    "=?=": "IS",
    "=!=": "ISNT",
}
_GLOBALS: Final[dict[str, Any]] = {
    "PLAIN": PLAIN,
    "EMPTY": {},
    "ERROR": ERROR,
    "UNDEFINED": UNDEFINED,
    "absolute": absolute,
    "bare": bare,
    "look_up": look_up,
    "mine": mine,
    "theirs": theirs,
    "select": select,
    "subscript": subscript,
    "truth": truth,
    "wrap": wrap,
    "INFINITE": math.inf,
    "NUMBERS": frozenset({int, float}),
    "ListValue": ListValue,
    "NEG": UNARY["-"],
    "POS": UNARY["+"],
    "COMPL": UNARY["~"],
    "NOT": UNARY["!"],
    "__builtins__": {},
    "int": int,
    "float": float,
    "str": str,
} | {name: BINARY[operator] for operator, name in _NAMED.items()}
_UNARY_NAMES: Final = {"-": "NEG", "+": "POS", "~": "COMPL", "!": "NOT"}

_WRITTEN_OUT: Final = frozenset({"int", "real", "str"})

Atom = tuple[str, str]
"""A name or literal in the generated source, and what is known of it: int, real, str, truth or any."""


class _Source:
    """The lines of one function, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.blocks = 0
        self.count = 0
        self.names: dict[str, Any] = {}
        self.uses: set[str] = set()
        self.unchecked: dict[str, str] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def temporary(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    # -- nodes

    def emit(self, node: Expr) -> Atom:
        if isinstance(node, Literal):
            return self.literal(node.value)
        if len(self.lines) > _MAX_LINES or self.blocks > _MAX_BLOCKS:
            return self.closure(node)
        if isinstance(node, Reference):
            return self.reference(node)
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Unary):
            return self.unary(node)
        if isinstance(node, Conditional):
            return self.conditional(node.test, node.then, node.otherwise)
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Subscript):
            container, index = self.emit_checked(node.container)[0], self.emit_checked(node.index)[0]
            return self.assigned(f"subscript({container}, {index}, state)")
        if isinstance(node, ListExpr):
            elements = tuple(item.value if type(item) is Literal else item for item in node.elements)
            return self.assigned(f"ListValue({self.constant(elements)}, ad)")
        if isinstance(node, SpanLiteral):
            return self.literal(node.span.span_s)
        return self.closure(node)

    def assigned(self, text: str, kind: str = "any") -> Atom:
        name = self.temporary()
        self.line(f"{name} = {text}")
        return name, kind

    def closure(self, node: Expr) -> Atom:
        return self.assigned(f"{self.constant(node.run)}(ad, state)")

    def literal(self, value: Any) -> Atom:
        if value is True or value is False:
            return repr(value), "truth"
        if value is UNDEFINED:
            return "UNDEFINED", "truth"
        if value is ERROR:
            return "ERROR", "truth"
        if type(value) is int:
            return (str(value) if value >= 0 else f"({value})"), "int"
        if type(value) is str:
            return (repr(value) if value.isascii() else self.constant(value)), "str"
        return self.constant(value), "real" if type(value) is float else "any"

    def reference(self, node: Reference) -> Atom:
        scope, key = node.scope, node.key
        if scope is None:
            if node.absolute:
                return self.assigned(f"absolute(ad, {key!r}, state)")
            if key in SPECIAL_NAMES:
                return self.assigned(f"look_up(ad, {key!r}, state)")
            return self.found("own", "up", "bare", key)
        if isinstance(scope, Reference) and scope.scope is None and not scope.absolute:
            if scope.key == "my":
                return self.found("mown", "base", "mine", key)
            if scope.key == "target":
                return self.found("tgt", "", "theirs", key)
        inner = self.emit_checked(scope)[0]
        return self.assigned(f"select({inner}, {key!r}, state)")

    def found(self, first: str, second: str, slow: str, key: str) -> Atom:
        self.uses.add(first)
        name = self.temporary()
        self.line(f"{name} = {first}.get({key!r})")
        if second == "up":
            self.uses.add(second)
            missing = "state.now()" if key == "currenttime" else "UNDEFINED"
            self.line(f"if {name} is None:")
            self.line(f"    {name} = up.get({key!r})")
            self.line(f"    if {name} is None and sure: {name} = {missing}")
        elif second:
            self.uses.add(second)
            self.line(f"if {name} is None: {name} = {second}.get({key!r})")
        self.unchecked[name] = f"if {name}.__class__ not in PLAIN: {name} = {slow}(ad, {key!r}, state)"
        return name, "any"

    def emit_checked(self, node: Expr) -> Atom:
        """Emit a node whose value is needed as it is, whatever its type."""
        atom = self.emit(node)
        self.check(atom[0])
        return atom

    def check(self, *names: str, indent: str = "") -> None:
        """Make sure that variables hold plain values: a name's may be an expression, or nothing."""
        for name in names:
            line = self.unchecked.pop(name, None)
            if line is not None:
                self.line(indent + line)

    def unary(self, node: Unary) -> Atom:
        inner, kind = self.emit(node.operand)
        if node.operator == "(":
            return inner, kind
        self.check(inner)
        if node.operator == "!":
            inner = self.named(inner, kind)
            name = self.temporary()
            self.line(f"{name} = False if {inner} is True else True if {inner} is False else NOT({inner})")
            return name, "truth"
        return self.assigned(f"{_UNARY_NAMES[node.operator]}({inner})")

    def binary(self, node: Binary) -> Atom:
        operator = node.operator
        if operator in {"&&", "||"}:
            return self.logical(node)
        spine: list[Binary] = []
        left: Expr = node
        while isinstance(left, Binary) and left.operator not in ("&&", "||"):
            spine.append(left)
            left = left.left
        atom = self.emit(left)
        for step in reversed(spine):
            atom = self.applied(step.operator, atom, self.emit(step.right))
        return atom

    def written(self, atom: Atom) -> Any:
        """The value of a number or string written out."""
        text = atom[0].strip("()")
        return self.names[text] if text in self.names else ast.literal_eval(text)

    def named(self, text: str, kind: str) -> str:
        """A variable for what may be a number or string written out, which Python will not compare by identity."""
        return self.assigned(text)[0] if kind in _WRITTEN_OUT else text

    def applied(self, operator: str, left: Atom, right: Atom) -> Atom:
        if left[1] in _WRITTEN_OUT and right[1] in _WRITTEN_OUT:
            return self.literal(BINARY[operator](self.written(left), self.written(right)))
        if operator in _PYTHON:
            return self.compared(operator, left, right)
        if operator in ("=?=", "=!="):
            return self.identical(operator, left, right)
        a, b = left[0], right[0]
        if operator in ("+", "-", "*"):
            name = self.temporary()
            self.line(f"if {_both(left, right, 'int')}:")
            self.line(f"    {name} = {a} {operator} {b}")
            self.line(f"    if not {INT_MIN} <= {name} <= {INT_MAX}: {name} = wrap({name})")
            self.line(f"elif {_both(left, right, 'real')}:")
            self.line(f"    {name} = {a} {operator} {b}")
            self.line(f"    if {name} == INFINITE: {name} = ERROR")
            self.otherwise(name, f"{_NAMED[operator]}({a}, {b})", a, b)
            return name, "any"
        self.check(a, b)
        if operator == "/" and right[1] == "int" and int(b.strip("()")) > 0:
            name = self.temporary()
            self.line(f"if {a}.__class__ is int: {name} = {a} // {b} if {a} >= 0 else -(-{a} // {b})")
            self.line(f"else: {name} = DIV({a}, {b})")
            return name, "any"
        return self.assigned(f"{_NAMED[operator]}({a}, {b})")

    def otherwise(self, name: str, slow: str, *operands: str) -> None:
        """The branch for operands that were not of the expected type."""
        self.line("else:")
        self.check(*operands, indent="    ")
        self.line(f"    {name} = {slow}")

    def compared(self, operator: str, left: Atom, right: Atom) -> Atom:
        a, b = left[0], right[0]
        name = self.temporary()
        slow = f"{_NAMED[operator]}({a}, {b})"
        if left[1] == "str" or right[1] == "str":
            text, other = (a, b) if left[1] == "str" else (b, a)
            if text[0] in "'\"" and "truth" not in (left[1], right[1]):
                folded = f"{other}.lower()"
                first, second = (text.lower(), folded) if text == a else (folded, text.lower())
                self.line(f"if {other}.__class__ is str and {other}.isascii(): {name} = {first} {operator} {second}")
            else:
                self.line("if False: pass")
        else:
            number = "real" if "real" in (left[1], right[1]) else "int"
            if left[1] == right[1] == "any":
                alike = f"{a}.__class__ is {b}.__class__ and {a}.__class__ in NUMBERS"
                self.line(f"if {alike}: {name} = {a} {operator} {b}")
            else:
                self.line(f"if {_both(left, right, number)}: {name} = {a} {operator} {b}")
        self.otherwise(name, slow, a, b)
        return name, "truth"

    def identical(self, operator: str, left: Atom, right: Atom) -> Atom:
        a, b = left[0], right[0]
        self.check(a, b)
        if b not in ("True", "False", "UNDEFINED", "ERROR"):
            a, b = b, a
        if b in ("True", "False", "UNDEFINED", "ERROR"):
            a = self.named(a, (left if a == left[0] else right)[1])
            return self.assigned(f"{a} {'is' if operator == '=?=' else 'is not'} {b}", "truth")
        return self.assigned(f"{_NAMED[operator]}({left[0]}, {right[0]})", "truth")

    def logical(self, node: Binary) -> Atom:
        operator = node.operator
        operands: list[Expr] = []
        left: Expr = node
        while isinstance(left, Binary) and left.operator == operator:
            operands.append(left.right)
            left = left.left
        operands.append(left)
        going, stop = ("True", "False") if operator == "&&" else ("False", "True")
        name = self.temporary()
        self.line(f"{name} = {going}")
        self.line("while True:")
        self.indent += 1
        self.blocks += 1
        for operand in reversed(operands):
            value, kind = self.emit_checked(operand)
            value = self.named(value, kind)
            self.line(f"if {value} is not {going}:")
            if kind != "truth":
                value = self.assigned_inside(f"truth({value})")
            self.line(f"    if {value} is {stop} or {value} is ERROR:")
            self.line(f"        {name} = {value}")
            self.line("        break")
            self.line(f"    if {value} is UNDEFINED: {name} = UNDEFINED")
        self.line("break")
        self.indent -= 1
        self.blocks -= 1
        return name, "truth"

    def assigned_inside(self, text: str) -> str:
        name = self.temporary()
        self.line(f"    {name} = {text}")
        return name

    def conditional(self, test: Expr, then: Expr | None, otherwise: Expr) -> Atom:
        name = self.temporary()
        value, kind = self.emit_checked(test)
        self.line(f"{name} = {value}")
        if then is None:
            self.line(f"if {name} is UNDEFINED:")
            self.branch(name, otherwise)
            return name, "any"
        if kind != "truth":
            self.line(f"if {name} is not True and {name} is not False: {name} = truth({name})")
        self.line(f"if {name} is True:")
        self.branch(name, then)
        self.line(f"elif {name} is False:")
        self.branch(name, otherwise)
        return name, "any"

    def branch(self, name: str, node: Expr) -> None:
        self.indent += 1
        self.blocks += 1
        self.line(f"{name} = {self.emit_checked(node)[0]}")
        self.blocks -= 1
        self.indent -= 1

    def call(self, node: Call) -> Atom:
        from .builtins import TABLE

        builtin = TABLE.get(node.name.lower())
        if builtin is None or not builtin.least <= len(node.arguments) <= builtin.most:
            return "ERROR", "truth"
        if builtin.name == "ifThenElse":
            return self.conditional(*node.arguments)
        if builtin.name == "time":
            return self.assigned("state.now()", "any")
        if builtin.kind == "lazy":
            nodes = ", ".join(self.constant(argument) for argument in node.arguments)
            return self.assigned(f"{self.constant(builtin.apply)}(ad, state, {nodes})")
        known = _known_members(builtin.name, node.arguments)
        if known is not None:
            return self.membership(builtin.name, node, known)
        values = ", ".join(self.named(*self.emit_checked(argument)) for argument in node.arguments)
        if builtin.name == "isUndefined":
            return self.assigned(f"{values} is UNDEFINED", "truth")
        if builtin.name == "isError":
            return self.assigned(f"{values} is ERROR", "truth")
        first = "ad, state, " if builtin.kind == "inside" else ""
        return self.assigned(f"{self.constant(builtin.apply)}({first}{values})")

    def membership(self, function: str, node: Call, known: frozenset[str]) -> Atom:
        """A string sought among strings that are written out."""
        sought = self.named(*self.emit_checked(node.arguments[0]))
        name = self.temporary()
        names = self.constant(known)
        if function == "stringListMember":
            self.line(f"if {sought}.__class__ is str: {name} = {sought} in {names}")
        else:
            self.line(f"if {sought}.__class__ is str and {sought}.isascii(): {name} = {sought}.lower() in {names}")
        self.line(f"else: {name} = {self.constant(compile_call_on_value(node))}(ad, state, {sought})")
        return name, "any"

    # -- the whole

    def prologue(self) -> list[str]:
        uses = self.uses
        lines: list[str] = []
        if "own" in uses:
            lines.append("own = ad.own")
        if "up" in uses or "tgt" in uses:
            lines.append("other = state.target if ad is state.my else state.my if ad is state.target else None")
        if "up" in uses:
            lines.append("parent = ad.parent")
            lines.append("if parent is None:")
            lines.append("    up = EMPTY if other is None or ad.scope is not None else other.own")
            lines.append("    sure = ad.scope is None and (other is None or other.parent is None)")
            lines.append("else:")
            lines.append("    up = parent.own")
            lines.append("    sure = ad.scope is None and other is None and parent.parent is None")
        if "tgt" in uses:
            lines.append("tgt = EMPTY if other is None or 'target' in ad.own else other.own")
        if "mown" in uses or "base" in uses:
            lines.append("mown = EMPTY if 'my' in ad.own else ad.own")
            lines.append("base = EMPTY if ad.parent is None or mown is EMPTY else ad.parent.own")
        return ["    " + line for line in lines]


def _both(left: Atom, right: Atom, kind: str) -> str:
    """A test that both operands are numbers of a kind the machine handles alike."""
    tests = []
    for name, known in (left, right):
        if known == kind:
            continue
        if known != "any":
            return "False"
        if kind == "real":
            tests.append(f"{name}.__class__ is float")
        else:
            tests.append(f"{name}.__class__ is int")
    return " and ".join(tests) or "True"


def _known_members(function: str, arguments: tuple[Expr, ...]) -> frozenset[str] | None:
    """What a membership function looks through, when all of it is written out; folded where it ignores case."""
    from .builtins.string_lists import fields_of

    if len(arguments) != 2:
        return None
    items = arguments[1]
    if function in ("stringListMember", "stringListIMember"):
        if not isinstance(items, Literal) or not isinstance(items.value, str):
            return None
        fields = fields_of(items.value)
        return frozenset(fields if function == "stringListMember" else map(fold, fields))
    if function == "member" and isinstance(items, ListExpr):
        values = [item.value for item in items.elements if isinstance(item, Literal)]
        if len(values) == len(items.elements):
            return frozenset(fold(value) for value in values if isinstance(value, str))
    return None


def compile_call_on_value(node: Call) -> Any:
    """A call whose first argument is known already.

    :param node: the call.
    :returns: a function of record, evaluation and that argument.
    """
    from .builtins import TABLE

    builtin = TABLE[node.name.lower()]
    rest = [argument.run for argument in node.arguments[1:]]
    if builtin.kind == "inside":
        return lambda ad, state, first: builtin.apply(ad, state, first, *[run(ad, state) for run in rest])
    return lambda ad, state, first: builtin.apply(first, *[run(ad, state) for run in rest])


def source_of(node: Expr) -> tuple[str, dict[str, Any]]:
    """Write the function of an expression.

    :param node: the expression.
    :returns: Python source of ``def run(ad, state)``, and the objects it names beside the common ones.
    """
    source = _Source()
    result = source.emit_checked(node)[0]
    source.line(f"return {result}")
    return "\n".join(["def run(ad, state):", *source.prologue(), *source.lines, ""]), source.names


def generate(node: Expr) -> Run:
    """Compile an expression to a Python function.

    :param node: the expression.
    :returns: the function, equal in effect to the closure.
    """
    text, names = source_of(node)
    code = compile(text, "<classad expression>", "exec")
    space = _GLOBALS | names
    inner = next(item for item in code.co_consts if hasattr(item, "co_code"))
    return FunctionType(inner, space, "run")
