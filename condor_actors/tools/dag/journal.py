"""The journal of a run: the events that it was told, in a file from which it begins again after a crash.

Its first line says of which DAG it is, and from which rescue file the run began, its second the settings of the run:
the same events make the same run only with the same settings.  A line ``@ N`` says how much of the nodes' event log has
become events.  What a crash left of a last line is cut off.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence

import attrs

from condor_actors.dag.definitions import Dag
from condor_actors.dag.run_events import RunEvent, event_of
from condor_actors.dag.run_state import RunSettings
from condor_actors.durable import append_whole, naming
from condor_actors.tools.dag.dag_files import is_ours, open_own

__all__ = ["Journal", "JournalError", "digest_of"]

_FORM = "condor_dagman journal 1"


class JournalError(ValueError):
    """A journal that this run cannot go on from; says why, and what to do."""


def digest_of(dag: Dag) -> str:
    """What a DAG is known by: its nodes in order, what steers them, and what waits for what."""
    digest = hashlib.sha256(repr(sorted(dag.limits.items())).encode())
    for number, node in enumerate(dag.nodes):
        digest.update(repr((
            node.name, node.kind, node.noop, node.pre and node.pre.defer, node.post and node.post.defer, node.hold,
            node.pre is None, node.post is None, node.pre_skip, node.retries, node.unless_exit, node.priority,
            node.category, node.abort_on, node.tolerance, node.fails_fast, node.done)).encode())
        for child, weak in dag.graph.children_of(number):
            digest.update(b"%d %d," % (child, weak))
    return digest.hexdigest()[:32]


@attrs.define
class Journal:
    """An open journal.

    Attributes:
        path: its file.
        offset: how much of the event log has become events.
        rescue: the file that the run began from; empty: none.
        began_s: when it began.
        problem: why lines could not be added; None: all were.
    """

    path: str
    offset: int = 0
    rescue: str = ""
    began_s: float = 0.0
    problem: OSError | None = None
    _descriptor: int = -1

    @classmethod
    def create(cls, path: str, digest: str, settings: RunSettings, rescue: str, now_s: float) -> Journal:
        """The journal of a new run."""
        journal = cls(path, 0, rescue, now_s)
        try:
            journal._descriptor = open_own(path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror}; remove it") from None
        os.ftruncate(journal._descriptor, 0)
        journal.append([f"{_FORM} {digest} {now_s:.3f} {rescue}", json.dumps(attrs.asdict(settings))])
        return journal

    @classmethod
    def head(cls, path: str) -> tuple[str, float, str, RunSettings]:
        """Digest, time of beginning, rescue file and settings of the run that a journal is of.

        Raises:
            JournalError: it is none.
        """
        if not is_ours(path):
            raise JournalError(f"{path} belongs to another user, or is a link; remove it, or run the DAG in a folder "
                               "where nobody else can write")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            words = file.readline().rstrip("\n").split(" ", 5)
            second = file.readline()
        try:
            if " ".join(words[:3]) != _FORM:
                raise ValueError("it begins otherwise")
            return words[3], float(words[4]), words[5], RunSettings(**json.loads(second))
        except (ValueError, TypeError, IndexError) as error:
            raise JournalError(f"{path} is no journal of condor_dagman ({error}); remove it to begin anew") from None

    @classmethod
    def open(cls, path: str, digest: str, tell: Callable[[RunEvent], object]) -> Journal:
        """The journal of a run that goes on; each of its events is told.

        Raises:
            JournalError: it is of another DAG, or is none.
        """
        known, began_s, rescue, _ = cls.head(path)
        if known != digest:
            raise JournalError(f"the nodes of the DAG have changed since the run began that {path} is of; put them "
                               "back, or remove the jobs of that run and submit with -force")
        journal = cls(path, 0, rescue, began_s)
        whole = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                if number > 1:
                    journal._take(line[:-1].decode(), tell)
        os.truncate(path, whole)
        journal._descriptor = open_own(path, os.O_WRONLY | os.O_APPEND)
        return journal

    def _take(self, line: str, tell: Callable[[RunEvent], object]) -> None:
        if line.startswith("@ "):
            self.offset = int(line[2:])
            return
        try:
            tell(event_of(line))
        except ValueError as error:
            raise JournalError(f"{self.path}: {error}; submit with -force to begin anew") from None

    def append(self, lines: Sequence[str]) -> None:
        """Add lines, with one write, or nothing.

        Raises:
            OSError: nothing was added; names the journal.
        """
        data = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
        try:
            with naming(self.path):
                append_whole(self._descriptor, data, sync=False)
        except OSError as error:
            self.problem = error
            raise

    def sync(self) -> None:
        """Wait until it is on the disk."""
        os.fdatasync(self._descriptor)

    def remove(self) -> None:
        """The run is over."""
        os.close(self._descriptor)
        os.unlink(self.path)
