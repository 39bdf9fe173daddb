"""Where the pool's collectors are."""

from __future__ import annotations

from condor_actors.config.config import Config

__all__ = ["collector_nodes"]


def collector_nodes(config: Config) -> tuple[str, ...]:
    """The nodes of the collectors that COLLECTOR_HOST names, ``<host:port>`` each."""
    nodes = []
    for word in config.list_of("COLLECTOR_HOST"):
        address = word.partition("?")[0].strip("<>")
        if ":" not in address.rpartition("]")[2]:
            address = f"{address}:{config.integer('COLLECTOR_PORT')}"
        nodes.append(f"<{address}>")
    return tuple(dict.fromkeys(nodes))
