"""Messages to bytes and back; bytes that are no message."""

from __future__ import annotations

import enum
import os
import re
from typing import Any, ClassVar

import attrs
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.messages import codec
from condor_actors.messages.codec import (
    MAX_BODY_BYTES,
    FileName,
    MalformedMessage,
    NotText,
    OversizedMessage,
    decode,
    encode,
    message,
)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen(kw_only=True)
class Part:
    name: str
    size: int = attrs.field(default=0, validator=attrs.validators.ge(0))


@message
@attrs.frozen(kw_only=True)
class Everything:
    KIND: ClassVar[str] = "test.Everything"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    flag: bool
    number: int
    real: float
    text: str
    data: bytes
    colour: Colour
    part: Part
    perhaps: str | None = None
    perhaps_part: Part | None = None
    many: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    pair: tuple[str, int] = ("", 0)
    pairs: tuple[tuple[str, Colour], ...] = ()
    file: FileName = ""
    files: tuple[tuple[FileName, int], ...] = ()
    reason: str = ""


names = st.binary(max_size=20).map(lambda data: os.fsdecode(data.replace(b"\0", b"")))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)
parts = st.builds(Part, name=texts, size=st.integers(0, 2**63 - 1))
everything = st.builds(
    Everything, flag=st.booleans(), number=st.integers(-(2**63), 2**64 - 1), real=st.floats(allow_nan=False),
    text=texts, data=st.binary(max_size=20), colour=st.sampled_from(Colour), part=parts,
    perhaps=st.none() | texts, perhaps_part=st.none() | parts, many=st.lists(texts).map(tuple),
    parts=st.lists(parts).map(tuple), pair=st.tuples(texts, st.integers(0, 9)),
    pairs=st.lists(st.tuples(texts, st.sampled_from(Colour))).map(tuple),
    file=names, files=st.lists(st.tuples(names, st.integers(0, 9))).map(tuple),
)


@given(everything)
def test_what_is_encoded_is_decoded_the_same(value: Everything) -> None:
    assert decode(Everything.KIND, 1, encode(value)) == value


@given(everything, st.sampled_from(["\udcff", "\ud800", "a\udc80b\udfff"]))
def test_what_is_no_text_is_said_with_question_marks(value: Everything, text: str) -> None:
    """It comes from ads of users and from JSON: their senders must not fall over it."""
    found = decode(Everything.KIND, 1, encode(attrs.evolve(value, text=text)))
    assert found.text == re.sub("[\ud800-\udfff]", "?", text)
    assert attrs.evolve(found, text=value.text) == value


@given(everything, st.sampled_from(["\udcff", "\ud800", "a\udc80b\udfff"]))
def test_a_command_says_nothing_but_what_it_means(value: Everything, text: str) -> None:
    """Someone would look for, or act on, something else; only why it is done may have question marks."""
    for said in ({"text": text}, {"many": ("a", text)}, {"pairs": ((text, Colour.RED),)}):
        with pytest.raises(NotText, match="is not UTF-8, and only UTF-8 can be asked for"):
            encode(attrs.evolve(value, **said), exactly=True)
    assert decode(Everything.KIND, 1, encode(attrs.evolve(value, reason=text), exactly=True)).reason == (
        re.sub("[\ud800-\udfff]", "?", text))


@given(st.text(st.characters(categories=("Cs",)), min_size=1, max_size=3))
def test_what_is_no_name_of_a_file_becomes_none(text: str) -> None:
    """Half letters of JSON: no file has such a name, and none is found in its place."""
    value = Everything(flag=True, number=1, real=1.0, text="", data=b"", colour=Colour.RED, part=Part(name="p"),
                       file=text)
    found = decode(Everything.KIND, 1, encode(value)).file
    assert "?" not in found
    assert not found.isprintable()


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_be_refused(data: bytes) -> None:
    try:
        decode(Everything.KIND, 1, data)
    except MalformedMessage:
        pass


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(everything, st.sampled_from([field.name for field in attrs.fields(Everything)]), json_like)
def test_a_field_of_another_shape_is_refused_by_name(value: Everything, name: str, wrong: Any) -> None:
    raw = msgpack.unpackb(encode(value), raw=False)
    raw[name] = wrong
    refused = ""
    try:
        decode(Everything.KIND, 1, msgpack.packb(raw))
    except MalformedMessage as error:
        refused = str(error)
    assert not refused or refused.startswith(f"test.Everything.{name}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"extra": 1}, "unknown field 'extra'"),
        ({"number": True}, "Everything.number: expected int, got bool"),
        ({"part": {"name": "x", "size": -1}}, "Everything.part"),
        ({"parts": [{"name": 1}]}, "Everything.parts.name"),
        ({"colour": "green"}, "is not one of ['red', 'blue']"),
        ({"pair": ["a"]}, "expected a list of 2"),
        ({"text": "a\0"}, "Everything.text: a text has no NUL"),
        ({"perhaps": "\0"}, "Everything.perhaps: a text has no NUL"),
        ({"many": ["a", "\0b"]}, "Everything.many: a text has no NUL"),
        ({"pair": ["\0", 1]}, "Everything.pair: a text has no NUL"),
        ({"file": b"a"}, "Everything.file: a name that is UTF-8 crosses as text"),
        ({"file": b"a\xc3\xa4"}, "Everything.file: a name that is UTF-8 crosses as text"),
        ({"file": b"a\xff\0"}, "Everything.file: a text has no NUL"),
        ({"file": 1}, "Everything.file: expected str, got int"),
        ({"files": [["a\0", 1]]}, "Everything.files: a text has no NUL"),
        ({"part": {"name": "a\0b"}}, "Everything.part.name: a text has no NUL"),
    ],
)
def test_the_text_names_the_field(change: dict[str, Any], words: str) -> None:
    value = Everything(flag=True, number=1, real=1.0, text="", data=b"", colour=Colour.RED, part=Part(name="p"))
    raw = {**msgpack.unpackb(encode(value), raw=False), **change}
    with pytest.raises(MalformedMessage) as caught:
        decode(Everything.KIND, 1, msgpack.packb(raw))
    assert words in str(caught.value)


