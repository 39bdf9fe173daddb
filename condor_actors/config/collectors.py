"""Where the pool's collectors are."""

from __future__ import annotations

from condor_actors.addresses import BadAddress, joined_address, split_address
from condor_actors.config.config import Config
from condor_actors.config.errors import ConfigError

__all__ = ["collector_nodes"]


def collector_nodes(config: Config) -> tuple[str, ...]:
    """The nodes of the collectors that COLLECTOR_HOST names, ``<host:port>`` each; COLLECTOR_PORT where it names none.

    Raises:
        ConfigError: one of them is no address.
    """
    nodes = []
    for word in config.list_of("COLLECTOR_HOST"):
        try:
            host, port = split_address(word)
        except BadAddress as error:
            file, line = config.where("COLLECTOR_HOST")
            raise ConfigError(str(error), file=file, line=line or None, name="COLLECTOR_HOST", value=word,
                              expected="host or host:port") from None
        nodes.append(f"<{joined_address(host, config.integer('COLLECTOR_PORT') if port is None else port)}>")
    return tuple(dict.fromkeys(nodes))
