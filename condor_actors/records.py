"""Classes of fields as attrs makes them, without attrs: for what a command needs before its first line of output.

Theory: attrs loads ``inspect``, ``re`` and ``typing``, and compiles several functions for each class, before a command
has done anything.  Here a class is made from its annotations as they are written, and its ``__init__`` is compiled when
the first value of it is made.  The words are attrs' (`define`, `frozen`, `field`, `Factory`), and what attrs does with
its own classes it does with these: ``attrs.fields``, ``attrs.evolve``, ``attrs.asdict``, classes of attrs below them.
What is not here (validators, converters, aliases) a class has from attrs itself.  Annotations are texts, so every
module that uses this begins with ``from __future__ import annotations``.
"""

from __future__ import annotations

from _operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NamedTuple

    from attrs import Factory, define, evolve, field, frozen

__all__ = ["Factory", "NamedTuple", "define", "evolve", "field", "fields_of", "frozen"]


class _Nothing:
    """What stands where there is no default."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Any = _Nothing()


class _Factory:
    """A default that is made anew for each value."""

    __slots__ = ("factory", "takes_self")

    def __init__(self, factory: Callable[..., Any], takes_self: bool = False) -> None:
        self.factory, self.takes_self = factory, takes_self


class Field:
    """What is known of one field.

    Attributes:
        name: as the class has it; ``argument``: of ``__init__``, without underscores before it.
        annotation: its type, as it is written.
        default: NOTHING where it must be given; of one that is made anew, its ``factory`` instead.
        is_required: whether it has neither.
    """

    __slots__ = (
        "annotation", "argument", "default", "eq", "factory", "init", "kw_only", "metadata", "name", "order", "repr",
        "takes_self")

    def __init__(self, default: Any, factory: Any, eq: bool, order: bool, repr: bool, init: bool,  # noqa: A002
                 kw_only: bool, metadata: Any) -> None:
        self.name = self.argument = self.annotation = ""
        self.default, self.factory = default, factory
        self.eq, self.order, self.repr, self.init = eq, order, repr, init
        self.kw_only, self.metadata, self.takes_self = kw_only, metadata, False
        if type(default) is _Factory:
            self.default, self.factory, self.takes_self = NOTHING, default.factory, default.takes_self

    @property
    def is_required(self) -> bool:
        return self.default is NOTHING and self.factory is None


def _field(*, default: Any = NOTHING, factory: Any = None, eq: bool = True, order: bool | None = None,
           repr: bool = True, init: bool = True, kw_only: bool = False, metadata: Any = None) -> Any:  # noqa: A002
    return Field(default, factory, eq, eq if order is None else order, repr, init, kw_only, metadata)


def _define(cls: Any = None, *, frozen: bool = False, kw_only: bool = False, eq: bool = True,  # noqa: A002
            order: bool = False, slots: bool = True) -> Any:
    def made(cls: type) -> type:
        own = _own_fields(cls, kw_only)
        return _built(cls, own, frozen, eq, order, slots)

    return made if cls is None else made(cls)


def _frozen(cls: Any = None, **how: Any) -> Any:
    return _define(cls, frozen=True, **how)


def _evolve(value: Any, **changes: Any) -> Any:
    """The same value but for some fields."""
    for one in type(value).__record_fields__:
        if one.init and one.argument not in changes:
            changes[one.argument] = getattr(value, one.name)
    return type(value)(**changes)


def fields_of(cls: type) -> tuple[Any, ...]:
    """The fields of a class: `Field` values, those of attrs' classes too."""
    found = cls.__dict__.get("__record_fields__")
    if found is not None:
        return tuple(found)
    import attrs

    out = []
    for each in attrs.fields(cls):
        made = Field(NOTHING if each.default is attrs.NOTHING else each.default, None, True, True, True, each.init,
                     each.kw_only, each.metadata)
        made.name, made.argument, made.annotation = each.name, each.alias or each.name, each.type
        out.append(made)
    return tuple(out)


def _own_fields(cls: type, kw_only: bool) -> list[Field]:
    own = []
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 - loads inspect
        if type(annotation) is not str:
            raise TypeError(f"{cls.__module__}: annotations of records are texts: from __future__ import annotations")
        if annotation.startswith("ClassVar"):
            continue
        given = cls.__dict__.get(name, NOTHING)
        if type(given).__module__ == "attr._make":
            raise TypeError(f"{cls.__name__}.{name} is a field of attrs: the class has to be attrs' too")
        one = given if type(given) is Field else _field(default=given)
        one.name, one.argument, one.annotation = name, name.lstrip("_"), annotation
        one.kw_only = one.kw_only or kw_only
        own.append(one)
    return own


