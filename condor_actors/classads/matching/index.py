"""Which of many ads can match one, without asking each of them.

What one ad demands of the others is flattened first, so that only names of the others stay open. Each clause that
compares such a name with a constant is then answered from an index: per attribute, the set of ads for every value, as
the bits of one Python integer; clauses join by ``&`` and ``|`` of such sets. An index never excludes an ad that could
match: attributes that are expressions, and ads changed since the index was built, always stay in.

The indexed ads' own demands are taken apart too: a clause that looks at the ad's own attributes only has the same
answer for everybody, so it is asked once. Ads that agree in every attribute that counts form a group, and one of a
group answers for all.

========================  ==================================================
clause                    looked up as
========================  ==================================================
``Arch == "X86_64"``      the set under that value, ASCII case folded
``Memory >= 4096``        the union of all sets from that value upwards
``HasDocker``             true and numbers other than zero
``GPU =?= undefined``     ads without the attribute
``a || b``, ``a && b``    union, intersection
anything else             all ads
========================  ==================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.evaluation.flatten import flatten
from condor_actors.classads.evaluation.running import run_on
from condor_actors.classads.language.expressions import Binary, Call, Expr, Literal, Reference, Unary, as_expr
from condor_actors.classads.language.references import references
from condor_actors.classads.matching.attribute_sets import AttributeSets, bits_of, positions
from condor_actors.classads.matching.explain import clauses_of
from condor_actors.classads.matching.pairs import requirements_hold
from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, RelativeTime, is_true

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "=?=": "=?=", "=!=": "=!="}
_UNSTEADY: Final = frozenset({"random", "eval", "unparse", "unresolved", "evalineachcontext", "countmatches"})
_CLOCK: Final = frozenset({"time", "currenttime", "daytime", "abstime", "formattime", "timezoneoffset"})
_SCOPES: Final = frozenset({"my", "target", "self", "parent", "root", "toplevel"})


class AdIndex:
    """Many ads, indexed for two-sided matching against one ad after another.

    Attributes:
        evaluated: Pairs really evaluated so far.

    Args:
        ads: The ads; their order gives them their positions, from 0.
        attribute: The demand on either side.
    """

    def __init__(self, ads: Iterable[ClassAd], attribute: str = "Requirements") -> None:
        self.ads: list[ClassAd | None] = list(ads)
        self.demand = attribute.lower()
        self.evaluated = 0
        self._all = (1 << len(self.ads)) - 1
        self._changed = 0
        self._attributes: dict[str, AttributeSets] = {}
        self._groups: dict[frozenset[str], list[int]] = {}
        self._own_names: frozenset[str] | None = None
        self._open_to_some: int | None = None
        self._steady = True
        self._exact = True

    def __len__(self) -> int:
        return self._all.bit_count()

    # -- changes

    def add(self, ad: ClassAd) -> int:
        """Take in one more ad.

        Args:
            ad: The ad.

        Returns:
            Its position.
        """
        self.ads.append(ad)
        position = len(self.ads) - 1
        self._all |= 1 << position
        self._note(position)
        return position

    def replace(self, position: int, ad: ClassAd) -> None:
        """Say that an ad changed; call it also after changing one in place.

        Args:
            position: Its position.
            ad: What it is now.
        """
        self.ads[position] = ad
        self._all |= 1 << position
        self._note(position)

    def remove(self, position: int) -> None:
        """Take an ad out; its position stays empty.

        Args:
            position: Its position.
        """
        self.ads[position] = None
        self._all &= ~(1 << position)
        self._changed &= ~(1 << position)

    def _note(self, position: int) -> None:
        self._changed |= 1 << position
        if self._changed.bit_count() * 8 > len(self.ads) + 64:
            self._changed = 0
            self._attributes.clear()
            self._groups.clear()
            self._own_names = None
            self._open_to_some = None

    # -- questions

    def possible(self, my: ClassAd) -> int:
        """The ads that an ad's demand does not exclude.

        Args:
            my: The ad.

        Returns:
            Their set: bit n stands for position n.
        """
        stored = my.find(self.demand)
        if stored is None:
            return 0
        rest = flatten(as_expr(stored), my)
        if not isinstance(rest, Expr):
            return self._all if is_true(rest) else 0
        self._exact = not self._changed
        return (self._clause(rest) | self._changed) & self._all

    def matching(self, my: ClassAd, now_s: float | None = None, limit: int | None = None,
                 go_on: Callable[[], bool] | None = None) -> Iterator[int]:
        """The ads that match an ad, both demands true.

        Args:
            my: The ad.
            now_s: The time, the clock's by default.
            limit: Stop after as many, not before all when None.
            go_on: Asked before each pair that is evaluated; stop when it says no.

        Returns:
            Their positions, ascending within groups of equal ads.
        """
        if self.demand != "requirements":
            raise ValueError("matching needs an index of Requirements")
        self._exact = False
        possible = self.possible(my)
        accepts = requirements_only if self._exact else match_both
        found = 0
        for members in self._grouped(my, possible):
            if limit is not None and found >= limit:
                return
            if go_on is not None and not go_on():
                return
            other = self.ads[members[0]]
            self.evaluated += 1
            if other is None or not accepts(my, other, now_s):
                continue
            for position in members:
                yield position
                found += 1
                if limit is not None and found >= limit:
                    return

    def any_matches(self, my: ClassAd, now_s: float | None = None) -> bool:
        """Say whether an ad matches at all.

        Args:
            my: The ad.
            now_s: The time, the clock's by default.

        Returns:
            True when some ad of the index and `my` accept each other.
        """
        return next(self.matching(my, now_s, 1), None) is not None

    # -- clauses

    def _inexact(self) -> int:
        self._exact = False
        return self._all

    def _sets(self, key: str) -> AttributeSets:
        found = self._attributes.get(key)
        if found is None:
            found = self._attributes[key] = AttributeSets(key, self.ads)
        if found.open:
            self._exact = False
        return found

    def _clause(self, node: Expr) -> int:
        while isinstance(node, Unary) and node.operator == "(":
            node = node.operand
        if isinstance(node, Literal):
            return self._all if is_true(node.value) else 0
        if isinstance(node, Reference):
            key = _target_key(node)
            return self._inexact() if key is None else self._sets(key).true()
        if isinstance(node, Unary) and node.operator == "!":
            inner = node.operand
            while isinstance(inner, Unary) and inner.operator == "(":
                inner = inner.operand
            key = _target_key(inner)
            return self._inexact() if key is None else self._sets(key).false()
        if isinstance(node, Binary):
            return self._joined(node)
        return self._inexact()

    def _joined(self, node: Binary) -> int:
        operator = node.operator
        if operator in ("&&", "||"):
            operands = []
            left: Expr = node
            while isinstance(left, Binary) and left.operator == operator:
                operands.append(left.right)
                left = left.left
            result = self._clause(left)
            for operand in reversed(operands):
                if operator == "&&":
                    result &= self._clause(operand) if result else 0
                else:
                    result |= self._clause(operand)
            return result
        if operator not in _FLIPPED:
            return self._inexact()
        side, value = node.left, node.right
        if not isinstance(value, Literal):
            side, value, operator = node.right, node.left, _FLIPPED[operator]
        key = _target_key(side)
        if key is None or not isinstance(value, Literal):
            return self._inexact()
        if operator in ("=?=", "=!=") or isinstance(value.value, (bool, AbsoluteTime, RelativeTime)):
            self._exact = False
        if operator == "=!=":
            return self._all & ~self._sets(key).absent if value.value is UNDEFINED else self._all
        if value.value is UNDEFINED or value.value is ERROR:
            return self._sets(key).identical(value.value) if operator == "=?=" else 0
        return self._sets(key).compared(operator, value.value)

    # -- groups

    def _grouped(self, my: ClassAd, possible: int) -> Iterator[list[int]]:
        """Positions of ads that agree in all that counts, cut down to the possible ones."""
        if not possible:
            return
        alone = possible & self._changed
        own = self._demanded()
        if self._open_to_some is None:
            self._open_to_some = self._not_closed()
        possible &= self._open_to_some | self._changed
        wanted = _external(my, self.demand)
        few = possible.bit_count() < 8
        groups = None if wanted is None or few or not self._steady else self._groups_by(wanted | own)
        if groups is None or len(groups) > len(self) // 2:
            alone = possible
        else:
            for members in groups:
                if members & possible & ~alone:
                    yield list(positions(members & possible & ~alone))
        for position in positions(alone):
            yield [position]

    def _groups_by(self, names: frozenset[str]) -> list[int]:
        found = self._groups.get(names)
        if found is None:
            ordered = sorted(names)
            exact: dict[Any, list[int]] = {}
            for position, ad in enumerate(self.ads):
                if ad is not None:
                    exact.setdefault(_signature(ad, ordered), []).append(position)
            found = self._groups[names] = [bits_of(members) for members in exact.values()]
        return found

    def _not_closed(self) -> int:
        """The ads that do not refuse everybody by what they say of themselves."""
        names = sorted(self._demanded())
        known: dict[tuple[int, ...], list[tuple[Expr, frozenset[str]]]] = {}
        closed: list[int] = []
        for position, ad in enumerate(self.ads):
            if ad is None:
                continue
            find = ad.own.get if ad.parent is None else ad.find
            found = [find(name) for name in names]
            key = tuple(id(value) if isinstance(value, Expr) else 0 for value in found)
            clauses = known.get(key)
            if clauses is None:
                clauses = known[key] = _own_clauses(ad, self.demand)
            for node, needed in clauses:
                if all(ad.find(name) is not None for name in needed) and not is_true(run_on(node, ad, None, 0.0)):
                    closed.append(position)
                    break
        return self._all & ~bits_of(closed) if closed else self._all

    def _demanded(self) -> frozenset[str]:
        """The own attributes that the demands of the indexed ads look at, through all expressions they pass."""
        if self._own_names is None:
            names = {self.demand}
            waiting = [self.demand]
            seen: set[int] = set()
            self._steady = True
            while waiting:
                key = waiting.pop()
                for ad in self.ads:
                    node = None if ad is None else ad.find(key)
                    if not isinstance(node, Expr) or id(node) in seen:
                        continue
                    seen.add(id(node))
                    self._steady = self._steady and is_steady(node)
                    fresh = references(node)[0] - names
                    names |= fresh
                    waiting.extend(fresh)
            self._own_names = frozenset(names)
        return self._own_names


def _own_clauses(ad: ClassAd, demand: str) -> list[tuple[Expr, frozenset[str]]]:
    """The clauses of an ad's demand that may depend on itself alone, each with the attributes it needs for that."""
    found: list[tuple[Expr, frozenset[str]]] = []
    stored = ad.find(demand)
    if stored is None:
        return [(Literal(False), frozenset())]
    for node in clauses_of(as_expr(stored), ad):
        internal, external = references(node, ad)
        inner = [ad.find(name) for name in internal]
        if not external and all(is_steady(part, _CLOCK) for part in (node, *inner) if isinstance(part, Expr)):
            found.append((node, internal))
    return found


