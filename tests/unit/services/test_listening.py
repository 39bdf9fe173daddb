"""Ports and addresses that a daemon cannot have: the error says which parameter to change, and where it is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.internet import reactor
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory

from condor_actors.config import Config, load_config
from condor_actors.services.world import cannot_listen


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program has."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def config_of(folder: Path, text: str) -> Config:
    file = folder / "condor_config"
    file.write_text(f"LOCAL_DIR = {folder}\n{text}\n")
    return load_config(files=[file], environ={})


def refusal(port: int, host: str) -> CannotListenError:
    """What the reactor says, really."""
    with pytest.raises(CannotListenError) as caught:
        reactor.listenTCP(port, Factory(), interface=host)  # type: ignore[attr-defined]  # Twisted's module
    return caught.value


@pytest.mark.parametrize(("name", "line", "parameter"), [
    ("schedd", "SCHEDD_PORT = {}", "SCHEDD_PORT"), ("collector", "COLLECTOR_HOST = 127.0.0.1:{}", "COLLECTOR_HOST"),
    ("gateway", "GATEWAY_PORT = {}", "GATEWAY_PORT")])
def test_a_port_that_another_program_has(tmp_path: Path, taken: int, name: str, line: str, parameter: str) -> None:
    config = config_of(tmp_path, line.format(taken))
    said = str(cannot_listen(config, name, "127.0.0.1", [taken], refusal(taken, "127.0.0.1")))
    assert f"port {taken}: another program has it, which 'ss -ltnp' names" in said
    assert f"{tmp_path}/condor_config, line 2: {parameter}: " in said


def test_a_range_without_a_free_port(tmp_path: Path, taken: int) -> None:
    config = config_of(tmp_path, f"LOWPORT = {taken}\nHIGHPORT = {taken + 1}")
    said = str(cannot_listen(config, "startd", "127.0.0.1", [taken, taken + 1], refusal(taken, "127.0.0.1")))
    assert f"none of the ports {taken} to {taken + 1} (LOWPORT to HIGHPORT) can be had" in said


def test_a_range_of_one_port(tmp_path: Path, taken: int) -> None:
    config = config_of(tmp_path, f"LOWPORT = {taken}\nHIGHPORT = {taken}")
    said = str(cannot_listen(config, "startd", "127.0.0.1", [taken], refusal(taken, "127.0.0.1")))
    assert "(LOWPORT to HIGHPORT) can be had" in said
    assert f"{tmp_path}/condor_config, line 3: " in said


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    config = config_of(tmp_path, "NETWORK_INTERFACE = 192.0.2.7")
    said = str(cannot_listen(config, "startd", "192.0.2.7", [0], refusal(0, "192.0.2.7")))
    assert "192.0.2.7: it is no address of this machine" in said
    assert "NETWORK_INTERFACE" in said
    assert "ip address" in said
