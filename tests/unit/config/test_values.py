"""Typed values, their limits, and the table behind them."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from condor_actors.config import (
    Config,
    ConfigError,
    UnknownParameterError,
    all_parameters,
    find_parameter,
    load_config,
    nearest_word,
    setting,
)
from condor_actors.config.reference import described, page, sample
from condor_actors.config.typed import convert

SAMPLE = Path(__file__).parents[3] / "etc/condor_config"
PAGE = Path(__file__).parents[3] / "docs/configuration-reference.md"


def config(**values: str) -> Config:
    environ = {f"_CONDOR_{name}": value for name, value in values.items()}
    return load_config(environ={"CONDOR_CONFIG": "ONLY_ENV", **environ})


@pytest.mark.parametrize(
    ("written", "value"),
    [("60", 60), ("5 * 60", 300), ("$(MINUTE) * 2", 120), ("1.5", 1.5), ("ifThenElse(true, 7, 8)", 7), ("", 300)],
)
def test_seconds(written: str, value: float) -> None:
    assert config(SCHEDD_INTERVAL=written).seconds("SCHEDD_INTERVAL") == value


@pytest.mark.parametrize(("written", "value"), [("10 MB", 10 << 20), ("1 kb", 1024), ("512", 512), ("2G", 2 << 30)])
def test_sizes(written: str, value: int) -> None:
    assert config(MAX_DEFAULT_LOG=written).size("MAX_DEFAULT_LOG") == value


@pytest.mark.parametrize(("written", "value"), [("yes", True), ("F", False), ("1", True), ("2 > 3", False)])
def test_truths(written: str, value: bool) -> None:
    assert config(SMTP_TLS=written).boolean("SMTP_TLS") is value


@pytest.mark.parametrize(
    ("name", "written", "words"),
    [
        ("NEGOTIATOR_INTERVAL", "sixty", "expected a number of seconds, at least 1"),
        ("NEGOTIATOR_INTERVAL", "0", "at least 1"),
        ("COLLECTOR_PORT", "70000", "an integer from 0 to 65535"),
        ("SMTP_TLS", "treu", "did you mean True?"),
        ("MAX_DEFAULT_LOG", "big", "a size such as"),
        ("START", "KeyboardIdle >", "is not a ClassAd expression"),
        ("JOB_DEFAULT_NOTIFICATION", "ALWYAS", "did you mean ALWAYS?"),
        ("SLOT_TYPE_2_PARTITIONABLE", "perhaps", "True or False"),
        ("MAX_NUM_SCHEDD_LOG", "-1", "from 0 to 10000"),
    ],
)
def test_what_cannot_be_is_told(name: str, written: str, words: str) -> None:
    (problem,) = config(**{name: written}).problems()
    assert words in str(problem)
    assert (problem.file, problem.name) == ("<Environment>", name)


def test_a_bad_value_says_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text("\nSCHEDD.SCHEDD_INTERVAL = soon\n")
    read = load_config(environ={"CONDOR_CONFIG": str(file)}, subsystem="SCHEDD")
    with pytest.raises(ConfigError, match=f"^{file}, line 2: SCHEDD_INTERVAL = soon is not possible"):
        read.seconds("SCHEDD_INTERVAL")


def test_slips_of_the_finger_are_found() -> None:
    found = config(NEGOTIATOR_INTERVALL="5", OWN="x", START="OWN > 1", OTHER="y").slips()
    assert [(slip.name, slip.nearest) for slip in found] == [("NEGOTIATOR_INTERVALL", "NEGOTIATOR_INTERVAL"),
                                                             ("OTHER", None)]


def test_nearness() -> None:
    assert nearest_word("SHCEDD", ["SCHEDD", "STARTD"]) == "SCHEDD"
    assert nearest_word("ZEBRA", ["SCHEDD", "STARTD"]) is None


def test_the_program_is_told_of_its_own_mistakes() -> None:
    with pytest.raises(UnknownParameterError, match="add its row"):
        config().integer("NO_SUCH_PARAMETER")
    with pytest.raises(TypeError, match="read as integer"):
        config().integer("START")


def test_settings_of_a_daemon() -> None:
    @attrs.frozen(kw_only=True)
    class Settings:
        interval_s: float = setting("NEGOTIATOR_INTERVAL")
        limit: int | None = setting("LOWPORT")

    assert config(NEGOTIATOR_INTERVAL="7").settings(Settings) == Settings(interval_s=7, limit=None)


def test_changes_between_two_readings() -> None:
    changes = config(SPOOL="/a").changed(config(SPOOL="/b", NEGOTIATOR_INTERVAL="60"))
    assert [(name, row.change if row else None) for name, row in changes] == [("SPOOL", "restart")]


def test_every_default_is_right() -> None:
    plain = config()
    for row in all_parameters():
        if row.default in (None, "") or row.is_pattern:
            continue
        text = plain.text(row.name)
        if text is not None:
            convert(row, text)


def test_every_row_is_complete() -> None:
    rows = list(all_parameters())
    names = [row.name for row in rows]
    assert len(names) == len(set(names))
    for row in rows:
        assert row.name == row.name.upper()
        assert row.doc.endswith("."), row.name
        assert len(row.doc) > 10, row.name


def test_patterns_give_their_row_under_the_name_asked_for() -> None:
    row = find_parameter("slot_type_3_partitionable")
    assert row is not None
    assert row.name == "SLOT_TYPE_3_PARTITIONABLE"
    assert find_parameter("MY_OWN_MACRO") is None


def test_a_row_described_for_people() -> None:
    row = find_parameter("NEGOTIATOR_INTERVAL")
    assert row is not None
    assert "a number of seconds, at least 1" in described(row)


def test_the_shipped_configuration_is_that_of_the_table() -> None:
    assert SAMPLE.read_text() == sample(), "run: python -m condor_actors.config.reference sample > etc/condor_config"


def test_the_reference_page_is_that_of_the_table() -> None:
    text = "run: python -m condor_actors.config.reference page > docs/configuration-reference.md"
    assert PAGE.read_text() == page(), text


def test_the_shipped_configuration_can_be_used(tmp_path: Path) -> None:
    read = load_config(environ={"CONDOR_CONFIG": str(SAMPLE)})
    assert read.problems() == ()
    everything = tmp_path / "c"
    lines = [line[1:] if line.startswith("#") and line[1:2].isupper() and " = " in line else line
             for line in SAMPLE.read_text().splitlines()]
    everything.write_text("\n".join(line for line in lines if "<" not in line.split(" = ")[0]))
    assert load_config(environ={"CONDOR_CONFIG": str(everything)}).problems() == ()
