"""Whose a listening port is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from condor_actors.machine.run.listening import listener

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {uid:>5} 0 1 1 0 0\n"


@pytest.mark.parametrize(("address", "family"), [("127.0.0.1", socket.AF_INET), ("0.0.0.0", socket.AF_INET),
                                                 ("::1", socket.AF_INET6)])
def test_a_real_one(address: str, family: int) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip("this machine has no such address")
        port = server.getsockname()[1]
        assert listener(port, os.getuid()) == ""
        server.listen()
        assert listener(port, os.getuid()) == address.replace("0.0.0.0", "127.0.0.1")
        assert listener(port, os.getuid() + 1) == ""
        with socket.create_connection(server.getsockname()[:2]):
            pass
    assert listener(port, os.getuid()) == ""


def test_tables(tmp_path: Path) -> None:
    assert listener(80, 7, tmp_path) == ""
    (tmp_path / "tcp").write_text(HEAD + ROW.format(address="0201000A", port=80, state="0A", uid=7)
                                  + ROW.format(address="0100007F", port=81, state="01", uid=7) + "   2: nonsense\n")
    (tmp_path / "tcp6").write_text(HEAD + ROW.format(address="0" * 32, port=82, state="0A", uid=7)
                                   + ROW.format(address="0000000000000000FFFF00000100007F", port=83, state="0A", uid=7))
    found = [listener(port, 7, tmp_path) for port in (80, 81, 82, 83)]
    assert found == ["10.0.1.2", "", "::1", "127.0.0.1"]
    assert listener(80, 8, tmp_path) == ""
