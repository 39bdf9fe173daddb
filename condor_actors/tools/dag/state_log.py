"""The job state log of a DAG: what happened to each node and try, for Pegasus and its like.

Theory: the log goes on over all runs of a DAG.  Each try of a node has a sequence number that no other try has, counted
from what the log has already; the next run begins behind it, and one that was killed goes on with its tries' own.

**Source**: the manual, "Machine-Readable Event History".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from condor_actors.dag.definitions import Dag, Node
from condor_actors.dag.run_effects import Note
from condor_actors.tools.dag.dag_files import read_text
from condor_actors.tools.dag.node_description import folder_of

__all__ = ["RECOVERS", "StateLog"]

RECOVERS = "INTERNAL *** RECOVERY_STARTED ***"
_WITHOUT_JOB = frozenset({"PRE_SCRIPT_STARTED", "PRE_SCRIPT_SUCCESS", "PRE_SCRIPT_FAILURE", "SUBMIT_FAILURE"})
_KEPT_FOR_PEOPLE = frozenset({"RETRY", "NODE_DONE", "NODE_FAILED", "PRE_SKIP", "IMAGE_SIZE", "FILE_TRANSFER",
                              "JOB_DISCONNECTED", "JOB_RECONNECTED", "JOB_RECONNECT_FAILED"})
_LINE = re.compile(r"\d+ (\S+) ([A-Z_]+) \S+ .* - (\d{1,9})\n")
_ATTRIBUTE = re.compile(r"\s*(?:\+|MY\.)(\w+)\s*=\s*(.*?)\s*\Z", re.IGNORECASE)


def _ended(node: Node, event: str) -> bool:
    """Whether a try was over with this event."""
    last = "POST_SCRIPT" if node.post is not None else "JOB"
    return event in ("PRE_SCRIPT_FAILURE", f"{last}_SUCCESS", f"{last}_FAILURE")


class StateLog:
    """Makes the lines; blocks as it reads files.

    Args:
        dag: whose.
        path: of the log.
        cwd: where the DAG runs.
    """

    def __init__(self, dag: Dag, path: str, cwd: str) -> None:
        self._dag = dag
        self._path = path
        self._cwd = cwd
        self._is_read = False
        self._last = 0
        self._sequence: dict[str, int] = {}
        self._tags: dict[int, str] = {}

    def lines(self, now_s: float, notes: Sequence[Note | str]) -> list[str]:
        """The lines of some notes: about nodes, or as they are."""
        if not self._is_read:
            self._read(keeps=RECOVERS in notes)
        return [line for note in notes if (line := self._line(now_s, note))]

    def _read(self, *, keeps: bool) -> None:
        """Which numbers there have been; ``keeps``: the tries go on."""
        self._is_read = True
        ends: dict[str, str] = {}
        try:
            with open(self._path, encoding="utf-8", errors="surrogateescape") as file:
                for line in file:
                    found = _LINE.fullmatch(line)
                    if found:
                        self._sequence[found[1]] = int(found[3])
                        ends[found[1]] = found[2]
        except FileNotFoundError:
            return
        self._last = max(self._sequence.values(), default=0)
        going_on = {node.name for node in self._dag.nodes if keeps and not _ended(node, ends.get(node.name, ""))}
        self._sequence = {name: number for name, number in self._sequence.items() if name in going_on}

    def _line(self, now_s: float, note: Note | str) -> str:
        if isinstance(note, str):
            return f"{int(now_s)} {note}"
        node = self._dag.nodes[note.node]
        if note.what == "RETRY":
            self._sequence.pop(node.name, None)
        if note.what in _KEPT_FOR_PEOPLE:
            return ""
        if node.name not in self._sequence:
            self._last += 1
            self._sequence[node.name] = self._last
        job = "-" if note.what in _WITHOUT_JOB or not note.cluster else f"{note.cluster}.{note.proc}"
        if note.what in ("JOB_SUCCESS", "JOB_FAILURE"):
            job = str(note.status)
        tag = self._tags.get(note.node)
        if tag is None:
            tag = self._tags[note.node] = self._tag(node)
        return f"{int(now_s)} {node.name} {note.what} {job} {tag} - {self._sequence[node.name]}"

    def _tag(self, node: Node) -> str:
        """The job tag that a node's description gives: ``+pegasus_site``, or the attribute that it names."""
        try:
            text = node.inline
            if text is None:
                text = read_text(f"{folder_of(node, self._cwd)}/{node.description}" if node.description[:1] != "/"
                                 else node.description)
        except OSError:
            return "-"
        found = {}
        for line in text.splitlines():
            attribute = _ATTRIBUTE.match(line)
            if attribute:
                found[attribute[1].lower()] = attribute[2].strip("\"'")
        name = found.get("job_tag_name", "").lstrip("+").lower() or "pegasus_site"
        return "".join(found.get(name, "").split()) or "-"
