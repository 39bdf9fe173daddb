"""Parameters of the gateway, through which pools reach each other."""

from __future__ import annotations

from condor_actors.config.parameter import integer, path, real, words

GATEWAY_DAEMON = "GATEWAY"

ROWS = (
    words(
        "GATEWAY_HOST",
        None,
        "This pool's gateways: host, or host:port. What this machine has to say to machines of other pools goes through"
        " the first of them that has a circuit. Unset: such machines are dialled.",
    ),
    integer("GATEWAY_PORT", 9619, "The port of a gateway.", low=0, high=65535, change="restart"),
    integer(
        "GATEWAY_MAX_STREAMS", 4096, "How many connections a gateway carries for one partner, or for one machine or"
        " user of its own pool, at a time.", low=1, read_by=GATEWAY_DAEMON,
    ),
    integer(
        "GATEWAY_MAX_OPENING", 128, "How many connections of one partner, or of one machine or user of its own pool, a"
        " gateway makes at a time.", low=1, read_by=GATEWAY_DAEMON,
    ),
    real(
        "GATEWAY_MAX_RATE", 100, "How many connections to this pool's machines a partner may want in a second; three"
        " seconds' worth may come at once.", low=0.1, read_by=GATEWAY_DAEMON,
    ),
    path("GATEWAY", "$(SBIN)/condor_gateway", "Stands for the gateway when DAEMON_LIST has an instance:"
         " EAST = $(GATEWAY).", read_by="MASTER"),
)