def _inherited(cls: type, own: list[Field]) -> list[Field]:
    names = {one.name for one in own}
    found: dict[str, Field] = {}
    for each in reversed(cls.__mro__[1:]):
        if "__attrs_attrs__" in each.__dict__ and "__record_fields__" not in each.__dict__:
            raise TypeError(f"{cls.__name__} is below {each.__name__}, which is attrs': it has to be attrs' too")
        for one in each.__dict__.get("__record_own__", ()):
            found.pop(one.name, None)
            found[one.name] = one
    return [one for name, one in found.items() if name not in names]


def _built(cls: type, own: list[Field], frozen: bool, eq: bool, order: bool, slots: bool) -> type:  # noqa: A002
    fields = (*_inherited(cls, own), *own)
    names = {one.name for one in own}
    given = cls.__dict__
    body = {name: value for name, value in given.items()
            if name not in names and (not slots or name not in ("__dict__", "__weakref__"))}
    body["__record_own__"], body["__record_fields__"] = tuple(own), fields
    body["__attrs_attrs__"] = _AttributesOfAttrs()
    body["__match_args__"] = tuple(one.name for one in fields if one.init and not one.kw_only)
    frozen = frozen or any(base.__dict__.get("__setattr__") is _refuse_to_set for base in cls.__mro__)
    if frozen:
        body["__setattr__"], body["__delattr__"] = _refuse_to_set, _refuse_to_delete
    if "__repr__" not in given:
        body["__repr__"] = _repr_of(tuple(one.name for one in fields if one.repr))
    makes_eq = eq and "__eq__" not in given
    if makes_eq:
        if not frozen:
            body["__hash__"] = None
        if order:
            body.update(_ordering([one.name for one in fields if one.order]))
    elif eq and "__hash__" not in given:
        body["__hash__"] = None
    if slots:
        inherited = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
        body["__slots__"] = tuple(one.name for one in own if one.name not in inherited)
        if not any("__weakref__" in base.__dict__ or "__weakref__" in base.__dict__.get("__slots__", ())
                   for base in cls.__mro__[1:]):
            body["__slots__"] += ("__weakref__",)
        body["__getstate__"], body["__setstate__"] = _state_of, _take_state
        body["__qualname__"] = cls.__qualname__
    made = type(cls)(cls.__name__, cls.__bases__, body)
    if "__init__" not in given:
        _compile_later(made, "__init__", lambda: _init_of(made, fields, frozen))
    if makes_eq:
        names_of_eq = [one.name for one in fields if one.eq]
        _compile_later(made, "__eq__", lambda: _equality(names_of_eq))
        if frozen:
            _compile_later(made, "__hash__", lambda: _hash_of(names_of_eq))
    _point_cells(cls, made, body)
    return made


def _point_cells(before: type, made: type, body: dict[str, Any]) -> None:
    """What names its class (``super()``) means the one that was made."""
    for value in body.values():
        inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        for cell in getattr(inner, "__closure__", None) or ():
            try:
                if cell.cell_contents is before:
                    cell.cell_contents = made
            except ValueError:  # an empty one
                continue


# -- what is compiled


def _compile_later(cls: Any, name: str, compiled: Callable[[], Any]) -> None:
    """A method that puts the one that ``compiled`` makes in its place when it is first called."""

    def first(*args: Any, **kwargs: Any) -> Any:
        method = compiled()
        method.__qualname__, method.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
        setattr(cls, name, method)
        return method(*args, **kwargs)

    setattr(cls, name, first)


def _init_of(cls: Any, fields: tuple[Field, ...], frozen: bool) -> Any:  # noqa: A002
    known: dict[str, Any] = {"NOTHING": NOTHING}
    plain: list[str] = []
    named: list[str] = []
    lines = []
    for number, one in enumerate(fields):
        known[f"d{number}"], known[f"f{number}"] = one.default, one.factory
        if frozen:
            known[f"s{number}"] = getattr(cls, one.name).__set__
        made = f"f{number}({'self' if one.takes_self else ''})" if one.factory is not None else f"d{number}"
        if one.init:
            argument = one.argument + ("" if one.is_required else
                                       "=NOTHING" if one.factory is not None else f"=d{number}")
            (named if one.kw_only else plain).append(argument)
            value = one.argument
            if one.factory is not None:
                value += f" if {one.argument} is not NOTHING else {made}"
        elif one.is_required:
            continue
        else:
            value = made
        lines.append(f" s{number}(self, {value})" if frozen else f" self.{one.name} = {value}")
    if hasattr(cls, "__attrs_post_init__"):
        lines.append(" self.__attrs_post_init__()")
    arguments = ", ".join(["self", *plain, *(["*", *named] if named else [])])
    text = f"def __init__({arguments}):\n" + "\n".join(lines or [" pass"])
    exec(text, known)  # noqa: S102 - of the names of a class's fields
    compiled = known["__init__"]
    compiled.__annotations__ = {one.argument: one.annotation for one in fields if one.init} | {"return": None}
    return compiled


