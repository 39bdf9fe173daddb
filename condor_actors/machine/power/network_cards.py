"""The network cards of this machine: their addresses, and whether they can wake it.

Theory: addresses are the kernel's; whether a card may wake the machine is what
``/sys/class/net/<card>/device/power/wakeup`` says: ``enabled``, ``disabled``, or nothing where the card or its driver
cannot do it.  Every account can read that file; the card's own flags (ethtool) only root could.  A card without a
device (a bridge, a tunnel) cannot wake anything.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import attrs
import psutil

__all__ = ["NetworkCard", "network_cards"]

NO_ADDRESS = "00:00:00:00:00:00"
OCTETS = 6


@attrs.frozen(kw_only=True)
class NetworkCard:
    """A card, once for each of its IP addresses.

    Attributes:
        address: the IP address, without a zone.
        mask: of its IPv4 network, as ``255.255.255.0``; empty for IPv6.
        hardware: the MAC address, in lower case with colons.
        can_wake: whether the card can wake the machine.
        wakes: whether that is enabled.
    """

    address: str
    mask: str
    hardware: str
    can_wake: bool = False
    wakes: bool = False


def network_cards(net: Path = Path("/sys/class/net")) -> tuple[NetworkCard, ...]:
    """The cards that have an Ethernet address and an IP address; ``net``: where the kernel describes them."""
    return tuple(_cards(net))


def _cards(net: Path) -> Iterator[NetworkCard]:
    for name, rows in psutil.net_if_addrs().items():
        hardware = next((row.address.lower() for row in rows if row.family == psutil.AF_LINK), "")
        if hardware == NO_ADDRESS or hardware.count(":") != OCTETS - 1:
            continue
        word = _wakeup(net / name / "device" / "power" / "wakeup")
        for row in rows:
            if row.family in (socket.AF_INET, socket.AF_INET6):
                yield NetworkCard(
                    address=row.address.partition("%")[0], hardware=hardware, can_wake=bool(word),
                    mask=row.netmask or "" if row.family == socket.AF_INET else "", wakes=word == "enabled")


def _wakeup(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
