"""What is between sites that are wires of network namespaces: distance, firewalls, cables that break, and a record.

Theory: each site's bridge has a cable to a namespace that forwards nothing by itself.  A thread reads every IPv4
packet that a site's machines send to their router, notes who sends to whom, and hands it on to the other site after the
time that the way takes; so no module of the kernel is needed, and a packet that is not noted gets nowhere.  Every
machine has a route to every other one: what the record does not show, nobody has tried.  The sites' firewalls are here,
too: only gateways exchange packets with other sites, and gateways that hide cannot be dialled.
"""

from __future__ import annotations

import heapq
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping
from select import select

from tests.harness.namespaces import ip, mac_of
from tests.harness.packets import ETH_P_IP, packet_socket

__all__ = ["Internet"]

ROUTER_MAC = "02:ca:00:00:00:01"
SOL_PACKET, PACKET_VNET_HDR = 263, 15
"""With this option each frame has ten bytes before it that say which work is left to the network card: checksums and
cutting into segments, which hosts leave to it.  They are handed on as they came."""
CARD_BYTES, ETHERNET_BYTES = 10, 14
TCP, SYN, ACK = 6, 0x02, 0x10
FRAME_MOST = 1 << 17


class Internet(threading.Thread):
    """Joins sites; a context manager.

    Args:
        tag: for names.
        subnets: of each site, the first three numbers of its addresses.
        delays_s: one way, by (from, to); 0 where there is none.

    Attributes:
        gateways: addresses that may exchange packets with other sites.
        hidden: those of them that cannot be dialled.
        pairs: how many packets were handed on, by (source, destination).
        strays: those that a firewall kept, because an end is no gateway; such to no site at all (a name server) are not
            counted.
        dials: those that a firewall kept, because they would have opened a connection to a gateway that hides.
    """

    def __init__(self, tag: str, subnets: Mapping[str, str], delays_s: Mapping[tuple[str, str], float]) -> None:
        super().__init__(name="internet", daemon=True)
        self.gateways: set[str] = set()
        self.hidden: set[str] = set()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.strays: Counter[tuple[str, str]] = Counter()
        self.dials: Counter[tuple[str, str]] = Counter()
        self._namespace = f"{tag}net"
        self._subnets = dict(subnets)
        self._sites = {subnet: site for site, subnet in subnets.items()}
        self._delays_s = dict(delays_s)
        self._cut: frozenset[tuple[str, str]] = frozenset()
        self._due: list[tuple[float, int, str, bytes]] = []
        self._number = 0
        self._sockets: dict[str, socket.socket] = {}
        self._over = threading.Event()
        self._ready = threading.Event()
        self._problem: BaseException | None = None

    def router(self, site: str) -> tuple[str, str]:
        """The address and the MAC address of a site's way out."""
        return f"{self._subnets[site]}.254", ROUTER_MAC

    def plug_in(self, hub: str, site: str) -> None:
        """Lay the cable from a site's bridge; before :meth:`start`."""
        number = list(self._subnets).index(site)
        ip("link", "add", "out", "netns", hub, "type", "veth", "peer", "name", f"site{number}", "address", ROUTER_MAC,
           "netns", self._namespace)
        ip("-n", hub, "link", "set", "out", "master", "br0", "up")
        ip("-n", self._namespace, "link", "set", f"site{number}", "up")

    def cut(self, one: str, other: str, *, both: bool = True) -> None:
        """From now on nothing that one site sends gets to another one, and nobody is told."""
        self._cut |= {(one, other), (other, one)} if both else {(one, other)}

    def mend(self, one: str, other: str) -> None:
        """Packets get through again, in both directions."""
        self._cut -= {(one, other), (other, one)}

    def __enter__(self) -> Internet:
        ip("netns", "add", self._namespace)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.is_alive():
            self.join()
        subprocess.run(["ip", "netns", "del", self._namespace], check=False, capture_output=True)

    def start(self) -> None:
        """Begin to hand packets on; the cables are laid."""
        super().start()
        self._ready.wait()
        if self._problem is not None:
            raise self._problem

    def run(self) -> None:
        """Until the end of the context."""
        try:
            for number, site in enumerate(self._subnets):
                sock = self._sockets[site] = packet_socket(self._namespace, ETH_P_IP, f"site{number}")
                sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
                sock.setblocking(False)
        except BaseException as error:
            self._problem = error
            return
        finally:
            self._ready.set()
        while not self._over.is_set():
            wait_s = 0.2 if not self._due else max(0.0, min(0.2, self._due[0][0] - time.monotonic()))
            for sock in select(list(self._sockets.values()), [], [], wait_s)[0]:
                self._take(sock)
            self._deliver(time.monotonic())
        for sock in self._sockets.values():
            sock.close()

    def _take(self, sock: socket.socket) -> None:
        """What has come from a site: noted, and to be delivered when its time is over."""
        for _ in range(64):
            try:
                data = sock.recv(FRAME_MOST)
            except OSError:  # there is no more, or the site has just been taken away
                return
            frame = data[CARD_BYTES:]
            if len(frame) >= ETHERNET_BYTES + 20 and frame[:6] == _bytes_of(ROUTER_MAC):
                self._route(data, frame[ETHERNET_BYTES:])

    def _route(self, data: bytes, packet: bytes) -> None:
        source, to = (socket.inet_ntoa(each) for each in struct.unpack_from("4s4s", packet, 12))
        here, there = (self._sites.get(address.rpartition(".")[0]) for address in (source, to))
        if here is None or there is None:
            return
        if not {source, to} <= self.gateways:
            self.strays[source, to] += 1
        elif to in self.hidden and _opens(packet):
            self.dials[source, to] += 1
        elif (here, there) not in self._cut:
            self.pairs[source, to] += 1
            self._number += 1
            addressed = _bytes_of(mac_of(to)) + _bytes_of(ROUTER_MAC)
            sent = data[:CARD_BYTES] + addressed + data[CARD_BYTES + len(addressed):]
            due_s = time.monotonic() + self._delays_s.get((here, there), 0.0)
            heapq.heappush(self._due, (due_s, self._number, there, sent))

    def _deliver(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            *_, site, data = heapq.heappop(self._due)
            try:
                self._sockets[site].send(data)
            except OSError:  # as on any way: a packet that does not get through is sent again
                continue


def _opens(packet: bytes) -> bool:
    """Whether a packet would open a TCP connection."""
    at = (packet[0] & 15) * 4 + 13
    return packet[9] == TCP and len(packet) > at and packet[at] & (SYN | ACK) == SYN


def _bytes_of(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
