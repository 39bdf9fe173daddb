"""The packet that wakes a machine, and where it is sent.

Theory: a sleeping machine has no IP address; its card looks for six bytes 0xFF and then sixteen times its own MAC
address in any frame.  So the packet is broadcast, by UDP to the discard port: into the machine's own network where its
address and mask are known (a router may pass it on or not), otherwise into every network of this machine.  A datagram
to 255.255.255.255 leaves by the card whose address it is sent from.

The address and the mask come from the ad of the machine.  A mask that names no network of several machines is not used:
so an ad cannot have the packet sent to a single host.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from condor_actors.machine.power.network_cards import NetworkCard

__all__ = ["DISCARD_PORT", "broadcast_of", "hardware_address", "magic_packet", "send_wake"]

DISCARD_PORT = 9
EVERYWHERE = "255.255.255.255"
REPEATS = 16
WIDEST, NARROWEST = 8, 30
"""The prefix lengths of networks that have a broadcast address of their own."""
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\Z")


def hardware_address(text: str) -> bytes:
    """The six bytes of a MAC address.

    Raises:
        ValueError: it is none of one machine; says what one looks like.
    """
    if not _MAC.match(text):
        raise ValueError(f"{text!r} is no MAC address; one looks like 52:54:00:12:34:56")
    found = bytes.fromhex(text.replace(":", ""))
    if found[0] & 1 or not any(found):
        raise ValueError(f"{text} is not the MAC address of one card")
    return found


def magic_packet(hardware: bytes) -> bytes:
    """The packet for a card."""
    return b"\xff" * len(hardware) + hardware * REPEATS


def broadcast_of(address: str, mask: str) -> str:
    """The broadcast address of the network of an IPv4 address; empty: it has none, or they are none."""
    try:
        network = IPv4Network((IPv4Address(address), mask), strict=False)
    except ValueError:
        return ""
    usable = WIDEST <= network.prefixlen <= NARROWEST and str(network.netmask) == mask and not (
        network.is_multicast or network.is_unspecified)
    return str(network.broadcast_address) if usable else ""


def send_wake(hardware: bytes, broadcast: str, cards: Iterable[NetworkCard], port: int = DISCARD_PORT) -> list[str]:
    """Send the packet; where it went, as ``ADDRESS port PORT``.

    Args:
        hardware: the card's address.
        broadcast: of the machine's network; empty: every network of this machine.
        cards: of this machine.

    Raises:
        OSError: it could be sent nowhere.
    """
    packet = magic_packet(hardware)
    if broadcast:
        _send(packet, "", broadcast, port)
        return [f"{broadcast} port {port}"]
    sent, failed = list[str](), OSError("this machine has no network")
    for source in dict.fromkeys(card.address for card in cards if card.mask):
        try:
            _send(packet, source, EVERYWHERE, port)
        except OSError as error:  # this network is down; the machine may hang on another one
            failed = error
        else:
            sent.append(f"{EVERYWHERE} port {port} from {source}")
    if not sent:
        raise failed
    return sent


def _send(packet: bytes, source: str, to: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        if source:
            out.bind((source, 0))
        out.sendto(packet, (to, port))
