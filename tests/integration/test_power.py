"""Machines are woken over a wire: real broadcasts between network namespaces, and what a startd says of its card."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire, ip
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES

LISTEN = """
import socket, sys
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there.bind(("", 9))
print("listens", flush=True)
while True:
    print(there.recv(4096).hex(), flush=True)
"""


def mac_of(machine: Machine) -> str:
    """Of the card on the wire."""
    found: str = next(link["address"] for link in json.loads(ip("-n", machine.namespace, "-j", "link"))
                      if link["link_type"] == "ether")
    return found


@contextmanager
def heard_by(machine: Machine, file: Path) -> Iterator[Path]:
    """What comes to the machine's discard port, line by line in a file."""
    with file.open("wb") as out, subprocess.Popen(machine.command("python3", "-c", LISTEN), stdin=subprocess.DEVNULL,
                                                  env=machine.environment, stdout=out) as listener:
        try:
            until(lambda: file.read_text().startswith("listens"), "the port to be bound")
            yield file
        finally:
            listener.kill()


def packets(file: Path) -> list[str]:
    """As hexadecimal digits."""
    return file.read_text().split()[1:]


def test_a_packet_reaches_the_machine_that_is_named(wire: Wire) -> None:
    sleeper, waker = wire.machine("sleeper"), wire.machine("waker")
    mac = mac_of(sleeper)
    wakes = "ff" * 6 + mac.replace(":", "") * 16
    with heard_by(sleeper, wire.folder / "heard") as heard:
        waker.run("condor_power", "-m", mac)
        until(lambda: packets(heard) == [wakes], "the packet into all networks")
        waker.run("condor_power", "-m", mac, "-s", "255.255.255.0")
        until(lambda: packets(heard) == [wakes] * 2, "the packet into the network with the mask")


def test_a_startd_says_by_which_card_it_is_woken(wire: Wire) -> None:
    manager, waker = wire.manager(), wire.machine("waker")
    mac = mac_of(manager)
    shown = until(lambda: manager.tool("condor_status", "-limit", "1", "-long").stdout, "an ad of a slot")
    lines = shown.splitlines()
    assert f'HardwareAddress = "{mac}"' in lines
    assert 'SubnetMask = "255.255.255.0"' in lines
    assert {"IsWakeOnLanSupported = false", "IsWakeOnLanEnabled = false", "IsWakeAble = false"} <= set(lines)
    (waker.work / "ad").write_text(shown)
    with heard_by(manager, wire.folder / "heard") as heard:
        done = waker.tool("condor_power", "-d", "ad")
        assert done.returncode == 0, done.stderr
        assert "manager.trio does not say that it can be woken" in done.stderr
        assert f"sent to {manager.address.rpartition('.')[0]}.255 port 9" in done.stderr
        until(lambda: packets(heard) == ["ff" * 6 + mac.replace(":", "") * 16], "the packet by the ad")
