"""The wake-on-LAN packet, and the networks it is sent into."""

from __future__ import annotations

import socket

import pytest

from condor_actors.machine.power.network_cards import NetworkCard
from condor_actors.machine.power.wake_on_lan import broadcast_of, hardware_address, magic_packet, send_wake

MAC = "52:54:00:12:34:56"


def test_a_packet_is_six_bytes_of_ones_and_sixteen_times_the_address() -> None:
    packet = magic_packet(hardware_address(MAC))
    assert packet == bytes([255] * 6 + [0x52, 0x54, 0, 0x12, 0x34, 0x56] * 16)
    assert len(packet) == 102


@pytest.mark.parametrize("text", [
    "", "52:54:00:12:34", "52:54:00:12:34:56:78", "52-54-00-12-34-56", "52:54:00:12:34:5g", f"{MAC}\n",
    "5:54:00:12:34:56", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00", "\u0665\u0662:54:00:12:34:56",
])
def test_what_is_no_address_of_one_card_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="MAC address"):
        hardware_address(text)


@pytest.mark.parametrize(("address", "mask", "broadcast"), [
    ("10.88.7.3", "255.255.255.0", "10.88.7.255"), ("192.168.5.9", "255.255.252.0", "192.168.7.255"),
    ("10.1.2.3", "255.0.0.0", "10.255.255.255"), ("10.1.2.3", "255.255.255.252", "10.1.2.3"),
    # single hosts, all hosts, no masks, no addresses: not used
    ("10.1.2.3", "255.255.255.255", ""), ("10.1.2.3", "255.255.255.254", ""), ("10.1.2.3", "0.0.0.0", ""),
    ("10.1.2.3", "0.0.0.255", ""), ("10.1.2.3", "255.0.255.0", ""), ("10.1.2.3", "24", ""), ("10.1.2.3", "", ""),
    ("224.0.0.1", "255.255.255.0", ""), ("0.0.0.0", "255.0.0.0", "0.255.255.255"), ("::1", "255.255.255.0", ""),
    ("execute.pool", "255.255.255.0", ""), ("", "255.255.255.0", ""),
])
def test_a_broadcast_address_is_that_of_a_network_of_several_machines(address: str, mask: str, broadcast: str) -> None:
    assert broadcast_of(address, mask) == broadcast


def test_a_packet_that_can_be_sent_nowhere_is_an_error() -> None:
    card = NetworkCard(address="192.0.2.1", mask="255.255.255.0", hardware=MAC)  # an address that is not this machine's
    for cards in ((), (card,)):
        with pytest.raises(OSError, match=r"no network|Cannot assign"):
            send_wake(hardware_address(MAC), "", cards)


def test_a_packet_for_a_network_is_one_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.bind(("127.255.255.255", 0))  # the broadcast address of the loopback's network
        there.settimeout(60)
        port = there.getsockname()[1]
        hardware = hardware_address(MAC)
        assert send_wake(hardware, "127.255.255.255", (), port) == [f"127.255.255.255 port {port}"]
        assert there.recv(4096) == magic_packet(hardware)
