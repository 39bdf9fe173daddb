"""What the kernel says of network cards."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from condor_actors.machine.power.network_cards import NetworkCard, network_cards

MAC = "52:54:00:12:34:AB"


def row(family: int, address: str, netmask: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(family=family, address=address, netmask=netmask)


@pytest.mark.parametrize(("word", "can_wake", "wakes"), [
    ("enabled\n", True, True), ("disabled\n", True, False), ("\n", False, False), (None, False, False),
])
def test_a_card_wakes_the_machine_by_the_kernels_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str | None, can_wake: bool, wakes: bool
) -> None:  # fmt: skip
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {
        "lo": [row(socket.AF_INET, "127.0.0.1", "255.0.0.0"), row(psutil.AF_LINK, "00:00:00:00:00:00")],
        "ib0": [row(socket.AF_INET, "10.1.0.1", "255.255.0.0"), row(psutil.AF_LINK, ":".join(["80"] * 20))],
        "eth0": [row(socket.AF_INET, "10.0.0.7", "255.255.255.0"), row(socket.AF_INET6, "fe80::7%eth0", "ffff::"),
                 row(psutil.AF_LINK, MAC)],
    })
    if word is not None:
        file = tmp_path / "eth0" / "device" / "power" / "wakeup"
        file.parent.mkdir(parents=True)
        file.write_text(word)
    assert network_cards(tmp_path) == (
        NetworkCard(address="10.0.0.7", mask="255.255.255.0", hardware=MAC.lower(), can_wake=can_wake, wakes=wakes),
        NetworkCard(address="fe80::7", mask="", hardware=MAC.lower(), can_wake=can_wake, wakes=wakes))


def test_the_cards_of_this_machine_are_no_loopback() -> None:
    assert not [card for card in network_cards() if card.address in ("127.0.0.1", "::1")]
