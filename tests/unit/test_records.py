"""Classes of `condor_actors.records` are what attrs would have made of the same words."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import weakref
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from condor_actors import records

PACKAGE = Path(records.__file__).parent


@records.define
class Question:
    """A mutable one."""

    ids: list[int] = records.Factory(list)
    form: str = ""

    def name(self) -> str:
        return f"{type(self).__name__} {super().__repr__()[:1]}"


@records.define
class Wider(Question):
    """With a field more."""

    limit: int = 3


@attrs.define
class OfAttrs(Question):
    """One of attrs below it."""

    limit: int = 3


@records.frozen(kw_only=True)
class Message:
    """A frozen one."""

    KIND: ClassVar[str] = "condor.test.Message"

    number: int
    text: str = ""
    note: str = records.field(default="n", eq=False, repr=False)


@records.frozen(order=True)
class Instant:
    """One that can be sorted."""

    at_s: int
    offset_s: int = records.field(default=0, order=False)


@records.define
class Private:
    """Its argument has no underscore; one field is made of another."""

    _held: int
    twice: int = records.Factory(lambda self: 2 * self._held, takes_self=True)
    made: list[int] = records.field(factory=list, init=False)


class Pair(records.NamedTuple):
    """A tuple with names."""

    first: int
    second: str = "b"

    @property
    def both(self) -> str:
        return f"{self.first}{self.second}"


def test_a_mutable_one() -> None:
    one, other = Question(), Question()
    one.ids.append(1)
    assert (one, other.ids) == (Question([1]), [])
    assert one != other
    assert repr(Wider([2], limit=4)) == "Wider(ids=[2], form='', limit=4)"
    assert OfAttrs([2], "long", 5) == OfAttrs(ids=[2], form="long", limit=5)
    assert Question().name() == "Question <"
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(AttributeError):
        one.other = 1  # type: ignore[attr-defined]  # it has slots
    assert weakref.ref(one)() is one
    assert copy.copy(one) == one
    assert Question() != Wider()


def test_a_frozen_one() -> None:
    message = Message(number=1)
    assert message == Message(number=1, note="other")
    assert hash(message) == hash(Message(number=1))
    assert repr(message) == "Message(number=1, text='')"
    assert records.evolve(message, text="t") == attrs.evolve(message, text="t") == Message(number=1, text="t")
    assert attrs.asdict(message) == {"number": 1, "text": "", "note": "n"}
    assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301 - its own
    for change in (lambda: setattr(message, "number", 2), lambda: delattr(message, "number")):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            change()
    for wrong in ({}, {"number": 1, "other": 2}):
        with pytest.raises(TypeError):
            Message(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Message(1)  # type: ignore[misc]


def test_order_private_names_and_what_is_made_of_others() -> None:
    assert Instant(1, 5) < Instant(2, 0)
    assert Instant(1, 5) <= Instant(1, 0)
    assert not Instant(1) > Instant(1, 7)
    private = Private(held=4)
    assert (private._held, private.twice, private.made) == (4, 8, [])
    assert [field.name for field in attrs.fields(Private)] == ["_held", "twice", "made"]


def test_named_tuples() -> None:
    assert Pair(1) == (1, "b")
    assert Pair(1)._replace(second="c").both == "1c"
    assert Pair.__annotations__ == {"first": "int", "second": "str"}


def test_what_attrs_would_not_know_is_refused() -> None:
    @attrs.define
    class Above:
        a: int = 0

    with pytest.raises(TypeError, match="attrs' too"):
        @records.define
        class Below(Above):
            b: int = 0

    with pytest.raises(TypeError, match="field of attrs"):
        @records.define
        class Mixed:
            b: int = attrs.field(default=0)

    with pytest.raises(TypeError, match="annotations"):
        records.define(type("Typed", (), {"__annotations__": {"a": int}}))


def _classes() -> list[type]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        if "records.define" in (text := path.read_text()) or "records.frozen" in text:
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for value in vars(importlib.import_module(name)).values():
                if isinstance(value, type) and "__record_fields__" in vars(value) and value.__module__ == name:
                    found[f"{name}.{value.__qualname__}"] = value
    return list(found.values())


def _arguments(function: Any) -> list[tuple[str, str, bool]]:
    return [(each.name, each.kind.name, each.default is not each.empty)
            for each in inspect.signature(function).parameters.values()]


def test_every_one_takes_the_arguments_that_attrs_would_give_it() -> None:
    classes = _classes()
    assert len(classes) > 150
    for cls in classes:
        fields: Any = attrs.fields(cls)
        twin = attrs.make_class("Twin", {
            field.name: attrs.field(default=field.default, init=field.init, kw_only=field.kw_only) for field in fields
        }, slots=False)
        if "__init__" not in vars(cls):
            continue
        compiled = records._init_of(cls, records.fields_of(cls), "__setattr__" in vars(cls))
        assert _arguments(compiled) == _arguments(twin.__init__), cls
