"""What kind of world a seed stands for."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["WorldKind"]


@attrs.frozen(kw_only=True)
class WorldKind:
    """The kind of world.

    Attributes:
        raises: whether turns and I/O edges of actors raise as well.
        pools: how many there are; of several, each has so many machines that run jobs, and they flock directly.
        scale: of the map of 1994, whose pools are joined by gateways: each has this part of its machines of then;
            0: it is not that map.
        workflows: whether there are workflows beside jobs, in one pool.
        gangs: whether there are gangs beside jobs, in one pool of desktops.
    """

    raises: bool = False
    pools: int = 1
    scale: float = 0.0
    workflows: bool = False
    gangs: bool = False

    def words(self) -> str:
        """The options of ``condor_simulate`` that ask for it."""
        return (f"{' --raises' if self.raises else ''}{f' --pools {self.pools}' if self.pools > 1 else ''}"
                f"{f' --sites {self.scale:g}' if self.scale else ''}{' --workflows' if self.workflows else ''}"
                f"{' --gangs' if self.gangs else ''}")

    def plain(self) -> dict[str, Any]:
        """For JSON: what is not as usual."""
        usual = attrs.asdict(WorldKind())
        return {name: value for name, value in attrs.asdict(self).items() if value != usual[name]}
