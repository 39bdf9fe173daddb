"""Who is at the other end of a local socket."""

from __future__ import annotations

import pwd
import socket
import struct

from condor_actors.messages.envelope import Identity

_CREDENTIALS = struct.Struct("3i")


def user_name(uid: int) -> str:
    """The login name of a uid; ``uid1234`` when it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid{uid}"


def local_identity(connected: socket.socket, uid_domain: str) -> Identity:
    """The identity of the process at the other end of a connected UNIX socket, as the kernel knows it.

    Args:
        connected: the socket.
        uid_domain: what follows the ``@``.
    """
    data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(data)
    return Identity(name=f"{user_name(uid)}@{uid_domain}", method="local", uid=uid, pid=pid)
