"""A graphics processor, or a part of one, as its driver tells of it; the names are those of HTCondor's inventory."""

from __future__ import annotations

import os
from collections.abc import Mapping

import attrs

__all__ = ["Gpu", "lines_of", "names_in", "number_in", "text_of"]

Value = str | int | float | bool


@attrs.frozen(kw_only=True)
class Gpu:
    """One device that a job can have.

    Attributes:
        vendor: ``NVIDIA``, ``AMD`` or ``Intel``.
        index: among the vendor's, as its libraries count.
        uuid: the whole name by which the vendor's libraries know it (``GPU-…``, ``MIG-…``); empty: by its index only.
        files: what a program opens to use it; several may share some of them.
        properties: what it always is; extra: more of that; dynamic: what changes while it works.
        part: of another one (MIG).
    """

    vendor: str
    index: int
    uuid: str = ""
    files: tuple[str, ...] = ()
    properties: Mapping[str, Value] = attrs.field(factory=dict)
    extra: Mapping[str, Value] = attrs.field(factory=dict)
    dynamic: Mapping[str, Value] = attrs.field(factory=dict)
    part: bool = False


def text_of(path: str) -> str:
    """What a driver's file says, without blanks around; empty: it is not there or cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def lines_of(path: str, separator: str) -> dict[str, str]:
    """A file of names and values."""
    rows = (line.partition(separator) for line in text_of(path).splitlines())
    return {name.strip(): value.strip() for name, found, value in rows if found}


def number_in(path: str) -> int | None:
    """The decimal or hexadecimal number in a file."""
    try:
        return int(text_of(path), 0)
    except ValueError:
        return None


def names_in(folder: str) -> list[str]:
    """What is in a folder, in order; nothing where there is none."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
