"""The names of nodes in DAG files: a layer, and a number in it."""

from __future__ import annotations

import abc

from condor_actors.compat.htcondor2.dags.exceptions import CannotInvertFormat, LayerNameContainsSeparator

DEFAULT_SEPARATOR = ":"


class NodeNameFormatter(abc.ABC):
    """Makes the names of nodes, and reads them."""

    @abc.abstractmethod
    def generate(self, layer_name: str, node_index: int) -> str:
        """The name of a node of a layer."""
        raise NotImplementedError

    @abc.abstractmethod
    def parse(self, node_name: str) -> tuple[str, int]:
        """Layer and number of a node, from its name; rescue files are read by it."""
        raise NotImplementedError


class SimpleFormatter(NodeNameFormatter):
    """Names like ``layer:5``.

    Args:
        separator: stands between layer and number.
        index_format: how the number is written.
        offset: what the first number is.
    """

    def __init__(self, separator: str = DEFAULT_SEPARATOR, index_format: str = "{:d}", offset: int = 0) -> None:
        self.separator = separator
        self.index_format = index_format
        self.offset = offset

    def generate(self, layer_name: str, node_index: int) -> str:
        """The name of a node.

        Raises:
            LayerNameContainsSeparator: the layer's name has the separator in it.
            CannotInvertFormat: the name does not lead back.
        """
        if self.separator in layer_name:
            raise LayerNameContainsSeparator(
                f"the layer's name {layer_name!r} has the separator {self.separator!r} in it; choose another separator")
        name = layer_name + self.separator + self.index_format.format(node_index + self.offset)
        if self.parse(name) != (layer_name, node_index):
            raise CannotInvertFormat(f"the name {name!r} does not lead back to node {node_index} of {layer_name!r}")
        return name

    def parse(self, node_name: str) -> tuple[str, int]:
        """Layer and number.

        Raises:
            CannotInvertFormat: there is no number.
        """
        layer, _, number = node_name.rpartition(self.separator)
        try:
            return layer, int(number) - self.offset
        except ValueError:
            raise CannotInvertFormat(f"the name {node_name!r} does not end with a number behind "
                                     f"{self.separator!r}") from None
