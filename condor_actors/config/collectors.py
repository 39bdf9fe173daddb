"""Where the pool's collectors and gateways are."""

from __future__ import annotations

from condor_actors.addresses import BadAddress, joined_address, split_address
from condor_actors.config.config import Config

__all__ = ["collector_nodes", "gateway_nodes"]


def collector_nodes(config: Config) -> tuple[str, ...]:
    """The nodes of the collectors that COLLECTOR_HOST names, ``<host:port>`` each; COLLECTOR_PORT where it names none.

    Raises:
        ConfigError: one of them is no address.
    """
    return _nodes(config, "COLLECTOR_HOST", "COLLECTOR_PORT")


def gateway_nodes(config: Config) -> tuple[str, ...]:
    """The nodes of the pool's gateways that GATEWAY_HOST names; GATEWAY_PORT where it names none.

    Raises:
        ConfigError: one of them is no address.
    """
    return _nodes(config, "GATEWAY_HOST", "GATEWAY_PORT")


def _nodes(config: Config, name: str, port_name: str) -> tuple[str, ...]:
    nodes = []
    for word in config.list_of(name):
        try:
            host, port = split_address(word)
        except BadAddress as error:
            raise config.unusable(name, str(error), "host or host:port", value=word) from None
        nodes.append(f"<{joined_address(host, config.integer(port_name) if port is None else port)}>")
    return tuple(dict.fromkeys(nodes))
