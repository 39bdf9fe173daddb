"""The files that a run writes for people and programs; every method may block and runs beside the reactor.

**Source**: the manual, "DAGMan Information Files".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence

import attrs

from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.definitions import Dag
from condor_actors.dag.reports import drawing, metrics, status_file
from condor_actors.dag.rescue import newest_rescue, rescue_text
from condor_actors.dag.run_effects import Note
from condor_actors.durable import naming, open_beside, sync_folder
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.dag.dag_files import DagFiles, read_text
from condor_actors.tools.dag.room import append_lines
from condor_actors.tools.dag.state_log import StateLog
from condor_actors.userlog.event_text import event_header
from condor_actors.userlog.writer import LogFiles

__all__ = ["Ending", "RunFiles", "replace_file"]

OLDER = (".old", ".older")


@attrs.frozen(kw_only=True)
class Ending:
    """How a run ended, for the files that are written then."""

    status: int
    dag_id: int
    parent_id: int
    began_s: float
    rescue_read: int
    version: str
    metrics_form: int
    graph: bool
    most_rescues: int
    resets_retries: bool
    writes_rescue: bool


class RunFiles:
    """Where a run writes.

    Args:
        dag: whose run.
        files: names.
        out: the path of dagman.out.
        nodes_log: the event log of all jobs.
    """

    def __init__(self, dag: Dag, files: DagFiles, out: str, nodes_log: str = "") -> None:
        self._dag = dag
        self._files = files
        self._out = out
        self._nodes_log = nodes_log
        self._drawings = 0
        self._rescue = ""  # the rescue file of this run
        self._states = StateLog(dag, dag.jobstate_log, os.getcwd())

    def say(self, lines: Sequence[str]) -> None:
        """Add lines to dagman.out."""
        append_lines(self._out, lines)

    def tell_states(self, now_s: float, notes: Sequence[Note | str]) -> None:
        """Add lines to the job state log: of nodes, or as they are."""
        if self._dag.jobstate_log:
            append_lines(self._dag.jobstate_log, self._states.lines(now_s, notes))

    def log_script(self, note: Note, name: str, now_s: float) -> None:
        """Add to the jobs' event log how the POST script of a node ended, or that its PRE script ended the node."""
        if note.what == "PRE_SKIP":
            number, lines = JobEventType.PRESKIP, ["PRE script return value is PRE_SKIP value"]
        else:
            end = (f"(0) Abnormal termination (signal {-note.status})" if note.status < 0 else
                   f"(1) Normal termination (return value {note.status})")
            number, lines = JobEventType.POST_SCRIPT_TERMINATED, ["POST Script terminated.", f"\t{end}"]
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now_s))
        lines[0] = f"{event_header(number, note.cluster, note.proc)} {when} {lines[0]}"
        text = "\n".join([*lines, f"    DAG Node: {name}", "...", ""])
        LogFiles().append(self._nodes_log, text.encode(errors="surrogateescape"), lock=False, sync=False)

    def write_status(self, pieces: Sequence[str]) -> None:
        """Write the status file anew."""
        wanted = self._dag.status_file
        if wanted is not None:
            replace_file(wanted.file, pieces)

    def draw(self, run: DagRun, now_s: float) -> Callable[[], None]:
        """What writes the drawing of the DAG as it is now, over the last one or under a new name."""
        dot = self._dag.dot
        assert dot is not None
        pieces = list(drawing(run, now_s))

        def write() -> None:
            header = read_text(dot.header) if dot.header and os.path.exists(dot.header) else ""
            path = dot.file
            if not dot.overwrites:
                while os.path.exists(f"{dot.file}.{self._drawings}"):
                    self._drawings += 1
                path = f"{dot.file}.{self._drawings}"
            replace_file(path, [pieces[0], header, *pieces[1:]])

        return write

    def save(self, node: int, text: str) -> None:
        """Write the save file of a node."""
        name = self._dag.nodes[node].save_file or ""
        path = name
        if "/" not in name:
            folder = os.path.join(os.path.dirname(self._files.primary), "save_files")
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, name)
        for newer, older in ((path + OLDER[0], path + OLDER[1]), (path, path + OLDER[0])):
            if os.path.exists(newer):
                os.replace(newer, older)
        replace_file(path, [text])

    def end(self, run: DagRun, ending: Ending, now_s: float) -> str:
        """Write what is written at the end; the path of the rescue file, empty: there is none."""
        rescue = self.write_rescue(run, ending, now_s) if ending.writes_rescue else ""
        replace_file(self._files.metrics, [metrics(
            run, start_s=ending.began_s, end_s=now_s, status=ending.status, dagman_id=ending.dag_id,
            parent_id=ending.parent_id, rescue=ending.rescue_read, version=ending.version, form=ending.metrics_form,
            graph=ending.graph)])
        self.write_status(list(status_file(run, now_s, 0, status=ending.status)))
        if self._dag.dot is not None and self._dag.dot.updates:
            self.draw(run, now_s)()
        return rescue

    def write_rescue(self, run: DagRun, ending: Ending, now_s: float) -> str:
        """Write the rescue file of this run, again if it has one; its path, empty: there is to be none."""
        if not ending.most_rescues:
            return ""
        if not self._rescue:
            newest = newest_rescue(self._files.beside(), self._files.primary, ending.most_rescues,
                                   several=self._files.several)
            self._rescue = self._files.rescue(min(ending.most_rescues, 1 + newest))
        replace_file(self._rescue, [rescue_text(run.nodes, now_s, resets_retries=ending.resets_retries)])
        return self._rescue


def stamped(text: str, now_s: float) -> str:
    """A line of dagman.out."""
    return f"{time.strftime('%m/%d/%y %H:%M:%S', time.localtime(now_s))} {text}"


def replace_file(path: str, pieces: Iterable[str]) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: what was there stays; names the file.
    """
    stream, made = open_beside(path, "dag")
    with naming(path), stream:
        try:
            for piece in pieces:
                rest = memoryview(piece.encode(errors="surrogateescape"))
                while rest:
                    rest = rest[stream.write(rest):]
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
            os.replace(made, path)
        except OSError:
            os.unlink(made)
            raise
    sync_folder(os.path.dirname(path) or ".")
