"""What a pattern can cost an engine that tries one way after another."""

from __future__ import annotations

import math

import attrs

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
    Repeated,
    Sequence,
    parts_of,
)


@attrs.frozen
class _Ways:
    """In how many ways a part can match.

    Attributes:
        each: From one place to another, at most.
        least: Bytes it takes at least.
        most: Bytes it takes at most.
    """

    each: float
    least: int
    most: int


def most_tries(tree: Node, size: int) -> float:
    """Count the ways that an engine which tries one after another may have to try.

    Args:
        tree: The pattern.
        size: Bytes of the text.

    Returns:
        At most so many; infinity where the number has no use.
    """
    starts = 1 if _begins_at_start(tree) else size + 1
    ways = _ways(tree, size)
    return starts * ways.each * (1 if ways.least == ways.most else size + 1)


def size_of(tree: Node) -> int:
    """Count the nodes of a pattern, those of a repetition as often as it must be written out.

    Args:
        tree: The pattern.

    Returns:
        The number.
    """
    inner = sum(map(size_of, parts_of(tree)))
    times = max(tree.least, tree.most or 1, 1) if isinstance(tree, Repeated) else 1
    return 1 + inner * times


def _begins_at_start(node: Node) -> bool:
    if isinstance(node, Sequence):
        return bool(node.parts) and _begins_at_start(node.parts[0])
    if isinstance(node, Choice):
        return all(map(_begins_at_start, node.ways))
    if isinstance(node, (Group, Atomic)):
        return _begins_at_start(node.part)
    return isinstance(node, At) and node.place == "start"


def _ways(node: Node, size: int) -> _Ways:
    if isinstance(node, OneOf):
        return _Ways(1, 1, 1)
    if isinstance(node, Sequence):
        parts = [_ways(part, size) for part in node.parts]
        loose = sum(part.least != part.most for part in parts)
        each = _product([*(part.each for part in parts), *[size + 1.0] * (loose - 1)])
        return _Ways(each, sum(part.least for part in parts), min(size, sum(part.most for part in parts)))
    if isinstance(node, Choice):
        ways = [_ways(way, size) for way in node.ways]
        each = max(way.each for way in ways) + len(ways) if _is_decided_at_once(node) else sum(way.each for way in ways)
        return _Ways(each, min(way.least for way in ways), max(way.most for way in ways))
    if isinstance(node, Repeated):
        return _ways_of_repeated(node, size)
    if isinstance(node, (Group, Atomic)):
        return _ways(node.part, size)
    if isinstance(node, Look):
        inner = _ways(node.part, size)
        return _Ways(inner.each * (size + 1 if inner.least != inner.most else 1), 0, 0)
    if isinstance(node, Depending):
        then, otherwise = _ways(node.then, size), _ways(node.otherwise, size)
        return _Ways(then.each + otherwise.each, min(then.least, otherwise.least), max(then.most, otherwise.most))
    return _Ways(1, 0, size if isinstance(node, Again) else 0)


def _ways_of_repeated(node: Repeated, size: int) -> _Ways:
    part = _ways(node.part, size)
    turns = size + 1 if node.most is None else min(node.most, size + 1)
    least = min(node.least * part.least, size + 1)
    most = size if node.most is None else min(size, node.most * part.most)
    if part.least:
        turns = min(turns, size // part.least + 1)
    once = 1.0 if _chosen_at_once(node.part) else part.each
    if part.least == part.most:
        return _Ways(_power(once, turns), least, most)
    cut_anywhere = _power(once + 1 + (part.least == 0), size)
    return _Ways(min(cut_anywhere, _power(once * (size + 1), turns)), least, most)


def _product(factors: list[float]) -> float:
    return math.prod(factors) if sum(map(math.log2, factors)) < 200 else math.inf


def _power(base: float, times: int) -> float:
    return base**times if times * math.log2(base) < 60 else math.inf


def _chosen_at_once(node: Node) -> bool:
    while isinstance(node, Group):
        node = node.part
    return isinstance(node, Choice) and _is_decided_at_once(node) and all(_ways(way, 1).each <= 1 for way in node.ways)


def _is_decided_at_once(node: Choice) -> bool:
    """Whether the next byte says which of the ways can lead on."""
    seen = 0
    for way in node.ways:
        first = first_bytes(way)
        if first is None or first & seen:
            return False
        seen |= first
    return True


def first_bytes(node: Node) -> int | None:
    """Give the bytes that a part can begin with.

    Args:
        node: The part.

    Returns:
        A set of bytes, None where the part may be empty or that is not known.
    """
    if isinstance(node, OneOf):
        return node.members
    if isinstance(node, Sequence):
        return first_bytes(node.parts[0]) if node.parts else None
    if isinstance(node, (Group, Atomic)):
        return first_bytes(node.part)
    if isinstance(node, Repeated):
        return first_bytes(node.part) if node.least else None
    if isinstance(node, Choice):
        found = 0
        for way in node.ways:
            first = first_bytes(way)
            if first is None:
                return None
            found |= first
        return found
    return None


def is_empty_last(node: Node) -> bool:
    """Say whether a part that may be empty is so only where it cannot be longer.

    Args:
        node: The part.

    Returns:
        True where that is certain.
    """
    while isinstance(node, Group):
        node = node.part
    return isinstance(node, Repeated) and node.how == "greedy" and first_bytes(node.part) is not None


def groups_in(node: Node) -> set[int]:
    """Find the groups of a part.

    Args:
        node: The part.

    Returns:
        Their numbers.
    """
    found = {node.number} if isinstance(node, Group) else set()
    return found.union(*map(groups_in, parts_of(node)))
