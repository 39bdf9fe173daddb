"""Who sends packets to whom on a wire of network namespaces, as the wire itself sees it."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
from types import TracebackType

__all__ = ["ETH_P_IP", "PacketWatch", "packet_socket"]

CLONE_NEWNET = 0x40000000
ETH_P_ALL, ETH_P_IP = 3, 0x0800
BUFFER_BYTES = 8 << 20


def packet_socket(namespace: str, protocol: int, device: str = "") -> socket.socket:
    """A packet socket in another namespace, into which the calling thread, and no other, is moved for good.

    Args:
        namespace: its name.
        protocol: which frames; those of ``ETH_P_IP`` are only the ones that come in.
        device: of which; empty: of all.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}", "rb") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}: {os.strerror(ctypes.get_errno())}")
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    if device:
        sock.bind((device, protocol))
    return sock


class PacketWatch:
    """Reads every packet that a hub's bridge passes on; a context manager.

    Attributes:
        pairs: (source, destination) of every IPv4 packet so far.
    """

    def __init__(self, hub: str) -> None:
        self.pairs: set[tuple[str, str]] = set()
        self._hub = hub
        self._over = threading.Event()
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PacketWatch:
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            raise self._problem
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            sock = self._open()
        except BaseException as error:
            self._problem = error
            return
        finally:
            self._ready.set()
        with sock:
            while not self._over.is_set():
                try:
                    data, address = sock.recvfrom(64)
                except TimeoutError:
                    continue
                if address[1] == ETH_P_IP and len(data) >= 34:
                    source, to = struct.unpack_from("4s4s", data, 26)
                    self.pairs.add((socket.inet_ntoa(source), socket.inet_ntoa(to)))

    def _open(self) -> socket.socket:
        sock = packet_socket(self._hub, ETH_P_ALL)
        sock.settimeout(0.2)
        return sock
