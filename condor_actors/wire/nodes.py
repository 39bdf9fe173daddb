"""Node names: ``unix:/path`` and ``<host:port>``.  Imports little: the tools load it."""

from __future__ import annotations

import os

from condor_actors.addresses import BadAddress, joined_address, split_address
from condor_actors.messages.realm import parted, realm_of_host
from condor_actors.records import NamedTuple

DEFAULT_PORT = 9618
SUN_PATH_BYTES = 100


class BadNode(ValueError):
    """A text that names no node."""


class UnixNode(NamedTuple):
    """A daemon of this machine, by the path of its socket."""

    path: str


class TlsNode(NamedTuple):
    """A daemon that listens for TLS."""

    host: str
    port: int

    @property
    def realm(self) -> str:
        """The pool that the machine belongs to; empty: this one."""
        return realm_of_host(self.host)

    @property
    def name(self) -> str:
        """What that pool calls the machine: this is what is dialled, and what its certificate names."""
        return parted(self.host)[0] if self.realm else self.host

    def __str__(self) -> str:
        return f"<{joined_address(self.host, self.port)}>"


def parse_node(node: str) -> UnixNode | TlsNode:
    """What a node's text means.

    Raises:
        BadNode: neither ``unix:/path`` nor ``<host:port>``.
    """
    if node.startswith("unix:/"):
        return UnixNode(node[5:])
    if node.startswith("<") and node.endswith(">"):
        try:
            host, port = split_address(node)
        except BadAddress:
            port = None
        if port:
            return TlsNode(host, port)
    raise BadNode(f"{node[:200]!r} is no address; expected unix:/path or <host:port>")


def tls_node(text: str, default_port: int = DEFAULT_PORT) -> TlsNode:
    """The node that people write as ``host``, ``host:port``, ``[v6]:port`` or ``<host:port>``.

    Raises:
        BadNode: none of these.
    """
    try:
        host, port = split_address(text)
    except BadAddress as error:
        raise BadNode(str(error)) from None
    if port == 0 or (port is None and not default_port):
        raise BadNode(f"{text[:200]!r} names no port")
    return TlsNode(host, port or default_port)


def is_address(host: str) -> bool:
    """Whether ``host`` is an IP address rather than a name."""
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def short_socket_path(path: str) -> tuple[str, int | None]:
    """A spelling of ``path`` that fits into a socket address.

    Returns:
        The spelling, and a descriptor of its directory that must stay open while it is used (None: not needed).
    """
    if len(os.fsencode(path)) <= SUN_PATH_BYTES:
        return path, None
    directory, name = os.path.split(path)
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{descriptor}/{name}", descriptor


def somebody_listens(path: str) -> bool:
    """Whether a process accepts connections at this UNIX socket."""
    import socket

    spelling, descriptor = short_socket_path(path)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            probe.connect(spelling)
            return True
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
