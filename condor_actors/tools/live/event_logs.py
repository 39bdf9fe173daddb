"""Which event logs condor_watch_q reads, and how it follows them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping

import attrs

from condor_actors.classads import ClassAd, quote
from condor_actors.messages.queue import QueryJobs
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import load, refused, schedd
from condor_actors.tools.live.tracked_jobs import TrackedJobs
from condor_actors.userlog.reader import EventReader
from condor_actors.userlog.watch import GrowingFile
from condor_actors.wire.blocking import WireError

__all__ = ["Found", "FollowedLogs", "find_logs"]

PROJECTION = ("ClusterId", "JobBatchName", "UserLog", "DAGManNodesLog", "Iwd", "DAG_NodesTotal",
              "OtherJobRemoveRequirements", "TotalSubmitProcs")


@attrs.define
class Found:
    """What the schedd says of the jobs that are asked for.

    Attributes:
        logs: their event logs, absolute; True: it may not be there yet.
        batches, expected: names of batches and numbers of jobs, by cluster.
        of_batches: the clusters that ``-batches`` names.
        workflows: the batch of the workflow whose nodes a log tells of, by the log.
        nodes: how many nodes a workflow has, by its batch.
        managers: clusters that are workflows.
        warnings: what could not be found out.
    """

    logs: dict[str, bool] = attrs.Factory(dict)
    batches: dict[int, str] = attrs.Factory(dict)
    expected: dict[int, int] = attrs.Factory(dict)
    of_batches: set[int] = attrs.Factory(set)
    workflows: dict[str, str] = attrs.Factory(dict)
    nodes: dict[str, int] = attrs.Factory(dict)
    managers: set[int] = attrs.Factory(set)
    warnings: list[str] = attrs.Factory(list)

    def take(self, ad: ClassAd) -> None:
        """A job's ad."""
        cluster = ad.get_int("ClusterId")
        if cluster in self.expected:
            return
        self.expected[cluster] = ad.get_int("TotalSubmitProcs")
        self.batches[cluster] = batch = ad.get_str("JobBatchName")
        nodes_log = ad.get_str("DAGManNodesLog")
        log = nodes_log or ad.get_str("UserLog")
        if not log:
            self.warnings.append(f"Cluster {cluster} does not have a job event log file (set log=<path> in the submit "
                                 "description)")
            return
        log = os.path.abspath(os.path.join(ad.get_str("Iwd"), log))
        self.logs.setdefault(log, False)
        if nodes_log and batch:
            self.workflows[log] = batch
        if "OtherJobRemoveRequirements" in ad:
            self.managers.add(cluster)
            log = log.replace(".dagman.log", ".nodes.log")
            self.logs.setdefault(log, True)
            if batch:
                self.workflows[log] = batch
                self.nodes[batch] = ad.get_int("DAG_NodesTotal")


def find_logs(*, users: Iterable[str], clusters: Iterable[int], batches: Iterable[str], files: Iterable[str],
              pool: str, name: str) -> Found:
    """The event logs of jobs in the queue, and those that were named.

    Args:
        users, clusters, batches: whose, which; all that one of them names.
        files: logs to read in any case.
        pool, name: whose schedd to ask; nobody is asked where files alone are given.
    """
    found = Found(logs={os.path.abspath(file): False for file in files})
    batches = list(batches)
    wanted = [*(f"Owner == {quote(user)}" for user in users), *(f"ClusterId == {each}" for each in clusters),
              *(f"JobBatchName == {quote(batch)}" for batch in batches)]
    if not wanted:
        return found
    try:
        with schedd(load(), name=name, pool=pool) as there:
            cursor = ""
            while True:
                page = there.ask(QueryJobs(constraint=" || ".join(wanted), projection=PROJECTION, cursor=cursor))
                for text in page.ads:
                    ad = ClassAd.from_bytes(text)
                    found.take(ad)
                    if ad.get_str("JobBatchName") in batches:
                        found.of_batches.add(ad.get_int("ClusterId"))
                cursor = page.cursor
                if not cursor:
                    break
    except (ToolError, WireError) as error:
        why = error.text if isinstance(error, ToolError) else refused(error)
        found.warnings.append(f"Was not able to query to discover job event logs due to: {why}")
    return found


@attrs.define(eq=False)
class _Log:
    """A log that is followed."""

    file: GrowingFile
    reader: EventReader


class FollowedLogs:
    """Event logs, read as they grow.

    Args:
        logs: their paths; True: one that may not be there yet is no mistake.

    Attributes:
        warnings: what could not be read, for people; the caller that prints them empties the list.
    """

    def __init__(self, logs: Mapping[str, bool]) -> None:
        self.warnings: list[str] = []
        self._logs: dict[str, _Log] = {}
        self._later: list[str] = []
        for path, may_come in logs.items():
            self._open(path, may_come)

    @property
    def waits_for_more(self) -> bool:
        """Whether one of the logs is not there yet, or cannot tell that it has grown."""
        return bool(self._later) or any(log.file.fileno() is None for log in self._logs.values())

    def _open(self, path: str, may_come: bool) -> None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block us forever
                raise OSError(0, "it is no file")
            self._logs[path] = _Log(GrowingFile(path), EventReader())
        except OSError as error:
            if may_come:
                self._later.append(path)
                return
            why = "File path does not exist" if isinstance(error, FileNotFoundError) else error.strerror
            self.warnings.append(f"Could not open event log at {path} for reading, so it will be ignored. "
                                 f"Reason: {why}")

    def descriptors(self) -> list[int]:
        """Readable when a log may have grown."""
        return [descriptor for log in self._logs.values() if (descriptor := log.file.fileno()) is not None]

    def read(self, jobs: TrackedJobs) -> bool:
        """Take what is new; whether anything has changed."""
        later, self._later = self._later, []
        for path in later:
            self._open(path, True)
        has_changed = False
        for path, log in list(self._logs.items()):
            log.file.forget()
            try:
                data = log.file.read()
            except OSError as error:
                self.warnings.append(f"Could not read the event log at {path}: {error.strerror}")
                self._close(path)
                continue
            for event in log.reader.feed(data):
                has_changed = jobs.take(path, event) or has_changed
            if log.reader.stranger:
                self.warnings.append(f"{path}:1: {log.reader.stranger!r} is no event of a job: this is no event log, "
                                     "and is ignored; 'log = FILE' in the submit description names it")
                self._close(path)
        return has_changed

    def _close(self, path: str) -> None:
        self._logs.pop(path).file.close()

    def close(self) -> None:
        """Follow nothing any more."""
        for path in list(self._logs):
            self._close(path)
