"""What can be wrong with a DAG that is being written."""

from __future__ import annotations


class DAGsException(Exception):
    """Any of them."""


class OneToOneEdgeNeedsSameNumberOfVars(DAGsException):
    """Two layers of different sizes cannot be connected one to one."""


class IncompatibleGrouper(DAGsException):
    """The chunks of two layers do not go together."""


class DuplicateNodeName(DAGsException):
    """The DAG has a node of that name."""


class UnrecognizedWalkOrder(DAGsException):
    """There is no such order."""


class LayerNameContainsSeparator(DAGsException):
    """The name of a layer cannot be told from the numbers of its nodes."""


class NoRescueFileFound(DAGsException):
    """There is no rescue file."""


class CannotInvertFormat(DAGsException):
    """The name of a node does not lead back to its layer and number."""
