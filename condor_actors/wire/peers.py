"""Who is at the other end of a local socket."""

from __future__ import annotations

import socket
import struct
import sys
from _socket import socket as AnySocket  # noqa: N812

from condor_actors import accounts
from condor_actors.messages.envelope import Identity

_CREDENTIALS = struct.Struct("3i")
_DIAG_REQUEST = struct.Struct("=IHHII BBBBI 2s2s16s16sIII".replace(" ", ""))
_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST, _ALL_STATES, _NO_COOKIE = 4, 20, 1, 0xFFFFFFFF, 0xFFFFFFFF
_UID_OFFSET = 16 + 4 + 48 + 12
"""Where the answer has the uid: behind the header of netlink, four bytes, the socket's id, three numbers."""


def user_name(uid: int) -> str:
    """The login name of a uid; ``uid1234`` when it has none.

    Raises:
        NotYet: the user database has not said so far.
    """
    found = accounts.numbered(uid)
    return found.name if found is not None else f"uid{uid}"


def peer_uid(connected: socket.socket) -> int:
    """The user at the other end of a connected UNIX socket, as the kernel knows it."""
    return peer_process(connected)[1]


def peer_process(connected: AnySocket) -> tuple[int, int]:
    """The process and the user at the other end of a connected UNIX socket, as the kernel knows them."""
    data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(data)
    return pid, uid


def local_identity(connected: socket.socket, uid_domain: str) -> Identity:
    """The identity of the process at the other end of a connected UNIX socket, as the kernel knows it.

    Args:
        connected: the socket.
        uid_domain: what follows the ``@``.

    Raises:
        NotYet: the user database has not said who it is.
    """
    pid, uid = peer_process(connected)
    return Identity(name=f"{user_name(uid)}@{uid_domain}", method="local", uid=uid, pid=pid)


def loopback_uid(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """Whose socket is at the other end of a TCP connection within this machine; None when the kernel does not say.

    Args:
        peer, own: address and port of the two ends.
    """
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET

    def packed(host: str) -> bytes:
        return socket.inet_pton(family, host).ljust(16, b"\0")

    ports = peer[1].to_bytes(2, "big"), own[1].to_bytes(2, "big")
    request = _DIAG_REQUEST.pack(
        _DIAG_REQUEST.size, _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0, family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES,
        *ports, packed(peer[0]), packed(own[0]), 0, _NO_COOKIE, _NO_COOKIE)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as diag:
            diag.send(request)
            answer = diag.recv(4096, socket.MSG_DONTWAIT)
    except OSError:
        return None
    if len(answer) < _UID_OFFSET + 4 or int.from_bytes(answer[4:6], sys.byteorder) != _SOCK_DIAG_BY_FAMILY:
        return None
    return int.from_bytes(answer[_UID_OFFSET:_UID_OFFSET + 4], sys.byteorder)
