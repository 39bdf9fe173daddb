"""One parser of addresses: every form that people and daemons write, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import condor_actors
from condor_actors.addresses import BadAddress, is_ipv6, joined_address, split_address
from condor_actors.config import ConfigError, load_config
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.rights import host_of
from condor_actors.services.world import bind_address, listening_port

GOOD = {
    "host": ("host", None), "host.example.org:9618": ("host.example.org", 9618), "10.0.0.1": ("10.0.0.1", None),
    "10.0.0.1:0": ("10.0.0.1", 0), "::1": ("::1", None), "[::1]": ("::1", None), "[::1]:9618": ("::1", 9618),
    " [::1]:1 ": ("::1", 1), "2001:DB8:0:0:0:0:0:1": ("2001:db8::1", None), "fe80::1%eth0": ("fe80::1%eth0", None),
    "[fe80::1%en-0.1]:7": ("fe80::1%en-0.1", 7), "<10.0.0.1:9618>": ("10.0.0.1", 9618),
    "<[::1]:9618>": ("::1", 9618), "<[::1]>": ("::1", None), "<::1>": ("::1", None), "<host>": ("host", None),
    "<10.0.0.1:9618?addrs=10.0.0.1-9618+[--1]-9618&alias=a.b>": ("10.0.0.1", 9618), "::ffff:10.0.0.1":
    ("::ffff:10.0.0.1", None), "a_b-c.d:65535": ("a_b-c.d", 65535),
}  # fmt: skip
BAD = ["", " ", ":", ":1", "host:", "host:x", "host:65536", "host:123456", "host:-1", "host:+1", "host:٣", "a b",
       "[::1", "::1]", "[::1]9618", "[::1]:", "[host]:1", "[10.0.0.1]:1", "1:2:3", "::1:9618x", "<host:1", "host:1>",
       "<>", "<<host>>", "::1%", "fe80::1%a b", "a\0b", "user@host", "host/path", "1::2::3", "h" * 300]


@pytest.mark.parametrize("text", GOOD)
def test_what_an_address_is(text: str) -> None:
    assert split_address(text) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_what_is_none(text: str) -> None:
    with pytest.raises(BadAddress, match="is no address"):
        split_address(text)


def test_whatever_comes_out_goes_in_again() -> None:
    random = Random(1)
    for _ in range(20_000):
        text = "".join(random.choice("0123456789abcfe:::..[]<>?%") for _ in range(random.randrange(1, 14)))
        try:
            host, port = split_address(text)
        except BadAddress:
            continue
        assert split_address(joined_address(host, port or 0)) == (host, port or 0)
        assert (":" in host) == is_ipv6(host)


@pytest.mark.parametrize(("text", "nodes", "port"), [
    ("::1", ("<[::1]:4711>",), 4711), ("[::1]", ("<[::1]:4711>",), 4711), ("[::1]:9", ("<[::1]:9>",), 9),
    ("cm", ("<cm:4711>",), 4711), ("cm:0", ("<cm:0>",), 0), ("<cm:12?a=b>, [::2], cm:12",
                                                              ("<cm:12>", "<[::2]:4711>"), 12),
])  # fmt: skip
def test_where_the_collector_is(text: str, nodes: tuple[str, ...], port: int) -> None:
    config = load_config(files=[], environ={"_CONDOR_COLLECTOR_HOST": text, "_CONDOR_COLLECTOR_PORT": "4711"})
    assert collector_nodes(config) == nodes
    assert listening_port(config, "collector") == port


def test_a_collector_that_is_no_address() -> None:
    config = load_config(files=[], environ={"_CONDOR_COLLECTOR_HOST": "cm:x"})
    with pytest.raises(ConfigError, match="cm:x"):
        collector_nodes(config)


@pytest.mark.parametrize(("node", "host"), [
    ("<CM:1>", "cm"), ("<[2001:DB8:0::1]:1?x>", "2001:db8::1"), ("<cm>", ""), ("cm:1", ""), ("<cm:x>", ""),
    ("unix:/x", ""),
])  # fmt: skip
def test_the_host_of_a_node(node: str, host: str) -> None:
    assert host_of(node) == host


@pytest.mark.parametrize("wanted", ["::1", "[::1]", "0:0:0:0:0:0:0:1"])
def test_a_daemon_may_listen_at_an_ipv6_address(wanted: str) -> None:
    if not Path("/proc/net/if_inet6").exists() or "0" * 31 + "1 " not in Path("/proc/net/if_inet6").read_text():
        pytest.skip("this machine has no IPv6 loopback")
    assert bind_address(load_config(files=[], environ={"_CONDOR_NETWORK_INTERFACE": wanted})) == "::1"


def test_nobody_else_takes_addresses_apart() -> None:
    """Ports are cut off by the one parser alone."""
    root = Path(condor_actors.__file__).parent
    cuts = re.compile(r"""rpartition\(":"\)|rsplit\(":", 1\)""")
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if cuts.search(path.read_text())}
    assert found == {"messages/pool.py", "messages/realm.py", "simulation/world/jobs.py",
                     "simulation/world/network.py"}, "nodes of others are read"
