"""Whatever a configuration holds, reading it ends, with values or with a `ConfigError`; and laws that hold always."""

from __future__ import annotations

import string
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from condor_actors.config import Config, ConfigError, load_config

NAMES = st.sampled_from(["A", "B", "LONG_NAME", "SCHEDD.A", "START", "NEGOTIATOR_INTERVAL", "LOCAL_CONFIG_DIR_X"])
ATOMS = st.one_of(
    st.sampled_from([
        "$(A)", "$(B:x)", "$(A:$(B))", "$$(A)", "$(", ")", "$INT(A)", "$CHOICE(1,A,B)", "$SUBSTR(A,1,-1)",
        "$ENV(HOME)", '$INT(real("INF"))', "$INT(1,%9999d)",
        "$Fnx(A)", "$(DOLLAR)", "\\", "#", "@=end", "@end", "if", "endif", "else",
        "use POLICY : Desktop", "=", ":", "+=",
        "$RANDOM_INTEGER(1,9)", "$REAL(A,%d)", "$(A$(B))", "\n", " ", "5 * 60", "true", "\x00", "\u20ac", "[",
    ]),
    st.text(string.printable, max_size=6),
)
LINES = st.lists(st.one_of(
    st.builds("{} = {}".format, NAMES, st.lists(ATOMS, max_size=5).map("".join)),
    st.lists(ATOMS, max_size=6).map("".join),
    st.sampled_from(["if defined A", "if $(A)", "elif true", "else", "endif", "A @=x", "@x", "use ROLE : Execute",
                     "use FEATURE : StaticSlots(1, $(B))", "warning : $(A)"]),
), max_size=12).map("\n".join)
RELAXED = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])


def read(text: str) -> Config:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
        file.flush()
        return load_config(environ={"CONDOR_CONFIG": file.name, "HOME": "/root"})


@RELAXED
@given(LINES)
def test_reading_ends_with_values_or_a_complaint(text: str) -> None:
    try:
        config = read(text)
    except ConfigError:
        return
    config.problems()
    config.slips()
    for definition in config.macros:
        try:
            value = config.text(definition.name)
        except ConfigError:
            continue
        assert value is None or "\x00" not in value or "\x00" in text


@RELAXED
@given(st.dictionaries(st.sampled_from("ABCDEF"), st.text(string.ascii_letters + " ,.", max_size=8), min_size=1))
def test_values_without_references_are_as_they_were_written(values: dict[str, str]) -> None:
    config = read("".join(f"{name} = {value}\n" for name, value in values.items()))
    for name, value in values.items():
        written = value.strip()
        assert (config.text(name) or "") == written


@RELAXED
@given(st.permutations(["A = $(B)1", "B = $(C)2", "C = 3", "D = $(A)$(B)$(C:9)"]))
def test_the_order_of_definitions_does_not_matter(lines: list[str]) -> None:
    config = read("\n".join(lines))
    assert [config.text(name) for name in "ABCD"] == ["321", "32", "3", "321323"]


@RELAXED
@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=4), min_size=1, max_size=8))
def test_appending_keeps_everything_in_order(words: list[str]) -> None:
    by_itself = read("".join(f"L = $(L) {word}\n" for word in words))
    by_operator = read("".join(f"L += {word}\n" for word in words))
    assert by_itself.list_of("L") == by_operator.list_of("L") == tuple(words)


@RELAXED
@given(st.text(string.ascii_letters + "$(){}:,.%d \\", max_size=40))
def test_expanding_any_text_ends(text: str) -> None:
    config = load_config(environ={"CONDOR_CONFIG": "ONLY_ENV", "_CONDOR_A": "x$(B)", "_CONDOR_B": "$(C)y"})
    with suppress(ConfigError):
        config.expand(text)


def test_a_file_of_garbage_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(ConfigError) as caught:
        load_config(environ={"CONDOR_CONFIG": str(file)})
    assert caught.value.file == str(file)
