"""A regular expression as a tree, as it was read and before an engine gets it."""

from __future__ import annotations

from typing import Final, Literal

import attrs

Anchor = Literal["start", "line start", "end", "end or last newline", "line end", "boundary", "no boundary"]
Repeat = Literal["greedy", "lazy", "possessive"]


@attrs.frozen
class OneOf:
    """One byte of a set."""

    members: int


@attrs.frozen
class At:
    """A place between two bytes."""

    place: Anchor


@attrs.frozen
class Sequence:
    """One part behind the other."""

    parts: tuple[Node, ...]


@attrs.frozen
class Choice:
    """The first of several ways that leads on."""

    ways: tuple[Node, ...]


@attrs.frozen
class Repeated:
    """A part, several times; `most` is None for any number."""

    part: Node
    least: int
    most: int | None
    how: Repeat


@attrs.frozen
class Group:
    """A part whose text is remembered."""

    number: int
    part: Node


@attrs.frozen
class Look:
    """What must, or must not, stand ahead or behind."""

    part: Node
    behind: bool
    negative: bool


@attrs.frozen
class Atomic:
    """A part that is matched in one way only."""

    part: Node


@attrs.frozen
class Again:
    """The text of a group once more.

    Attributes:
        number: The group.
        fold: Whether in any case.
        closed: Whether the group ended before, so that it has a text also outside of a repetition.
    """

    number: int
    fold: bool
    closed: bool


@attrs.frozen
class Depending:
    """One of two parts, by whether a group took part."""

    number: int
    then: Node
    otherwise: Node


Node = OneOf | At | Sequence | Choice | Repeated | Group | Look | Atomic | Again | Depending
EMPTY: Final = Sequence(())


def parts_of(node: Node) -> tuple[Node, ...]:
    """Give what a part is made of.

    Args:
        node: The part.

    Returns:
        The parts directly below.
    """
    if isinstance(node, Sequence):
        return node.parts
    if isinstance(node, Choice):
        return node.ways
    if isinstance(node, (Repeated, Group, Look, Atomic)):
        return (node.part,)
    return (node.then, node.otherwise) if isinstance(node, Depending) else ()


class PatternError(ValueError):
    """A pattern that PCRE2 refuses, or that asks for what is not to be had here."""