def test_a_missing_field_and_a_whole_number_for_a_real() -> None:
    value = Everything(flag=True, number=1, real=1.0, text="", data=b"", colour=Colour.RED, part=Part(name="p"))
    raw = msgpack.unpackb(encode(value), raw=False)
    assert decode(Everything.KIND, 1, msgpack.packb({**raw, "real": 3})).real == 3.0
    del raw["text"]
    with pytest.raises(MalformedMessage, match="field 'text' is missing"):
        decode(Everything.KIND, 1, msgpack.packb(raw))


def newer() -> Any:
    """Return the class of fields of a release that knows one more of each kind."""
    return attrs.make_class("Newer", {
        "since_s": attrs.field(default=0.0, type=float), "why": attrs.field(default=None, type=str | None),
        "words": attrs.field(default=(), type=tuple[str, ...]), "is_new": attrs.field(default=False, type=bool)},
        bases=(Part,), frozen=True, kw_only=True)


def test_what_a_newer_field_does_not_say_an_older_release_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it says is refused by its name: it would be done without what was wanted."""
    made = newer()
    old = codec.encode_parts([Part(name="x")])
    assert codec.decode_parts(made, old) == (made(name="x"),), "from older to newer"
    assert codec.decode_parts(Part, codec.encode_parts([made(name="x", size=1)])) == (Part(name="x", size=1),)
    for field, value in (("since_s", 1.0), ("is_new", True)):
        with pytest.raises(MalformedMessage, match=f"unknown field '{field}': who says this has another release"):
            codec.decode_parts(Part, codec.encode_parts([made(name="x", **{field: value})]))


@given(everything)
def test_a_default_is_not_said(value: Everything) -> None:
    said = msgpack.unpackb(encode(value), raw=False)
    bare = Everything(flag=True, number=1, real=1.0, text="", data=b"", colour=Colour.RED, part=Part(name="p"))
    assert {"flag", "number", "real", "text", "data", "colour", "part"} <= said.keys()
    assert said.keys() == {field.name for field in attrs.fields(Everything) if field.default is attrs.NOTHING or
                           getattr(value, field.name) != getattr(bare, field.name)}


def test_limits() -> None:
    value = Everything(flag=True, number=1, real=1.0, text="", data=bytes(MAX_BODY_BYTES), colour=Colour.RED,
                       part=Part(name="p"))
    with pytest.raises(OversizedMessage):
        encode(value)
    with pytest.raises(MalformedMessage):
        decode(Everything.KIND, 1, bytes(MAX_BODY_BYTES + 1))


def test_kinds_are_found_where_they_are_defined() -> None:
    assert codec.message_class("condor.submission.SubmitPage", 1) is not None
    for unknown in ("condor.queue.Nope", "condor.nowhere.X", "os.system", "", "condor..x"):
        assert codec.message_class(unknown, 1) is None
    with pytest.raises(MalformedMessage):
        decode("condor.submission.SubmitPage", 2, b"")
    for kind, version in codec.kinds():
        cls: Any = codec.message_class(kind, version)
        assert cls.LEVEL, kind
        codec._shape(cls)


def test_two_messages_of_one_name_are_a_mistake() -> None:
    with pytest.raises(TypeError, match="two messages"):
        message(attrs.frozen(type("Other", (), {"KIND": "test.Everything", "VERSION": 1})))
