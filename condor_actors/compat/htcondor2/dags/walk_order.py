"""In which order the nodes of a DAG are walked over."""

from __future__ import annotations

import enum


class WalkOrder(str, enum.Enum):
    """Children before siblings, or siblings before children."""

    DEPTH_FIRST = "DEPTH"
    BREADTH_FIRST = "BREADTH"

    def __repr__(self) -> str:
        return f"WalkOrder.{self.name}"
