"""condor_power: which cards are woken, and by which networks."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.machine.power.network_cards import NetworkCard
from condor_actors.tools.pool import power

MAC, OTHER = "52:54:00:12:34:56", "52:54:00:12:34:57"
CARDS = tuple(
    NetworkCard(address=address, mask=mask, hardware=OTHER)
    for address, mask in (("10.0.0.9", "255.255.255.0"), ("10.1.0.9", "255.255.255.0"), ("10.2.0.9", "255.255.0.0"))
)
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Card, broadcast address and port of each packet; none leaves this machine."""
    packets: list[tuple[str, str, int]] = []

    def send(hardware: bytes, broadcast: str, cards: tuple[NetworkCard, ...], port: int) -> list[str]:
        packets.append((hardware.hex(":"), broadcast, port))
        return [f"{broadcast} port {port}"]

    monkeypatch.setattr(power, "send_wake", send)
    monkeypatch.setattr(power, "network_cards", lambda: CARDS)
    return packets


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The exit status, and standard error."""

    def called(*words: str, text: str = "") -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["condor_power", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        try:
            status = power.main()
        except SystemExit as left:
            status = int(left.code or 0)
        return status, capsys.readouterr().err

    return called


def ad(machine: str, mac: str, address: str = "<10.0.0.5:9618?alias=x>", mask: str = "255.255.255.0",
       able: str = "true") -> str:
    return (f'Machine = "{machine}"\nHardwareAddress = "{mac}"\nMyAddress = "{address}"\nSubnetMask = "{mask}"\n'
            f"IsWakeAble = {able}\n\n")


def test_a_card_is_woken_in_all_networks_or_those_with_a_mask(run: Run, sent: list[tuple[str, str, int]]) -> None:
    assert run("-m", MAC) == (0, "")
    assert run("-m", MAC, "-s", "255.255.255.0", "-p", "7", "-d")[1].count("sent to 10.") == 2
    assert sent == [(MAC, "", 9), (MAC, "10.0.0.255", 7), (MAC, "10.1.0.255", 7)]
    status, said = run("-m", MAC, "-s", "255.255.255.240")
    assert (status, "no network of this machine has that mask" in said) == (1, True)


def test_machines_of_ads_are_woken_once_each(run: Run, sent: list[tuple[str, str, int]], tmp_path: Path) -> None:
    slots = ad("a", MAC) + ad("a", MAC) + ad("b", OTHER, "<b.pool:9618>", able="false")
    status, said = run(text=slots)
    assert (status, said.count("IsWakeAble")) == (0, 1)
    assert "b does not say" in said
    (tmp_path / "ads").write_text(ad("a", MAC, mask="255.255.255.255"))
    assert run("-i", str(tmp_path / "ads"), "-s", "255.255.255.0") == (0, "")
    assert sent == [(MAC, "10.0.0.255", 9), (OTHER, "", 9), (MAC, "", 9)]


@pytest.mark.parametrize(("words", "text", "reason"), [
    (("-m", "x"), "", "'x' is no MAC address"),
    (("-m", "ff:ff:ff:ff:ff:ff"), "", "not the MAC address of one card"),
    (("-m", MAC, "-p", "0"), "", "a port is a number from 1 to 65535"),
    (("-m", MAC, "-p", "70000"), "", "a port is a number"),
    (("-m", MAC, "-p", "\u0663"), "", "a port is a number"),
    (("-m", MAC, "file"), "", "name one machine"),
    (("a", "b"), "", "name one machine"),
    (("-i", "-m", MAC), ad("m", MAC), "name one machine"),
    (("/nonexistent/ad",), "", "/nonexistent/ad: No such file"),
    ((), "", "standard input has no ad"),
    ((), "Machine = (\n", "standard input: "),
    ((), 'Machine = "m"\n', "m: its ad has no HardwareAddress"),
    ((), ad("m", "x y"), "m: HardwareAddress: 'x y' is no MAC"),
    (("-z",), "", "-z is not a valid option"),
])
def test_what_cannot_be_woken_is_said(run: Run, sent: list[tuple[str, str, int]], words: tuple[str, ...], text: str,
                                      reason: str) -> None:
    status, said = run(*words, text=text)
    assert status == 1
    assert reason in said
    assert not sent
