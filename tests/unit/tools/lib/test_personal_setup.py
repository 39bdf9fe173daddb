"""Where a personal pool listens."""

from __future__ import annotations

import socket
from pathlib import Path

from condor_actors.tools.lib.personal_setup import LOWEST_PORT, free_port


def test_the_port_is_none_that_the_kernel_may_give_to_another_process_meanwhile() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = {free_port() for _ in range(20)}
    assert len(ports) > 1, "two pools that are made at once choose others"
    assert all(LOWEST_PORT <= port < lowest for port in ports)
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
