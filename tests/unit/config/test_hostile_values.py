"""Every parameter of the table with values that nobody can mean: a clear error or a value, and never anything else.

What daemons make of their settings before they start is done here too, so a value that only they find out about is
found here, with its parameter's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from condor_actors.config import Config, ConfigError, load_config
from condor_actors.config.collectors import collector_nodes, gateway_nodes
from condor_actors.config.parameter import Kind, Parameter
from condor_actors.config.parameters import all_parameters
from condor_actors.config.typed import convert
from condor_actors.config.user_maps import user_maps
from condor_actors.cores.negotiator import negotiator_settings as negotiator
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.cores.startd.policy_settings import latches_of, policy_of
from condor_actors.daemons import startd_settings as startd
from condor_actors.daemons.defrag import defrag_settings
from condor_actors.daemons.master_settings import children_of, collectors_of
from condor_actors.daemons.rooster import rooster_settings
from condor_actors.daemons.schedd.epochs import epoch_settings
from condor_actors.daemons.schedd.records import record_settings
from condor_actors.daemons.startd_power import power_command
from condor_actors.machine.privilege.pool_account import pool_account
from condor_actors.machine.run.confinement import folders_of_pool, wanted_parts
from condor_actors.machine.sensors.readings import HostReadings
from condor_actors.services.telemetry.metrics import metrics_door
from condor_actors.services.world import bind_address, gateways_of, possible_ports
from condor_actors.wire.authorization import Authorization
from condor_actors.wire.identity_map import IdentityMap

LONG = "a" * 5000
DEEP = "(" * 5000 + "1" + ")" * 5000
NEVER = 'regexp("(a+)+$", "' + "a" * 60 + 'b")'
HUGE = "9" * 20
HOSTILE: dict[Kind, tuple[str, ...]] = {
    Kind.TEXT: ("http://[", "\0", "ä\U0001f600", "%s%n", LONG, "<<>>", "-1", "[::1"),
    Kind.PATH: ("/dev/null/x", "relative", "\0", "/proc/self/mem", LONG, "/"),
    Kind.BOOLEAN: ("maybe", "2", "-", DEEP, NEVER),
    Kind.INTEGER: ("x", "-1", "1e400", HUGE, "1.5", "0", "-99999999999", HUGE[:17], DEEP, NEVER),
    Kind.REAL: ("x", "-1", "nan", "inf", "1e308", "0", "-1e300", DEEP),
    Kind.SECONDS: ("x", "-1", "1e18", "0", "nan", HUGE[:18], DEEP),
    Kind.SIZE: ("x", "-1", "99999999 TB", "1e308 TB", "0", "1 XB", "-5 GB", f"{DEEP} KB"),
    Kind.EXPRESSION: ("(", "1/0", "error", "undefined", '"x', "[", DEEP, NEVER),
    Kind.WORDS: (",", "*", "<", "[::1", "http://[", LONG, "\0", "300.1.1.1/99", "/etc:/x:y", "!@#$%"),
    Kind.CHOICE: ("nonesuch",),
    Kind.TRANSFORM: ("NONSENSE x", "SET", "REQUIREMENTS (("),
}
NUMBERS = (Kind.INTEGER, Kind.REAL, Kind.SECONDS, Kind.SIZE)
NO_NUMBERS = ("x", "nan", 'real("NaN")', 'real("INF")', "1e400", "1/0", '"5"', "undefined", "{1}", "1 2",
              "5 parsecs", DEEP)
"""What is no number, whatever the parameter."""
PLACES = {"<N>": "1", "<SUBSYS>": "SCHEDD", "<LEVEL>": "READ", "<UNIVERSE>": "VANILLA"}


def slots(config: Config) -> None:
    startd.slot_settings(config)
    readings = HostReadings()
    startd.slot_plans(config, startd.machine_share(config, readings.facts(), 10_000_000))


READERS: tuple[Callable[[Config], Any], ...] = (
    bind_address, lambda config: possible_ports(config, "schedd", Random(0)), collector_nodes, gateway_nodes,
    lambda config: gateways_of(config, "schedd"), metrics_door, wanted_parts, folders_of_pool, slots,
    startd.inventory_commands, startd.offline_units, lambda config: startd.container_attributes(config, works=True),
    startd.startd_name, children_of, collectors_of, defrag_settings, rooster_settings,
    power_command, record_settings, epoch_settings,
    negotiator.cycle_settings, negotiator.match_settings, lambda config: negotiator.priority_policy(config, {}),
    negotiator.preemption_requirements, negotiator.cycle_rules, negotiator.fair_share_settings, policy_of, latches_of,
    lambda config: schedd_settings(config, machine="m"), pool_account, Authorization, IdentityMap.of, user_maps,
)


def of_kind(kind: Kind) -> Iterator[tuple[str, Parameter]]:
    for row in all_parameters():
        if row.kind is kind:
            name = row.name
            for place, word in PLACES.items():
                name = name.replace(place, word)
            yield re.sub("<[A-Z_]+>", "FOO", name), row


def read(name: str, value: str) -> None:
    """As a daemon does that starts with this setting."""
    config = load_config(files=[], environ={}, overrides={name: value})
    problems = config.problems()
    if problems:
        raise problems[0]
    for reader in READERS:
        reader(config)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_what_nobody_can_mean_is_told_and_ends_nothing(kind: Kind) -> None:
    wrong = []
    for name, row in of_kind(kind):
        for value in HOSTILE[kind]:
            try:
                convert(row, value)
                read(name, value)
            except ConfigError:
                pass
            except Exception as error:  # noqa: BLE001 - all of them are told
                wrong.append(f"{name} = {value[:40]!r}: {type(error).__name__}: {str(error)[:200]}")
    assert wrong == []


def refused(name: str, value: str) -> ConfigError:
    """How a value of a configuration file is refused, in its second line."""
    config = load_config(files=[], environ={}, overrides={"UNRELATED": "1", name: value})
    (problem,) = config.problems()
    with pytest.raises(ConfigError) as caught:
        config.value(name)
    assert str(caught.value) == str(problem)
    return problem


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.name.lower())
def test_every_number_out_of_its_range_is_refused_with_place_value_and_range(kind: Kind) -> None:
    for name, row in of_kind(kind):
        beyond = [f"{row.largest + 1:.0f}" if row.largest < 1e15 else "1e19", "-1e19", "1e18 * 100"]
        if row.low is not None:
            beyond.append(repr(row.low - 1))
        if kind is Kind.INTEGER:
            beyond.append("9" * 30)
        for value in (*beyond, *NO_NUMBERS):
            problem = refused(name, value)
            assert (problem.name, problem.value, problem.file) == (name, value, "<Command Line>"), (name, value)
            assert value in str(problem)
            noun = str(problem.expected)
            assert noun.startswith(row.expected), (name, value, noun)
        words = str(refused(name, beyond[0]).expected).split()
        assert {"to", "most"} & {*words}, (name, words)


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.name.lower())
def test_daemons_begin_with_the_least_and_the_greatest_number(kind: Kind) -> None:
    """Or say in a sentence that it does not fit the rest."""
    wrong = []
    for name, row in of_kind(kind):
        for value in (row.largest, row.low if row.low is not None else -row.largest):
            try:
                read(name, str(value) if isinstance(value, int) else f"{value:.15g}")
            except ConfigError as error:
                if "is not possible" in str(error):
                    wrong.append(f"{name} = {value}: {error}")
            except Exception as error:  # noqa: BLE001 - all of them are told
                wrong.append(f"{name} = {value}: {type(error).__name__}: {str(error)[:200]}")
    assert wrong == []


@pytest.mark.parametrize(("name", "value", "remedy"), [
    ("METRICS_INTERFACE", "nowhere", "an IPv4 or IPv6 address of this machine"),
    ("METRICS_TOKEN_FILE", "/nonexistent/token", "a readable file"),
    ("SCHEDD_PORT", "1.5", "a whole number from 0 to 65535"),
    ("GROUP_NAMES", "a b/c", "names of letters, digits, _ and dots"),
    ("MAX_SLOT_TYPES", HUGE, "from 1 to 1000"),
    ("NUM_SLOTS", HUGE, "from 0 to 100000"),
])
def test_the_error_names_the_setting_its_value_and_the_remedy(name: str, value: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(name, value)
    assert caught.value.name == name
    assert str(caught.value).startswith("<Command Line>")
    assert value.split()[-1] in str(caught.value)
    assert remedy in str(caught.value)
