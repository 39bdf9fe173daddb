"""Every command is described, and parser and description agree about every option."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from condor_actors.tools.admin import flock, pool
from condor_actors.tools.jobs import chirp
from condor_actors.tools.lib.flags import Flag
from condor_actors.tools.manual.description import (
    NO_EFFECT,
    REFUSED,
    Description,
    Undescribed,
    described_rows,
    operand_count,
)
from condor_actors.tools.manual.help_text import help_text, sentence
from condor_actors.tools.manual.lookup import described, find
from condor_actors.tools.manual.sources import flags_of, groups_of, verbs_of
from condor_actors.tools.pool import owner, policy, reserve
from tests.harness.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[4]
BY_HAND = {"condor_pool", "condor_flock", "condor_owner", "condor_policy", "condor_reserve", "condor_manhole",
           "condor_config", "condor_compile", "condor_chirp"}


def test_every_command_is_described() -> None:
    assert set(described()) == COMMANDS.keys()


@pytest.mark.parametrize("name", sorted(described()))
def test_parser_and_description_agree(name: str) -> None:
    rows = [row for group in groups_of(name) for row in group.rows]
    rows += [row for verb in verbs_of(name) for row in verb.all_rows()]
    assert all(row.text and row.words for row in rows)
    shown = {word.lstrip("-") for row in rows for word in row.words}
    assert {flag.name for flag in flags_of(name)} <= shown
    assert bool(find(name).source) == (name not in BY_HAND)


@pytest.mark.parametrize("name", sorted(described()))
def test_help_shows_every_option(name: str) -> None:
    said = help_text(name)
    words = {word.rstrip(",:").partition("[")[0].partition(":")[0] for word in said.split()}
    missing = [word for group in groups_of(name) for row in group.rows for word in row.words if word not in words]
    missing += [word for verb in verbs_of(name) for row in verb.all_rows() for word in row.words if word not in words]
    assert missing == []
    assert said.startswith(f"Usage: {name}")
    assert max(map(len, said.splitlines())) <= 120


def test_what_does_nothing_is_shown_with_its_reason() -> None:
    groups = {group.title: group for group in groups_of("condor_q")}
    for flag in flags_of("condor_q"):
        title = NO_EFFECT if flag.idle else REFUSED if flag.refused else ""
        if title:
            assert any(row.words == (f"-{flag.name}",) and row.text == flag.idle + flag.refused
                       for row in groups[title].rows)


def options_by_verb(command: str) -> dict[str, set[str]]:
    return {verb.name: {word.lstrip("-") for row in verb.all_rows() for word in row.words}
            for verb in verbs_of(command)}


def test_words_read_by_hand() -> None:
    told = options_by_verb("condor_pool")
    assert {verb: names for verb, names in told.items() if names} == {
        verb: {*values, *switches} for verb, (values, switches) in pool.OPTIONS.items()}
    told = options_by_verb("condor_flock")
    assert {verb: names for verb, names in told.items() if names} == {
        verb: set(names) for verb, names in flock.OPTIONS.items()}
    assert options_by_verb("condor_owner")["pause"] == set(owner.HOWS)
    assert set().union(*options_by_verb("condor_policy").values()) == set(policy.OPTIONS)
    assert set().union(*options_by_verb("condor_reserve").values()) == {*reserve.OPTIONS, "long"}


def test_what_takes_a_value_is_described_so() -> None:
    takes = {row.words[0].lstrip("-"): bool(row.takes) for verb in verbs_of("condor_pool") for row in verb.all_rows()}
    assert {name for name, value in takes.items() if value} == {
        name for values, _ in pool.OPTIONS.values() for name in values}
    for command in ("condor_flock", "condor_policy"):
        assert all(operand_count(row.takes) == 1 for verb in verbs_of(command) for row in verb.all_rows())


@pytest.mark.parametrize(("module", "command", "table"), [
    (pool, "condor_pool", "commands"), (flock, "condor_flock", "commands"), (owner, "condor_owner", "takes"),
    (reserve, "condor_reserve", "takes"),
])
def test_verbs_read_by_hand(module: ModuleType, command: str, table: str) -> None:
    tree = ast.parse(inspect.getsource(inspect.unwrap(module.main)))
    (known,) = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name) and node.targets[0].id == table]
    assert isinstance(known, ast.Dict)
    assert {verb.name for verb in verbs_of(command)} == {
        key.value for key in known.keys if isinstance(key, ast.Constant)}


def test_verbs_of_chirp() -> None:
    assert {verb.name for verb in verbs_of("condor_chirp")} == set(chirp.COMMANDS)


def test_other_pages_exist() -> None:
    pages = {f"{page.name}({page.section})" for page in described().values()}
    pages |= {"condor(1)", "condor_config(5)", "condor_control(8)"}
    assert {see for page in described().values() for see in page.see_also} - pages == set()


FLAGS = (Flag("help"), Flag("name", 1, 1), Flag("v", alias="verbose"), Flag("verbose"), Flag("old", idle="it is old"))


@pytest.mark.parametrize(("options", "wrong"), [
    ({}, "-verbose"),
    ({"verbose": "say more", "more": "there is none"}, "-more is described"),
    ({"verbose LEVEL": "say more"}, "takes 0 words"),
    ({"verbose[:LEVEL]": "say more"}, "behind a colon"),
    ({"ver bose": "say more", "verb ose ose ose?": ""}, "described"),
])
def test_a_disagreement_is_found(options: dict[str, str], wrong: str) -> None:
    page = Description(name="it", purpose="nothing", options={"Options": options})
    with pytest.raises(Undescribed, match=wrong):
        described_rows(FLAGS, page)


def test_spellings_of_one_option_stand_together() -> None:
    page = Description(name="it", purpose="nothing", options={"Options": {"verbose": "say more"}})
    groups = described_rows(FLAGS, page)
    assert [(group.title, [row.words for row in group.rows]) for group in groups] == [
        ("Options", [("-verbose", "-v")]), ("General", [("-help",), ("-name",)]), (NO_EFFECT, [("-old",)])]


def test_sentences() -> None:
    assert sentence("print them") == "Print them."
    assert sentence("START while it drains") == "START while it drains."
    assert sentence("a line, then another.") == "A line, then another."


@pytest.mark.parametrize("name", sorted(described()))
def test_the_table_is_where_the_description_says(name: str) -> None:
    module, _, table = find(name).source.partition(":")
    if module:
        place = module if module.startswith("condor_actors.") else f"condor_actors.tools.{module}"
        assert hasattr(import_module(place), table)
