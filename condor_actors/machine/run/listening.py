"""At which address of this machine an account listens on a TCP port.

Theory: the kernel's tables of sockets (/proc/net/tcp, tcp6) say for each the state, the address and whose it is;
anybody may read them, and they are those of the reader's network namespace.
"""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

__all__ = ["listener"]

LISTENS = "0A"
TABLES = (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6))
LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def listener(port: int, uid: int, net: Path = Path("/proc/net")) -> str:
    """The address to connect to; empty: the account does not listen on that port.

    Args:
        port: of TCP.
        uid: whose socket it must be.
        net: the folder of the tables.
    """
    for name, family in TABLES:
        try:
            rows = (net / name).read_text().splitlines()[1:]
        except OSError:
            continue  # a kernel without that family
        for row in rows:
            fields = row.split()
            if len(fields) > 7 and fields[3] == LISTENS and fields[7] == str(uid):
                address, _, own_port = fields[1].partition(":")
                if int(own_port, 16) == port:
                    return _reachable(address, family)
    return ""


def _reachable(shown: str, family: socket.AddressFamily) -> str:
    """The address in words of 32 bits, each in this machine's order of bytes; all addresses: the loopback's."""
    words = [int(shown[at:at + 8], 16) for at in range(0, len(shown), 8)]
    address = ipaddress.ip_address(b"".join(word.to_bytes(4, "little") for word in words))
    if address.is_unspecified:
        return LOOPBACK[family]
    return str(getattr(address, "ipv4_mapped", None) or address)