def match_both(my: ClassAd, other: ClassAd, now_s: float | None) -> bool:
    """Both demands.

    Args:
        my: The ad asked about.
        other: The indexed ad.
        now_s: The time.

    Returns:
        Whether they match; the indexed ad is asked first, `my` has passed the index already.
    """
    return requirements_hold(other, my, now_s) and requirements_hold(my, other, now_s)


def requirements_only(my: ClassAd, other: ClassAd, now_s: float | None) -> bool:
    """The indexed ad's demand, where the index has answered the other one exactly.

    Args:
        my: The ad asked about.
        other: The indexed ad.
        now_s: The time.

    Returns:
        Whether `other` accepts `my`.
    """
    return requirements_hold(other, my, now_s)


def _external(my: ClassAd, demand: str) -> frozenset[str] | None:
    """What an ad's demand looks at in the other; None when that cannot be told beforehand."""
    stored = my.find(demand)
    if not isinstance(stored, Expr):
        return frozenset()
    internal, external = references(stored, my)
    for key in internal:
        inner = my.find(key)
        if isinstance(inner, Expr) and not is_steady(inner):
            return None
    return external if is_steady(stored) else None


def is_steady(node: Expr, also: frozenset[str] = frozenset()) -> bool:
    """Say whether an expression's attributes can be told from its text, and its value from those.

    Args:
        node: The expression.
        also: More functions and names that count as unsteady.

    Returns:
        False when it evaluates text, draws at random, or selects from records.
    """
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Call) and (current.name.lower() in _UNSTEADY or current.name.lower() in also):
            return False
        if isinstance(current, Reference):
            scope = current.scope
            if scope is None:
                if current.absolute or current.key in _SCOPES or current.key in also:
                    return False
            elif isinstance(scope, Reference) and scope.scope is None and scope.key in ("my", "target"):
                continue
        waiting.extend(current.children())
    return True


def _signature(ad: ClassAd, names: list[str]) -> Any:
    get = ad.own.get if ad.parent is None else ad.find
    values = [get(name) for name in names]
    kinds = tuple(map(type, values))
    if ClassAd in kinds:
        values = [id(value) if type(value) is ClassAd else value for value in values]
    return tuple(values), kinds


def _target_key(node: Expr) -> str | None:
    """The name of the other ad's attribute that an expression is, once the own ad is flattened in."""
    while isinstance(node, Unary) and node.operator == "(":
        node = node.operand
    if not isinstance(node, Reference) or node.absolute:
        return None
    scope = node.scope
    if scope is None:
        return None if node.key in _SCOPES or node.key == "currenttime" else node.key
    if isinstance(scope, Reference) and scope.scope is None and scope.key == "target" and node.key != "currenttime":
        return None if node.key in _SCOPES else node.key
    return None
