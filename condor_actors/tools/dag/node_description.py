"""The submit description of a node, read with the macros that its DAG gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from condor_actors.dag.definitions import Node, Variable
from condor_actors.submit import Cluster, Description, Environment, Options
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.lines import LineReader
from condor_actors.submit.queue_statement import is_queue

__all__ = ["describe", "folder_of"]


def folder_of(node: Node, cwd: str) -> str:
    """Where a node is submitted from, absolute."""
    return node.directory if node.directory.startswith("/") else f"{cwd}/{node.directory}" if node.directory else cwd


def describe(node: Node, world: Environment, reserve: Callable[[], int], macros: Mapping[str, str],
             commands: Mapping[str, str] | None = None, *, appends: bool = False,
             warn: Callable[[str], object] = str) -> Cluster:
    """The cluster that a node asks for.

    Args:
        node: one that has a description.
        world: what the description may see; its directory is the node's.
        reserve: gives the number of the cluster.
        macros: what stands before the description; ``commands``: behind it, and before the node's own variables.
        appends: whether variables that do not say stand behind the description's own commands.
        warn: is told of what the description has without effect.

    Raises:
        SubmitError: the description is wrong.
        OSError: its file cannot be read.
    """
    source = node.description
    text = node.inline if node.inline is not None else world.files.read_text(
        source if source.startswith("/") else f"{world.cwd}/{source}")
    before = [*macros.items(), *((each.name, each.value) for each in node.variables if not _appended(each, appends))]
    behind = (*(f"{name} = {value}" for name, value in (commands or {}).items()),
              *(f"{each.name} = {each.value}" for each in node.variables if _appended(each, appends)))
    has_queue = any(line.block is None and is_queue(line.text) for line in LineReader(text, source))
    options = Options(assignments=tuple(before), appended=behind, queue=None if has_queue else "",
                      single_cluster=True)
    description = Description(world, reserve, options)
    clusters = description.read(text, source or node.name)
    for sentence in description.warnings:
        warn(sentence)
    if not clusters:
        raise SubmitError("no jobs are queued")
    return clusters[0]


def _appended(variable: Variable, appends: bool) -> bool:
    return appends if variable.prepended is None else not variable.prepended
