"""Rescue files: which nodes of a DAG are done, so that it can go on where it stopped.

**Source**: the manual, "DAGMan Completion".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from condor_actors.dag.definitions import Kind
from condor_actors.dag.run_state import NodeState, RunState

__all__ = ["later_rescues", "newest_rescue", "rescue_name", "rescue_text"]

_NUMBER = re.compile(r"\.rescue(\d{3})\Z")


def rescue_name(primary: str, number: int, *, several: bool) -> str:
    """The name of a rescue file; ``several``: the DAG is of more than one file."""
    return f"{primary}{'_multi' if several else ''}.rescue{number:03d}"


def newest_rescue(names: Iterable[str], primary: str, most: int, *, several: bool) -> int:
    """The highest number of the rescue files among these names, at most ``most``; 0: there is none."""
    return max((number for number in _numbers(names, primary, several=several) if number <= most), default=0)


def later_rescues(names: Iterable[str], primary: str, number: int, *, several: bool) -> list[str]:
    """The rescue files with a higher number."""
    return [rescue_name(primary, each, several=several)
            for each in sorted(_numbers(names, primary, several=several)) if each > number]


def _numbers(names: Iterable[str], primary: str, *, several: bool) -> list[int]:
    beginning = primary + ("_multi" if several else "")
    found = []
    for name in names:
        ending = _NUMBER.match(name[len(beginning):]) if name.startswith(beginning) else None
        if ending:
            found.append(int(ending.group(1)))
    return found


def rescue_text(run: RunState, now_s: float, *, resets_retries: bool, saves: str = "") -> str:
    """The text of a rescue file, or of a save file.

    Args:
        run: the nodes as they stand.
        now_s: the time.
        resets_retries: whether a node that goes on has all its retries again.
        saves: it is the save file of this node.
    """
    dag = run.dag
    title = ([f"# Save file written at Start Node {saves}"] if saves else
             ["# Rescue DAG file, created after running", f"#   the {dag.files[0]} DAG file"])
    when = datetime.fromtimestamp(now_s, UTC)
    states = run.states
    done = sum(states[number] == NodeState.DONE for number in range(len(dag.nodes)))
    failed = [node.name for number, node in enumerate(dag.nodes) if states[number] == NodeState.FAILED]
    lines = [
        *title,
        f"# Created {when.month}/{when.day}/{when.year} {when:%H:%M:%S} UTC", "# Rescue DAG version: 2.1.0",
        "#", f"# Total number of Nodes: {len(dag.nodes) - len(dag.services)}", f"# Nodes premarked DONE: {done}",
        f"# Nodes that failed: {len(failed)}", f"#   {''.join(f'{name},' for name in failed)}<ENDLIST>", "",
    ]
    for number, node in enumerate(dag.nodes):
        if node.kind is Kind.SERVICE:
            continue
        if node.kind is Kind.FINAL:
            pass
        elif states[number] == NodeState.DONE:
            lines.append(f"DONE {node.name}")
        elif states[number] == NodeState.FAILED and _is_satisfied(run, number):
            lines += ["# Failed node with only weak child dependencies:", f"DONE {node.name}"]
        if node.retries and not resets_retries and not saves:
            used = min(run.attempt_of(number), node.retries)
            unless = "" if node.unless_exit is None else f" UNLESS-EXIT {node.unless_exit}"
            lines += [f"# {used} of {node.retries} retries already performed; {node.retries - used} remaining",
                      f"RETRY {node.name} {node.retries - used}{unless}"]
    return "\n".join(lines) + "\n"


def _is_satisfied(run: RunState, number: int) -> bool:
    """Whether a node that failed has children, and none that needs its success."""
    graph = run.dag.graph
    return graph.has_children(number) and not graph.strong(number)
