"""What ``userMap`` looks into: maps from a user's name to groups, each under a name.

A map is text like the map files of authentication, one rule a line; the first rule that fits counts:

    # method  user  groups
    * Alice security,math
    * "John Doe" chemistry
    * /(.*)@physics\\.example/i physics,\\1

A user between slashes is a regular expression (``i`` behind it: letters of either case), whose groups the third field
may name; any other is the name itself. A method other than ``*`` is for ``userMap("Map.method", …)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

_FIELD: Final = re.compile(r'[ \t]*("(?:[^"\\]|\\.)*"|/(?:[^/\\]|\\.)*/[A-Za-z]*(?=[ \t]|$)|[^ \t]+)')


class UserMapError(ValueError):
    """A text that is no map.

    Attributes:
        line: The line, from 1.
    """

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


@attrs.frozen
class Rule:
    """One line of a map.

    Attributes:
        method: ``*``, or a word.
        user: The name, or the regular expression.
        flags: Letters of options; None when `user` is the name itself.
        groups: What the user is mapped to.
    """

    method: str
    user: str
    flags: str | None
    groups: str


class UserMap:
    """Rules, in their order.

    Args:
        rules: The rules.
        prefix: Whether a name fits every user that begins with it.
    """

    def __init__(self, rules: tuple[Rule, ...], prefix: bool = False) -> None:
        self._named: dict[tuple[str, str], tuple[int, Rule]] = {}
        self._others: list[tuple[int, Rule]] = []
        for place, rule in enumerate(rules):
            if rule.flags is None and not prefix:
                self._named.setdefault((rule.method.lower(), rule.user), (place, rule))
            else:
                self._others.append((place, rule))

    def find(self, user: str, method: str = "*") -> str | None:
        """What a user is mapped to.

        Args:
            user: The name.
            method: The method asked for.

        Returns:
            The third field of the first rule that fits, None when none does.
        """
        named = [self._named[key] for key in {(method.lower(), user), ("*", user)} if key in self._named]
        first = min(named, default=None, key=lambda found: found[0])
        for place, rule in self._others:
            if first is not None and first[0] < place:
                break
            if rule.method.lower() in ("*", method.lower()):
                groups = _mapped(rule, user)
                if groups is not None:
                    return groups
        return None if first is None else first[1].groups


def _mapped(rule: Rule, user: str) -> str | None:
    from condor_actors.classads.builtins.patterns import compiled_pattern, expanded
    from condor_actors.classads.builtins.strings import cooked, raw

    if rule.flags is None:
        return rule.groups if user.startswith(rule.user) else None
    pattern = compiled_pattern(rule.user, rule.flags)
    found = None if pattern is None else pattern.search(raw(user))
    return None if found is None else cooked(expanded(found, rule.groups, b"") or b"")


def read_user_map(text: str, prefix: bool = False) -> UserMap:
    """Read a map.

    Args:
        text: Its lines; empty ones and those that begin with ``#`` are passed over.
        prefix: Whether a name fits every user that begins with it.

    Returns:
        The map.

    Raises:
        UserMapError: A line is no rule.
    """
    return UserMap(tuple(rule for _, rule in read_rules(text)), prefix)


def pattern_of(text: str, flags: str) -> Any:
    """The regular expression that a rule's user is; None where it is none."""
    from condor_actors.classads.builtins.patterns import compiled_pattern

    return compiled_pattern(text, flags)


def read_rules(text: str) -> Iterator[tuple[int, Rule]]:
    """The rules of a map, each with the number of its line.

    Raises:
        UserMapError: A line is no rule.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = [_bare(field) for field in _FIELD.findall(line)]
        if len(fields) < 3:
            raise UserMapError(f"a rule is a method, a user and groups; {line.strip()!r} has fewer words", number)
        if not fields[1]:
            raise UserMapError(f"the user of a rule is no empty name, as in {line.strip()!r}; * is any user", number)
        method, user, groups = fields[0], fields[1], ",".join(fields[2:])
        flags: str | None = None
        body, slash, letters = user[1:].rpartition("/")
        if user[0] == "/" and slash:
            user, flags = body, "i" if "i" in letters.lower() else ""
            if pattern_of(user, flags) is None:
                raise UserMapError(f"/{user}/ is no regular expression", number)
        yield number, Rule(method, user, flags, groups)


def _bare(field: str) -> str:
    return re.sub(r"\\(.)", r"\1", field[1:-1]) if field[:1] == '"' and len(field) > 1 else field


_maps: Final[dict[str, UserMap]] = {}


def define_user_map(name: str, entries: UserMap | Mapping[str, str] | None) -> None:
    """Set what ``userMap`` knows under a name.

    Args:
        name: The map's name, in any case.
        entries: A map, or groups by user; None forgets the map.
    """
    if entries is None:
        _maps.pop(name.lower(), None)
    elif isinstance(entries, UserMap):
        _maps[name.lower()] = entries
    else:
        _maps[name.lower()] = UserMap(tuple(Rule("*", user, None, groups) for user, groups in entries.items()))


def user_map_names() -> list[str]:
    """The maps there are, in lower case."""
    return sorted(_maps)


def groups_of(name: str, user: str) -> list[str]:
    """What a map says of a user.

    Args:
        name: The map's name, with ``.method`` behind it where one is meant.
        user: The user.

    Returns:
        The groups, none when there is no such map or rule.
    """
    name, _, method = name.lower().partition(".")
    found = _maps[name].find(user, method or "*") if name in _maps else None
    return [group.strip() for group in (found or "").split(",") if group.strip()]
