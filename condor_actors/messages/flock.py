"""Flock: what the gateways of two pools say to each other, and what administrators ask them."""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import message


@message
@records.frozen(kw_only=True)
class AnnounceGateway:
    """A gateway to a partner's that it has dialled: over this link I take orders for circuits.  Answer: Done or
    Refused."""

    KIND: ClassVar[str] = "condor.flock.AnnounceGateway"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"


@message
@records.frozen(kw_only=True)
class OpenCircuit:
    """A gateway to one that has announced itself: bring me a circuit to a machine of yours.  Answer: Done or Refused.

    Attributes:
        circuit: its number, which only the two gateways know; the connection that is brought shows it.
        node: ``<host:port>``, as the asked pool names it.
    """

    KIND: ClassVar[str] = "condor.flock.OpenCircuit"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    circuit: str = records.field(repr=False)
    node: str


@message
@records.frozen(kw_only=True)
class QueryGateway:
    """What does the gateway carry?  Answer: :class:`GatewayState`."""

    KIND: ClassVar[str] = "condor.flock.QueryGateway"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"


@records.frozen(kw_only=True)
class PartnerState:
    """A partner, as a gateway sees it.

    Attributes:
        name: the pool.
        route: how it is reached, or why not.
        is_reached: whether it is.
        streams: connections that are carried now.
        opening: of those, how many are being made.
        carried: connections so far, since the gateway was started.
        refused: how many more were asked for, by it or for it, and refused.
        bytes_out, bytes_in: to it and from it.
    """

    name: str
    route: str
    is_reached: bool
    streams: int
    opening: int
    carried: int
    refused: int
    bytes_out: int
    bytes_in: int


@message
@records.frozen(kw_only=True)
class GatewayState:
    """The partners of a gateway."""

    KIND: ClassVar[str] = "condor.flock.GatewayState"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    partners: tuple[PartnerState, ...]
