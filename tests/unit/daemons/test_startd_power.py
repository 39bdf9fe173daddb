"""Which program puts a machine to sleep, and when a collector has confirmed that it knows."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import ConfigError, load_config
from condor_actors.cores.startd.hibernation import PowerKnown
from condor_actors.daemons import collector
from condor_actors.daemons.startd_power import OWN, confirm, known_power, power_command
from condor_actors.messages.advertise import AdKind
from tests.harness.local_post import LocalNetwork

ONE, OTHER = "<cm1:9618>", "<cm2:9618>"
SLOTS = [ClassAd({"Name": f"slot{number}@m", "Machine": "m", "MyAddress": "<m:1>", "Offline": True}).to_bytes()
         for number in (1, 2)]


@pytest.fixture
def net() -> Any:
    network = LocalNetwork()
    yield network
    network.stop()
    network.run(30.0)


def start(net: LocalNetwork, node: str, folder: Any, **settings: str) -> Any:
    path = f"{folder}/{node.strip('<>')}"
    daemon = collector.make_daemon(load_config(files=[], overrides={"COLLECTOR_PERSISTENT_AD_LOG": path, **settings}),
                                   net.world(node))
    net.adopt(node, daemon.system)
    daemon.start()
    net.run(0.1)
    return daemon


def confirmed(net: LocalNetwork, *nodes: str) -> list[str]:
    probe = net.probe(net.system("<m:1>"))
    said: list[str] = []
    confirm(probe.context, nodes, SLOTS, 300, said.append)
    net.run(120.0)
    return said


def test_one_collector_that_has_all_ads_will_do(net: LocalNetwork, tmp_path: Any) -> None:
    there = start(net, OTHER, tmp_path)
    assert confirmed(net, ONE, OTHER) == [""]
    assert list(there.memory.table.tables[AdKind.SLOT]) == ["slot1@m", "slot2@m"]
    assert list(there.memory.offline.kept) == ["slot1@m", "slot2@m"], "it is stored before it is confirmed"


def test_two_collectors_that_confirm_are_told_of_once(net: LocalNetwork, tmp_path: Any) -> None:
    start(net, ONE, tmp_path)
    start(net, OTHER, tmp_path)
    assert confirmed(net, ONE, OTHER) == [""]


def test_a_collector_that_takes_only_some_ads_has_not_confirmed(net: LocalNetwork, tmp_path: Any) -> None:
    start(net, ONE, tmp_path, COLLECTOR_REQUIREMENTS='Name == "slot1@m"')
    (problem,) = confirmed(net, ONE)
    assert ONE in problem
    assert "COLLECTOR_REQUIREMENTS" in problem


def test_nobody_who_answers_is_no_confirmation(net: LocalNetwork) -> None:
    (problem,) = confirmed(net, ONE, OTHER)
    assert problem.startswith("<cm")


def test_states_that_have_no_name_are_left_out() -> None:
    assert known_power(("s3", "S4", "deep"), "x", "") == PowerKnown(levels=frozenset({3, 4}), method="x")
    assert known_power((), "", "why") == PowerKnown(problem="why")


def test_the_program_is_the_pools_own_unless_the_site_names_one() -> None:
    def command(**settings: str) -> tuple[str, ...]:
        return power_command(load_config(files=[], environ={}, overrides=settings))

    assert command() == OWN
    assert command(LINUX_HIBERNATION_METHOD="/sys") == (*OWN, "-method", "/sys")
    assert command(HIBERNATION_PLUGIN="/site/power", HIBERNATION_PLUGIN_ARGS="-a 'b'") == ("/site/power", "-a", "'b'")
    with pytest.raises(ConfigError, match="pm-utils is no method"):
        command(LINUX_HIBERNATION_METHOD="pm-utils")