# -- what every class has


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    from attrs.exceptions import FrozenInstanceError

    raise FrozenInstanceError


def _refuse_to_delete(self: Any, name: str) -> None:
    from attrs.exceptions import FrozenInstanceError

    raise FrozenInstanceError


def _repr_of(names: tuple[str, ...]) -> Any:
    def __repr__(self: Any) -> str:  # noqa: N807
        shown = ", ".join(f"{name}={getattr(self, name, NOTHING)!r}" for name in names)
        return f"{type(self).__qualname__.rpartition('>.')[2]}({shown})"

    return __repr__


def _key_of(names: list[str]) -> Callable[[Any], Any]:
    if not names:
        return lambda value: ()
    getter = attrgetter(*names)
    return getter if len(names) > 1 else lambda value: (getter(value),)


def _equality(names: list[str]) -> Any:
    same = " and ".join(f"self.{name} == other.{name}" for name in names) or "True"
    known: dict[str, Any] = {}
    exec(f"def __eq__(self, other):\n return {same} if other.__class__ is self.__class__ else NotImplemented", known)
    return known["__eq__"]


def _hash_of(names: list[str]) -> Any:
    key = "".join(f"self.{name}, " for name in names)
    known: dict[str, Any] = {}
    exec(f"def __hash__(self):\n return hash(({key}))", known)
    return known["__hash__"]


def _ordering(names: list[str]) -> dict[str, Any]:
    key = _key_of(names)

    def of(sign: Callable[[Any, Any], bool]) -> Any:
        return lambda self, other: sign(key(self), key(other)) if other.__class__ is self.__class__ else NotImplemented

    return {"__lt__": of(lambda a, b: a < b), "__le__": of(lambda a, b: a <= b),
            "__gt__": of(lambda a, b: a > b), "__ge__": of(lambda a, b: a >= b)}


def _state_of(self: Any) -> dict[str, Any]:
    return {one.name: getattr(self, one.name) for one in type(self).__record_fields__ if hasattr(self, one.name)}


def _take_state(self: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)


class _AttributesOfAttrs:
    """What attrs keeps of a class of its own, made when it is asked for."""

    def __get__(self, value: Any, cls: Any) -> Any:
        import attr

        twin = attr.make_class(cls.__name__, {one.name: _as_attribute(one) for one in cls.__record_fields__})
        cls.__attrs_attrs__ = twin.__attrs_attrs__  # type: ignore[attr-defined]
        return cls.__attrs_attrs__


def _as_attribute(one: Field) -> Any:
    import attr

    default: Any = attr.NOTHING if one.is_required else one.default
    if one.factory is not None:
        default = attr.Factory(one.factory, takes_self=True) if one.takes_self else attr.Factory(one.factory)
    return attr.ib(default=default, type=one.annotation, eq=one.eq, order=one.eq and one.order, repr=one.repr,
                   init=one.init, kw_only=one.kw_only, metadata=one.metadata)


class _NamedTuples(type):
    """Makes what ``typing.NamedTuple`` makes."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        from collections import namedtuple

        annotations = body.get("__annotations__", {})
        defaults = [body[each] for each in annotations if each in body]
        make: Any = namedtuple
        made = make(name, annotations, defaults=defaults, module=body["__module__"])
        made.__annotations__ = made.__new__.__annotations__ = annotations
        for key, value in body.items():
            if key not in annotations and key not in ("__annotations__", "__module__"):
                setattr(made, key, value)
        return made


class _NamedTuple:
    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (type.__new__(_NamedTuples, "NamedTuple", (), {}),)


if not TYPE_CHECKING:
    NamedTuple = _NamedTuple()
    define, frozen, field, Factory, evolve = _define, _frozen, _field, _Factory, _evolve
