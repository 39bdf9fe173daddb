"""Which attributes an expression depends on."""

from __future__ import annotations

from condor_actors.classads.language.expressions import Call, Expr, RecordExpr, Reference

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from condor_actors.classads.ad import ClassAd


def references(node: Expr, my: ClassAd | None = None) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes an expression names, of its own ad and of the other.

    Args:
        node: The expression.
        my: Its own ad; where given, bare names that it lacks are external, and what its attributes refer to counts too.

    Returns:
        Internal and external names in lower case.
    """
    if my is None and node.memory is not None and "names" in node.memory:
        known: tuple[frozenset[str], frozenset[str]] = node.memory["names"]
        return known
    internal: set[str] = set()
    external: set[str] = set()
    waiting: list[tuple[Expr, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        current, hidden = waiting.pop()
        if isinstance(current, Reference):
            _note(current, hidden, my, internal, external, waiting)
        elif isinstance(current, RecordExpr):
            inner = hidden | {name.lower() for name, _ in current.pairs}
            waiting.extend((child, inner) for child in current.children())
        else:
            waiting.extend((child, hidden) for child in current.children())
    result = frozenset(internal), frozenset(external)
    if my is None:
        node.remembered("names", lambda _: result)
    return result


def _note(
    node: Reference,
    hidden: frozenset[str],
    my: ClassAd | None,
    internal: set[str],
    external: set[str],
    waiting: list[tuple[Expr, frozenset[str]]],
) -> None:
    scope = node.scope
    if isinstance(scope, Reference) and scope.scope is None and not scope.absolute:
        if scope.key == "target":
            external.add(node.key)
            return
        if scope.key in ("my", "self", "toplevel", "root"):
            scope = None
        else:
            waiting.append((scope, hidden))
            return
    elif scope is None and not node.absolute and node.key in hidden:
        return
    if scope is not None:
        waiting.append((scope, hidden))
        return
    if node.key in internal:
        return
    if my is None:
        internal.add(node.key)
        return
    stored = my.find(node.key)
    if stored is None and node.scope is None:
        external.add(node.key)
        return
    internal.add(node.key)
    if isinstance(stored, Expr):
        waiting.append((stored, frozenset()))


def _is_bound(key: str, ad: ClassAd) -> bool:
    """Whether a record, or one around it, has an attribute."""
    scope: ClassAd | None = ad
    while scope is not None:
        if scope.find(key) is not None:
            return True
        scope = scope.scope
    return False


def open_names(node: Expr, my: ClassAd) -> list[str]:
    """The names that an ad leaves open: those of the other ad and those it does not define.

    Args:
        node: An expression of the ad.
        my: The ad.

    Returns:
        Names as spelled, sorted by what is written, scope and all.
    """
    found: dict[str, str] = {}
    waiting: list[Expr] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Reference):
            scope = current.scope
            if scope is None:
                if not _is_bound(current.key, my):
                    found.setdefault(current.key, current.name)
                continue
            if isinstance(scope, Reference) and scope.scope is None:
                if scope.key == "target" or (scope.key == "my" and not _is_bound(current.key, my)):
                    key = f"target.{current.key}" if scope.key == "target" else current.key
                    found.setdefault(key, current.name)
                    continue
                if scope.key == "my":
                    continue
        waiting.extend(current.children())
    names: dict[str, str] = {}
    for _, name in sorted(found.items()):
        names.setdefault(name.lower(), name)
    return list(names.values())


__all__ = ["Call", "open_names", "references"]
